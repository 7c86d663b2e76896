/* pool - eight threads take small tasks from a queue with room for 128; time per
 * task. */
#include "thread.h"

#define WORKERS 8
#define TASKS   50000           /* per round */

struct task {
	uint64_t in, out;
};

static void *worker(void *arg)
{
	uint64_t v;

	while (queue_get(arg, &v)) {
		struct task *t = (struct task *)(uintptr_t)v;

		t->out = t->in * t->in;
	}
	return NULL;
}

static uint64_t pool_round(void)
{
	static struct task tasks[TASKS];
	struct queue q = QUEUE_INIT;
	pthread_t t[WORKERS];
	uint64_t sum = 0;

	for (int i = 0; i < WORKERS; i++)
		t[i] = thread_start(worker, &q);
	for (uint64_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct task){ .in = i };
		queue_put(&q, (uintptr_t)&tasks[i]);
	}
	queue_close(&q);
	for (int i = 0; i < WORKERS; i++)
		thread_join(t[i]);
	for (int i = 0; i < TASKS; i++)
		sum += tasks[i].out;
	return sum;
}

int main(void)
{
	struct measurement m;

	peer_bind_cpus();
	m = measure(pool_round, TASKS);
	peer_report("pool", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}
