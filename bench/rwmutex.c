/*
 * rwmutex - eight goroutines read two counters under a reader's lock and, once
 * in a hundred times, advance both under the writer's; time per operation.
 */
#include "bench.h"

#define GOROUTINES  8
#define OPS         10000       /* per goroutine and round */
#define WRITE_EVERY 100

struct pair {
	goro_rwmutex lock;
	uint64_t a, b;
};

static void write_pair(struct pair *p)
{
	goro_rwmutex_lock(&p->lock);
	p->a++;
	p->b++;
	goro_rwmutex_unlock(&p->lock);
}

/* Whether both were seen as one write left them. */
static bool read_pair(struct pair *p)
{
	bool same;

	goro_rwmutex_rlock(&p->lock);
	same = p->a == p->b;
	goro_rwmutex_runlock(&p->lock);
	return same;
}

static void user(struct pair *p, int number, goro_waitgroup *wg)
{
	for (int i = 0; i < OPS; i++)
		if ((i + number) % WRITE_EVERY == 0)
			write_pair(p);
		else if (!read_pair(p))
			measure_fail("a reader saw half of a write");
	goro_waitgroup_done(wg);
}

static uint64_t rwmutex_round(void)
{
	_Alignas(BENCH_LINE) struct pair p = { 0 };
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, GOROUTINES);
	for (int i = 0; i < GOROUTINES; i++)
		BENCH_GO(user, &p, i, &wg);
	goro_waitgroup_wait(&wg);
	return p.a + p.b;
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(rwmutex_round, GOROUTINES * OPS);

	(void)argc, (void)argv;
	bench_report("rwmutex", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
