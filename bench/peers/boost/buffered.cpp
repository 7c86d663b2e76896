// buffered - a producer and a consumer on a channel of 128; time per value.
#include "fibers.hpp"

static const std::size_t CAPACITY = 128;
static const uint64_t VALUES = 50000; // per round

static uint64_t buffered_round()
{
	fibers::buffered_channel<uint64_t> c{ CAPACITY };
	fibers::fiber producer = start([&] {
		for (uint64_t i = 1; i <= VALUES; i++)
			c.push(i);
		c.close();
	});
	uint64_t sum = 0;

	for (uint64_t v : c)
		sum += v;
	producer.join();
	return sum;
}

int main()
{
	return Threads::run([] {
		measurement m = measure(buffered_round, VALUES);

		peer_report("buffered", m.ns_per_op, "ns", "%" PRIu64, m.check);
	});
}
