// sieve - the concurrent prime sieve, a fiber and an unbuffered channel for every
// prime, to the 1,500th; time for all. Boost has no select: a flag tells the
// generator to end. (Closing its channel while it pushes would say the same, but
// crashes in Boost 1.74 with two threads.)
#include "fibers.hpp"

#include <atomic>
#include <memory>

static const int PRIMES = 1500;

using channel = fibers::unbuffered_channel<int>;
using channel_ptr = std::shared_ptr<channel>;

static void generate(channel_ptr out, std::atomic<bool> *done)
{
	for (int i = 2; !*done; i++)
		out->push(i);
	out->close();
}

static void filter(channel_ptr in, channel_ptr out, int prime)
{
	for (int i : *in)
		if (i % prime != 0)
			out->push(i);
	out->close();
}

static uint64_t sieve_round()
{
	channel_ptr c = std::make_shared<channel>();
	std::atomic<bool> done{ false };
	std::vector<fibers::fiber> chain;
	uint64_t sum = 0;

	chain.push_back(start(generate, c, &done));
	for (int i = 0; i < PRIMES; i++) {
		channel_ptr next = std::make_shared<channel>();
		int prime = c->value_pop();

		sum += (uint64_t)prime;
		chain.push_back(start(filter, c, next, prime));
		c = next;
	}
	done = true;
	for (int i : *c)
		(void)i;
	for (auto &f : chain)
		f.join();
	return sum;
}

int main()
{
	return Threads::run([] {
		measurement m = measure(sieve_round, 1e6);

		peer_report("sieve", m.ns_per_op, "ms", "%" PRIu64, m.check);
	});
}
