/*
 * hogs - what preemption costs those who compute: two goroutines a processor that
 * do nothing else, with preemption and with it disabled; CPU time for the same work,
 * in per cent of that without. CPU time, since others may use the machine, too.
 */
#include "bench.h"

#define HOGS_A_P 2
#define STEPS    25000000       /* of a hog in a turn: several slices */
#define TURNS    5              /* with and without, in turn */

/* An avalanche of bits that no compiler can shorten. */
static uint64_t compute(uint64_t x)
{
	for (int i = 0; i < STEPS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x;
}

static void hog(uint64_t *x, bool preempted, goro_waitgroup *wg)
{
	if (!preempted)
		goro_preempt_disable();
	*x = compute(*x);
	if (!preempted)
		goro_preempt_enable();
	goro_waitgroup_done(wg);
}

/* CPU time of one turn; *check gets what was computed. */
static int64_t run_turn(bool preempted, uint64_t *check)
{
	int hogs = HOGS_A_P * goro_gomaxprocs(0);
	uint64_t x[HOGS_A_P * 64];
	goro_waitgroup wg = { 0 };
	int64_t cpu = measure_cpu_ns();

	if (goro_gomaxprocs(0) > 64)
		measure_fail("too many processors");
	goro_waitgroup_add(&wg, hogs);
	for (int i = 0; i < hogs; i++) {
		x[i] = (uint64_t)i + 1;
		BENCH_GO(hog, &x[i], preempted, &wg);
	}
	goro_waitgroup_wait(&wg);
	cpu = measure_cpu_ns() - cpu;
	*check = 0;
	for (int i = 0; i < hogs; i++)
		*check ^= x[i];
	return cpu;
}

static int bench_main(int argc, char **argv)
{
	int64_t with[TURNS], without[TURNS];
	uint64_t check, other;

	(void)argc, (void)argv;
	run_turn(true, &check);
	for (int i = 0; i < TURNS; i++) {
		with[i] = run_turn(true, &check);
		without[i] = run_turn(false, &other);
		if (check != other)
			measure_fail("preemption changed what was computed");
	}
	qsort(with, TURNS, sizeof with[0], measure_order);
	qsort(without, TURNS, sizeof without[0], measure_order);
	bench_report("hogs", 100.0 * (double)with[TURNS / 2] / (double)without[TURNS / 2],
	             "%", "%" PRIx64, check);
	return 0;
}

GORO_MAIN(bench_main)
