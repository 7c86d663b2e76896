// manytomany - eight producers and eight consumers on a channel of 128.
#include "fibers.hpp"

static const std::size_t CAPACITY = 128;
static const int PRODUCERS = 8, CONSUMERS = 8;
static const uint64_t VALUES = 10000; // per producer and round

static uint64_t manytomany_round()
{
	fibers::buffered_channel<uint64_t> c{ CAPACITY };
	std::vector<fibers::fiber> producers, consumers;
	uint64_t total[CONSUMERS], sum = 0;

	for (int i = 0; i < CONSUMERS; i++)
		consumers.push_back(start([&c, result = &total[i]] {
			uint64_t own = 0;

			for (uint64_t v : c)
				own += v;
			*result = own;
		}));
	for (int i = 0; i < PRODUCERS; i++)
		producers.push_back(start([&c] {
			for (uint64_t v = 1; v <= VALUES; v++)
				c.push(v);
		}));
	for (auto &f : producers)
		f.join();
	c.close();
	for (auto &f : consumers)
		f.join();
	for (uint64_t t : total)
		sum += t;
	return sum;
}

int main()
{
	return Threads::run([] {
		measurement m = measure(manytomany_round, PRODUCERS * VALUES);

		peer_report("manytomany", m.ns_per_op, "ns", "%" PRIu64, m.check);
	});
}
