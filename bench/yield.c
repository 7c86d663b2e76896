/*
 * yield - two goroutines that do nothing but yield; time per yield.
 *
 * With one processor every yield is a switch to the other goroutine. With two
 * each goroutine has one to itself, and a yield is a look for other work.
 */
#include "bench.h"

#include <stdatomic.h>

#define YIELDS       50000      /* per goroutine and round */
#define TURNS        1000       /* per goroutine in the proof */

static void yielder(uint64_t *yields, goro_waitgroup *wg)
{
	for (int i = 0; i < YIELDS; i++) {
		goro_gosched();
		(*yields)++;
	}
	goro_waitgroup_done(wg);
}

static uint64_t yield_round(void)
{
	/* A cache line apart, or two processors would fight over it. */
	static _Alignas(64) struct { _Alignas(64) uint64_t yields; } slot[2];
	goro_waitgroup wg = { 0 };

	slot[0].yields = slot[1].yields = 0;
	goro_waitgroup_add(&wg, 2);
	BENCH_GO(yielder, &slot[0].yields, &wg);
	BENCH_GO(yielder, &slot[1].yields, &wg);
	goro_waitgroup_wait(&wg);
	return slot[0].yields + slot[1].yields;
}

static atomic_int last_runner, handovers;

static void turn_taker(int me, goro_waitgroup *wg)
{
	for (int i = 0; i < TURNS; i++) {
		if (atomic_exchange(&last_runner, me) != me)
			atomic_fetch_add(&handovers, 1);
		goro_gosched();
	}
	goro_waitgroup_done(wg);
}

/* Whether yielding hands over: a yield that returns at once would look fast.
 * Only one processor makes the order certain, and preemption may blur it. */
static const char *handover_proof(void)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 2);
	BENCH_GO(turn_taker, 1, &wg);
	BENCH_GO(turn_taker, 2, &wg);
	goro_waitgroup_wait(&wg);
	if (goro_gomaxprocs(0) > 1)
		return "any order";
	return atomic_load(&handovers) > 2 * TURNS * 9 / 10 ? "in turn" : "not in turn";
}

static int bench_main(int argc, char **argv)
{
	const char *proof = handover_proof();
	struct measurement m = measure(yield_round, 2.0 * YIELDS);

	(void)argc, (void)argv;
	bench_report("yield", m.ns_per_op, "ns", "%" PRIu64 " %s", m.check, proof);
	return 0;
}

GORO_MAIN(bench_main)
