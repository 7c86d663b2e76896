// spawn - batches of 100 tasks that end at once, started and waited for.
#include "tasks.hpp"

static const int BATCH = 100;
static const int BATCHES = 100; // per round

struct alignas(PEER_LINE) slot {
	uint64_t runs;
};

static void run_batch(slot *slots)
{
	tbb::task_group batch;

	for (int i = 0; i < BATCH; i++)
		batch.run([s = &slots[i]] { s->runs++; });
	batch.wait();
}

static uint64_t spawn_round()
{
	static slot slots[BATCH];
	uint64_t sum = 0;

	memset(slots, 0, sizeof slots);
	for (int i = 0; i < BATCHES; i++)
		run_batch(slots);
	for (int i = 0; i < BATCH; i++)
		sum += slots[i].runs * (uint64_t)(i + 1);
	return sum;
}

int main()
{
	return with_arena([] {
		measurement m = measure(spawn_round, BATCH * BATCHES);

		peer_report("spawn", m.ns_per_op, "ns", "%" PRIu64, m.check);
	});
}
