/*
 * thread.h - what the programs with plain threads share: starting and joining,
 * and a bounded queue as everybody writes it, with a mutex and two conditions.
 */
#ifndef THREAD_H
#define THREAD_H

#include "peer.h"

#include <pthread.h>
#include <stdbool.h>

static inline pthread_t thread_start(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, arg) != 0)
		measure_fail("cannot start a thread");
	return t;
}

static inline void thread_join(pthread_t t)
{
	if (pthread_join(t, NULL) != 0)
		measure_fail("cannot join a thread");
}

#define QUEUE_CAPACITY 128

/* A signal that nobody waits for costs no system call, so each step may give one. */
struct queue {
	pthread_mutex_t lock;
	pthread_cond_t not_empty, not_full;
	uint64_t slot[QUEUE_CAPACITY];
	unsigned head, count;
	bool closed;
};

#define QUEUE_INIT                                                           \
	{ .lock = PTHREAD_MUTEX_INITIALIZER,                                 \
	  .not_empty = PTHREAD_COND_INITIALIZER,                             \
	  .not_full = PTHREAD_COND_INITIALIZER }

static inline void queue_put(struct queue *q, uint64_t v)
{
	pthread_mutex_lock(&q->lock);
	while (q->count == QUEUE_CAPACITY)
		pthread_cond_wait(&q->not_full, &q->lock);
	q->slot[(q->head + q->count) % QUEUE_CAPACITY] = v;
	q->count++;
	pthread_cond_signal(&q->not_empty);
	pthread_mutex_unlock(&q->lock);
}

/* False: closed and empty. */
static inline bool queue_get(struct queue *q, uint64_t *v)
{
	bool got;

	pthread_mutex_lock(&q->lock);
	while (q->count == 0 && !q->closed)
		pthread_cond_wait(&q->not_empty, &q->lock);
	got = q->count > 0;
	if (got) {
		*v = q->slot[q->head];
		q->head = (q->head + 1) % QUEUE_CAPACITY;
		q->count--;
		pthread_cond_signal(&q->not_full);
	}
	pthread_mutex_unlock(&q->lock);
	return got;
}

static inline void queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->not_empty);
	pthread_mutex_unlock(&q->lock);
}

#endif
