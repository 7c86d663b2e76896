/*
 * await.h - waiting in tests for what others bring about, and sizes of work that
 * suit the build.
 */
#ifndef GORO_TEST_AWAIT_H
#define GORO_TEST_AWAIT_H

#include <goro.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

#include "platform/tool.h"

#ifndef GORO_CHECKS
#define GORO_CHECKS 0
#endif

/* Work for a release build; a part of it where every step costs a multiple. Of
 * 100,000 goroutines alive at once TSan is to see 5,000: it knows 8,128 at most. */
#define SCALED(n) (TOOL_TSAN ? (n) / 20 : TOOL_ASAN ? (n) / 10 : GORO_CHECKS ? (n) / 2 : (n))

/* One round of waiting: lets the other goroutines run, and then, after a while,
 * the other threads too. */
static inline void await_round(unsigned *rounds)
{
	goro_gosched();
	if (++*rounds > 100)
		usleep(100);
}

/* Returns once cond holds; if it never does, the test's time limit shows where. */
#define AWAIT(cond)                                     \
	do {                                            \
		unsigned await_rounds_ = 0;             \
		while (!(cond))                         \
			await_round(&await_rounds_);    \
	} while (0)

/* The runtime's own threads are there: they come a little after main. */
static inline bool runtime_is_whole(void)
{
	struct goro_stats stats;

	goro_stats_read(&stats);
	return stats.threads >= 3;
}

/* Goroutines that wait for something, other than their turn to run. */
static inline uint64_t goroutines_waiting(void)
{
	struct goro_stats stats;

	goro_stats_read(&stats);
	return stats.waiting;
}

/* Waits without a call of goro's, so that the P stays where it is. */
#define SPIN_UNTIL(cond)                                \
	do {                                            \
		while (!(cond))                         \
			sched_yield();                  \
	} while (0)

/* After a call at the end of a function whose frame is to be seen in a trace. */
#define NO_TAIL_CALL() __asm__ volatile("")

/* For functions that are to be seen in a trace, under their own name. */
#ifdef __clang__
#define SEEN __attribute__((noinline))
#else
#define SEEN __attribute__((noipa))
#endif

static inline int64_t seconds(int n)
{
	return n * GORO_SECOND;
}

#endif
