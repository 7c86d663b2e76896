/* yield - two threads on so many CPUs that only yield; time per yield. */
#include "thread.h"

#include <stdatomic.h>

#define YIELDS 50000            /* per thread and round */
#define TURNS  1000             /* per thread in the proof */

static void *yielder(void *arg)
{
	uint64_t *yields = arg;

	for (int i = 0; i < YIELDS; i++) {
		sched_yield();
		(*yields)++;
	}
	return NULL;
}

static uint64_t yield_round(void)
{
	static struct { _Alignas(PEER_LINE) uint64_t yields; } slot[2];
	pthread_t t[2];

	slot[0].yields = slot[1].yields = 0;
	for (int i = 0; i < 2; i++)
		t[i] = thread_start(yielder, &slot[i].yields);
	for (int i = 0; i < 2; i++)
		thread_join(t[i]);
	return slot[0].yields + slot[1].yields;
}

static atomic_int last_runner, handovers;

static void *turn_taker(void *arg)
{
	int me = *(int *)arg;

	for (int i = 0; i < TURNS; i++) {
		if (atomic_exchange(&last_runner, me) != me)
			atomic_fetch_add(&handovers, 1);
		sched_yield();
	}
	return NULL;
}

/* The kernel need not hand over at every yield, and does not always. */
static const char *handover_proof(void)
{
	int number[2] = { 1, 2 };
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		t[i] = thread_start(turn_taker, &number[i]);
	for (int i = 0; i < 2; i++)
		thread_join(t[i]);
	if (peer_procs() > 1)
		return "any order";
	return atomic_load(&handovers) > 2 * TURNS * 9 / 10 ? "in turn" : "not in turn";
}

int main(void)
{
	struct measurement m;
	const char *proof;

	peer_bind_cpus();
	proof = handover_proof();
	m = measure(yield_round, 2.0 * YIELDS);
	peer_report("yield", m.ns_per_op, "ns", "%" PRIu64 " %s", m.check, proof);
	return 0;
}
