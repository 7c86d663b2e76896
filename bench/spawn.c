/*
 * spawn - batches of 100 goroutines that end at once; time per goroutine, from
 * its start until the batch has been waited for.
 */
#include "bench.h"

#define BATCH   100
#define BATCHES 100             /* per round */

/* A cache line each, so that the figure does not hang on who shares one. */
struct slot {
	_Alignas(64) uint64_t runs;
};

static void work(struct slot *slot, goro_waitgroup *wg)
{
	slot->runs++;
	goro_waitgroup_done(wg);
}

static void run_batch(struct slot *slots)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, BATCH);
	for (int i = 0; i < BATCH; i++)
		BENCH_GO(work, &slots[i], &wg);
	goro_waitgroup_wait(&wg);
}

static uint64_t spawn_round(void)
{
	static struct slot slots[BATCH];
	uint64_t sum = 0;

	memset(slots, 0, sizeof slots);
	for (int i = 0; i < BATCHES; i++)
		run_batch(slots);
	for (int i = 0; i < BATCH; i++)
		sum += slots[i].runs * (uint64_t)(i + 1);
	return sum;
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(spawn_round, BATCH * BATCHES);

	(void)argc, (void)argv;
	bench_report("spawn", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
