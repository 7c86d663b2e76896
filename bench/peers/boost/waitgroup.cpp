// waitgroup - eight fibers work in phases, kept together by a barrier that the
// main fiber also passes; time per fiber and phase.
#include "fibers.hpp"

static const int FIBERS = 8;
static const int PHASES = 1000; // per round

static uint64_t waitgroup_round()
{
	struct alignas(PEER_LINE) {
		uint64_t work = 0;
	} part[FIBERS];
	fibers::barrier barrier{ FIBERS + 1 };
	std::vector<fibers::fiber> workers;
	uint64_t sum = 0;

	for (int me = 0; me < FIBERS; me++)
		workers.push_back(start([&barrier, me, work = &part[me].work] {
			for (int phase = 0; phase < PHASES; phase++) {
				*work += (uint64_t)(phase + me);
				barrier.wait();
			}
		}));
	for (int phase = 0; phase < PHASES; phase++)
		barrier.wait();
	for (auto &f : workers)
		f.join();
	for (auto &p : part)
		sum += p.work;
	return sum;
}

int main()
{
	return Threads::run([] {
		measurement m = measure(waitgroup_round, FIBERS * PHASES);

		peer_report("waitgroup", m.ns_per_op, "ns", "%" PRIu64, m.check);
	});
}
