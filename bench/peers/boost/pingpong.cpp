// pingpong - a round trip between two fibers over two unbuffered channels.
#include "fibers.hpp"

static const int TRIPS = 20000; // per round

static uint64_t pingpong_round()
{
	fibers::unbuffered_channel<uint64_t> ping, pong;
	fibers::fiber ponger = start([&] {
		for (uint64_t v : ping)
			pong.push(v + 1);
	});
	uint64_t v = 0;

	for (int i = 0; i < TRIPS; i++) {
		ping.push(v);
		v = pong.value_pop();
	}
	ping.close();
	ponger.join();
	return v;
}

int main()
{
	return Threads::run([] {
		measurement m = measure(pingpong_round, TRIPS);

		peer_report("pingpong", m.ns_per_op, "ns", "%" PRIu64, m.check);
	});
}
