/*
 * restart.h (x86-64) - a system call that our signal interrupted goes on as if nothing
 * had been. Defined in restart.c and restart.S.
 */
#ifndef GORO_ARCH_RESTART_H
#define GORO_ARCH_RESTART_H

#include <stdbool.h>
#include <stdint.h>

/* The stack that the call was made on, if it is this one; 0, 0: not known. */
struct restart_stack {
	uintptr_t lo, hi;
};

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

#endif
