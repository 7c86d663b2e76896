/* semaphore - eight threads share four units of a POSIX semaphore and yield once
 * while they have one; time per unit acquired and released. */
#include "thread.h"

#include <semaphore.h>
#include <stdatomic.h>

#define THREADS 8
#define UNITS   4
#define TURNS   2500            /* per thread and round */

static sem_t sema;
static _Alignas(PEER_LINE) atomic_int inside;
static _Alignas(PEER_LINE) atomic_uint_fast64_t turns;

static void *user(void *arg)
{
	(void)arg;
	for (int i = 0; i < TURNS; i++) {
		sem_wait(&sema);
		if (atomic_fetch_add(&inside, 1) >= UNITS)
			measure_fail("more inside than there are units");
		sched_yield();
		atomic_fetch_sub(&inside, 1);
		sem_post(&sema);
	}
	atomic_fetch_add(&turns, TURNS);
	return NULL;
}

static uint64_t semaphore_round(void)
{
	pthread_t t[THREADS];

	atomic_store(&turns, 0);
	for (int i = 0; i < THREADS; i++)
		t[i] = thread_start(user, NULL);
	for (int i = 0; i < THREADS; i++)
		thread_join(t[i]);
	return atomic_load(&turns);
}

int main(void)
{
	struct measurement m;

	peer_bind_cpus();
	sem_init(&sema, 0, UNITS);
	m = measure(semaphore_round, THREADS * TURNS);
	peer_report("semaphore", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}
