/*
 * per_p.c - a pool with a queue for each processor, and stealing.
 *
 * A worker belongs to one queue. It takes from there; if that is empty it takes half of
 *what another queue has. So workers of different queues meet at a lock only to steal.
 *Which processor a goroutine is on nobody can say for longer than a moment, so a worker
 *is not tied to one: there are as many queues as processors, so that they seldom meet.
 *
 * No task waits while a worker sleeps: a submitter looks for an idle worker after it has
 *put the task into a queue, and a worker looks into all queues after it has said that it
 *is idle. Each does so under the queue's lock, so one of them sees the other.
 *
 * Invariants, under a queue's lock:
 *	- idle workers have not been woken; wakes have, and have not noticed.
 */
#include "pools.h"

struct queue {
	goro_mutex lock;
	goro_cond more;
	struct task **ring;
	size_t at, n, room;
	int idle, wakes;
};

struct per_p {
	int queues;
	atomic_uint next;	/* where the next task goes */
	atomic_bool closed;
	goro_waitgroup workers;
	struct queue queue[];
};

/* -------------------------------------------------------------------- queue */

/* Lock held. */
static void queue_put(struct queue *q, struct task *t)
{
	if (q->n == q->room) {
		size_t room = q->room ? 2 * q->room : 64;
		struct task **ring = allocate(room, sizeof *ring);

		for (size_t i = 0; i < q->n; i++)
			ring[i] = q->ring[(q->at + i) % q->room];
		free(q->ring);
		q->ring = ring;
		q->room = room;
		q->at = 0;
	}
	q->ring[(q->at + q->n++) % q->room] = t;
}

/* Lock held. NULL: empty. */
static struct task *queue_get(struct queue *q)
{
	struct task *t;

	if (q->n == 0)
		return NULL;
	t = q->ring[q->at];
	q->at = (q->at + 1) % q->room;
	q->n--;
	return t;
}

/* ------------------------------------------------------------------ workers */

static struct task *take(struct queue *q)
{
	struct task *t;

	goro_mutex_lock(&q->lock);
	t = queue_get(q);
	goro_mutex_unlock(&q->lock);
	return t;
}

/* Half of what another queue has: one to do, the others into the own queue. One lock at a
 * time, so that two who steal from each other do not wait for ever. */
static struct task *steal(struct per_p *p, struct queue *own)
{
	enum { MOST = 32 };
	struct task *got[MOST];

	for (int i = 1; i < p->queues; i++) {
		struct queue *q = &p->queue[(own - p->queue + i) % p->queues];
		size_t n = 0, half;

		goro_mutex_lock(&q->lock);
		half = (q->n + 1) / 2;
		while (n < half && n < MOST)
			got[n++] = queue_get(q);
		goro_mutex_unlock(&q->lock);
		if (n == 0)
			continue;
		goro_mutex_lock(&own->lock);
		for (size_t k = 1; k < n; k++)
			queue_put(own, got[k]);
		goro_mutex_unlock(&own->lock);
		return got[0];
	}
	return NULL;
}

/* Wakes an idle worker of the queue, if there is one. */
static bool wake(struct queue *q)
{
	bool found;

	goro_mutex_lock(&q->lock);
	found = q->idle > 0;
	if (found) {
		q->idle--;
		q->wakes++;
		goro_cond_signal(&q->more);
	}
	goro_mutex_unlock(&q->lock);
	return found;
}

/* .. of this queue, or else of another. */
static void wake_any(struct per_p *p, int first)
{
	for (int i = 0; i < p->queues; i++)
		if (wake(&p->queue[(first + i) % p->queues]))
			return;
}

/* Says that it is idle, and looks once more. A task that came meanwhile, or NULL after
 * sleeping until it was woken. */
static struct task *idle(struct per_p *p, struct queue *own)
{
	struct task *t;
	bool was_woken = false;

	goro_mutex_lock(&own->lock);
	own->idle++;
	goro_mutex_unlock(&own->lock);
	t = take(own);
	if (!t)
		t = steal(p, own);
	goro_mutex_lock(&own->lock);
	while (!t && own->wakes == 0 && !atomic_load(&p->closed))
		goro_cond_wait(&own->more, &own->lock);
	if (own->wakes > 0) {
		own->wakes--;
		was_woken = true;
	} else {
		own->idle--;
	}
	goro_mutex_unlock(&own->lock);
	if (t && was_woken) /* for another task, which needs somebody else now */
		wake_any(p, (int)(own - p->queue));
	return t;
}

static void worker(struct per_p *p, struct queue *own)
{
	for (;;) {
		struct task *t = take(own);

		if (!t)
			t = steal(p, own);
		if (!t && atomic_load(&p->closed))
			break;
		if (!t)
			t = idle(p, own);
		if (t)
			task_run(t);
	}
	goro_waitgroup_done(&p->workers);
}

/* ------------------------------------------------------------------- pool */

struct per_p *per_p_make(int queues, int workers)
{
	struct per_p *p = allocate(1, sizeof *p + (size_t)queues * sizeof *p->queue);

	p->queues = queues;
	goro_waitgroup_add(&p->workers, workers);
	for (int i = 0; i < workers; i++)
		go(worker, p, &p->queue[i % queues]);
	return p;
}

void per_p_submit(struct per_p *p, struct task *t)
{
	int i = (int)(atomic_fetch_add(&p->next, 1) % (unsigned)p->queues);
	struct queue *q = &p->queue[i];

	goro_mutex_lock(&q->lock);
	queue_put(q, t);
	goro_mutex_unlock(&q->lock);
	wake_any(p, i);
}

void per_p_close(struct per_p *p)
{
	atomic_store(&p->closed, true);
	for (int i = 0; i < p->queues; i++) {
		goro_mutex_lock(&p->queue[i].lock);
		goro_cond_broadcast(&p->queue[i].more);
		goro_mutex_unlock(&p->queue[i].lock);
	}
	goro_waitgroup_wait(&p->workers);
	for (int i = 0; i < p->queues; i++)
		free(p->queue[i].ring);
	free(p);
}
