/*
 * chan.h - a channel from the inside: what chan.c and select.c share.
 *
 * One lock a channel, a ring of elements, and two queues of waiting goroutines.
 *
 * Invariants, under the lock, where waiters of a select that was claimed through
 * another channel do not count:
 *	- at least one of sendq and recvq is empty, unless one select waits to
 *	  send and to receive on an unbuffered channel;
 *	- count > 0 implies that recvq is empty;
 *	- count < capacity implies that sendq is empty.
 *
 * A sender that finds a receiver waiting copies the element straight to where
 * the receiver wants it, and the other way about; the ring is for when nobody
 * waits.
 *
 * Lifetimes
 *
 * There is no collector: the peer may drop its reference, the last one, as soon
 * as its own call returns. So the side that completes an operation takes what it
 * needs first and lets the unlock be its last access to the channel; making the
 * peer ready comes after and touches only the peer.
 *
 * A goroutine that waits in a select comes back to the channels that did not
 * wake it, to take its waiters off their queues, and the peer that woke it may
 * have dropped those channels by then. So each such waiter counts in selects,
 * and a channel without references that has some is an orphan, freed by the last
 * select that leaves it. A plain send or receive does not come back, and on an
 * orphan it never ends: it keeps the channel by being in its queue.
 */
#ifndef GORO_CHAN_H
#define GORO_CHAN_H

#include <goro.h>
#include <string.h>

#include "runtime.h"
#include "waitq.h"

/*
 * What operations write lies in one cache line, so that a channel between two
 * processors costs one line's way to and fro, and a look from outside one miss;
 * on an unbuffered channel they touch no other. What they only read, of a
 * buffered one, lies in the next, which both processors then keep.
 */
struct goro_chan {
	/* Under the lock; closed, count and whether a queue is empty are also
	 * read without it. */
	_Alignas(CACHE_LINE) struct lock lock;
	bool closed;
	bool orphan;		/* the last reference is gone */
	bool buffered;		/* constant: capacity > 0 */
	uint32_t elem_size;	/* constant */
	size_t count;		/* elements in the ring */
	size_t recv_at;		/* byte offset of the oldest */
	struct waitq recvq, sendq;

	/* Constant. */
	_Alignas(CACHE_LINE) size_t capacity;
	size_t ring_bytes;
	void *block;		/* the memory that this lies in */
	bool of_timer;		/* shown to users as unbuffered, see time.c */

	uint32_t selects;	/* waiters that will come back; under the lock */
	uint32_t refs;		/* atomic */

	_Alignas(CACHE_LINE) char ring[];
};
_Static_assert(offsetof(struct goro_chan, capacity) == CACHE_LINE, "chan: one line is written");

/* ---- chan_freed.c */

/* In user code. */
void chan_free(goro_chan *c);
_Noreturn void chan_panic_freed(const char *what) __attribute__((cold));

/* Takes the lock after lock_try has failed, or panics with "WHAT freed channel". The caller
 * holds no locks. */
void chan_lock_late(goro_chan *c, const char *what) __attribute__((cold));

static inline void chan_lock(goro_chan *c, const char *what)
{
	if (unlikely(!lock_try(&c->lock)))
		chan_lock_late(c, what);
}

/* Nothing to receive, or no room to send: asked without the lock, true at one
 * moment of the call. The loads are acquire to be in order with those of closed
 * before or after them. */
static inline bool chan_seems_empty(const goro_chan *c)
{
	return c->buffered ? load_acquire(&c->count) == 0 : waitq_empty(&c->sendq);
}

static inline bool chan_seems_full(const goro_chan *c)
{
	return c->buffered ? load_acquire(&c->count) == c->capacity : waitq_empty(&c->recvq);
}

/* --------------------------------------------------------------- elements */

/* The sizes of C's own types inline; a call of memcpy costs more than they do.
 * (Where the compiler sees what is copied, the cases of other sizes are not taken,
 * but it would warn of them.) */
static inline void elem_copy(void *to, const void *from, size_t n)
{
	__asm__("" : "+r"(from), "+r"(to));
	switch (n) {
	case 0: break;
	case 1: memcpy(to, from, 1); break;
	case 2: memcpy(to, from, 2); break;
	case 4: memcpy(to, from, 4); break;
	case 8: memcpy(to, from, 8); break;
	case 16: memcpy(to, from, 16); break;
	default: memcpy(to, from, n);
	}
}

/* Only the sizes that are most frequent; to NULL: nobody wants it. False: another size. */
static inline bool elem_copy_word(void *to, const void *from, size_t n)
{
	if (unlikely(!to))
		return true;
	if (n == 8)
		memcpy(to, from, 8);
	else if (n == 4)
		memcpy(to, from, 4);
	else
		return false;
	return true;
}

static inline void elem_zero(void *to, size_t n)
{
	if (n > 0)
		memset(to, 0, n);
}

/* Where the next goes. */
static inline char *ring_end(goro_chan *c)
{
	size_t at = c->recv_at + c->count * c->elem_size;

	return c->ring + (at < c->ring_bytes ? at : at - c->ring_bytes);
}

static inline void ring_put(goro_chan *c, const void *elem)
{
	elem_copy(ring_end(c), elem, c->elem_size);
	store_release(&c->count, c->count + 1);
}

static inline void ring_advance(goro_chan *c)
{
	c->recv_at += c->elem_size;
	if (c->recv_at == c->ring_bytes)
		c->recv_at = 0;
	store_release(&c->count, c->count - 1);
}

static inline void ring_get(goro_chan *c, void *elem)
{
	if (elem)
		elem_copy(elem, c->ring + c->recv_at, c->elem_size);
	ring_advance(c);
}

/* ---------------------------------------------------------------- waiters */

/* A select is woken by who claims it, one of several that may hold the locks of
 * several of its channels. */
static inline bool select_claim(struct g *gp, uint32_t seq)
{
	/* Relaxed: nothing is read on the strength of it; what the claimer
	 * writes is published by g_ready. */
	return (seq & 1) && cas_relaxed(&gp->select_seq, &seq, seq + 1);
}

static bool chan_claim_select(goro_chan *c, struct waiter *w)
{
	w->queued = false;
	if (!select_claim(w->gp, load_relaxed(&w->gp->select_seq)))
		return false;
	w->gp->select_won = w;
	c->selects--;
	return true;
}

/* A wide select leaves the waiters of the G unused, and there where its own are: for who
 * looks at it while it waits (reach.c). ws NULL: it is over. */
static inline void select_show_wide(struct g *gp, struct waiter *ws, int n)
{
	gp->waiters[0] = (struct waiter){
		.gp = gp, .next = ws, .prev = ws, .elem = ws, .index = n, .is_select = ws != NULL,
	};
}

static inline bool select_is_wide(const struct g *gp)
{
	const struct waiter *w = gp->waiters;

	return !w->key && w->is_select && w->elem && w->next == w->elem && w->prev == w->elem;
}

/* The goroutine of a waiter that is no select's: of its address, which takes no load. */
static inline struct g *g_of_waiter(struct waiter *w)
{
	struct g *gp = (struct g *)((char *)w - offsetof(struct g, waiter));

	check(!w->is_select && w->gp == gp);
	return gp;
}

/* The first in line that still waits: its goroutine is the caller's to make
 * ready. NULL: none. */
static inline struct waiter *chan_take_waiter(goro_chan *c, struct waitq *q)
{
	struct waiter *w;

	do
		w = waitq_take(q);
	while (w && unlikely(w->is_select) && !chan_claim_select(c, w));
	return w;
}

/* ------------------------------------------------- operations, lock held */

/* Sends without waiting, if that can be done; *peer, if any, is to be made
 * ready after the unlock. The channel is not closed. */
static inline bool chan_send_now(goro_chan *c, const void *elem, struct g **peer)
{
	struct waiter *w = chan_take_waiter(c, &c->recvq);

	*peer = NULL;
	if (w) {
		if (w->elem)
			elem_copy(w->elem, elem, c->elem_size);
		w->ok = true;
		*peer = w->gp;
	} else if (c->buffered && c->count < c->capacity) {
		ring_put(c, elem);
	} else {
		return false;
	}
	return true;
}

/* The same for a receive. */
static inline __attribute__((always_inline))
enum goro_recv chan_recv_now(goro_chan *c, void *elem, struct g **peer)
{
	struct waiter *w = chan_take_waiter(c, &c->sendq);

	*peer = NULL;
	if (c->count > 0) {
		ring_get(c, elem);
		if (w)
			ring_put(c, w->elem);
	} else if (w) {
		if (elem)
			elem_copy(elem, w->elem, c->elem_size);
	} else if (c->closed) {
		if (elem)
			elem_zero(elem, c->elem_size);
		return GORO_RECV_CLOSED;
	} else {
		return GORO_RECV_EMPTY;
	}
	if (w) {
		w->ok = true;
		*peer = w->gp;
	}
	return GORO_RECV_OK;
}

/* Closes c, taking its lock; false: it is closed already. Those who waited, linked
 * by next, are the caller's to make ready when it holds no locks. */
bool chan_close_now(goro_chan *c, struct waiter **waited);

/* A select's waiter that did not win leaves. Takes the lock. True: the caller
 * is to free the channel. */
bool chan_leave(goro_chan *c, struct waiter *w);

#endif
