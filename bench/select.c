/*
 * select - one goroutine receives from four by select; time per value.
 *
 * select.wait: unbuffered channels, so that both sides wait in turn.
 * select.ready: channels with room for 128, so that mostly several are ready.
 */
#include "bench.h"

#define CHANNELS 4
#define VALUES   10000          /* per channel and round */

static void producer(goro_chan *c)
{
	for (uint64_t i = 1; i <= VALUES; i++)
		goro_chan_send(c, &i);
	goro_chan_unref(c);
}

static uint64_t select_round(size_t capacity)
{
	goro_chan *c[CHANNELS];
	uint64_t v, sum = 0;

	for (int i = 0; i < CHANNELS; i++) {
		c[i] = goro_chan_of(uint64_t, capacity);
		BENCH_GO(producer, goro_chan_ref(c[i]));
	}
	for (int i = 0; i < CHANNELS * VALUES; i++) {
		int from = goro_select(GORO_RECV(c[0], &v), GORO_RECV(c[1], &v),
		                       GORO_RECV(c[2], &v), GORO_RECV(c[3], &v));

		sum += v * (uint64_t)(from + 1);
	}
	for (int i = 0; i < CHANNELS; i++)
		goro_chan_unref(c[i]);
	return sum;
}

static uint64_t wait_round(void)
{
	return select_round(0);
}

static uint64_t ready_round(void)
{
	return select_round(128);
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(wait_round, CHANNELS * VALUES);

	(void)argc, (void)argv;
	bench_report("select.wait", m.ns_per_op, "ns", "%" PRIu64, m.check);
	m = measure(ready_round, CHANNELS * VALUES);
	bench_report("select.ready", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
