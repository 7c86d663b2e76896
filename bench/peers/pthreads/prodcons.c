/* prodcons - a producer hands values to a consumer, one at a time, and goes on
 * when each has been taken, by two POSIX semaphores; time per value. */
#include "thread.h"

#include <semaphore.h>

#define VALUES 50000            /* per round */

struct handover {
	sem_t offered, taken;
	uint64_t value;         /* 0: no more */
};

static void offer(struct handover *h, uint64_t v)
{
	h->value = v;
	sem_post(&h->offered);
	sem_wait(&h->taken);
}

static void *producer(void *arg)
{
	for (uint64_t i = 1; i <= VALUES; i++)
		offer(arg, i);
	offer(arg, 0);
	return NULL;
}

static uint64_t take(struct handover *h)
{
	uint64_t v;

	sem_wait(&h->offered);
	v = h->value;
	sem_post(&h->taken);
	return v;
}

static uint64_t prodcons_round(void)
{
	struct handover h = { .value = 0 };
	uint64_t v, sum = 0;
	pthread_t t;

	sem_init(&h.offered, 0, 0);
	sem_init(&h.taken, 0, 0);
	t = thread_start(producer, &h);
	while ((v = take(&h)) != 0)
		sum += v;
	thread_join(t);
	return sum;
}

int main(void)
{
	struct measurement m;

	peer_bind_cpus();
	m = measure(prodcons_round, VALUES);
	peer_report("prodcons", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}
