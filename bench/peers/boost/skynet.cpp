// skynet - a tree of fibers with a million leaves, each sending up a channel;
// time for the tree. Channels of 16, as in Boost's own version of it.
#include "fibers.hpp"

static const uint64_t LEAVES = 1000000, DEGREE = 10;

using channel = fibers::buffered_channel<uint64_t>;

static void skynet(channel *up, uint64_t number, uint64_t size)
{
	if (size == 1) {
		up->push(number);
		return;
	}
	channel c{ 16 };
	uint64_t sum = 0;

	for (uint64_t i = 0; i < DEGREE; i++)
		start(skynet, &c, number + i * (size / DEGREE), size / DEGREE).detach();
	for (uint64_t i = 0; i < DEGREE; i++)
		sum += c.value_pop();
	up->push(sum);
}

static uint64_t skynet_round()
{
	channel c{ 2 };

	start(skynet, &c, (uint64_t)0, LEAVES).detach();
	return c.value_pop();
}

int main()
{
	return Threads::run([] {
		measurement m = measure(skynet_round, 1e6);

		peer_report("skynet", m.ns_per_op, "ms", "%" PRIu64, m.check);
	});
}
