/*
 * fib - fork and join: fib(25) with a goroutine for every call, which starts
 * two more, waits for both and adds up; time per call.
 */
#include "bench.h"

#define FIB_N     25
#define FIB_CALLS 242785        /* calls that fib(25) makes, itself included */

static void fib(int n, uint64_t *result, goro_waitgroup *wg)
{
	if (n < 2) {
		*result = (uint64_t)n;
	} else {
		goro_waitgroup halves = { 0 };
		uint64_t a, b;

		goro_waitgroup_add(&halves, 2);
		BENCH_GO(fib, n - 1, &a, &halves);
		BENCH_GO(fib, n - 2, &b, &halves);
		goro_waitgroup_wait(&halves);
		*result = a + b;
	}
	goro_waitgroup_done(wg);
}

static uint64_t fib_round(void)
{
	goro_waitgroup wg = { 0 };
	uint64_t result;

	goro_waitgroup_add(&wg, 1);
	BENCH_GO(fib, FIB_N, &result, &wg);
	goro_waitgroup_wait(&wg);
	return result;
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(fib_round, FIB_CALLS);

	(void)argc, (void)argv;
	bench_report("fib", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
