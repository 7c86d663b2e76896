/*
 * panic_cxx.h - destructors between a panic and its goro_try. Defined in panic_cxx.c.
 */
#ifndef GORO_PANIC_CXX_H
#define GORO_PANIC_CXX_H

#include <stdint.h>

/* What the unwinder knows an exception by: an _Unwind_Exception. Lies in the frame of
 * goro_try, which stays while all above it is unwound. */
struct panic_unwinding {
	_Alignas(16) uint64_t kind;
	void (*caught)(int reason, struct panic_unwinding *u);
	uintptr_t unwinders_own[2];

	void (*back)(void *arg);	/* jumps to goro_try */
	void *arg;
};

/* Unwinds up to the frame that u lies in, and then calls back(arg), which does not
 * return. Returns if there is no C++ in the program, or nothing that can unwind it. */
void panic_unwind(struct panic_unwinding *u, void (*back)(void *arg), void *arg);

#endif
