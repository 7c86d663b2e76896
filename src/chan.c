/*
 * chan.c - channels.
 *
 * One lock a channel, a ring of elements, and two queues of waiting goroutines.
 *
 * Invariants, under the lock:
 *	- at least one of sendq and recvq is empty;
 *	- count > 0 implies that recvq is empty;
 *	- count < capacity implies that sendq is empty.
 *
 * A sender that finds a receiver waiting copies the element straight to where
 * the receiver wants it, and the other way about; the ring is for when nobody
 * waits.
 *
 * Lifetimes
 *
 * There is no collector: the peer may free the channel as soon as its own call
 * returns. So the side that completes an operation takes what it needs first
 * and lets the unlock be its last access to the channel; making the peer ready
 * comes after and touches only the peer.
 */
#include <goro.h>
#include <stdlib.h>
#include <string.h>

#include "panic.h"
#include "runtime.h"
#include "waitq.h"

struct goro_chan {
	struct lock lock;
	uint32_t refs;
	bool closed;
	size_t elem_size;
	size_t capacity;
	size_t count;		/* elements in the ring */
	size_t send_at, recv_at;
	struct waitq sendq, recvq;
	_Alignas(16) char ring[];
};

goro_chan *goro_chan_make(size_t elem_size, size_t capacity)
{
	goro_chan *c;
	size_t bytes;

	if (__builtin_mul_overflow(elem_size, capacity, &bytes) || bytes > PTRDIFF_MAX - sizeof *c)
		goro_panic("makechan: size out of range");
	c = malloc(sizeof *c + bytes);
	if (!c)
		return NULL;
	memset(c, 0, sizeof *c);
	c->lock = (struct lock)LOCK_INIT(RANK_CHAN);
	c->refs = 1;
	c->elem_size = elem_size;
	c->capacity = capacity;
	return c;
}

goro_chan *goro_chan_ref(goro_chan *c)
{
	if (c)
		fetch_add_relaxed(&c->refs, 1);
	return c;
}

void goro_chan_unref(goro_chan *c)
{
	/* acqrel: whoever frees has seen what the others did; pairs with itself */
	if (c && fetch_add_acqrel(&c->refs, (uint32_t)-1) == 1)
		free(c);
}

size_t goro_chan_len(const goro_chan *c)
{
	return c ? load_relaxed(&c->count) : 0;
}

size_t goro_chan_cap(const goro_chan *c)
{
	return c ? c->capacity : 0;
}

/* ------------------------------------------------------------------- ring */

static void ring_put(goro_chan *c, const void *elem)
{
	memcpy(c->ring + c->send_at * c->elem_size, elem, c->elem_size);
	if (++c->send_at == c->capacity)
		c->send_at = 0;
	store_relaxed(&c->count, c->count + 1);
}

static void ring_get(goro_chan *c, void *elem)
{
	if (elem)
		memcpy(elem, c->ring + c->recv_at * c->elem_size, c->elem_size);
	if (++c->recv_at == c->capacity)
		c->recv_at = 0;
	store_relaxed(&c->count, c->count - 1);
}

static void wait_forever(struct m *mp, struct g *gp)
{
	(void)mp; (void)gp;
}

/* Queues the running goroutine and parks it, releasing the channel's lock. */
static struct m *wait_on(struct m *mp, goro_chan *c, struct waitq *q, void *elem,
                         enum wait_reason why)
{
	struct waiter *w = &mp->curg->waiter;

	w->gp = mp->curg;
	w->elem = elem;
	w->ok = false;
	waitq_put(q, w);
	return park(mp, park_unlock, &c->lock, why);
}

/* ------------------------------------------------------------------- send */

/* Sends without waiting, if that can be done. Lock held; released if so, and
 * *peer is to be made ready. */
static bool send_now(goro_chan *c, const void *elem, struct g **peer)
{
	struct waiter *w = waitq_take(&c->recvq);

	*peer = NULL;
	if (w) {
		if (w->elem)
			memcpy(w->elem, elem, c->elem_size);
		w->ok = true;
		*peer = w->gp;
	} else if (c->count < c->capacity) {
		ring_put(c, elem);
	} else {
		return false;
	}
	lock_release(&c->lock);
	return true;
}

static _Noreturn void panic_closed(goro_chan *c)
{
	lock_release(&c->lock);
	panic_misuse("send on closed channel");
}

void goro_chan_send(goro_chan *c, const void *elem)
{
	struct m *mp = rt_enter();
	struct g *peer;

	if (unlikely(!c)) {
		park(mp, wait_forever, NULL, WAIT_CHAN_SEND_NIL);
		throw("unreachable");
	}
	lock_acquire(&c->lock);
	if (unlikely(c->closed))
		panic_closed(c);
	if (send_now(c, elem, &peer)) {
		if (peer)
			g_ready(mp, peer);
	} else {
		mp = wait_on(mp, c, &c->sendq, (void *)(uintptr_t)elem, WAIT_CHAN_SEND);
		if (unlikely(!mp->curg->waiter.ok))
			panic_misuse("send on closed channel");
	}
	rt_exit(mp);
}

bool goro_chan_try_send(goro_chan *c, const void *elem)
{
	struct m *mp;
	struct g *peer;
	bool sent;

	if (!c)
		return false;
	mp = rt_enter();
	lock_acquire(&c->lock);
	if (unlikely(c->closed))
		panic_closed(c);
	sent = send_now(c, elem, &peer);
	if (!sent)
		lock_release(&c->lock);
	else if (peer)
		g_ready(mp, peer);
	rt_exit(mp);
	return sent;
}

/* ---------------------------------------------------------------- receive */

/* Receives without waiting, if that can be done. Lock held; released if so,
 * and *peer is to be made ready. */
static enum goro_recv recv_now(goro_chan *c, void *elem, struct g **peer)
{
	enum goro_recv result = GORO_RECV_OK;
	struct waiter *w;

	*peer = NULL;
	if (c->count > 0) {
		ring_get(c, elem);
		w = waitq_take(&c->sendq);
		if (w)
			ring_put(c, w->elem);
	} else if ((w = waitq_take(&c->sendq))) {
		if (elem)
			memcpy(elem, w->elem, c->elem_size);
	} else if (c->closed) {
		if (elem)
			memset(elem, 0, c->elem_size);
		result = GORO_RECV_CLOSED;
	} else {
		return GORO_RECV_EMPTY;
	}
	if (w) {
		w->ok = true;
		*peer = w->gp;
	}
	lock_release(&c->lock);
	return result;
}

bool goro_chan_recv(goro_chan *c, void *elem)
{
	struct m *mp = rt_enter();
	enum goro_recv result;
	struct g *peer;

	if (unlikely(!c)) {
		park(mp, wait_forever, NULL, WAIT_CHAN_RECV_NIL);
		throw("unreachable");
	}
	lock_acquire(&c->lock);
	result = recv_now(c, elem, &peer);
	if (result == GORO_RECV_EMPTY) {
		mp = wait_on(mp, c, &c->recvq, elem, WAIT_CHAN_RECV);
		result = mp->curg->waiter.ok ? GORO_RECV_OK : GORO_RECV_CLOSED;
	} else if (peer) {
		g_ready(mp, peer);
	}
	rt_exit(mp);
	return result == GORO_RECV_OK;
}

enum goro_recv goro_chan_try_recv(goro_chan *c, void *elem)
{
	enum goro_recv result;
	struct m *mp;
	struct g *peer;

	if (!c)
		return GORO_RECV_EMPTY;
	mp = rt_enter();
	lock_acquire(&c->lock);
	result = recv_now(c, elem, &peer);
	if (result == GORO_RECV_EMPTY)
		lock_release(&c->lock);
	else if (peer)
		g_ready(mp, peer);
	rt_exit(mp);
	return result;
}

/* ------------------------------------------------------------------ close */

/* The waiters are gathered under the lock and made ready after it. */
void goro_chan_close(goro_chan *c)
{
	struct m *mp = rt_enter();
	struct waiter *all = NULL, *w;

	if (!c)
		panic_misuse("close of nil channel");
	lock_acquire(&c->lock);
	if (c->closed) {
		lock_release(&c->lock);
		panic_misuse("close of closed channel");
	}
	c->closed = true;
	while ((w = waitq_take(&c->recvq))) {
		if (w->elem)
			memset(w->elem, 0, c->elem_size);
		w->next = all;
		all = w;
	}
	while ((w = waitq_take(&c->sendq))) {
		w->next = all;
		all = w;
	}
	lock_release(&c->lock);
	while (all) {
		struct g *gp = all->gp;

		all = all->next;
		g_ready(mp, gp);
	}
	rt_exit(mp);
}
