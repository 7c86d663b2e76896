// mutex - one mutex around a counter, eight fibers and one; time per lock and
// unlock.
#include "fibers.hpp"

static const int FIBERS = 8;
static const int LOCKS = 20000; // per fiber and round

static uint64_t mutex_round(int count)
{
	struct alignas(PEER_LINE) {
		fibers::mutex lock;
		uint64_t n = 0;
	} c;
	std::vector<fibers::fiber> lockers;

	for (int i = 0; i < count; i++)
		lockers.push_back(start([&c] {
			for (int j = 0; j < LOCKS; j++) {
				std::lock_guard<fibers::mutex> guard{ c.lock };

				c.n++;
			}
		}));
	for (auto &f : lockers)
		f.join();
	return c.n;
}

int main()
{
	return Threads::run([] {
		measurement m = measure([] { return mutex_round(FIBERS); },
		                        FIBERS * LOCKS);

		peer_report("mutex", m.ns_per_op, "ns", "%" PRIu64, m.check);
		m = measure([] { return mutex_round(1); }, LOCKS);
		peer_report("mutex.alone", m.ns_per_op, "ns", "%" PRIu64, m.check);
	});
}
