/*
 * waitq.h - queues of waiting goroutines, first in first out, removal anywhere
 * in constant time. Guarded by whatever guards what is waited for; only whether
 * a queue is empty may be asked without.
 */
#ifndef GORO_WAITQ_H
#define GORO_WAITQ_H

#include "types.h"

static inline bool waitq_empty(const struct waitq *q)
{
	/* acquire: in order with other looks of the kind, see chan_seems_empty */
	return !load_acquire(&q->first);
}

static inline void waitq_put(struct waitq *q, struct waiter *w)
{
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
	if (w->prev)
		w->prev->next = w->next;
	else
		store_release(&q->first, w->next);
	if (w->next)
		w->next->prev = w->prev;
	else
		q->last = w->prev;
}

/* w: the first. */
static inline void waitq_take_first(struct waitq *q, struct waiter *w)
{
	struct waiter *next = w->next;

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
