/*
 * panic.h - panics and defers inside the runtime. Defined in panic.c.
 */
#ifndef GORO_PANIC_H
#define GORO_PANIC_H

struct g;
struct defer;

/* Runs gp's defers, last first, down to (not including) until. In user code. */
void panic_run_defers(struct g *gp, struct defer *until);

/* Takes back this goroutine's latest goro_defer of fn. In user code. */
void panic_undefer(void (*fn)(void *arg));
/* The same, and calls it; nothing if there is none. */
void panic_run_deferred(void (*fn)(void *arg));

/* Forgets what a goroutine that ends leaves of its tries and panics. */
void panic_g_end(struct g *gp);

/* A panic raised by the runtime for misuse, in Go's words. In state RUNTIME,
 * without locks; leaves the runtime first. */
_Noreturn void panic_misuse(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

/* The panics of the current goroutine as Go prints them: "panic: a\n\tpanic: b". */
void panic_print(const struct g *gp, int fd);

#endif
