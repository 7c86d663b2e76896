// chain - 100,000 fibers of which each starts the next and ends; time per link.
#include "fibers.hpp"

static const int LINKS = 100000;

static void chain_link(int left, uint64_t sum, fibers::promise<uint64_t> *result)
{
	if (left > 0)
		start(chain_link, left - 1, sum + (uint64_t)left, result).detach();
	else
		result->set_value(sum);
}

static uint64_t chain_round()
{
	fibers::promise<uint64_t> result;

	start(chain_link, LINKS, (uint64_t)0, &result).detach();
	return result.get_future().get();
}

int main()
{
	return Threads::run([] {
		measurement m = measure(chain_round, LINKS + 1);

		peer_report("chain", m.ns_per_op, "ns", "%" PRIu64, m.check);
	});
}
