/*
 * semaphore - eight goroutines share a semaphore of four units; who has a unit
 * yields once before giving it back, so that half of them always wait; time per
 * unit acquired and released.
 */
#include "bench.h"

#include <stdatomic.h>

#define GOROUTINES 8
#define UNITS      4
#define TURNS      2500         /* per goroutine and round */

struct shared {
	goro_sema sema;
	_Alignas(BENCH_LINE) atomic_int inside;
	_Alignas(BENCH_LINE) atomic_uint_fast64_t turns;
};

static void user(struct shared *s, goro_waitgroup *wg)
{
	for (int i = 0; i < TURNS; i++) {
		goro_sema_acquire(&s->sema, 1, GORO_FOREVER);
		if (atomic_fetch_add(&s->inside, 1) >= UNITS)
			measure_fail("more inside than there are units");
		goro_gosched();
		atomic_fetch_sub(&s->inside, 1);
		goro_sema_release(&s->sema, 1);
	}
	atomic_fetch_add(&s->turns, TURNS);
	goro_waitgroup_done(wg);
}

static uint64_t semaphore_round(void)
{
	struct shared s = { .inside = 0 };
	goro_waitgroup wg = { 0 };

	goro_sema_init(&s.sema, UNITS);
	goro_waitgroup_add(&wg, GOROUTINES);
	for (int i = 0; i < GOROUTINES; i++)
		BENCH_GO(user, &s, &wg);
	goro_waitgroup_wait(&wg);
	return atomic_load(&s.turns);
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(semaphore_round, GOROUTINES * TURNS);

	(void)argc, (void)argv;
	bench_report("semaphore", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
