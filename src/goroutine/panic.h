/*
 * panic.h - panics and defers inside the runtime. Defined in panic.c.
 *
 * The room goroutine is what a goroutine calls about itself. It uses sched and the rooms
 * below it. To the rooms above it offers panics, defers and goro_run's start; its files,
 * in reading order:
 *
 * 	goroutine.c	start with attributes, id, name, lock to a thread
 * 	panic.c		panic, defer, try, goexit
 * 	panic_cxx.c	destructors that a panic calls
 * 	local.c		goroutine-local storage
 * 	errno.c		errno
 * 	run.c		goro_run
 */
#ifndef GORO_PANIC_H
#define GORO_PANIC_H

struct g;
struct defer;

/* goro_defer without memory of its own, which there may be none of. d lies in the
 * caller's frame: before the caller returns it calls panic_run_deferred or
 * panic_run_defers. In user code. */
void panic_defer(struct defer *d, void (*fn)(void *arg), void *arg);

/* Runs gp's defers, last first, until `until` is the first of the list. In user code. */
void panic_run_defers(struct g *gp, struct defer *until);

/* Calls the calling goroutine's latest deferred fn now, if there is one. In user code. */
void panic_run_deferred(void (*fn)(void *arg));

/* Panics for misuse. In state RUNTIME, without locks; leaves the runtime first. */
_Noreturn void panic_misuse(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

/* Prints gp's panics as Go does: "panic: a\n\tpanic: b". */
void panic_print(const struct g *gp, int fd);

#endif
