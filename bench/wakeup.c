/*
 * wakeup - how long it takes to get going when everything is asleep.
 *
 * wakeup.sleep: how much later than asked a sleep of a millisecond ends.
 * wakeup.other: the time from a send, by one that was woken itself just now and
 * goes on computing, until the receiver runs: on another processor, whose thread
 * has to be woken, or in the sender's place, for whom it then is. Only with two
 * processors or more.
 */
#include "bench.h"

#include <stdatomic.h>

#define SAMPLES 400

static int64_t sample[SAMPLES];

static void wake_from_sleep(void)
{
	int early = 0;

	for (int i = 0; i < SAMPLES; i++) {
		int64_t end = goro_now() + GORO_MILLISECOND;

		goro_sleep(GORO_MILLISECOND);
		sample[i] = goro_now() - end;
		early += sample[i] < 0;
	}
	bench_report_latency("wakeup.sleep", sample, SAMPLES, "%d early", early);
}

static atomic_llong received_at;

static void receiver(goro_chan *c)
{
	while (goro_chan_recv(c, NULL))
		atomic_store(&received_at, goro_now());
	goro_chan_unref(c);
}

static void wake_another(void)
{
	goro_chan *c = goro_chan_of(int, 1);

	BENCH_GO(receiver, goro_chan_ref(c));
	for (int i = 0; i < SAMPLES; i++) {
		int64_t sent;

		goro_sleep(GORO_MILLISECOND);
		atomic_store(&received_at, 0);
		sent = goro_now();
		goro_chan_send(c, &i);
		while (!atomic_load(&received_at))
			;
		sample[i] = atomic_load(&received_at) - sent;
	}
	goro_chan_close(c);
	goro_chan_unref(c);
	bench_report_latency("wakeup.other", sample, SAMPLES, "%d received", SAMPLES);
}

static int bench_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	wake_from_sleep();
	if (goro_gomaxprocs(0) > 1)
		wake_another();
	return 0;
}

GORO_MAIN(bench_main)
