/*
 * restart.c (x86-64) - a system call that our signal interrupted goes on as if nothing
 * had been.
 *
 * The signal is not sent to a thread that sleeps, but one may fall asleep between the
 * look and the signal. The kernel restarts most calls by itself (SA_RESTART). Those in
 * restart_wanted it ends with EINTR: nothing was done and all argument registers are as
 * they were; only the call's number is gone. If the number can be known it is put back
 * and the call is made once more.
 *
 * A transfer that had begun ends short instead: a large write, send, or a recv of all
 * that was asked for. The rest of it is made into a call of its own, from restart_rest,
 * and the result is the sum. (Not from the handler: there the program's own signals would
 * not come through.)
 *
 * A call whose number is not known fails with EINTR, or ends short, as it would for any
 * other signal. So do writev, sendmsg and the like when they had begun.
 *
 * The number
 *
 * A compiler loads the number right before the system call, with a constant. Bytes before
 * the call that look like such an instruction may be the end of a longer one, since x86
 * code cannot be read backwards. So the function is decoded from its beginning, which its
 * unwind record tells (insn.h). The number is known if
 *
 *	- a constant is loaded into %eax,
 *	- every instruction from there to the call is one that certainly keeps it,
 *	- no jump within the function leads in between, and no jump of the function
 *	  goes to an address that cannot be told.
 *
 * The same holds for libc's syscall(nr, ...): there the constant is loaded into %edi
 * before the call of that function. Code without unwind records (generated at run time,
 * as a rule) or that cannot be read is not looked at. Rejected: a list of libc's wrappers
 * by name, since many of its calls are made in functions without a name that can be
 * looked up.
 *
 * Time that is left
 *
 * Some calls have a timeout that is a span, and do not say how much of it is left. Such a
 * call is made from restart_timed, with a timeout of our own, and the frame there has the
 * time at which it ends, for another signal. For the first one the span is taken to have
 * just begun: our signal is sent to threads that run.
 *
 * Not ours
 *
 * A call that was interrupted by the program's own signal looks the same if ours comes at
 * the very instruction at which the program's handler returns to it. That is not rare: a
 * handler may block all signals, and ours, sent while it runs, then comes just there. To
 * make the call once more would be wrong: a thread in sigsuspend would wait for ever. But
 * what the kernel restored the registers from is still there, below the stack that it
 * returned to, and our handler has a stack of its own: if it is found the call is left as
 * it is. What cannot be told apart is a handler that runs on the thread's alternate
 * stack, as ours does. And where the program's signal has interrupted such a call before,
 * at the same depth and with the same arguments, one that ours interrupted fails with
 * EINTR, too.
 */
#include "preempt/restart.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#include "unwind/eh_frame.h"
#include "preempt/x86_64/insn.h"
#include "platform/os.h"
#include "base/throw.h"
#include "platform/tool.h"

/* Newer than some headers. */
#define SYS_EPOLL_PWAIT2 441
#define SYS_FUTEX_WAITV  449
#define SYS_FUTEX_WAIT   455

/* Larger numbers are not those of calls. */
#define NUMBER_MAX 600
/* Of a larger function not all is decoded in a handler. */
#define FUNCTION_BYTES_MAX (32 << 10)

static bool restart_wanted(long nr)
{
	static const uint16_t calls[] = {
		SYS_nanosleep, SYS_clock_nanosleep, SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6,
		SYS_epoll_wait, SYS_epoll_pwait, SYS_EPOLL_PWAIT2, SYS_futex,
		SYS_FUTEX_WAITV, SYS_FUTEX_WAIT, SYS_semop, SYS_semtimedop,
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

struct code {
	const uint8_t *start, *end;
};

#define PAGE_BYTES 4096

/* The function around pc, if all of it can be read. */
static bool function_of(uintptr_t pc, struct code *out)
{
	struct module module;
	struct eh_fde fde;

	if (!module_find(pc, &module) || !eh_frame_find(&module, pc, &fde) ||
	    fde.size > FUNCTION_BYTES_MAX)
		return false;
	check(pc - fde.start < fde.size);
	for (uintptr_t at = fde.start; at < fde.start + fde.size; at = (at | (PAGE_BYTES - 1)) + 1)
		if (!os_is_readable(at & ~(uintptr_t)7))
			return false;
	*out = (struct code){ (const uint8_t *)fde.start, (const uint8_t *)fde.start + fde.size };
	return true;
}

/* The instruction that ends at `end`. */
static bool find_before(struct code f, const uint8_t *end, struct insn *in)
{
	const uint8_t *at = f.start;

	check(f.start <= end && end <= f.end);
	for (; at < end; at = in->end)
		if (!insn_decode(in, at, f.end))
			return false;
	return at == end && at != f.start;
}

/* No jump of the function leads behind `from`, up to `to`. */
static bool is_straight(struct code f, const uint8_t *from, const uint8_t *to)
{
	struct insn in;

	check(f.start <= from && from < to && to <= f.end);
	for (const uint8_t *at = f.start; at < f.end; at = in.end) {
		const uint8_t *target;

		if (!insn_decode(&in, at, f.end) || insn_is_indirect(&in, false))
			return false;
		target = insn_target(&in);
		if (target && target > from && target <= to)
			return false;
	}
	return true;
}

/* The register's constant when the instruction at `to` runs; -1: it cannot be told. */
static long constant_at(struct code f, const uint8_t *to, int reg)
{
	const uint8_t *from = f.start, *at = f.start;
	struct insn in;
	long value = -1;

	for (; at < to; at = in.end) {
		long constant;

		if (!insn_decode(&in, at, f.end))
			return -1;
		constant = insn_constant(&in, reg);
		if (constant >= 0)
			from = at;
		if (constant >= 0 || !insn_keeps(&in, reg))
			value = constant;
	}
	return at == to && value >= 0 && value <= NUMBER_MAX && is_straight(f, from, to) ? value : -1;
}

/* libc's syscall(nr, ...) up to the system call: it moves all arguments down. */
static bool is_syscall_function(struct code f, const uint8_t *insn)
{
	static const uint8_t code[] = {
		0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca,
		0x4d, 0x89, 0xc2, 0x4d, 0x89, 0xc8, 0x4c, 0x8b, 0x4c, 0x24, 0x08,
	};

	return (size_t)(insn - f.start) >= sizeof code &&
	       memcmp(insn - sizeof code, code, sizeof code) == 0;
}

TOOL_UNCHECKED static uintptr_t word_at(const void *at)
{
	return *(const volatile uintptr_t *)at;
}

/* Where an indirect call or jump at a fixed distance goes; NULL: it is none. */
static const uint8_t *indirect_target(const struct insn *in, bool call)
{
	const uint8_t *slot = insn_is_indirect(in, call) ? insn_slot(in) : NULL;

	return slot && os_is_readable((uintptr_t)slot) ? (const uint8_t *)word_at(slot) : NULL;
}

/* Where "jmp *slot(%rip)" of the linkage table, perhaps behind endbr64, goes. */
static const uint8_t *stub_target(const uint8_t *stub)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t code[2 * INSN_BYTES_MAX];
	struct insn in;

	if (!os_is_readable((uintptr_t)stub) || !os_is_readable((uintptr_t)stub + sizeof code - 8))
		return NULL;
	memcpy(code, stub, sizeof code);
	if (memcmp(code, endbr64, sizeof endbr64) == 0)
		stub += sizeof endbr64;
	return insn_decode_padded(&in, stub) ? indirect_target(&in, false) : NULL;
}

static bool calls(const struct insn *in, const uint8_t *function)
{
	const uint8_t *target = in->opcode == 0xe8 ? insn_target(in) : NULL;

	if (!target)
		return indirect_target(in, true) == function;
	return target == function || stub_target(target) == function;
}

/* The number that the function `syscall` was called with, from the call before ra. */
static long number_passed(struct code syscall, uintptr_t ra)
{
	struct code caller;
	struct insn in;

	if (!function_of(ra - 1, &caller) || !find_before(caller, (const uint8_t *)ra, &in) ||
	    !calls(&in, syscall.start))
		return -1;
	return constant_at(caller, in.start, INSN_RDI);
}

/* ------------------------------------------------------------ calls of ours */

/* What restart_rest and restart_timed (restart.S) find on the stack. */
struct restart_frame {
	long done;				/* of a transfer */
	long rdi, rsi, rdx, r10, r8, rip;	/* to go on with */
	long nr;
	int64_t until;				/* when its time is over */
	struct timespec left;			/* its timeout */
};
#define RED_ZONE_BYTES 128
_Static_assert(offsetof(struct restart_frame, rip) == 48 && offsetof(struct restart_frame, nr) == 56 &&
               sizeof(struct restart_frame) == 88, "restart.S has these offsets");

/* Make the call in the frame at %rsp and go on at its rip; the first adds what was
 * done. */
void restart_rest(void);
void restart_timed(void);
extern const char restart_rest_returned[];	/* right after their system calls */
extern const char restart_timed_returned[];

static struct restart_frame *push_frame(greg_t *reg, long nr)
{
	struct restart_frame *f = (struct restart_frame *)(reg[REG_RSP] - RED_ZONE_BYTES) - 1;

	tool_stack_grows(f, sizeof *f);
	*f = (struct restart_frame){
		.rdi = reg[REG_RDI], .rsi = reg[REG_RSI], .rdx = reg[REG_RDX], .r10 = reg[REG_R10],
		.r8 = reg[REG_R8], .rip = reg[REG_RIP], .nr = nr,
	};
	reg[REG_RSP] = (greg_t)f;
	return f;
}

TOOL_RACY long restart_number(uintptr_t pc, uintptr_t sp)
{
	const uint8_t *insn = (const uint8_t *)pc - 2;
	struct code f;
	long nr;

	if (pc == (uintptr_t)restart_rest_returned || pc == (uintptr_t)restart_timed_returned)
		return ((const struct restart_frame *)sp)->nr;
	if (!os_is_readable((pc - 2) & ~(uintptr_t)7) || !os_is_readable((pc - 1) & ~(uintptr_t)7) ||
	    insn[0] != 0x0f || insn[1] != 0x05 || !function_of(pc - 2, &f))
		return -1;
	nr = constant_at(f, insn, INSN_RAX);
	if (nr >= 0 || !is_syscall_function(f, insn))
		return nr;
	return number_passed(f, word_at((const void *)sp));
}

/* ------------------------------------------------------------- the rest of it */

/* A transfer that is meant to be whole, to the end of a stream. */
static bool is_whole(long nr, const greg_t *reg)
{
	long flags = reg[REG_R10];

	if (nr == SYS_write)
		return true;
	if (reg[REG_R8] != 0 || flags & MSG_DONTWAIT)
		return false;
	return nr == SYS_sendto || (nr == SYS_recvfrom && flags & MSG_WAITALL);
}

static void go_on_with_rest(long nr, greg_t *reg)
{
	struct restart_frame *f = push_frame(reg, nr);

	f->done = reg[REG_RAX];
	reg[REG_RSI] += f->done;
	reg[REG_RDX] -= f->done;
	check(f->done > 0 && reg[REG_RDX] > 0);
	reg[REG_RIP] = (greg_t)restart_rest;
}

/* ---------------------------------------------------------- time that is left */

#define MILLISECOND INT64_C(1000000)
#define SECOND      INT64_C(1000000000)
#define FOREVER_NS  (INT64_MAX / 4)

/* The argument that is a span of time, of which the call does not say what is left. */
struct span {
	int reg;		/* -1: there is none */
	bool milliseconds;	/* an int, or else a struct timespec at an address */
	int64_t ns;
};

static bool is_wall_clock(long clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
	       clock == CLOCK_TAI;
}

/* select, pselect6 and ppoll have none: they write back what is left. */
static struct span span_of(long nr, const greg_t *reg)
{
	switch (nr) {
	case SYS_poll:
		return (struct span){ REG_RDX, true, 0 };
	case SYS_epoll_wait: case SYS_epoll_pwait:
		return (struct span){ REG_R10, true, 0 };
	case SYS_EPOLL_PWAIT2: case SYS_semtimedop:
		return (struct span){ REG_R10, false, 0 };
	case SYS_nanosleep:
		return (struct span){ REG_RDI, false, 0 };
	case SYS_clock_nanosleep:
		return (struct span){ (int)reg[REG_RSI] & TIMER_ABSTIME || !is_wall_clock((int)reg[REG_RDI]) ?
		                      -1 : REG_RDX, false, 0 };
	case SYS_rt_sigtimedwait:
		return (struct span){ REG_RDX, false, 0 };
	case SYS_io_getevents: case SYS_io_pgetevents:
		return (struct span){ REG_R8, false, 0 };
	case SYS_futex:		/* its other operations wait until a time */
		return (struct span){ (reg[REG_RSI] & FUTEX_CMD_MASK) == FUTEX_WAIT ? REG_R10 : -1, false, 0 };
	}
	return (struct span){ -1, false, 0 };
}

/* Where the kernel has written what is left of a sleep; NULL: nowhere. */
static const struct timespec *remainder_of(long nr, const greg_t *reg)
{
	return nr == SYS_nanosleep ? (const struct timespec *)reg[REG_RSI] :
	       nr == SYS_clock_nanosleep ? (const struct timespec *)reg[REG_R10] : NULL;
}

/* The time that the call had at first. False: it waits without an end, or until one. */
TOOL_UNCHECKED static bool read_span(struct span *s, long nr, const greg_t *reg)
{
	const volatile struct timespec *t;

	if (s->reg < 0)
		return false;
	if (s->milliseconds) {
		s->ns = (int)reg[s->reg] * MILLISECOND;
		return (int)reg[s->reg] >= 0;
	}
	t = remainder_of(nr, reg);
	if (!t)
		t = (const struct timespec *)reg[s->reg];
	if (!t)
		return false;
	s->ns = t->tv_sec >= FOREVER_NS / SECOND ? FOREVER_NS : t->tv_sec * SECOND + t->tv_nsec;
	return true;
}

/* The call is made again for the time that is left. False: it has no such time. */
static bool go_on_for_time_left(long nr, greg_t *reg)
{
	struct span s = span_of(nr, reg);
	struct restart_frame *f = (struct restart_frame *)reg[REG_RSP];
	int64_t left;

	if (reg[REG_RIP] != (greg_t)restart_timed_returned) {
		if (!read_span(&s, nr, reg))
			return false;
		f = push_frame(reg, nr);
		f->until = os_now() + s.ns;
	}
	check(f->nr == nr && s.reg >= 0);
	left = f->until - os_now();
	if (left < 0)
		left = 0;
	f->left = (struct timespec){ left / SECOND, left % SECOND };
	reg[s.reg] = s.milliseconds ? (greg_t)((left + MILLISECOND - 1) / MILLISECOND) : (greg_t)&f->left;
	reg[REG_RIP] = (greg_t)restart_timed;
	return true;
}

/* ------------------------------------------------------ whose signal was it? */

/* What the kernel writes for a handler, from the stack pointer down: what is below it and
 * in use, the floating-point state at a multiple of 64, and the rest, of which the
 * context begins at a multiple of 16. */
#define FP_ALIGN    64
#define FRAME_BYTES 440		/* 8, the context with a mask of 64 signals, siginfo_t */

/* Whether the program's handler returned here with the context there. */
TOOL_UNCHECKED static bool is_from(const ucontext_t *uc, uintptr_t at, uintptr_t fp)
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

/* How much the floating-point state takes is seen by our own frame, which begins at the
 * top of the alternate stack: up to a multiple of 64. So there are two places where the
 * other one's may be. (It stays there: ours may come twice.) */
TOOL_UNCHECKED static bool not_ours(const ucontext_t *uc, struct restart_stack on)
{
	uintptr_t sp = (uintptr_t)uc->uc_mcontext.gregs[REG_RSP] - RED_ZONE_BYTES;
	uintptr_t top = (uintptr_t)uc->uc_stack.ss_sp + uc->uc_stack.ss_size;
	uintptr_t bytes = top - (uintptr_t)uc->uc_mcontext.fpregs;
	bool found = false;

	if (bytes > uc->uc_stack.ss_size || sp >= on.hi ||
	    sp < on.lo + bytes + FRAME_BYTES + 2 * FP_ALIGN)
		return false;
	tool_reads_below_begin();
	for (int i = 0; i < 2 && !found; i++) {
		uintptr_t fp = ((sp - bytes) & -(uintptr_t)FP_ALIGN) + (uintptr_t)i * FP_ALIGN;

		found = is_from(uc, (fp - FRAME_BYTES) & -(uintptr_t)16, fp);
	}
	tool_reads_below_end();
	return found;
}

TOOL_RACY bool restart_interrupted(void *ucontext, struct restart_stack on)
{
	greg_t *reg = ((ucontext_t *)ucontext)->uc_mcontext.gregs;
	bool nothing = reg[REG_RAX] == -EINTR;
	bool part = reg[REG_RAX] > 0 && reg[REG_RAX] < reg[REG_RDX];
	long nr;

	if ((!nothing && !part) || (nr = restart_number((uintptr_t)reg[REG_RIP], (uintptr_t)reg[REG_RSP])) < 0 ||
	    not_ours(ucontext, on))
		return false;
	check(nr <= NUMBER_MAX);
	if (part && is_whole(nr, reg))
		go_on_with_rest(nr, reg);
	if (!nothing || !restart_wanted(nr))
		return false;
	if (!go_on_for_time_left(nr, reg)) {
		reg[REG_RAX] = nr;
		reg[REG_RIP] -= 2;
	}
	return true;
}
