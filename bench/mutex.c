/*
 * mutex - one mutex around a counter; time per lock and unlock.
 *
 * mutex: eight goroutines that do nothing else. With one processor nobody finds
 * it locked; with more they contend all the time.
 * mutex.alone: one goroutine.
 */
#include "bench.h"

#define GOROUTINES 8
#define LOCKS      20000        /* per goroutine and round */

struct counter {
	goro_mutex lock;
	uint64_t n;
};

static void locker(struct counter *c, goro_waitgroup *wg)
{
	for (int i = 0; i < LOCKS; i++) {
		goro_mutex_lock(&c->lock);
		c->n++;
		goro_mutex_unlock(&c->lock);
	}
	goro_waitgroup_done(wg);
}

static uint64_t mutex_round(int goroutines)
{
	_Alignas(BENCH_LINE) struct counter c = { 0 };
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, goroutines);
	for (int i = 0; i < goroutines; i++)
		BENCH_GO(locker, &c, &wg);
	goro_waitgroup_wait(&wg);
	return c.n;
}

static uint64_t eight_round(void)
{
	return mutex_round(GOROUTINES);
}

static uint64_t alone_round(void)
{
	return mutex_round(1);
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(eight_round, GOROUTINES * LOCKS);

	(void)argc, (void)argv;
	bench_report("mutex", m.ns_per_op, "ns", "%" PRIu64, m.check);
	m = measure(alone_round, LOCKS);
	bench_report("mutex.alone", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
