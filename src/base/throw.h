/*
 * throw.h - the ends of the process, and checks that lead there. Defined in fatal.c.
 */
#ifndef GORO_THROW_H
#define GORO_THROW_H

#include <stdbool.h>
#include <stdint.h>

/* A broken invariant of the runtime itself, in release builds too: prints "fatal error:
 * MESSAGE" and the goroutines, and ends with status 2. */
_Noreturn void throw(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

/* The same for an error of the program: the runtime's stack is not shown. */
_Noreturn void fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

/* The same for a deadlock, where the caller is not at fault. */
_Noreturn void fatal_nobody(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

/* Returns in the first thread that ends the process. Any other waits here for the end. */
void fatal_first_only(void);

/* Whose stack is shown first: the runtime's own, the goroutine's (after a panic: alone),
 * none. */
enum culprit { CULPRIT_RUNTIME, CULPRIT_GOROUTINE, CULPRIT_PANIC, CULPRIT_NOBODY };

/* Prints stacks to stderr, as GORO_TRACEBACK says. The culprit's begins with the call
 * that returns to pc; pc 0: with the program's call of goro. Takes no lock and allocates
 * nothing. Filled by dump.c; NULL until it is loaded. */
extern void (*fatal_dump)(enum culprit, uintptr_t pc);

/* Ends the process with status 2; with GORO_TRACEBACK=crash by SIGABRT, which leaves a
 * core. Async-signal-safe. */
_Noreturn void fatal_exit(void) __attribute__((cold));
extern bool fatal_leaves_core;		/* set by dump.c, when the runtime starts */

/* The caller brings back stacks that others wait for, and must print its message
 * alone. */
void fatal_alone(void);
bool fatal_is_alone(void);

#define unlikely(x) __builtin_expect(!!(x), 0)
#define likely(x)   __builtin_expect(!!(x), 1)

#if GORO_CHECKS
#define check(cond)                                                        \
	do {                                                               \
		if (!(cond))                                               \
			throw("%s: %s does not hold", __func__, #cond);    \
	} while (0)
#else
#define check(cond) ((void)0)
#endif

#endif
