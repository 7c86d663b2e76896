/*
 * waitgroup.c - sync.WaitGroup.
 *
 * Forking and joining is what goroutines do all day, so this type has a way of
 * its own to sleep, not that of sema.c: three atomic steps for a wait and the
 * Done that ends it, instead of six (which took a third more of fib of bench/).
 *
 * The first word has the counter above and the number of waiters below, so that
 * the step that brings the counter to zero also learns whether somebody waits.
 * The second word is the list of those who do. A waiter parks; once its stack is
 * at rest it counts itself in the first word, unless the counter is zero by then,
 * and puts itself on the list. Who brings the counter to zero finds n waiters
 * counted, and nobody can count itself any more:
 *
 *	- all n are on the list: it is theirs, and nobody else touches it;
 *	- some have counted themselves but not come to the list yet: it takes those
 *	  who have and leaves a note in the place of the list, how many are still
 *	  to come. Each of these finds the note, takes one off it and goes on.
 *
 * Lifetimes. Without waiters, bringing the counter to zero is the last access.
 * With them, the object is there until they go on, and none goes on before it is
 * taken off the list, or the note is there. Then the object is not touched again.
 *
 * Many waiters. To look at one who has waited for long is a miss of caches and TLB, so of many
 * each is to be looked at once, and to run soon afterwards. Where they are more than a P's queue
 * holds, the first batch of them is made ready, latest first, and one of these, the carrier, is
 * given the rest of the list. When it runs, still within its Wait, it does the same with the
 * rest. (200,000 who do nothing else: 0.16 us each on one P, and 0.45 when they were turned
 * around, in order of arrival, made ready and queued all at once.)
 *
 *	- While there is a rest its carrier is on a run queue or runs: it is nobody's who could
 *	  lose it, and nobody is asleep for good. It lies in the carrier's waiter, and is
 *	  there before the carrier is made ready.
 *	- Those who have counted themselves and not come to the list yet are the last carrier's
 *	  to see to, or who brought the counter to zero if there is none. The object is there
 *	  as long as a carrier is within its Wait.
 *	- A plain thread is none: its waking takes as long as a hundred others'. Nor is who is
 *	  locked to its thread.
 *	- Others find the carrier where they find work: they steal it like anybody.
 *	- The list has to be followed from one to the next. So each waiter also knows who began to
 *	  wait a few before it on the same P, and those who go through the list fetch that one
 *	  ahead. It is never looked at: by then it may have gone on, and ended. (Guessed
 *	  from the distances of the last ones, it was wrong where two Ps had made the list.)
 *
 * Misuse is reported where it is noticed, as in Go; not all of it is.
 */
#include <goro.h>

#include "linger.h"
#include "profile_hooks.h"
#include "runq.h"
#include "runtime.h"
#include "trace.h"

struct waitgroup {
	uint64_t state;		/* counter:32 waiters:32 */
	uintptr_t list;		/* of struct waiter, latest first; or a note */
};
_Static_assert(sizeof(struct waitgroup) == sizeof(goro_waitgroup), "public size");

static inline int32_t counter_of(uint64_t state) { return (int32_t)(state >> 32); }
static inline uint32_t waiters_of(uint64_t state) { return (uint32_t)state; }

/* A note for n waiters that have yet to come; for none, an empty list. */
static inline uintptr_t note_for(uint32_t n) { return n ? (uintptr_t)n << 1 | 1 : 0; }
static inline bool is_note(uintptr_t list) { return list & 1; }
static inline uint32_t note_count(uintptr_t list) { return (uint32_t)(list >> 1); }

/* ---------------------------------------------------------------- release */

static uint32_t list_length(const struct waiter *w)
{
	uint32_t n = 0;

	for (; w; w = w->next)
		n++;
	return n;
}

/* Turned around: in order of arrival; and how many. */
static struct waiter *in_order(struct waiter *latest, uint32_t *n)
{
	struct waiter *first = NULL, *w;

	for (*n = 0; (w = latest); ++*n) {
		latest = w->next;
		w->next = first;
		first = w;
	}
	return first;
}

/* Those who came later, and then those before. */
static struct waiter *join(struct waiter *later, struct waiter *before)
{
	struct waiter **end = &later;

	while (*end)
		end = &(*end)->next;
	*end = before;
	return later;
}

/* acquire: the waiters; pairs with cas_acqrel in enlist */
static inline struct waiter *take_list(struct waitgroup *wg)
{
	return (struct waiter *)exchange_acquire(&wg->list, 0);
}

/* Not all n are on the list: those who are, and a note for the others. */
static __attribute__((noinline)) struct waiter *take_some(struct waitgroup *wg, uint32_t n)
{
	struct waiter *taken = NULL;
	uintptr_t none;

	do {
		struct waiter *list = take_list(wg);

		n -= list_length(list);
		taken = join(list, taken);
		linger();
		none = 0;
		/* Unless others have come meanwhile. */
	} while (n > 0 && !cas_acqrel(&wg->list, &none, note_for(n)));
	return in_order(taken, &n);
}

static struct waiter *take_waiters(struct waitgroup *wg, uint32_t n)
{
	uint32_t here;
	/* acquire: the waiters; pairs with cas_acqrel in enlist */
	struct waiter *list = in_order((struct waiter *)load_acquire(&wg->list), &here);

	if (unlikely(here != n)) {
		in_order(list, &here);	/* as it was: those who come look at the first only */
		return take_some(wg, n);
	}
	store_relaxed(&wg->list, 0);
	return list;
}

/* ----------------------------------------------------------- many waiters */

/* As many as a P's queue has room for, with those who are left when the carrier runs. */
#define BATCH   (GORO_RUNQ_CAP / 2)
#define CARRIER (BATCH / 2)
#define MANY    (GORO_RUNQ_CAP + 1)
/* Of a list, from first on, and of those who have yet to come. */
struct rest {
	struct waiter *first;
	uint32_t n;
};

/* In the waiter of one of many; prev of the others is the waiter itself. */
static inline void rest_give(struct waiter *w, const struct rest *r)
{
	w->prev = r->first;
	w->index = (int)r->n;
}

static inline struct rest rest_of(const struct waiter *w)
{
	return (struct rest){ w->prev, (uint32_t)w->index };
}

static inline bool can_carry(const struct g *gp)
{
	return !gp->is_foreign && !gp->locked_m;
}

/* Who comes WAITED_AHEAD after this one, or somewhat more: see note_before. */
static inline void fetch_ahead(const struct waiter *w)
{
	uintptr_t ahead = (uintptr_t)w->elem;	/* or 0 */

	__builtin_prefetch((void *)ahead, 1);
	__builtin_prefetch((void *)(ahead - offsetof(struct g, waiter)), 1);
}

/* Goes past a batch, or as far as it takes to find a carrier, who is returned; NULL: all are
 * past, there is nothing to carry. */
static struct waiter *pass_batch(struct rest *r)
{
	struct waiter *w = r->first, *carrier = NULL;
	uint32_t i = 0;

	for (; w && (i < BATCH || !carrier); i++, w = w->next) {
		fetch_ahead(w);
		w->prev = w;
		if (i >= CARRIER && !carrier && can_carry(w->gp))
			carrier = w;
	}
	r->first = w;
	r->n -= i;
	return w ? carrier : NULL;
}

static __attribute__((noinline)) void release_many(struct m *mp, struct waitgroup *wg, struct rest r)
{
	struct waiter *w = r.first, *carrier = pass_batch(&r), *late = NULL, *next;

	if (carrier)
		rest_give(carrier, &r);
	else if (unlikely(r.n > 0))
		late = take_some(wg, r.n);
	linger();
	for (; w != r.first; w = next) {
		next = w->next;		/* its own again once it is ready */
		g_ready_quietly(mp, w->gp);
	}
	wake();
	ready_in_order(mp, late);
}

/* Back from its wait, one of many. */
static __attribute__((noinline)) void go_on(struct m *mp, struct waitgroup *wg, struct waiter *w)
{
	if (w->prev != w)
		release_many(mp, wg, rest_of(w));
	if (mp->p)
		runq_fetch_next(mp->p);
}

/* ------------------------------------------------------------------- done */

static __attribute__((noinline)) void release_several(struct m *mp, struct waitgroup *wg, uint32_t n)
{
	struct waiter *w;

	/* A trace is to say who woke them. */
	if (unlikely(n >= MANY) && !trace_on()) {
		release_many(mp, wg, (struct rest){ take_list(wg), n });
		return;
	}
	w = take_waiters(wg, n);
	linger();
	ready_first_next(mp, w);
}

/* The counter is zero in s, and there are waiters. */
static __attribute__((noinline)) void release_waiters(struct waitgroup *wg, uint64_t s)
{
	struct waiter *only;
	struct m *mp;

	/* Nothing may change now: an Add would be concurrent with the Waits, and
	 * a Wait finds the counter zero and does not count itself. */
	if (unlikely(load_relaxed(&wg->state) != s))
		goro_panic("sync: WaitGroup misuse: Add called concurrently with Wait");
	store_relaxed(&wg->state, 0);
	mp = rt_enter();
	/* acquire: as in take_waiters */
	if (likely(waiters_of(s) == 1) && likely((only = (struct waiter *)load_acquire(&wg->list)))) {
		store_relaxed(&wg->list, 0);
		linger();
		g_ready(mp, only->gp);
	} else {
		release_several(mp, wg, waiters_of(s));
	}
	rt_exit(mp);
}

static inline __attribute__((always_inline)) void add(struct waitgroup *wg, int delta)
{
	uint64_t more = (uint64_t)(int64_t)delta << 32;
	/* acqrel: what was done before Done is seen after Wait; pairs with the
	 * load_acquire in goro_waitgroup_wait */
	uint64_t s = fetch_add_acqrel(&wg->state, more) + more;

	linger();
	if (unlikely(counter_of(s) < 0))
		goro_panic("sync: negative WaitGroup counter");
	if (waiters_of(s) == 0)
		return;
	if (unlikely(delta > 0 && counter_of(s) == delta))
		goro_panic("sync: WaitGroup misuse: Add called concurrently with Wait");
	if (counter_of(s) == 0)
		release_waiters(wg, s);
}

void goro_waitgroup_add(goro_waitgroup *wg, int delta)
{
	add((struct waitgroup *)wg, delta);
}

void goro_waitgroup_done(goro_waitgroup *wg)
{
	add((struct waitgroup *)wg, -1);
}

/* ------------------------------------------------------------------- wait */

/* True unless the counter is zero. Who is not counted has not waited. */
static bool count_in(struct waitgroup *wg)
{
	uint64_t s = load_acquire(&wg->state);

	while (counter_of(s) != 0)
		/* acquire: as in goro_waitgroup_wait */
		if (cas_acqrel(&wg->state, &s, s + 1))
			return true;
	return false;
}

/* Who began to wait a few before w on this P comes as many after w in the list, if they wait for
 * the same. The only waiter of all does not need it. */
static inline void note_before(struct p *pp, struct waiter *w)
{
	struct waiter **at = &pp->waited[pp->waited_n++ % WAITED_AHEAD];

	w->elem = *at;
	*at = w;
}

/* False if there is a note instead of a list: then there is nothing to wait for. */
static bool enlist(struct m *mp, struct waitgroup *wg, struct waiter *w)
{
	uintptr_t list = load_acquire(&wg->list), new;

	if (list != 0 && likely(mp->p))
		note_before(mp->p, w);
	do {
		w->next = (struct waiter *)list;
		new = is_note(list) ? note_for(note_count(list) - 1) : (uintptr_t)w;
		/* release: *w; pairs with the acquires in take_waiters, take_some */
	} while (!cas_acqrel(&wg->list, &list, new));
	return !is_note(list);
}

/* The waiter's stack is at rest. */
static void commit(struct m *mp, struct g *gp)
{
	struct waitgroup *wg = mp->after_arg;

	gp->waiter.ok = count_in(wg);
	linger();
	if (unlikely(!gp->waiter.ok) || unlikely(!enlist(mp, wg, &gp->waiter)))
		g_ready(mp, gp);
}

static __attribute__((noinline)) void wait_slow(struct waitgroup *wg)
{
	struct m *mp = rt_enter_free();
	int64_t since = profile_wait_start();
	struct waiter *w = &mp->curg->waiter;

	w->gp = mp->curg;
	w->key = wg;		/* for who looks: reach.c */
	w->prev = NULL;
	mp = park(mp, commit, wg, WAIT_WAITGROUP_WAIT);
	if (unlikely(w->prev))
		go_on(mp, wg, w);
	profile_block_event(mp, since);
	rt_exit_free(mp);
	if (unlikely(w->ok && load_relaxed(&wg->state) != 0))
		goro_panic("sync: WaitGroup is reused before previous Wait has returned");
}

void goro_waitgroup_wait(goro_waitgroup *w)
{
	struct waitgroup *wg = (struct waitgroup *)w;

	/* acquire: what was done before Done; pairs with fetch_add_acqrel in
	 * goro_waitgroup_add */
	if (counter_of(load_acquire(&wg->state)) != 0)
		wait_slow(wg);
}
