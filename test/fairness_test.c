/*
 * fairness_test.c - the processor is shared among goroutines that work for different lengths
 * of time between two waits. By the order of runs and by work done, not by the clock.
 */
/* test: procs */
#include <goro.h>

#include "atomic.h"
#include "await.h"
#include "test.h"

/* ------------------------------------------------- two pairs, heavy and light */

enum { HEAVY = 1000000, LIGHT = 1000, FACTOR = 20 };

struct pair {
	goro_chan *done, *wake;
	int limit;
	volatile int64_t count;
};

/* Go's TestPingPongHog, to the letter. */
static void take_turns(struct pair *p)
{
	bool yes = true;

	for (;;) {
		switch (goro_select(GORO_RECV(p->done, NULL), GORO_RECV(p->wake, NULL))) {
		case 0:
			return;
		case 1:
			for (int i = 0; i < p->limit; i++)
				p->count++;
			goro_chan_send(p->wake, &yes);
		}
	}
}

static void start_pair(struct pair *p, goro_chan *done, int limit)
{
	*p = (struct pair){ .done = done, .wake = goro_chan_of(bool, 0), .limit = limit };
	go(take_turns, p);
	go(take_turns, p);
}

/* Heavy work done for each piece of light work. */
static double measure_pairs(void)
{
	static struct pair heavy, light;
	goro_chan *done = goro_chan_of(bool, 0);
	bool yes = true;

	start_pair(&heavy, done, HEAVY);
	start_pair(&light, done, LIGHT);
	goro_chan_send(heavy.wake, &yes);
	goro_chan_send(light.wake, &yes);
	goro_sleep(100 * GORO_MILLISECOND);
	goro_chan_close(done);
	goro_chan_recv(heavy.wake, NULL);
	goro_chan_recv(light.wake, NULL);
	AWAIT(goro_num_goroutine() == 1);
	printf("heavy %ld, light %ld: %.2f\n", (long)heavy.count, (long)light.count,
	       (double)heavy.count / (double)light.count);
	return (double)heavy.count / (double)light.count;
}

/* With one P the runtime alone decides who runs. With several the kernel does, too, and on a
 * busy machine it may leave a thread without a CPU for most of the time: then a
 * second or a third try counts as well. */
GO_TEST(a_light_pair_beside_a_heavy_one_has_its_share)
{
	int tries = goro_gomaxprocs(0) == 1 ? 1 : 3;

	for (double ratio; ratio = measure_pairs(), ratio > FACTOR || ratio < 1. / FACTOR;)
		if (--tries == 0)
			FAIL("heavy work is %.2f times the light work", ratio);
}
