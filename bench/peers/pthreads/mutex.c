/* mutex - one mutex around a counter, eight threads and one; time per lock and
 * unlock. */
#include "thread.h"

#define THREADS 8
#define LOCKS   20000           /* per thread and round */

struct counter {
	pthread_mutex_t lock;
	uint64_t n;
};

static void *locker(void *arg)
{
	struct counter *c = arg;

	for (int i = 0; i < LOCKS; i++) {
		pthread_mutex_lock(&c->lock);
		c->n++;
		pthread_mutex_unlock(&c->lock);
	}
	return NULL;
}

static uint64_t mutex_round(int threads)
{
	_Alignas(PEER_LINE) struct counter c = { .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t t[THREADS];

	for (int i = 0; i < threads; i++)
		t[i] = thread_start(locker, &c);
	for (int i = 0; i < threads; i++)
		thread_join(t[i]);
	return c.n;
}

static uint64_t eight_round(void)
{
	return mutex_round(THREADS);
}

static uint64_t alone_round(void)
{
	return mutex_round(1);
}

int main(void)
{
	struct measurement m;

	peer_bind_cpus();
	m = measure(eight_round, THREADS * LOCKS);
	peer_report("mutex", m.ns_per_op, "ns", "%" PRIu64, m.check);
	m = measure(alone_round, LOCKS);
	peer_report("mutex.alone", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}
