/*
 * goro/panic.h - panic, defer and recover.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_PANIC
#define GORO_H_PANIC

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Unrecovered, a panic prints "panic: MESSAGE" and the goroutine's stack on
 * stderr and ends the process with status 2. */
GORO_API GORO_NORETURN void goro_panic(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

/* Runs fn(arg) at the end of the innermost goro_try, or of the goroutine,
 * last deferred first, also on panic and goexit. */
GORO_API void goro_defer(void (*fn)(void *arg), void *arg);

/* Runs fn(arg). NULL if it returned; the message if it panicked (valid until
 * this goroutine's next goro_try). Defers made inside have run. */
GORO_API const char *goro_try(void (*fn)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif
