// fib - fork and join: fib(25) with a task for every call; time per call.
#include "tasks.hpp"

static const int FIB_N = 25;
static const int FIB_CALLS = 242785; // calls that fib(25) makes, itself included

static uint64_t fib(int n)
{
	uint64_t a, b;

	if (n < 2)
		return (uint64_t)n;
	tbb::task_group halves;

	halves.run([&a, n] { a = fib(n - 1); });
	halves.run([&b, n] { b = fib(n - 2); });
	halves.wait();
	return a + b;
}

static uint64_t fib_round()
{
	return fib(FIB_N);
}

int main()
{
	return with_arena([] {
		measurement m = measure(fib_round, FIB_CALLS);

		peer_report("fib", m.ns_per_op, "ns", "%" PRIu64, m.check);
	});
}
