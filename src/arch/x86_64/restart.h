/*
 * restart.h (x86-64) - a system call that our signal interrupted goes on as if nothing had
 * been. Defined in restart.c and restart.S.
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

/* The number of the system call that returned to pc, where the stack pointer was sp; -1:
 * it is not known. For the tests. */
long restart_number(uintptr_t pc, uintptr_t sp);

#endif
