// pool - eight fibers take small tasks from a channel of 128; time per task.
#include "fibers.hpp"

static const std::size_t QUEUE = 128;
static const int WORKERS = 8;
static const uint64_t TASKS = 50000; // per round

struct task {
	uint64_t in, out;
};

static uint64_t pool_round()
{
	static task tasks[TASKS];
	fibers::buffered_channel<task *> queue{ QUEUE };
	std::vector<fibers::fiber> workers;
	uint64_t sum = 0;

	for (int i = 0; i < WORKERS; i++)
		workers.push_back(start([&queue] {
			for (task *t : queue)
				t->out = t->in * t->in;
		}));
	for (uint64_t i = 0; i < TASKS; i++) {
		tasks[i] = task{ i, 0 };
		queue.push(&tasks[i]);
	}
	queue.close();
	for (auto &f : workers)
		f.join();
	for (auto &t : tasks)
		sum += t.out;
	return sum;
}

int main()
{
	return Threads::run([] {
		measurement m = measure(pool_round, TASKS);

		peer_report("pool", m.ns_per_op, "ns", "%" PRIu64, m.check);
	});
}
