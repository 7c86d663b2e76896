/*
 * chan.h - a channel from the inside: what chan.c and select.c share.
 *
 * The room sync has what goroutines wait for each other with: channels, select, locks,
 * groups, pools, contexts, and timers as programs see them. It may use goroutine, sched,
 * timer, stack, platform and base.
 *
 * A channel is a lock, a ring of elements, and two queues of waiting goroutines.
 *
 * Invariants, under the lock. A waiter of a select that was claimed through another
 * channel does not count:
 *	- at least one of sendq and recvq is empty, unless one select waits to send and to
 *	  receive on an unbuffered channel;
 *	- count > 0 implies that recvq is empty;
 *	- count < capacity implies that sendq is empty.
 *
 * A sender that finds a receiver waiting copies the element straight to where the
 * receiver wants it, and a receiver takes it straight from a waiting sender. The ring is
 * for elements that no goroutine waits for.
 *
 * Lifetimes
 *
 * There is no collector: the peer may drop the last reference as soon as its own call
 * returns. So the goroutine that completes an operation first takes what it needs, and
 * the unlock is its last access to the channel. Then it makes the peer ready, which
 * touches only the peer.
 *
 * A goroutine that waited in a select comes back to the channels that did not wake it, to
 * take its waiters off their queues. The peer that woke it may have dropped those
 * channels by then. So each such waiter counts in selects, and a channel without
 * references but with such waiters is an orphan: the last select that leaves it frees it.
 * A plain send or receive does not come back. On an orphan it never ends, and its place
 * in the queue keeps the channel.
 */
#ifndef GORO_CHAN_H
#define GORO_CHAN_H

#include <goro.h>
#include <string.h>

#include "sched/alone.h"
#include "sync/waitq.h"

/*
 * Operations write one cache line, so that a channel between two processors moves one
 * line to and fro, and a look from outside is one miss. On an unbuffered channel they
 * touch no other line. What they only read, of a buffered channel, is in the next line,
 * of which both processors keep a copy.
 */
struct goro_chan {
	/* Under the lock. closed, count and the queues' heads are read without, too. */
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
	void *block;		/* the memory that holds this struct */
	bool of_timer;		/* users see it as unbuffered, see time.c */

	uint32_t selects;	/* waiters that will come back; under the lock */
	uint32_t refs;		/* atomic */
	/* Constant. The context that closes the channel, or NULL: only a goroutine with a
	 * pointer to it can close the channel. For reach.c. */
	uint32_t owner_bytes;
	const void *owner;

	_Alignas(CACHE_LINE) char ring[];
};
_Static_assert(offsetof(struct goro_chan, capacity) == CACHE_LINE, "chan: one line is written");

/* ---- chan_check.c */

#if GORO_CHECKS
/* Operations of a thread between two checks. */
#define CHAN_CHECK_PERIOD 16
/* Lock held, between two changes: checks the invariants above. Returns how many wait. */
size_t chan_check(const goro_chan *c);
void chan_check_often(const goro_chan *c);
#else
static inline void chan_check_often(const goro_chan *c) { (void)c; }
#endif

/* ---- chan_freed.c */

/* In user code. */
void chan_free(goro_chan *c);
_Noreturn void chan_panic_freed(const char *what) __attribute__((cold));

/* Takes the lock after lock_try has failed, or panics with "WHAT freed channel". The
 * caller holds no locks. */
void chan_lock_late(goro_chan *c, const char *what) __attribute__((cold));

static inline void chan_lock(goro_chan *c, const char *what)
{
	if (unlikely(!alone_lock_try(&c->lock)))
		chan_lock_late(c, what);
}

/* Nothing to receive; no room to send. Without the lock: true at one moment of the call.
 * The loads are acquire to stay in order with the caller's loads of closed. */
static inline bool chan_seems_empty(const goro_chan *c)
{
	return c->buffered ? load_acquire(&c->count) == 0 : waitq_empty(&c->sendq);
}

static inline bool chan_seems_full(const goro_chan *c)
{
	return c->buffered ? load_acquire(&c->count) == c->capacity : waitq_empty(&c->recvq);
}

/* --------------------------------------------------------------- elements */

/* Copies the sizes of C's own types inline: a call of memcpy costs more. (The asm hides
 * the objects from the compiler, which would warn of the cases of other sizes.) */
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

/* Copies the most frequent sizes only. False: another size. to NULL: copies nothing. */
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

/* Where the next element goes. */
static inline char *ring_end(goro_chan *c)
{
	size_t at = c->recv_at + c->count * c->elem_size;

	return c->ring + (at < c->ring_bytes ? at : at - c->ring_bytes);
}

static inline void ring_put(goro_chan *c, const void *elem)
{
	check(c->count < c->capacity);
	elem_copy(ring_end(c), elem, c->elem_size);
	store_release(&c->count, c->count + 1);
}

static inline void ring_advance(goro_chan *c)
{
	check(c->count > 0);
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

/* Several goroutines may hold the locks of several channels of one select. The one that
 * claims the select wakes it. */
static inline bool select_claim(struct g *gp, uint32_t seq)
{
	/* Relaxed: the claimer reads nothing because of it; g_ready publishes. */
	return (seq & 1) && cas_relaxed(&gp->select_seq, &seq, seq + 1);
}

static bool chan_claim_select(goro_chan *c, struct waiter *w)
{
	check(w->key == c && w->queued && c->selects > 0);
	w->queued = false;
	if (!select_claim(w->gp, load_relaxed(&w->gp->select_seq)))
		return false;
	w->gp->select_won = w;
	c->selects--;
	return true;
}

/* A wide select does not use the waiters of the G. It tells there where its own are, for
 * reach.c. ws NULL: the select is over. */
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

/* The goroutine of a plain waiter, from its address: no load. */
static inline struct g *g_of_waiter(struct waiter *w)
{
	struct g *gp = (struct g *)((char *)w - offsetof(struct g, waiter));

	check(!w->is_select && w->gp == gp);
	return gp;
}

/* Takes the first waiter that still waits, which the caller makes ready. NULL: none. */
static inline struct waiter *chan_take_waiter(goro_chan *c, struct waitq *q)
{
	struct waiter *w;

	do
		w = waitq_take(q);
	while (w && unlikely(w->is_select) && !chan_claim_select(c, w));
	return w;
}

/* ------------------------------------------------- operations, lock held */

/* Sends, if that is possible without waiting. *peer, unless NULL: the caller makes it
 * ready after the unlock. The channel is not closed. */
static inline bool chan_send_now(goro_chan *c, const void *elem, struct g **peer)
{
	struct waiter *w;

	chan_check_often(c);
	check(!c->closed);
	w = chan_take_waiter(c, &c->recvq);
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
	struct waiter *w;

	chan_check_often(c);
	w = chan_take_waiter(c, &c->sendq);
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

/* Takes the lock and closes c. False: it was closed already. *waited: the waiters, linked
 * by next; the caller makes them ready when it holds no locks. */
bool chan_close_now(goro_chan *c, struct waiter **waited);

/* Takes a select's waiter off c, which did not wake the select. Takes the lock. True: the
 * caller frees the channel. */
bool chan_leave(goro_chan *c, struct waiter *w);

#endif
