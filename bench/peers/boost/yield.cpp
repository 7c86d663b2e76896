// yield - two fibers that only yield; time per yield.
#include "fibers.hpp"

#include <atomic>

static const int YIELDS = 50000; // per fiber and round
static const int TURNS = 1000;   // per fiber in the proof

static uint64_t yield_round()
{
	struct alignas(PEER_LINE) {
		uint64_t yields = 0;
	} slot[2];
	auto yielder = [](uint64_t *yields) {
		for (int i = 0; i < YIELDS; i++) {
			boost::this_fiber::yield();
			(*yields)++;
		}
	};
	fibers::fiber a = start(yielder, &slot[0].yields);
	fibers::fiber b = start(yielder, &slot[1].yields);

	a.join();
	b.join();
	return slot[0].yields + slot[1].yields;
}

static const char *handover_proof()
{
	std::atomic<int> last_runner{ 0 }, handovers{ 0 };
	auto turn_taker = [&](int me) {
		for (int i = 0; i < TURNS; i++) {
			if (last_runner.exchange(me) != me)
				handovers++;
			boost::this_fiber::yield();
		}
	};
	fibers::fiber a = start(turn_taker, 1), b = start(turn_taker, 2);

	a.join();
	b.join();
	if (peer_procs() > 1)
		return "any order";
	return handovers > 2 * TURNS * 9 / 10 ? "in turn" : "not in turn";
}

int main()
{
	return Threads::run([] {
		const char *proof = handover_proof();
		measurement m = measure(yield_round, 2.0 * YIELDS);

		peer_report("yield", m.ns_per_op, "ns", "%" PRIu64 " %s", m.check, proof);
	});
}
