/*
 * goro/run.h - the program: main as a goroutine.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_RUN
#define GORO_H_RUN

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the runtime if it is not running, runs main_fn as a goroutine (id 1 in
 * the first call) and returns what it returns. As in Go, other goroutines do
 * not keep it waiting; they go on until the process ends. It may be called again
 * later, and by several threads. GORO_MAIN(fn) is a main() that does this. */
GORO_API int goro_run(int (*main_fn)(int argc, char **argv), int argc, char **argv);
#define GORO_MAIN(fn) \
	int main(int argc, char **argv) { return goro_run(fn, argc, argv); }

/* Runs fn(arg) as the main goroutine of a simulated program, in a child process: the
 * whole runtime on one thread, time that jumps while all sleep, and every choice (who
 * runs, for how long, what a select takes) drawn from the seed. The same seed is the same
 * run. Try seeds until one fails, and run that one again.
 *
 * Returns 0 if fn returned, or the status that the process ended with: 2 for a fatal
 * error or a panic, 134 (128 + SIGABRT) for a failed assert. -EBUSY: the runtime has
 * started in this process. -ENOTSUP: not under ASan, TSan or valgrind. */
GORO_API int goro_sim_run(uint64_t seed, void (*fn)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif
