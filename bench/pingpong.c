/*
 * pingpong - a round trip between two goroutines over two unbuffered channels;
 * time per round trip.
 */
#include "bench.h"

#define TRIPS 20000             /* per round */

static void ponger(goro_chan *ping, goro_chan *pong)
{
	uint64_t v;

	while (goro_chan_recv(ping, &v)) {
		v++;
		goro_chan_send(pong, &v);
	}
	goro_chan_unref(ping);
	goro_chan_unref(pong);
}

static uint64_t pingpong_round(void)
{
	goro_chan *ping = goro_chan_of(uint64_t, 0), *pong = goro_chan_of(uint64_t, 0);
	uint64_t v = 0;

	BENCH_GO(ponger, goro_chan_ref(ping), goro_chan_ref(pong));
	for (int i = 0; i < TRIPS; i++) {
		goro_chan_send(ping, &v);
		goro_chan_recv(pong, &v);
	}
	goro_chan_close(ping);
	goro_chan_unref(ping);
	goro_chan_unref(pong);
	return v;
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(pingpong_round, TRIPS);

	(void)argc, (void)argv;
	bench_report("pingpong", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
