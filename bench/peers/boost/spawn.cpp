// spawn - batches of 100 fibers that end at once, started and joined.
#include "fibers.hpp"

static const int BATCH = 100;
static const int BATCHES = 100; // per round

struct alignas(PEER_LINE) slot {
	uint64_t runs;
};

static void run_batch(slot *slots)
{
	static fibers::fiber batch[BATCH];

	for (int i = 0; i < BATCH; i++)
		batch[i] = start([s = &slots[i]] { s->runs++; });
	for (auto &f : batch)
		f.join();
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
	return Threads::run([] {
		measurement m = measure(spawn_round, BATCH * BATCHES);

		peer_report("spawn", m.ns_per_op, "ns", "%" PRIu64, m.check);
	});
}
