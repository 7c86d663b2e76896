/*
 * chan.c - channels: make, send, receive, close. Invariants and lifetimes: chan.h.
 *
 * A try operation on a channel that is not ready is answered without the lock and without
 * entering the runtime, so that polling is cheap and holds up no other goroutine. Only
 * "not now" is answered so. "Closed" allows the caller to drop the channel, so the try
 * operation takes the lock before it says that: the closer has released it by then.
 *
 * Send and receive have a short way for the most frequent case: the element is a word,
 * the lock is free, no select is met. The short way keeps nothing across a call, so it
 * saves no registers, and a goroutine that waits has two frames on its stack, its own and
 * sched_await's. In every other case it gives up before it changes anything, and calls
 * send_any or recv_any.
 */
#include "sync/chan.h"

#include <stdlib.h>

#include "goroutine/panic.h"
#include "sync/wait_profile.h"

/* malloc aligns to 16, so the block has this many bytes more than needed. aligned_alloc
 * takes five times as long as malloc. Valgrind's leak check needs a pointer to the
 * beginning of a block, so under valgrind it is aligned_alloc. */
#define BEFORE (CACHE_LINE - 16)

static char *block_alloc(size_t n)
{
	if (tool_on_valgrind())
		return aligned_alloc(CACHE_LINE, (n + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	return malloc(n);
}

goro_chan *goro_chan_make(size_t elem_size, size_t capacity)
{
	goro_chan *c;
	size_t bytes;
	char *block;

	if (elem_size > UINT32_MAX)
		goro_panic("makechan: invalid channel element type");
	if (__builtin_mul_overflow(elem_size, capacity, &bytes)
	    || bytes > PTRDIFF_MAX - sizeof *c - BEFORE)
		goro_panic("makechan: size out of range");
	block = block_alloc(BEFORE + sizeof *c + bytes);
	if (!block)
		return NULL;
	c = (goro_chan *)(((uintptr_t)block + BEFORE) & ~(uintptr_t)(CACHE_LINE - 1));
	*c = (goro_chan){
		.lock = LOCK_INIT(RANK_CHAN),
		.buffered = capacity > 0,
		.elem_size = (uint32_t)elem_size,
		.capacity = capacity,
		.ring_bytes = bytes,
		.block = block,
		.refs = 1,
	};
	return c;
}

goro_chan *goro_chan_ref(goro_chan *c)
{
	if (c && unlikely(fetch_add_relaxed(&c->refs, 1) == 0)) {
		store_relaxed(&c->refs, 0);
		chan_panic_freed("reference to");
	}
	return c;
}

/* Called by the macros that GORO_CHECK_CHANNELS turns on. */
goro_chan *goro_chan_check(goro_chan *c, size_t size, const char *call)
{
	if (c && size != 0 && size != c->elem_size)
		goro_panic("%s: %zu-byte element on a channel of %u-byte elements", call, size,
		           c->elem_size);
	return c;
}

/* Lock held, no references: no goroutine waits, and no select will come back. */
static bool is_abandoned(const goro_chan *c)
{
	return c->selects == 0 && waitq_empty(&c->recvq) && waitq_empty(&c->sendq);
}

static __attribute__((noinline)) void last_unref(goro_chan *c, uint32_t refs)
{
	struct m *mp;
	bool over;

	if (unlikely(refs == 0)) {
		store_relaxed(&c->refs, 0);
		chan_panic_freed("unref of");
	}
	mp = rt_enter_lock(&c->lock);
	c->orphan = true;
	over = is_abandoned(c);
	rt_unlock_exit(mp, &c->lock);
	if (over)
		chan_free(c);
}

void goro_chan_unref(goro_chan *c)
{
	uint32_t refs;

	if (!c)
		return;
	/* acqrel: the last one frees, having seen what others did; pairs with itself */
	refs = fetch_add_acqrel(&c->refs, (uint32_t)-1);
	if (refs <= 1)
		last_unref(c, refs);
}

bool chan_leave(goro_chan *c, struct waiter *w)
{
	bool over;

	lock_acquire(&c->lock);
	if (w->queued)
		waitq_remove(w->is_send ? &c->sendq : &c->recvq, w);
	c->selects--;
	over = c->orphan && is_abandoned(c);
	lock_release(&c->lock);
	return over;
}

/* The buffer is hidden from users: nil, a timer's, or freed, which panics. */
static bool is_opaque(const goro_chan *c, const char *what)
{
	if (likely(c && !c->of_timer))
		return false;
	if (c && c->lock.freed)
		chan_panic_freed(what);
	return true;
}

size_t goro_chan_len(const goro_chan *c)
{
	return is_opaque(c, "len of") ? 0 : load_relaxed(&c->count);
}

size_t goro_chan_cap(const goro_chan *c)
{
	return is_opaque(c, "cap of") ? 0 : c->capacity;
}

/* ---------------------------------------------------------------- waiting */

static void wait_forever(struct m *mp, struct g *gp)
{
	(void)mp; (void)gp;
}

static _Noreturn __attribute__((noinline, cold)) void wait_on_nil(struct m *mp, enum wait_reason why)
{
	park(mp, wait_forever, NULL, why);
	throw("a goroutine that waits forever was woken");
}

/* Queues the running goroutine. It then parks, which releases the channel's lock, and
 * does not touch the channel again: it may be gone. (Only selects use queued. It is
 * cleared so that the compiler merges the four stores into one.) */
static inline __attribute__((always_inline)) void
wait_prepare(struct m *mp, goro_chan *c, struct waitq *q, void *elem)
{
	struct waiter *w = &mp->curg->waiter;

	w->gp = mp->curg;
	w->key = c;
	w->elem = elem;
	w->is_send = q == &c->sendq;
	w->is_select = false;
	w->queued = false;
	w->ok = false;
	waitq_put(q, w);
}

/* Not inlined: the profile's variables would take registers from every waiter. */
static __attribute__((noinline, cold)) bool
wait_profiled(struct m *mp, goro_chan *c, bool is_send, void *elem, enum wait_reason why)
{
	int64_t since = profile_wait_start();
	bool ok;

	wait_prepare(mp, c, is_send ? &c->sendq : &c->recvq, elem);
	mp = park(mp, park_unlock, &c->lock, why);
	profile_block_event(mp, since);
	ok = mp->curg->waiter.ok;
	rt_exit_free(mp);
	return ok;
}

/* Leaves the runtime. True: a value came. */
static inline __attribute__((always_inline)) bool
wait_exit(struct m *mp, goro_chan *c, struct waitq *q, void *elem, enum wait_reason why)
{
	if (unlikely(profile_on()))
		return wait_profiled(mp, c, q == &c->sendq, elem, why);
	wait_prepare(mp, c, q, elem);
	return sched_await(mp, &c->lock, why);
}

/* Wakes the threads that sleep on the released lock, makes peer ready unless it is NULL,
 * and leaves. The channel may be gone: only the lock's address is used. Returns true. */
static __attribute__((noinline, cold)) bool wake_exit(struct m *mp, struct lock *l, uint32_t word,
                                                      struct g *peer)
{
	lock_wake(l, word);
	if (peer)
		return g_ready_exit(mp, peer);
	rt_exit_free(mp);
	return true;
}

/* Ends an operation: unlocks, makes peer ready if there is one, leaves. Returns true. */
static inline __attribute__((always_inline)) bool done_exit(struct m *mp, goro_chan *c, struct g *peer)
{
	uint32_t word = alone_lock_release(&c->lock);

	if (word)
		return wake_exit(mp, &c->lock, word, peer);
	if (peer)
		return g_ready_exit(mp, peer);
	rt_exit_free(mp);
	return true;
}

/* ------------------------------------------------------------------- send */

static _Noreturn __attribute__((noinline, cold)) void panic_closed(goro_chan *c)
{
	lock_release(&c->lock);
	panic_misuse("send on closed channel");
}

/* Lock held. */
static __attribute__((noinline)) void send_any(struct m *mp, goro_chan *c, const void *elem)
{
	struct g *peer;

	if (unlikely(c->closed))
		panic_closed(c);
	if (chan_send_now(c, elem, &peer))
		done_exit(mp, c, peer);
	else if (!wait_exit(mp, c, &c->sendq, (void *)(uintptr_t)elem, WAIT_CHAN_SEND))
		goro_panic("send on closed channel");
}

static __attribute__((noinline, cold)) void send_late(struct m *mp, goro_chan *c, const void *elem)
{
	if (!c)
		wait_on_nil(mp, WAIT_CHAN_SEND_NIL);
	chan_lock(c, "send on");
	send_any(mp, c, elem);
}

static __attribute__((noinline, cold)) void send_enter(struct m *mp, goro_chan *c, const void *elem)
{
	send_late(rt_enter_free_slow(mp), c, elem);
}

/* Sends, in the most frequent case only; *peer as in chan_send_now. c is not closed. */
static inline __attribute__((always_inline)) bool
send_simply(goro_chan *c, const void *elem, struct waiter *w, struct g **peer)
{
	*peer = NULL;
	if (w) {
		if (unlikely(w->is_select || !elem_copy_word(w->elem, elem, c->elem_size)))
			return false;
		waitq_take_first(&c->recvq, w);
		w->ok = true;
		*peer = g_of_waiter(w);
		return true;
	}
	if (c->count >= c->capacity || !elem_copy_word(ring_end(c), elem, c->elem_size))
		return false;
	store_release(&c->count, c->count + 1);
	return true;
}

void goro_chan_send(goro_chan *c, const void *elem)
{
	struct m *mp = m_self();
	struct waiter *w;
	struct g *peer;

	if (unlikely(!rt_try_enter(mp))) {
		send_enter(mp, c, elem);
		return;
	}
	if (unlikely(!c || !alone_lock_try(&c->lock))) {
		send_late(mp, c, elem);
		return;
	}
	chan_check_often(c);
	w = c->recvq.first;
	if (unlikely(c->closed)) {
		panic_closed(c);
	} else if (!w && !c->buffered) {
		if (unlikely(!wait_exit(mp, c, &c->sendq, (void *)(uintptr_t)elem, WAIT_CHAN_SEND)))
			goro_panic("send on closed channel");
	} else if (likely(send_simply(c, elem, w, &peer))) {
		done_exit(mp, c, peer);
	} else {
		send_any(mp, c, elem);
	}
}

bool goro_chan_try_send(goro_chan *c, const void *elem)
{
	struct m *mp;
	struct g *peer;
	bool sent;

	if (!c)
		return false;
	/* Not closed, and then full. A closed channel does not become full: it was full
	 * and not closed at the moment of the first look, whatever came after. */
	if (!load_acquire(&c->closed) && chan_seems_full(c))
		return false;
	mp = rt_enter();
	chan_lock(c, "send on");
	if (unlikely(c->closed))
		panic_closed(c);
	sent = chan_send_now(c, elem, &peer);
	lock_release(&c->lock);
	if (sent && peer)
		g_ready(mp, peer);
	rt_exit(mp);
	return sent;
}

/* ---------------------------------------------------------------- receive */

/* Lock held. */
static __attribute__((noinline)) bool recv_any(struct m *mp, goro_chan *c, void *elem)
{
	enum goro_recv result;
	struct g *peer;

	result = chan_recv_now(c, elem, &peer);
	if (result == GORO_RECV_EMPTY)
		return wait_exit(mp, c, &c->recvq, elem, WAIT_CHAN_RECV);
	done_exit(mp, c, peer);
	return result == GORO_RECV_OK;
}

static __attribute__((noinline, cold)) bool recv_late(struct m *mp, goro_chan *c, void *elem)
{
	if (!c)
		wait_on_nil(mp, WAIT_CHAN_RECV_NIL);
	chan_lock(c, "receive from");
	return recv_any(mp, c, elem);
}

static __attribute__((noinline, cold)) bool recv_enter(struct m *mp, goro_chan *c, void *elem)
{
	return recv_late(rt_enter_free_slow(mp), c, elem);
}

/* Like send_simply. A sender waits, or the ring has an element. */
static inline __attribute__((always_inline)) bool
recv_simply(goro_chan *c, void *elem, struct waiter *w, struct g **peer)
{
	*peer = NULL;
	if (c->count > 0) {
		if (w || !elem_copy_word(elem, c->ring + c->recv_at, c->elem_size))
			return false;
		ring_advance(c);
		return true;
	}
	if (unlikely(w->is_select || !elem_copy_word(elem, w->elem, c->elem_size)))
		return false;
	waitq_take_first(&c->sendq, w);
	w->ok = true;
	*peer = g_of_waiter(w);
	return true;
}

bool goro_chan_recv(goro_chan *c, void *elem)
{
	struct m *mp = m_self();
	struct waiter *w;
	struct g *peer;

	if (unlikely(!rt_try_enter(mp)))
		return recv_enter(mp, c, elem);
	if (unlikely(!c || !alone_lock_try(&c->lock)))
		return recv_late(mp, c, elem);
	chan_check_often(c);
	w = c->sendq.first;
	if (!w && c->count == 0) {
		if (likely(!c->closed))
			return wait_exit(mp, c, &c->recvq, elem, WAIT_CHAN_RECV);
	} else if (likely(recv_simply(c, elem, w, &peer))) {
		return done_exit(mp, c, peer);
	}
	return recv_any(mp, c, elem);
}

enum goro_recv goro_chan_try_recv(goro_chan *c, void *elem)
{
	enum goro_recv result;
	struct m *mp;
	struct g *peer;

	if (!c)
		return GORO_RECV_EMPTY;
	/* Empty, and then not closed. A closed channel is not opened again, so it was
	 * empty and not closed at the moment of the first look. */
	if (chan_seems_empty(c) && !load_acquire(&c->closed))
		return GORO_RECV_EMPTY;
	mp = rt_enter();
	chan_lock(c, "receive from");
	result = chan_recv_now(c, elem, &peer);
	lock_release(&c->lock);
	if (peer)
		g_ready(mp, peer);
	rt_exit(mp);
	return result;
}

/* ------------------------------------------------------------------ close */

/* Takes all waiters of q and appends them to the list that ends at *end. */
static struct waiter **close_queue(goro_chan *c, struct waitq *q, struct waiter **end)
{
	struct waiter *w;

	while ((w = chan_take_waiter(c, q))) {
		if (!w->is_send && w->elem)
			elem_zero(w->elem, c->elem_size);
		w->ok = false;
		*end = w;
		end = &w->next;
	}
	return end;
}

bool chan_close_now(goro_chan *c, struct waiter **waited)
{
	struct waiter **end = waited;
	bool open;

	chan_lock(c, "close of");
	open = !c->closed;
	/* release: pairs with load_acquire in goro_chan_try_send, goro_chan_try_recv */
	store_release(&c->closed, true);
	end = close_queue(c, &c->recvq, end);
	end = close_queue(c, &c->sendq, end);
	*end = NULL;
	lock_release(&c->lock);
	return open;
}

/* Gathers the waiters under the lock and makes them ready after the unlock. */
void goro_chan_close(goro_chan *c)
{
	struct m *mp = rt_enter();
	struct waiter *waited;

	if (unlikely(!c))
		panic_misuse("close of nil channel");
	if (unlikely(!chan_close_now(c, &waited)))
		panic_misuse("close of closed channel");
	ready_first_next(mp, waited);
	rt_exit(mp);
}
