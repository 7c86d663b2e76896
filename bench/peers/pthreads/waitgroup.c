/* waitgroup - eight threads work in phases, kept together by a barrier that the
 * main thread also passes; time per thread and phase. */
#include "thread.h"

#define THREADS 8
#define PHASES  1000            /* per round */

static pthread_barrier_t barrier;

struct part {
	_Alignas(PEER_LINE) uint64_t work;
	int me;
};

static void *worker(void *arg)
{
	struct part *part = arg;

	for (int phase = 0; phase < PHASES; phase++) {
		part->work += (uint64_t)(phase + part->me);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static uint64_t waitgroup_round(void)
{
	struct part part[THREADS];
	pthread_t t[THREADS];
	uint64_t sum = 0;

	for (int i = 0; i < THREADS; i++) {
		part[i] = (struct part){ .me = i };
		t[i] = thread_start(worker, &part[i]);
	}
	for (int phase = 0; phase < PHASES; phase++)
		pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++) {
		thread_join(t[i]);
		sum += part[i].work;
	}
	return sum;
}

int main(void)
{
	struct measurement m;

	peer_bind_cpus();
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	m = measure(waitgroup_round, THREADS * PHASES);
	peer_report("waitgroup", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}
