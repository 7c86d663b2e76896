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

#ifdef __cplusplus
}
#endif

#endif
