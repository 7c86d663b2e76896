/*
 * select.c - waiting on several channels at once.
 *
 * A ready case, without locking the rest
 *
 * First a look at all cases without locks. If some seem ready, one of them is
 * chosen, each as likely, and tried under the lock of its channel alone. If that
 * succeeds, the select happened at that moment, at which its case was ready; no
 * other case's state matters to whether it may be chosen.
 *
 * One look at all
 *
 * To wait, or to say that none is ready, all cases have to be seen at one
 * moment. So all their channels are locked, in order of address (two selects
 * over the same channels do not meet halfway) and each once, however often it
 * appears. If none is ready the goroutine is queued on every channel, and parks;
 * the locks are released once its stack is at rest. Its waiters lie in the order
 * of the locks, in the G, or in memory taken before for a wide select.
 *
 * Woken once
 *
 * Whoever finds a waiter of a select claims it: a CAS on the G's select_seq, odd
 * while the select waits, since peers on two of its channels, and its deadline,
 * may try at the same time. Who fails goes on to the next waiter. Awake, the
 * goroutine stops its deadline and takes its other waiters off their queues, in
 * constant time each.
 *
 * It is queued only once no case is ready, with all locks held, so it never meets
 * itself: a select that sends and receives on one channel waits for others.
 *
 * Lifetimes
 *
 * What shows the peer that the select is over is the unlock of the channel whose
 * case came true, and it may then drop all the others, too. So that unlock comes
 * last. For a select that waited see chan.h.
 *
 * Rejected: locking one channel after the other and queueing on the way. Two
 * selects that meet would each have to claim themselves and then the other, and
 * take back the one when the other fails, while third parties have seen it.
 */
#include "chan.h"

#include <limits.h>
#include <stdlib.h>

#include "deadline.h"
#include "os.h"
#include "panic.h"
#include "profile_hooks.h"

/* The cases that can wait, in order of the channels' addresses. */
struct selection {
	const struct goro_case *cases;
	size_t n_cases;
	bool now;		/* do not wait; and then do not move to another thread */
	int64_t deadline;
	struct waiter *ws;
	int n;
};

/* Instead of an index. */
#define SEND_ON_CLOSED (-2)

static bool is_past(int64_t deadline)
{
	return deadline <= GORO_NOW || (deadline != GORO_FOREVER && deadline <= os_now());
}

static inline struct m *enter(bool now)
{
	return now ? rt_enter() : rt_enter_free();
}

static inline void leave(struct m *mp, bool now)
{
	if (now)
		rt_exit(mp);
	else
		rt_exit_free(mp);
}

static goro_chan *chan_of(const struct waiter *w)
{
	return w->key;
}

/* --------------------------------------------------------- a case by itself */

/* Not to be called ready is proof at one moment; the other way it is a hint. */
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

/* A number below n, each as likely. */
static inline uint32_t random_below(struct m *mp, uint32_t n)
{
	return (uint32_t)((m_random(mp) >> 32) * n >> 32);
}

/* One of those that seem ready, each as likely; -1: none does. The k-th found
 * takes the place of the one before with a chance of 1 in k. (Looking in a random
 * order and stopping at the first saves looks, but costs more than they do, in
 * branches that no predictor foresees.) */
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

static _Noreturn __attribute__((noinline, cold)) void panic_closed(void)
{
	panic_misuse("send on closed channel");
}

/* -1: none that seemed ready was. */
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
		panic_closed();
	return t == DONE ? i : -1;
}

/* -------------------------------------------------------------- all at once */

/* Shell sort: no memory, no worst case to fear, and for a few cases, which are
 * most often in order already, an insertion sort. */
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

/* Cases on one channel wait in random order, so that each is as likely to be
 * served first. */
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

static void unlock_first(const struct selection *s, int n, goro_chan *but)
{
	for (int i = n - 1; i >= 0; i--)
		if (!is_repeated(s, i) && chan_of(&s->ws[i]) != but)
			lock_release(&chan_of(&s->ws[i])->lock);
}

/* Those before the i-th are locked. */
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
	for (int i = 0; i < s->n; i++)
		if (!is_repeated(s, i) && unlikely(!lock_try(&chan_of(&s->ws[i])->lock)))
			lock_late(s, i);
}

/* but is unlocked last. */
static void unlock_all(const struct selection *s, goro_chan *but)
{
	unlock_first(s, s->n, but);
	if (but)
		lock_release(&but->lock);
}

/* All locked. One that is ready, done; -1: none is. A case that only seemed so,
 * since its waiters were claimed elsewhere, has lost them and does not again. */
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
 * Once the stack is at rest. After the unlock of a channel a peer may claim and
 * wake the goroutine, which then leaves the channels that are unlocked, waits for
 * the locks of the others, and is gone after the last. So the next channel is
 * read before this one is unlocked.
 */
static void after_select(struct m *mp, struct g *gp)
{
	const struct selection *s = mp->after_arg;
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
	if (s->deadline != GORO_FOREVER)
		deadline_disarm(gp);
	profile_block_event(mp, since);
	return mp;
}

/* Takes the waiters off that did not win. True: channels were dropped meanwhile;
 * those whose waiters still have a key are to be freed. */
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

/* In the runtime, and out of it. The index of the case that came true, or -1. */
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
		unlock_all(s, i >= 0 ? s->cases[i].chan : NULL);
		if (peer)
			g_ready(mp, peer);
		leave(mp, s->now);
		return tried == CLOSED ? SEND_ON_CLOSED : i;
	}
	mp = wait_for_any(mp, s);
	won = mp->curg->select_won;
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

static int select_narrow(struct m *mp, struct selection *s)
{
	s->ws = mp->curg->waiters;
	selection_make(mp, s);
	return select_and_exit(mp, s);
}

/* More cases than a G has waiters for. In user code. */
static __attribute__((noinline)) int select_wide(struct selection *s)
{
	struct m *mp;
	struct g *gp;
	int i;

	s->ws = s->n_cases > INT_MAX ? NULL : malloc(s->n_cases * sizeof *s->ws);
	if (!s->ws)
		goro_panic("select: out of memory for %zu cases", s->n_cases);
	mp = enter(s->now);
	selection_make(mp, s);
	gp = mp->curg;
	select_show_wide(gp, s->ws, s->n);
	i = select_and_exit(mp, s);
	select_show_wide(gp, NULL, 0);
	free(s->ws);
	return i;
}

/* One case is the operation itself, also in what a dump says of it. */
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
	struct selection s = { .cases = cases, .n_cases = n, .now = is_past(deadline),
	                       .deadline = deadline };
	struct m *mp;
	int i;

	if (n == 1 && (s.now || deadline == GORO_FOREVER))
		return select_one(cases, s.now);
	mp = enter(s.now);
	i = select_quickly(mp, cases, n);
	if (i >= 0) {
		leave(mp, s.now);
		return i;
	}
	if (likely(n <= G_WAITERS)) {
		i = select_narrow(mp, &s);
	} else {
		leave(mp, s.now);
		i = select_wide(&s);
	}
	if (unlikely(i == SEND_ON_CLOSED))
		goro_panic("send on closed channel");
	return i;
}
