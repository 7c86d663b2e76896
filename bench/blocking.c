/*
 * blocking - 64 goroutines that make 50 calls each that sleep in the kernel for
 * 2 ms: the time until all are done, ideally 100 ms and some for the start. Calls
 * that are announced to the scheduler, and calls that it has to find out about.
 */
#include "bench.h"

#define GOROUTINES 64
#define CALLS      50
#define CALL_NS    2000000

static void sleep_in_kernel(void *arg)
{
	struct timespec t = { 0, CALL_NS };

	(void)arg;
	if (nanosleep(&t, NULL) != 0)
		measure_fail("a sleep was interrupted");
}

static void caller(bool announced, uint64_t *calls, goro_waitgroup *wg)
{
	for (int i = 0; i < CALLS; i++) {
		if (announced)
			goro_blocking(sleep_in_kernel, NULL);
		else
			sleep_in_kernel(NULL);
		++*calls;
	}
	goro_waitgroup_done(wg);
}

static uint64_t blocking_round(bool announced)
{
	static struct { _Alignas(64) uint64_t calls; } slot[GOROUTINES];
	goro_waitgroup wg = { 0 };
	uint64_t sum = 0;

	goro_waitgroup_add(&wg, GOROUTINES);
	for (int i = 0; i < GOROUTINES; i++) {
		slot[i].calls = 0;
		BENCH_GO(caller, announced, &slot[i].calls, &wg);
	}
	goro_waitgroup_wait(&wg);
	for (int i = 0; i < GOROUTINES; i++)
		sum += slot[i].calls;
	return sum;
}

static uint64_t announced_round(void)   { return blocking_round(true); }
static uint64_t unannounced_round(void) { return blocking_round(false); }

static int bench_main(int argc, char **argv)
{
	struct measurement m;

	(void)argc, (void)argv;
	m = measure(announced_round, 1e6);
	bench_report("blocking.announced", m.ns_per_op, "ms", "%" PRIu64, m.check);
	m = measure(unannounced_round, 1e6);
	bench_report("blocking.unannounced", m.ns_per_op, "ms", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
