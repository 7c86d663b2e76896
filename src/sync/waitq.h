/*
 * waitq.h - queues of waiting goroutines: first in, first out, removal anywhere in
 * constant time. The lock of what they wait for guards a queue. Only waitq_empty may be
 * called without it.
 */
#ifndef GORO_WAITQ_H
#define GORO_WAITQ_H

#include "base/throw.h"
#include "sched/types.h"

static inline bool waitq_empty(const struct waitq *q)
{
	/* acquire: in order with the caller's other loads, see chan_seems_empty */
	return !load_acquire(&q->first);
}

static inline void waitq_put(struct waitq *q, struct waiter *w)
{
	check(!q->last == !q->first && (!q->last || !q->last->next));
	w->next = NULL;
	w->prev = q->last;
	if (q->last)
		q->last->next = w;
	else
		store_release(&q->first, w);
	q->last = w;
}

static inline void waitq_remove(struct waitq *q, struct waiter *w)
{
	check((w->prev ? w->prev->next : q->first) == w);
	check((w->next ? w->next->prev : q->last) == w);
	if (w->prev)
		w->prev->next = w->next;
	else
		store_release(&q->first, w->next);
	if (w->next)
		w->next->prev = w->prev;
	else
		q->last = w->prev;
}

/* w is the first. */
static inline void waitq_take_first(struct waitq *q, struct waiter *w)
{
	struct waiter *next = w->next;

	check(q->first == w && !w->prev);
	store_release(&q->first, next);
	if (next)
		next->prev = NULL;
	else
		q->last = NULL;
}

static inline struct waiter *waitq_take(struct waitq *q)
{
	struct waiter *w = q->first;

	if (w)
		waitq_take_first(q, w);
	return w;
}

#endif
