/*
 * select.c - waiting on several channels at once.
 *
 * A ready case, without locking the rest
 *
 * The select first looks at all cases without locks. If some seem ready, it chooses one
 * of them, each equally likely, and tries it under the lock of its channel alone. If that
 * succeeds, the select happened at that moment: the state of the other cases does not
 * matter to whether this one may be chosen.
 *
 * One look at all
 *
 * To wait, or to say that no case is ready, the select has to see all cases at one
 * moment. So it locks all their channels, in order of address (so that two selects cannot
 * deadlock), and each once, however often it appears. If no case is ready, it queues the
 * goroutine on every channel and parks. The locks are released once its stack is at rest.
 * The waiters lie in the order of the locks: in the G, or for a wide select in the heap.
 *
 * Woken once
 *
 * A goroutine that finds a waiter of a select claims the select by a CAS on the G's
 * select_seq, which is odd while the select waits: peers on two of its channels, and its
 * deadline, may try at the same time. A goroutine whose claim fails goes on to the next
 * waiter. Once awake, the select's goroutine stops its deadline and takes its other
 * waiters off their queues, in constant time each. As all locks are held when it is
 * queued, a select never meets itself.
 *
 * Lifetimes
 *
 * The unlock of the channel whose case is done shows the peer that the select is over,
 * and the peer may then drop all the other channels, too. So that unlock comes last. For
 * a select that waited see chan.h.
 *
 * Rejected: locking one channel after the other and queueing on the way. Two selects that
 * meet would each have to claim themselves and then the other, and undo the first claim
 * when the second fails, after other goroutines have seen it.
 */
#include "sync/chan.h"

#include <limits.h>
#include <stdlib.h>

#include "sync/deadline.h"
#include "goroutine/panic.h"
#include "sync/wait_profile.h"

/* A call of select. ws: the waiters of the cases that can wait, by address of channel. */
struct selection {
	const struct goro_case *cases;
	size_t n_cases;
	bool now;		/* do not wait; such a call stays on its thread */
	int64_t deadline;
	struct waiter *ws;
	int n;
};

/* Instead of an index. */
#define SEND_ON_CLOSED (-2)

static goro_chan *chan_of(const struct waiter *w)
{
	return w->key;
}

/* --------------------------------------------------------- a case by itself */

/* False: the case was not ready at one moment of the call. True is a hint only. */
static inline bool seems_ready(const struct goro_case *k)
{
	const goro_chan *c = k->chan;

	if (!c)
		return false;
	if (k->is_send)
		return load_acquire(&c->closed) || !chan_seems_full(c);
	return !chan_seems_empty(c) || load_acquire(&c->closed);
}

enum tried { NOT_READY, DONE, CLOSED };

/* Does a case if it can be done now. Its channel is locked and stays so. */
static inline enum tried try_case(const struct goro_case *k, struct g **peer)
{
	enum goro_recv got;

	check(load_relaxed(&k->chan->lock.word) != 0);
	*peer = NULL;
	if (k->is_send) {
		if (unlikely(k->chan->closed))
			return CLOSED;
		return chan_send_now(k->chan, k->send, peer) ? DONE : NOT_READY;
	}
	got = chan_recv_now(k->chan, k->recv, peer);
	if (got == GORO_RECV_EMPTY)
		return NOT_READY;
	if (k->ok)
		*k->ok = got == GORO_RECV_OK;
	return DONE;
}

/* A number below n, each equally likely. */
static inline uint32_t random_below(struct m *mp, uint32_t n)
{
	return (uint32_t)((m_random(mp) >> 32) * n >> 32);
}

/* One of the cases that seem ready, each equally likely; -1: none does. The k-th one
 * found replaces the one before with a chance of 1 in k. (Rejected: to look in random
 * order and stop at the first, whose branches are mispredicted.) */
static inline int pick_ready(struct m *mp, const struct goro_case *cases, size_t n)
{
	uint32_t found = 0;
	int pick = -1;

	for (size_t i = 0; i < n; i++) {
		if (!seems_ready(&cases[i]))
			continue;
		if (++found == 1 || random_below(mp, found) == 0)
			pick = (int)i;
	}
	return pick;
}

/* -1: no case was ready, or the chosen one only seemed so. */
static inline int select_quickly(struct m *mp, const struct goro_case *cases, size_t n)
{
	int i = pick_ready(mp, cases, n);
	struct g *peer;
	enum tried t;

	if (i < 0)
		return -1;
	chan_lock(cases[i].chan, "select on");
	t = try_case(&cases[i], &peer);
	lock_release(&cases[i].chan->lock);
	if (peer)
		g_ready(mp, peer);
	if (unlikely(t == CLOSED))
		panic_misuse("send on closed channel");
	return t == DONE ? i : -1;
}

/* -------------------------------------------------------------- all at once */

/* Shell sort: needs no memory and has no bad worst case. For a few cases, which are
 * mostly in order already, it is an insertion sort. */
static void sort_by_chan(struct waiter *ws, int n)
{
	int gap = 1;

	while (gap < n / 3)
		gap = 3 * gap + 1;
	for (; gap > 0; gap /= 3)
		for (int i = gap; i < n; i++) {
			struct waiter w = ws[i];
			int j = i;

			for (; j >= gap && (uintptr_t)ws[j - gap].key > (uintptr_t)w.key; j -= gap)
				ws[j] = ws[j - gap];
			ws[j] = w;
		}
}

static bool is_repeated(const struct selection *s, int i)
{
	return i > 0 && s->ws[i].key == s->ws[i - 1].key;
}

/* Cases on one channel wait in random order: each is equally likely to be first. */
static void shuffle_repeated(struct m *mp, struct selection *s)
{
	for (int i = 1, first = 0; i < s->n; i++) {
		if (is_repeated(s, i)) {
			int j = first + (int)random_below(mp, (uint32_t)(i - first + 1));
			struct waiter w = s->ws[j];

			s->ws[j] = s->ws[i];
			s->ws[i] = w;
		} else {
			first = i;
		}
	}
}

static void selection_make(struct m *mp, struct selection *s)
{
	s->n = 0;
	for (size_t i = 0; i < s->n_cases; i++) {
		const struct goro_case *k = &s->cases[i];

		if (k->chan)
			s->ws[s->n++] = (struct waiter){
				.gp = mp->curg,
				.key = k->chan,
				.elem = k->is_send ? (void *)(uintptr_t)k->send : k->recv,
				.index = (int)i,
				.is_send = k->is_send,
				.is_select = true,
			};
	}
	sort_by_chan(s->ws, s->n);
	shuffle_repeated(mp, s);
}

/* Unlocks the channels of the first n waiters; `last`, unless it is NULL, as the last. */
static void unlock_first(const struct selection *s, int n, goro_chan *last)
{
	for (int i = n - 1; i >= 0; i--)
		if (!is_repeated(s, i) && chan_of(&s->ws[i]) != last)
			lock_release(&chan_of(&s->ws[i])->lock);
	if (last)
		lock_release(&last->lock);
}

/* The channels before the i-th are locked. */
static __attribute__((noinline, cold)) void lock_late(const struct selection *s, int i)
{
	goro_chan *c = chan_of(&s->ws[i]);

	if (c->lock.freed) {
		unlock_first(s, i, NULL);
		chan_lock(c, "select on");	/* panics */
	}
	lock_acquire(&c->lock);
}

static void lock_all(const struct selection *s)
{
	for (int i = 0; i < s->n; i++) {
		check(i == 0 || (uintptr_t)s->ws[i].key >= (uintptr_t)s->ws[i - 1].key);
		if (!is_repeated(s, i) && unlikely(!lock_try(&chan_of(&s->ws[i])->lock)))
			lock_late(s, i);
	}
}

/* All channels are locked. Does a ready case and returns its index; -1: none is ready. A
 * case that only seemed ready, since its waiters were claimed elsewhere, loses these by
 * the try and does not seem ready again. */
static int try_all(struct m *mp, const struct selection *s, struct g **peer, enum tried *tried)
{
	int i;

	do {
		i = pick_ready(mp, s->cases, s->n_cases);
		*tried = i < 0 ? NOT_READY : try_case(&s->cases[i], peer);
	} while (i >= 0 && *tried == NOT_READY);
	return i;
}

/* ------------------------------------------------------------------ waiting */

/* A waker like any other, but for no case. */
static void deadline_comes(struct m *mp, struct timer *t, int64_t now)
{
	struct g *gp = deadline_g(t);
	bool claimed = select_claim(gp, load_relaxed(&gp->select_seq));

	(void)now;
	timer_fired(t);
	if (claimed)
		g_ready_in_order(mp, gp);
}

/*
 * The stack is at rest. After the unlock of a channel a peer may claim and wake the
 * goroutine. That leaves the channels that are unlocked, waits for the locks of the
 * others, and is gone after the last unlock. So this reads the next channel before it
 * unlocks one.
 */
static void after_select(struct m *mp, struct g *gp)
{
	const struct selection *s = mp->after.arg;
	struct waiter *w = s->ws, *end = w + s->n;

	if (s->deadline != GORO_FOREVER)
		deadline_arm(mp, gp, s->deadline, deadline_comes);
	while (w < end) {
		goro_chan *c = chan_of(w);

		while (++w < end && chan_of(w) == c)
			;
		lock_release(&c->lock);
	}
}

static struct m *wait_for_any(struct m *mp, struct selection *s)
{
	struct g *gp = mp->curg;
	int64_t since = profile_wait_start();

	check(!(gp->select_seq & 1));
	gp->select_won = NULL;
	store_relaxed(&gp->select_seq, gp->select_seq + 1);
	for (int i = 0; i < s->n; i++) {
		struct waiter *w = &s->ws[i];
		goro_chan *c = chan_of(w);

		w->queued = true;
		c->selects++;
		waitq_put(w->is_send ? &c->sendq : &c->recvq, w);
	}
	mp = park(mp, after_select, s, s->n_cases ? WAIT_SELECT : WAIT_SELECT_NO_CASES);
	check(!(load_relaxed(&gp->select_seq) & 1));
	if (s->deadline != GORO_FOREVER)
		deadline_disarm(gp);
	profile_block_event(mp, since);
	return mp;
}

/* Takes all waiters but won off their channels. True: some channels are to be freed:
 * those of the waiters that still have a key. */
static bool leave_all(struct selection *s, const struct waiter *won)
{
	bool any = false;

	for (int i = 0; i < s->n; i++) {
		struct waiter *w = &s->ws[i];

		if (w != won && chan_leave(w->key, w))
			any = true;
		else
			w->key = NULL;
	}
	return any;
}

/* In user code. */
static __attribute__((noinline, cold)) void free_dropped(struct selection *s)
{
	for (int i = 0; i < s->n; i++)
		if (s->ws[i].key) {
			chan_free(s->ws[i].key);
			s->ws[i].key = NULL;
		}
}

/* Leaves the runtime. The index of the case that was done, -1 or SEND_ON_CLOSED. */
static int select_and_exit(struct m *mp, struct selection *s)
{
	struct g *peer = NULL;
	struct waiter *won;
	enum tried tried;
	bool dropped;
	int i;

	lock_all(s);
	i = try_all(mp, s, &peer, &tried);
	if (i >= 0 || s->now) {
		unlock_first(s, s->n, i >= 0 ? s->cases[i].chan : NULL);
		if (peer)
			g_ready(mp, peer);
		deadline_exit(mp, s->now);
		return tried == CLOSED ? SEND_ON_CLOSED : i;
	}
	mp = wait_for_any(mp, s);
	won = mp->curg->select_won;
	check(won || s->deadline != GORO_FOREVER);
	check(!won || (!won->queued && won->key == s->cases[won->index].chan));
	dropped = leave_all(s, won);
	rt_exit_free(mp);
	if (unlikely(dropped))
		free_dropped(s);
	if (!won)
		return -1;
	if (s->cases[won->index].ok)
		*s->cases[won->index].ok = won->ok;
	return won->is_send && !won->ok ? SEND_ON_CLOSED : won->index;
}

/* ------------------------------------------------------------------- select */

/* More cases than a G has waiters for. In user code. */
static __attribute__((noinline)) int select_wide(struct selection *s)
{
	struct m *mp;
	struct g *gp;
	int i;

	s->ws = s->n_cases > INT_MAX ? NULL : malloc(s->n_cases * sizeof *s->ws);
	if (!s->ws)
		goro_panic("select: out of memory for %zu cases", s->n_cases);
	mp = deadline_enter(s->now);
	selection_make(mp, s);
	gp = mp->curg;
	select_show_wide(gp, s->ws, s->n);
	i = select_and_exit(mp, s);
	select_show_wide(gp, NULL, 0);
	free(s->ws);
	return i;
}

/* A select of one case is that operation, also in a dump. */
static int select_one(const struct goro_case *k, bool now)
{
	enum goro_recv got;

	if (k->is_send) {
		if (now)
			return goro_chan_try_send(k->chan, k->send) ? 0 : -1;
		goro_chan_send(k->chan, k->send);
		return 0;
	}
	got = now ? goro_chan_try_recv(k->chan, k->recv)
	          : (enum goro_recv)goro_chan_recv(k->chan, k->recv);
	if (got == GORO_RECV_EMPTY)
		return -1;
	if (k->ok)
		*k->ok = got == GORO_RECV_OK;
	return 0;
}

int goro_select_n(const struct goro_case *cases, size_t n, int64_t deadline)
{
	struct selection s = { .cases = cases, .n_cases = n, .now = deadline_is_past(deadline),
	                       .deadline = deadline };
	struct m *mp;
	int i;

	if (n == 1 && (s.now || deadline == GORO_FOREVER))
		return select_one(cases, s.now);
	mp = deadline_enter(s.now);
	i = select_quickly(mp, cases, n);
	if (i >= 0) {
		deadline_exit(mp, s.now);
		return i;
	}
	if (likely(n <= G_WAITERS)) {
		s.ws = mp->curg->waiters;
		selection_make(mp, &s);
		i = select_and_exit(mp, &s);
	} else {
		deadline_exit(mp, s.now);
		i = select_wide(&s);
	}
	if (unlikely(i == SEND_ON_CLOSED))
		goro_panic("send on closed channel");
	return i;
}
