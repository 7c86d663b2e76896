/* buffered - a producer and a consumer on a queue with room for 128; time per
 * value. */
#include "thread.h"

#define VALUES 50000            /* per round */

static void *producer(void *arg)
{
	for (uint64_t i = 1; i <= VALUES; i++)
		queue_put(arg, i);
	queue_close(arg);
	return NULL;
}

static uint64_t buffered_round(void)
{
	struct queue q = QUEUE_INIT;
	pthread_t t = thread_start(producer, &q);
	uint64_t v, sum = 0;

	while (queue_get(&q, &v))
		sum += v;
	thread_join(t);
	return sum;
}

int main(void)
{
	struct measurement m;

	peer_bind_cpus();
	m = measure(buffered_round, VALUES);
	peer_report("buffered", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}
