/*
 * restart.h (aarch64) - a system call that our signal interrupted.
 *
 * Here the result has overwritten the call's first argument, which cannot be had
 * back: a call that the kernel does not restart by itself fails with EINTR in
 * the rare case that the thread fell asleep between the look and the signal.
 */
#ifndef GORO_ARCH_RESTART_H
#define GORO_ARCH_RESTART_H

#include <stdbool.h>
#include <stdint.h>

struct restart_stack {
	uintptr_t lo, hi;
};

/* True: the call is made again. */
static inline bool restart_interrupted(void *ucontext, struct restart_stack on)
{
	(void)ucontext, (void)on;
	return false;
}

static inline bool restart_is_inside(uintptr_t pc)
{
	(void)pc;
	return false;
}

#endif
