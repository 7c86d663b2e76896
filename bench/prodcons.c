/*
 * prodcons - a producer and a consumer on one unbuffered channel; time per
 * value.
 */
#include "bench.h"

#define CAPACITY 0
#define VALUES   50000          /* per round */

static void producer(goro_chan *c)
{
	for (uint64_t i = 1; i <= VALUES; i++)
		goro_chan_send(c, &i);
	goro_chan_close(c);
	goro_chan_unref(c);
}

static uint64_t prodcons_round(void)
{
	goro_chan *c = goro_chan_of(uint64_t, CAPACITY);
	uint64_t v, sum = 0;

	BENCH_GO(producer, goro_chan_ref(c));
	while (goro_chan_recv(c, &v))
		sum += v;
	goro_chan_unref(c);
	return sum;
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(prodcons_round, VALUES);

	(void)argc, (void)argv;
	bench_report("prodcons", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
