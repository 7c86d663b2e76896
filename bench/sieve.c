/*
 * sieve - the concurrent prime sieve, a goroutine and an unbuffered channel for
 * every prime, to the 1,500th; time for all.
 */
#include "bench.h"

#define PRIMES 1500

static void generate(goro_chan *out, goro_chan *done)
{
	for (int i = 2;; i++)
		if (goro_select(GORO_SEND(out, &i), GORO_RECV(done, NULL)) == 1)
			break;
	goro_chan_close(out);
	goro_chan_unref(out);
	goro_chan_unref(done);
}

static void filter(goro_chan *in, goro_chan *out, int prime)
{
	int i;

	while (goro_chan_recv(in, &i))
		if (i % prime != 0)
			goro_chan_send(out, &i);
	goro_chan_close(out);
	goro_chan_unref(in);
	goro_chan_unref(out);
}

/* Lets the chain run dry, so that the next round finds nothing of it. */
static uint64_t sieve_round(void)
{
	goro_chan *c = goro_chan_of(int, 0), *done = goro_chan_of(int, 0);
	uint64_t sum = 0;
	int prime;

	BENCH_GO(generate, goro_chan_ref(c), goro_chan_ref(done));
	for (int i = 0; i < PRIMES; i++) {
		goro_chan *next = goro_chan_of(int, 0);

		goro_chan_recv(c, &prime);
		sum += (uint64_t)prime;
		BENCH_GO(filter, c, goro_chan_ref(next), prime);
		c = next;
	}
	goro_chan_close(done);
	while (goro_chan_recv(c, NULL))
		;
	goro_chan_unref(c);
	goro_chan_unref(done);
	return sum;
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(sieve_round, 1e6);

	(void)argc, (void)argv;
	bench_report("sieve", m.ns_per_op, "ms", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
