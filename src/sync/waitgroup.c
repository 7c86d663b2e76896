/*
 * waitgroup.c - sync.WaitGroup.
 *
 * Forking and joining is frequent, so a wait group does not sleep by way of sema.c: a
 * wait and the Done that ends it take three atomic steps instead of six, which made fork
 * and join a third slower.
 *
 * The first word has the counter above and the number of waiters below. So the step that
 * brings the counter to zero also learns whether goroutines wait. The second word is the
 * list of waiters. A waiter parks. Once its stack is at rest it counts itself in the
 * first word, unless the counter is zero by then, and puts itself on the list. The
 * releaser, which brings the counter to zero, finds n waiters counted. No other can count
 * itself from then on:
 *
 *	- All n are on the list: the list is the releaser's alone.
 *	- Some have counted themselves but are not on the list yet. The releaser takes the
 *	  others and leaves a note in place of the list: how many are still to come. Each
 *	  latecomer finds the note, takes one off it and goes on.
 *
 * Lifetimes. Without waiters, bringing the counter to zero is the last access. With
 * waiters, the object stays until they go on, and none goes on before it is taken off the
 * list, or the note is there. After that the releaser does not touch the object.
 *
 * Misuse is reported where it is noticed, as in Go; not all of it is.
 */
#include <goro.h>

#include "sched/linger.h"
#include "sync/wait_profile.h"
#include "sched/runtime.h"

struct waitgroup {
	uint64_t state;		/* counter:32 waiters:32 */
	uintptr_t list;		/* of struct waiter, latest first; or a note */
};
_Static_assert(sizeof(struct waitgroup) == sizeof(goro_waitgroup), "public size");

static inline int32_t counter_of(uint64_t state) { return (int32_t)(state >> 32); }
static inline uint32_t waiters_of(uint64_t state) { return (uint32_t)state; }

/* A note for n waiters that have yet to come. For none, an empty list. */
static inline uintptr_t note_for(uint32_t n) { return n ? (uintptr_t)n << 1 | 1 : 0; }
static inline bool is_note(uintptr_t list) { return list & 1; }
static inline uint32_t note_count(uintptr_t list) { return (uint32_t)(list >> 1); }

/* ---------------------------------------------------------------- release */

/* acquire: the waiters; pairs with cas_acqrel in enlist */
static inline struct waiter *take_list(struct waitgroup *wg)
{
	uintptr_t list = exchange_acquire(&wg->list, 0);

	check(!is_note(list));
	return (struct waiter *)list;
}

/* Takes the n waiters that are counted, in order of arrival. If some are not on the list
 * yet, takes the others and leaves a note. */
static __attribute__((noinline)) struct waiter *take_waiters(struct waitgroup *wg, uint32_t n)
{
	struct waiter *first = NULL, **end = &first, *latest, *w, *next;
	uintptr_t none;

	do {
		latest = take_list(wg);
		for (w = latest; w; w = next, n--) {
			check(n > 0 && w->key == wg && w->ok);
			next = w->next;
			w->next = *end;
			*end = w;
		}
		if (latest)
			end = &latest->next;
		linger();
		none = 0;
		/* Again if waiters have come to the list meanwhile. */
	} while (n > 0 && !cas_acqrel(&wg->list, &none, note_for(n)));
	return first;
}

/* ------------------------------------------------------------------- done */

static __attribute__((noinline)) void release_several(struct m *mp, struct waitgroup *wg, uint32_t n)
{
	struct waiter *w = take_waiters(wg, n);

	linger();
	ready_first_next(mp, w);
}

/* The counter is zero in s, and there are waiters. */
static __attribute__((noinline)) void release_waiters(struct waitgroup *wg, uint64_t s)
{
	struct waiter *only;
	struct m *mp;

	check(counter_of(s) == 0 && waiters_of(s) > 0);
	/* Nothing may change now: an Add would be concurrent with the Waits, and a Wait
	 * finds the counter zero and does not count itself. */
	if (unlikely(load_relaxed(&wg->state) != s))
		goro_panic("sync: WaitGroup misuse: Add called concurrently with Wait");
	store_relaxed(&wg->state, 0);
	mp = rt_enter();
	/* acquire: as in take_list */
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

/* Counts the waiter. False: the counter is zero, there is nothing to wait for. */
static bool count_in(struct waitgroup *wg)
{
	uint64_t s = load_acquire(&wg->state);

	while (counter_of(s) != 0)
		/* acquire: as in goro_waitgroup_wait */
		if (cas_acqrel(&wg->state, &s, s + 1))
			return true;
	return false;
}

/* Puts w on the list. False: there is a note instead, and nothing to wait for. */
static bool enlist(struct waitgroup *wg, struct waiter *w)
{
	uintptr_t list = load_acquire(&wg->list), new;

	do {
		w->next = (struct waiter *)list;
		new = is_note(list) ? note_for(note_count(list) - 1) : (uintptr_t)w;
		/* release: *w; pairs with the acquires in take_list, release_waiters */
	} while (!cas_acqrel(&wg->list, &list, new));
	check(!is_note(list) || note_count(list) > 0);
	return !is_note(list);
}

/* The waiter's stack is at rest. */
static void commit(struct m *mp, struct g *gp)
{
	struct waitgroup *wg = mp->after.arg;

	gp->waiter.ok = count_in(wg);
	linger();
	if (unlikely(!gp->waiter.ok) || unlikely(!enlist(wg, &gp->waiter)))
		g_ready(mp, gp);
}

static __attribute__((noinline)) void wait_slow(struct waitgroup *wg)
{
	struct m *mp = rt_enter_free();
	int64_t since = profile_wait_start();
	struct waiter *w = &mp->curg->waiter;

	w->gp = mp->curg;
	w->key = wg;		/* for reach.c */
	mp = park(mp, commit, wg, WAIT_WAITGROUP_WAIT);
	profile_block_event(mp, since);
	rt_exit_free(mp);
	if (unlikely(w->ok && load_relaxed(&wg->state) != 0))
		goro_panic("sync: WaitGroup is reused before previous Wait has returned");
}

void goro_waitgroup_wait(goro_waitgroup *w)
{
	struct waitgroup *wg = (struct waitgroup *)w;

	/* acquire: what was done before Done; pairs with fetch_add_acqrel in add */
	if (counter_of(load_acquire(&wg->state)) != 0)
		wait_slow(wg);
}
