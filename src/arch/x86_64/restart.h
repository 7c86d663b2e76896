/*
 * restart.h (x86-64) - a system call that our signal interrupted goes on as if
 * nothing had been.
 *
 * The signal is not sent to a thread that sleeps, but one may fall asleep between
 * the look and the signal. The kernel restarts most calls by itself (SA_RESTART).
 * Those in restart_wanted it ends with EINTR: nothing was done and all argument
 * registers are as they were; only the call's number is gone. It stands in the
 * instruction stream just before the system call, where every wrapper of libc
 * loads it, or, for calls made with syscall(), before the call of that. If one of
 * the list is found there the number is put back and the call made once more. A
 * timeout that is not absolute starts anew: hardly any of it had passed.
 *
 * A transfer that had begun ends short instead: a large write, send, or a recv of
 * all that was asked for. The rest of it is made into a call of its own, from
 * restart_rest, and the result is the sum. (Not from the handler: there the
 * program's own signals, that may be meant to end it, would not come through.)
 *
 * A call made in another way fails with EINTR, or ends short, as it would for any
 * other signal. So do writev, sendmsg and the like when they had begun.
 *
 * Not ours
 *
 * A call that was interrupted by the program's own signal looks the same if ours comes at the
 * very instruction at which the program's handler returns to it. That is not rare: a handler
 * may block all signals, and ours, sent while it runs, then comes just there. To make
 * the call once more would be wrong: who waits in sigsuspend would wait for ever. But what
 * the kernel restored the registers from is still there, below the stack that it returned
 * to, and our handler has a stack of its own: if it is found the call is left as it is.
 *
 * What cannot be told apart is a handler that runs on the thread's alternate stack
 * (SA_ONSTACK), as ours does. And where the program's signal has interrupted such a call
 * before, at the same depth and with the same arguments, and nothing has used that part of
 * the stack since, one that ours interrupted fails with EINTR, too.
 */
#ifndef GORO_ARCH_RESTART_H
#define GORO_ARCH_RESTART_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "tool.h"

/* Newer than some headers. */
#define RESTART_SYS_EPOLL_PWAIT2 441
#define RESTART_SYS_FUTEX_WAITV  449
#define RESTART_SYS_FUTEX_WAIT   455

static inline bool restart_wanted(long nr)
{
	static const uint16_t calls[] = {
		SYS_nanosleep, SYS_clock_nanosleep, SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6,
		SYS_epoll_wait, SYS_epoll_pwait, RESTART_SYS_EPOLL_PWAIT2, SYS_futex,
		RESTART_SYS_FUTEX_WAITV, RESTART_SYS_FUTEX_WAIT, SYS_semop, SYS_semtimedop,
		SYS_msgrcv, SYS_msgsnd, SYS_rt_sigtimedwait, SYS_pause, SYS_rt_sigsuspend,
		SYS_io_getevents, SYS_io_pgetevents, SYS_io_uring_enter, SYS_accept, SYS_accept4,
		SYS_connect, SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_recvfrom, SYS_recvmsg,
		SYS_recvmmsg, SYS_sendto, SYS_sendmsg, SYS_sendmmsg,
	};

	for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i] == nr)
			return true;
	return false;
}

/* ------------------------------------------------------ which call was it? */

/* How far before the system call its number may be loaded, and before a call of
 * syscall(), in bytes. */
#define RESTART_LOOK_BACK 24
#define RESTART_LOOK_BACK_CALL 64
/* Larger numbers are not those of calls. */
#define RESTART_NUMBER_MAX 600

/* The number in the last "mov $number, reg" that begins in [end - back, end - 5];
 * opcode is that of the 32-bit register. -1: there is none. */
static inline long restart_mov_before(const uint8_t *end, int back, uint8_t opcode)
{
	for (const uint8_t *at = end - 5; at >= end - back; at--) {
		uint32_t nr;

		if (at[0] != opcode || at[-1] == 0x41)	/* 41: it is %r8d and so on */
			continue;
		memcpy(&nr, at + 1, sizeof nr);
		if (nr <= RESTART_NUMBER_MAX)
			return nr;
	}
	return -1;
}

/* libc's syscall(nr, ...) up to the system call: it moves all arguments down. */
static inline bool restart_in_syscall(const uint8_t *insn)
{
	static const uint8_t code[] = {
		0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca,
		0x4d, 0x89, 0xc2, 0x4d, 0x89, 0xc8, 0x4c, 0x8b, 0x4c, 0x24, 0x08,
	};

	return memcmp(insn - sizeof code, code, sizeof code) == 0;
}

/* The rest of a transfer, as restart_rest (restart.S) finds it on the stack. */
struct restart_rest {
	long done;
	long rsi, rdx, rip;	/* to go on with */
	long nr;
};
#define RESTART_REST_BYTES 40
#define RESTART_RED_ZONE_BYTES 128
_Static_assert(sizeof(struct restart_rest) == RESTART_REST_BYTES, "restart.S has these offsets");

/* Makes the call with its number in the restart_rest at %rsp, adds what it did,
 * and goes on at its rip. */
void restart_rest(void);
extern const char restart_rest_returned[];	/* right after its system call */

/* The number of the system call that returned to pc; -1: cannot tell. */
static inline long restart_number(const greg_t *reg)
{
	const uint8_t *pc = (const uint8_t *)reg[REG_RIP], *insn = pc - 2;

	if (insn[0] != 0x0f || insn[1] != 0x05)
		return -1;
	if ((const char *)pc == restart_rest_returned)
		return ((const struct restart_rest *)reg[REG_RSP])->nr;
	if (restart_in_syscall(insn))
		return restart_mov_before(*(const uint8_t **)reg[REG_RSP], RESTART_LOOK_BACK_CALL,
		                          0xbf);	/* %edi */
	if (insn[-2] == 0x31 && insn[-1] == 0xc0)	/* xor %eax, %eax */
		return 0;
	return restart_mov_before(insn, RESTART_LOOK_BACK, 0xb8);	/* %eax */
}

/* ----------------------------------------------------------- the way on */

/* A transfer that is meant to be whole, to the end of a stream. */
static inline bool restart_is_whole(long nr, const greg_t *reg)
{
	long flags = reg[REG_R10];

	if (nr == SYS_write)
		return true;
	if (reg[REG_R8] != 0 || flags & MSG_DONTWAIT)
		return false;
	return nr == SYS_sendto || (nr == SYS_recvfrom && flags & MSG_WAITALL);
}

static inline void restart_go_on(long nr, greg_t *reg)
{
	struct restart_rest *r = (struct restart_rest *)(reg[REG_RSP] - RESTART_RED_ZONE_BYTES) - 1;

	*r = (struct restart_rest){ reg[REG_RAX], reg[REG_RSI], reg[REG_RDX], reg[REG_RIP], nr };
	reg[REG_RSI] += r->done;
	reg[REG_RDX] -= r->done;
	reg[REG_RSP] = (greg_t)r;
	reg[REG_RIP] = (greg_t)restart_rest;
}

/* ------------------------------------------------------ whose signal was it? */

/* What the kernel writes for a handler, from the stack pointer down: what is below it and in
 * use, the floating-point state at a multiple of 64, and the rest, of which the context begins at
 * a multiple of 16. */
#define RESTART_FP_ALIGN    64
#define RESTART_FRAME_BYTES 440	/* 8, the context with a mask of 64 signals, siginfo_t */

/* Whether the context there is the one that the registers were restored from, when the
 * program's handler returned here. */
TOOL_UNCHECKED static inline bool restart_is_from(const ucontext_t *uc, uintptr_t at, uintptr_t fp)
{
	const volatile mcontext_t *from = &((const ucontext_t *)at)->uc_mcontext;
	const volatile greg_t *was = from->gregs;

	if ((uintptr_t)from->fpregs != fp)
		return false;
	for (int i = REG_R8; i <= REG_RIP; i++)
		if (was[i] != uc->uc_mcontext.gregs[i])
			return false;
	return true;
}

/* The stack that the call was made on, if it is this one; 0, 0: not known. */
struct restart_stack {
	uintptr_t lo, hi;
};

/* How much the floating-point state takes is seen by our own frame, which begins at the top of
 * the alternate stack: up to a multiple of 64. So there are two places where the other one's
 * may be. (It stays there: ours may come twice.) */
TOOL_UNCHECKED static inline bool restart_not_ours(const ucontext_t *uc, struct restart_stack on)
{
	uintptr_t sp = (uintptr_t)uc->uc_mcontext.gregs[REG_RSP] - RESTART_RED_ZONE_BYTES;
	uintptr_t top = (uintptr_t)uc->uc_stack.ss_sp + uc->uc_stack.ss_size;
	uintptr_t bytes = top - (uintptr_t)uc->uc_mcontext.fpregs;

	if (bytes > uc->uc_stack.ss_size || sp >= on.hi ||
	    sp < on.lo + bytes + RESTART_FRAME_BYTES + 2 * RESTART_FP_ALIGN)
		return false;
	for (int i = 0; i < 2; i++) {
		uintptr_t fp = ((sp - bytes) & -(uintptr_t)RESTART_FP_ALIGN) + (uintptr_t)i * RESTART_FP_ALIGN;

		if (restart_is_from(uc, (fp - RESTART_FRAME_BYTES) & -(uintptr_t)16, fp))
			return true;
	}
	return false;
}

static inline void restart_interrupted(void *ucontext, struct restart_stack on)
{
	greg_t *reg = ((ucontext_t *)ucontext)->uc_mcontext.gregs;
	bool nothing = reg[REG_RAX] == -EINTR;
	bool part = reg[REG_RAX] > 0 && reg[REG_RAX] < reg[REG_RDX];
	long nr;

	if ((!nothing && !part) || (nr = restart_number(reg)) < 0 ||
	    restart_not_ours(ucontext, on))
		return;
	if (nothing && restart_wanted(nr)) {
		reg[REG_RAX] = nr;
		reg[REG_RIP] -= 2;
	} else if (part && restart_is_whole(nr, reg)) {
		restart_go_on(nr, reg);
	}
}

#endif
