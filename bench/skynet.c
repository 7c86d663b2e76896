/*
 * skynet - a tree of goroutines, ten under each, with a million leaves; each
 * sends its sum up a channel; time for the tree.
 *
 * skynet.join: without channels. Each leaves its sum where it is told to, and who started
 * it waits until all ten have: what libraries without channels do.
 */
#include "bench.h"

#define LEAVES 1000000
#define DEGREE 10

static void skynet(goro_chan *up, uint64_t number, uint64_t size)
{
	goro_chan *c;
	uint64_t v, sum = 0;

	if (size == 1) {
		goro_chan_send(up, &number);
		return;
	}
	c = goro_chan_of(uint64_t, 0);
	for (uint64_t i = 0; i < DEGREE; i++)
		BENCH_GO(skynet, c, number + i * (size / DEGREE), size / DEGREE);
	for (int i = 0; i < DEGREE; i++) {
		goro_chan_recv(c, &v);
		sum += v;
	}
	goro_chan_unref(c);
	goro_chan_send(up, &sum);
}

static uint64_t skynet_round(void)
{
	goro_chan *c = goro_chan_of(uint64_t, 0);
	uint64_t sum;

	BENCH_GO(skynet, c, 0, LEAVES);
	goro_chan_recv(c, &sum);
	goro_chan_unref(c);
	return sum;
}

static void join(uint64_t number, uint64_t size, uint64_t *sum, goro_waitgroup *up)
{
	goro_waitgroup all = { 0 };
	uint64_t part[DEGREE];

	*sum = number;
	if (size > 1) {
		goro_waitgroup_add(&all, DEGREE);
		for (uint64_t i = 0; i < DEGREE; i++)
			BENCH_GO(join, number + i * (size / DEGREE), size / DEGREE, &part[i], &all);
		goro_waitgroup_wait(&all);
		*sum = 0;
		for (int i = 0; i < DEGREE; i++)
			*sum += part[i];
	}
	goro_waitgroup_done(up);
}

static uint64_t join_round(void)
{
	goro_waitgroup wg = { 0 };
	uint64_t sum;

	goro_waitgroup_add(&wg, 1);
	BENCH_GO(join, 0, LEAVES, &sum, &wg);
	goro_waitgroup_wait(&wg);
	return sum;
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(skynet_round, 1e6);

	(void)argc, (void)argv;
	bench_report("skynet", m.ns_per_op, "ms", "%" PRIu64, m.check);
	m = measure(join_round, 1e6);
	bench_report("skynet.join", m.ns_per_op, "ms", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
