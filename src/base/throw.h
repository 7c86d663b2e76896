/*
 * throw.h - the ends of the process. Defined in fatal.c.
 */
#ifndef GORO_THROW_H
#define GORO_THROW_H

/* A broken invariant of the runtime itself, in release builds too: prints
 * "fatal error: MESSAGE" and the goroutines, and ends with status 2. */
_Noreturn void throw(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

/* The same for an end the program brought about: no trace of the runtime. */
_Noreturn void fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

/* .. and not the caller: a deadlock that it found. */
_Noreturn void fatal_nobody(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

/* Returns in the thread that is the first to end the process; others that come
 * while it prints wait for the end. */
void fatal_first_only(void);

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
