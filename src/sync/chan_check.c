/* chan_check.c - the invariants of chan.h, looked at in builds with checks. */
#include "sync/chan.h"

#if GORO_CHECKS

/* What the waiters of one queue are. */
struct census {
	size_t waiters, selects;
	const struct g *live;	/* a goroutine that still waits; NULL: none */
	bool several;		/* more than one does */
};

/* Relaxed: a select may be claimed through another channel meanwhile, never the other way
 * about while the lock is held. */
static bool is_live(const struct waiter *w)
{
	return !w->is_select || (load_relaxed(&w->gp->select_seq) & 1);
}

static struct census count_queue(const goro_chan *c, const struct waitq *q, bool sends)
{
	struct census n = { 0 };
	const struct waiter *prev = NULL;

	for (const struct waiter *w = q->first; w; prev = w, w = w->next) {
		check(w->prev == prev && w->key == c && w->is_send == sends);
		check(w->queued == w->is_select);
		check(w->is_select || w == &w->gp->waiter);
		n.waiters++;
		n.selects += w->is_select;
		if (is_live(w)) {
			n.several |= n.live && n.live != w->gp;
			n.live = w->gp;
		}
	}
	check(q->last == prev);
	return n;
}

size_t chan_check(const goro_chan *c)
{
	struct census senders, receivers;

	check(load_relaxed(&c->lock.word) != 0);
	check(c->buffered == (c->capacity > 0) && c->count <= c->capacity);
	check(c->ring_bytes == c->capacity * c->elem_size);
	check(c->ring_bytes ? c->recv_at < c->ring_bytes : c->recv_at == 0);
	check(c->elem_size == 0 || c->recv_at % c->elem_size == 0);
	senders = count_queue(c, &c->sendq, true);
	receivers = count_queue(c, &c->recvq, false);
	check(senders.selects + receivers.selects <= c->selects);
	check(!c->closed || senders.waiters + receivers.waiters == 0);
	check(c->count == 0 || !receivers.live);
	check(c->count == c->capacity || !senders.live);
	if (senders.live && receivers.live)
		check(senders.live == receivers.live && !senders.several && !receivers.several);
	return senders.waiters + receivers.waiters;
}

/* A check that walks n waiters puts off the next by n operations: long queues cost each
 * operation no more than short ones. */
void chan_check_often(const goro_chan *c)
{
	static __thread size_t put_off;

	if (put_off > 0)
		put_off--;
	else
		put_off = CHAN_CHECK_PERIOD + chan_check(c);
}

#endif
