/*
 * pool - a pool of eight workers with a queue of 128 does small tasks; time per
 * task, from its submission until all are done.
 */
#include "bench.h"

#define WORKERS 8
#define QUEUE   128
#define TASKS   50000           /* per round */

struct task {
	uint64_t in, out;
};

static void square(void *arg)
{
	struct task *t = arg;

	t->out = t->in * t->in;
}

static uint64_t pool_round(void)
{
	static struct task tasks[TASKS];
	goro_pool *pool = goro_pool_make(WORKERS, QUEUE);
	uint64_t sum = 0;

	if (!pool)
		measure_fail("cannot make a pool");
	for (uint64_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct task){ .in = i };
		if (goro_pool_submit(pool, square, &tasks[i], GORO_FOREVER) != 0)
			measure_fail("cannot submit");
	}
	goro_pool_close(pool);
	for (int i = 0; i < TASKS; i++)
		sum += tasks[i].out;
	return sum;
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(pool_round, TASKS);

	(void)argc, (void)argv;
	bench_report("pool", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
