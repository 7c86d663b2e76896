/*
 * idle - CPU time of a process that has nothing to do.
 *
 * idle.second: a thousand goroutines wait on channels, one sleeps for a second, four
 * times; CPU time in a second, of which its waking is a part.
 * idle.wake: the one sleeps for a millisecond, again and again; CPU time each.
 */
#include "bench.h"

#define WAITERS 1000
#define SECONDS 4    /* one alone varies by a half */
#define SLEEPS  200

static void waiter(goro_chan *c, goro_waitgroup *ended)
{
	goro_chan_recv(c, NULL);
	goro_waitgroup_done(ended);
}

static void idle_second(void)
{
	int64_t cpu, start;

	goro_sleep(20 * GORO_MILLISECOND); /* for threads that still look for work */
	start = goro_now();
	cpu = measure_cpu_ns();
	for (int i = 0; i < SECONDS; i++)
		goro_sleep(GORO_SECOND);
	cpu = measure_cpu_ns() - cpu;
	bench_report("idle.second", (double)cpu / SECONDS / 1e3, "us", "%s",
	             goro_now() - start >= SECONDS * GORO_SECOND ? "slept" : "woke early");
}

static void idle_wake(void)
{
	int64_t cpu = measure_cpu_ns(), start = goro_now();

	for (int i = 0; i < SLEEPS; i++)
		goro_sleep(GORO_MILLISECOND);
	cpu = measure_cpu_ns() - cpu;
	bench_report("idle.wake", (double)cpu / SLEEPS / 1e3, "us", "%s",
	             goro_now() - start >= SLEEPS * GORO_MILLISECOND
	                     ? "slept" : "woke early");
}

static int bench_main(int argc, char **argv)
{
	goro_chan *c = goro_chan_of(int, 0);
	goro_waitgroup ended = { 0 };

	(void)argc, (void)argv;
	goro_waitgroup_add(&ended, WAITERS);
	for (int i = 0; i < WAITERS; i++)
		BENCH_GO(waiter, c, &ended);
	idle_second();
	idle_wake();
	goro_chan_close(c);
	goro_waitgroup_wait(&ended);
	goro_chan_unref(c);
	return 0;
}

GORO_MAIN(bench_main)
