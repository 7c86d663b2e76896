// fib - fork and join: fib(25) with a fiber for every call; time per call.
#include "fibers.hpp"

static const int FIB_N = 25;
static const int FIB_CALLS = 242785; // calls that fib(25) makes, itself included

static void fib(int n, uint64_t *result)
{
	uint64_t a, b;

	if (n < 2) {
		*result = (uint64_t)n;
		return;
	}
	fibers::fiber first = start(fib, n - 1, &a), second = start(fib, n - 2, &b);

	first.join();
	second.join();
	*result = a + b;
}

static uint64_t fib_round()
{
	uint64_t result;

	start(fib, FIB_N, &result).join();
	return result;
}

int main()
{
	return Threads::run([] {
		measurement m = measure(fib_round, FIB_CALLS);

		peer_report("fib", m.ns_per_op, "ns", "%" PRIu64, m.check);
	});
}
