/*
 * restart.h (x86-64) - a system call that our signal interrupted goes on as if
 * nothing had been.
 *
 * The kernel restarts most calls by itself (SA_RESTART); those in the list it
 * ends with EINTR. Such a call has left all argument registers as they were and
 * only the call's number is gone: it stands in the instruction stream just before
 * the system call, where every wrapper of libc loads it. If one of the list is
 * found there the number is put back and the call made once more. A timeout
 * starts anew: the signal goes to threads that were not asleep a moment ago, so
 * hardly any of it had passed. A call made in another way fails with EINTR, as
 * it would for any other signal.
 */
#ifndef GORO_ARCH_RESTART_H
#define GORO_ARCH_RESTART_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

static inline bool restart_wanted(uint32_t nr)
{
	static const uint16_t calls[] = {
		SYS_nanosleep, SYS_clock_nanosleep, SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6,
		SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_futex, SYS_semop,
		SYS_semtimedop, SYS_msgrcv, SYS_msgsnd, SYS_rt_sigtimedwait, SYS_pause,
		SYS_rt_sigsuspend, SYS_io_getevents, SYS_accept, SYS_accept4, SYS_recvfrom,
		SYS_recvmsg, SYS_sendto, SYS_sendmsg,
	};

	for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i] == nr)
			return true;
	return false;
}

/* How far before the system call its number may be loaded, in bytes. */
#define RESTART_LOOK_BACK 24

static inline void restart_interrupted(void *ucontext)
{
	greg_t *reg = ((ucontext_t *)ucontext)->uc_mcontext.gregs;
	const uint8_t *pc = (const uint8_t *)reg[REG_RIP];

	if (reg[REG_RAX] != -EINTR || pc[-2] != 0x0f || pc[-1] != 0x05)
		return;
	for (const uint8_t *at = pc - 7; at >= pc - 2 - RESTART_LOOK_BACK; at--) {
		uint32_t nr;

		if (*at != 0xb8)	/* mov $nr, %eax */
			continue;
		memcpy(&nr, at + 1, sizeof nr);
		if (!restart_wanted(nr))
			continue;
		reg[REG_RAX] = nr;
		reg[REG_RIP] -= 2;
		return;
	}
}

#endif
