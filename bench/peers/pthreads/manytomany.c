/* manytomany - eight producers and eight consumers on one queue with room for
 * 128; time per value. */
#include "thread.h"

#define PRODUCERS 8
#define CONSUMERS 8
#define VALUES    10000         /* per producer and round */

static struct queue queue = QUEUE_INIT;

static void *producer(void *arg)
{
	(void)arg;
	for (uint64_t i = 1; i <= VALUES; i++)
		queue_put(&queue, i);
	return NULL;
}

static void *consumer(void *arg)
{
	uint64_t v, sum = 0;

	while (queue_get(&queue, &v))
		sum += v;
	*(uint64_t *)arg = sum;
	return NULL;
}

static uint64_t manytomany_round(void)
{
	pthread_t producers[PRODUCERS], consumers[CONSUMERS];
	uint64_t total[CONSUMERS], sum = 0;

	queue.closed = false;
	for (int i = 0; i < CONSUMERS; i++)
		consumers[i] = thread_start(consumer, &total[i]);
	for (int i = 0; i < PRODUCERS; i++)
		producers[i] = thread_start(producer, NULL);
	for (int i = 0; i < PRODUCERS; i++)
		thread_join(producers[i]);
	queue_close(&queue);
	for (int i = 0; i < CONSUMERS; i++) {
		thread_join(consumers[i]);
		sum += total[i];
	}
	return sum;
}

int main(void)
{
	struct measurement m;

	peer_bind_cpus();
	m = measure(manytomany_round, PRODUCERS * VALUES);
	peer_report("manytomany", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}
