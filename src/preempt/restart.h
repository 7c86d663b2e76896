/*
 * restart.h - a system call that our signal interrupted goes on as if nothing had been.
 *
 * On aarch64 the result has overwritten the call's first argument, which cannot be had
 * back: a call that the kernel does not restart by itself fails with EINTR in the rare
 * case that the thread fell asleep between the look and the signal.
 */
#ifndef GORO_RESTART_H
#define GORO_RESTART_H

#include <stdbool.h>
#include <stdint.h>

/* The stack that the call was made on, if it is this one; 0, 0: not known. */
struct restart_stack {
	uintptr_t lo, hi;
};

#if defined(__x86_64__)

/* In the handler. True: the call had done nothing, and is made again. */
bool restart_interrupted(void *ucontext, struct restart_stack on);

/* Such a call is being made there: the thread is inside whatever made the first one. */
extern const char restart_code[], restart_code_end[];
static inline bool restart_is_inside(uintptr_t pc)
{
	return pc >= (uintptr_t)restart_code && pc < (uintptr_t)restart_code_end;
}

/* The number of the call that returned to pc, with this stack pointer; -1: not known. */
long restart_number(uintptr_t pc, uintptr_t sp);

#else

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

#endif
