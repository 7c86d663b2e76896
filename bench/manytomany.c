/*
 * manytomany - eight producers and eight consumers on one channel with room for
 * 128 values; time per value.
 *
 * A buffer of about the size that work queues are given: large enough that
 * neither side waits at every value, small enough that both sides do wait.
 */
#include "bench.h"

#define CAPACITY  128
#define PRODUCERS 8
#define CONSUMERS 8
#define VALUES    10000         /* per producer and round */

static void producer(goro_chan *c, goro_waitgroup *wg)
{
	for (uint64_t i = 1; i <= VALUES; i++)
		goro_chan_send(c, &i);
	goro_waitgroup_done(wg);
}

static void consumer(goro_chan *c, uint64_t *total, goro_waitgroup *wg)
{
	uint64_t v, sum = 0;

	while (goro_chan_recv(c, &v))
		sum += v;
	*total = sum;
	goro_waitgroup_done(wg);
}

static uint64_t manytomany_round(void)
{
	goro_chan *c = goro_chan_of(uint64_t, CAPACITY);
	goro_waitgroup producers = { 0 }, consumers = { 0 };
	uint64_t total[CONSUMERS], sum = 0;

	goro_waitgroup_add(&producers, PRODUCERS);
	goro_waitgroup_add(&consumers, CONSUMERS);
	for (int i = 0; i < CONSUMERS; i++)
		BENCH_GO(consumer, c, &total[i], &consumers);
	for (int i = 0; i < PRODUCERS; i++)
		BENCH_GO(producer, c, &producers);
	goro_waitgroup_wait(&producers);
	goro_chan_close(c);
	goro_waitgroup_wait(&consumers);
	goro_chan_unref(c);
	for (int i = 0; i < CONSUMERS; i++)
		sum += total[i];
	return sum;
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(manytomany_round, PRODUCERS * VALUES);

	(void)argc, (void)argv;
	bench_report("manytomany", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
