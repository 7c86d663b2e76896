// prodcons - a producer and a consumer on an unbuffered channel; time per value.
#include "fibers.hpp"

static const uint64_t VALUES = 50000; // per round

static uint64_t prodcons_round()
{
	fibers::unbuffered_channel<uint64_t> c;
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
		measurement m = measure(prodcons_round, VALUES);

		peer_report("prodcons", m.ns_per_op, "ns", "%" PRIu64, m.check);
	});
}
