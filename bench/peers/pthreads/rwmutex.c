/* rwmutex - eight threads, a write in a hundred operations; time per operation. */
#include "thread.h"

#define THREADS     8
#define OPS         10000       /* per thread and round */
#define WRITE_EVERY 100

struct pair {
	pthread_rwlock_t lock;
	uint64_t a, b;
};

struct user {
	struct pair *pair;
	int number;
};

static void write_pair(struct pair *p)
{
	pthread_rwlock_wrlock(&p->lock);
	p->a++;
	p->b++;
	pthread_rwlock_unlock(&p->lock);
}

static bool read_pair(struct pair *p)
{
	bool same;

	pthread_rwlock_rdlock(&p->lock);
	same = p->a == p->b;
	pthread_rwlock_unlock(&p->lock);
	return same;
}

static void *use(void *arg)
{
	struct user *u = arg;

	for (int i = 0; i < OPS; i++)
		if ((i + u->number) % WRITE_EVERY == 0)
			write_pair(u->pair);
		else if (!read_pair(u->pair))
			measure_fail("a reader saw half of a write");
	return NULL;
}

static uint64_t rwmutex_round(void)
{
	_Alignas(PEER_LINE) struct pair p = { .lock = PTHREAD_RWLOCK_INITIALIZER };
	struct user users[THREADS];
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++) {
		users[i] = (struct user){ &p, i };
		t[i] = thread_start(use, &users[i]);
	}
	for (int i = 0; i < THREADS; i++)
		thread_join(t[i]);
	return p.a + p.b;
}

int main(void)
{
	struct measurement m;

	peer_bind_cpus();
	m = measure(rwmutex_round, THREADS * OPS);
	peer_report("rwmutex", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}
