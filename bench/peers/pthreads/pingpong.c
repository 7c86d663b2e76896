/* pingpong - a round trip between two threads by two POSIX semaphores, the
 * cheapest way there is without a system call of one's own; time per round trip. */
#include "thread.h"

#include <semaphore.h>

#define TRIPS 20000             /* per round */

struct table {
	sem_t ping, pong;
	uint64_t value;
	bool over;
};

static void *ponger(void *arg)
{
	struct table *t = arg;

	for (;;) {
		sem_wait(&t->ping);
		if (t->over)
			return NULL;
		t->value++;
		sem_post(&t->pong);
	}
}

static uint64_t pingpong_round(void)
{
	struct table t = { .value = 0 };
	pthread_t other;

	sem_init(&t.ping, 0, 0);
	sem_init(&t.pong, 0, 0);
	other = thread_start(ponger, &t);
	for (int i = 0; i < TRIPS; i++) {
		sem_post(&t.ping);
		sem_wait(&t.pong);
	}
	t.over = true;
	sem_post(&t.ping);
	thread_join(other);
	return t.value;
}

int main(void)
{
	struct measurement m;

	peer_bind_cpus();
	m = measure(pingpong_round, TRIPS);
	peer_report("pingpong", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}
