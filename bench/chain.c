/*
 * chain - 100,000 goroutines of which each starts the next and ends; time per
 * link. The opposite of spawn: never more than two alive, nothing to batch.
 */
#include "bench.h"

#define LINKS 100000

static void chain_link(int left, uint64_t sum, uint64_t *result,
                       goro_waitgroup *wg)
{
	if (left > 0) {
		BENCH_GO(chain_link, left - 1, sum + (uint64_t)left, result, wg);
		return;
	}
	*result = sum;
	goro_waitgroup_done(wg);
}

static uint64_t chain_round(void)
{
	goro_waitgroup wg = { 0 };
	uint64_t result;

	goro_waitgroup_add(&wg, 1);
	BENCH_GO(chain_link, LINKS, (uint64_t)0, &result, &wg);
	goro_waitgroup_wait(&wg);
	return result;
}

static int bench_main(int argc, char **argv)
{
	/* LINKS links and the one that ends the chain. */
	struct measurement m = measure(chain_round, LINKS + 1);

	(void)argc, (void)argv;
	bench_report("chain", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
