/* spawn - batches of 100 threads that end at once, started and joined; time per
 * thread. */
#include "thread.h"

#define BATCH   100
#define BATCHES 100             /* per round */

struct slot {
	_Alignas(PEER_LINE) uint64_t runs;
};

static void *work(void *arg)
{
	struct slot *slot = arg;

	slot->runs++;
	return NULL;
}

static void run_batch(struct slot *slots)
{
	pthread_t t[BATCH];

	for (int i = 0; i < BATCH; i++)
		t[i] = thread_start(work, &slots[i]);
	for (int i = 0; i < BATCH; i++)
		thread_join(t[i]);
}

static uint64_t spawn_round(void)
{
	static struct slot slots[BATCH];
	uint64_t sum = 0;

	memset(slots, 0, sizeof slots);
	for (int i = 0; i < BATCHES; i++)
		run_batch(slots);
	for (int i = 0; i < BATCH; i++)
		sum += slots[i].runs * (uint64_t)(i + 1);
	return sum;
}

int main(void)
{
	struct measurement m;

	peer_bind_cpus();
	m = measure(spawn_round, BATCH * BATCHES);
	peer_report("spawn", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}
