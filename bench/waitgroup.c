/*
 * waitgroup - eight goroutines work in phases: all wait for one waitgroup, do
 * their part, and a second waitgroup tells when all have; time per goroutine and
 * phase. (Other systems' users would take their barrier for this.)
 */
#include "bench.h"

#define GOROUTINES 8
#define PHASES     1000         /* per round */

/* A gate is open when its counter is zero. The two take turns: everybody has
 * passed the one before it is closed again, while all wait at the other. */
struct phases {
	goro_waitgroup gate[2], arrived, ended;
	struct { _Alignas(BENCH_LINE) uint64_t work; } part[GOROUTINES];
};

static void worker(struct phases *p, int me)
{
	for (int phase = 0; phase < PHASES; phase++) {
		goro_waitgroup_wait(&p->gate[phase % 2]);
		p->part[me].work += (uint64_t)(phase + me);
		goro_waitgroup_done(&p->arrived);
	}
	goro_waitgroup_done(&p->ended);
}

static uint64_t waitgroup_round(void)
{
	struct phases p = { 0 };
	uint64_t sum = 0;

	goro_waitgroup_add(&p.gate[0], 1);
	goro_waitgroup_add(&p.gate[1], 1);
	goro_waitgroup_add(&p.ended, GOROUTINES);
	for (int i = 0; i < GOROUTINES; i++)
		BENCH_GO(worker, &p, i);
	for (int phase = 0; phase < PHASES; phase++) {
		goro_waitgroup_add(&p.arrived, GOROUTINES);
		goro_waitgroup_done(&p.gate[phase % 2]);
		goro_waitgroup_wait(&p.arrived);
		goro_waitgroup_add(&p.gate[phase % 2], 1);
	}
	goro_waitgroup_wait(&p.ended);
	for (int i = 0; i < GOROUTINES; i++)
		sum += p.part[i].work;
	return sum;
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(waitgroup_round, GOROUTINES * PHASES);

	(void)argc, (void)argv;
	bench_report("waitgroup", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)
