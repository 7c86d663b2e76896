/*
 * semaphore.c - weighted semaphores: golang.org/x/sync/semaphore.
 *
 * A lock, two numbers, and a ring of waiters in order. Units go to the first in the ring
 * or to none. If there are not enough for it, the others wait behind it, even those that
 * want fewer: else a goroutine that wants many would wait for ever among those that want
 * few. For the same reason no goroutine takes units past the ring while one waits. A
 * goroutine that wants more than the total can only wait for its deadline. It waits
 * outside the ring, in no other's way.
 *
 * Invariants, under the lock:
 *	- 0 <= held <= total;
 *	- the first in the ring wants more than total - held.
 *
 * As in Go, where the context's end comes first, a goroutine gets no units once its
 * deadline has passed, even if there are some.
 *
 * Lifetimes: a goroutine that gets units may free the semaphore. So the unlock is the
 * last access to it, and making goroutines ready comes after.
 */
#include <errno.h>
#include <goro.h>

#include "sync/deadline.h"
#include "sched/linger.h"
#include "goroutine/panic.h"
#include "sync/wait_profile.h"
#include "sched/runtime.h"

struct sema {
	struct lock lock;
	int64_t total;
	int64_t held;
	struct waiter *first;	/* its prev is the last */
};
_Static_assert(sizeof(struct sema) == sizeof(goro_sema), "public size");

void goro_sema_init(goro_sema *sema, int64_t units)
{
	*(struct sema *)sema = (struct sema){ .total = units };
}

/* ------------------------------------------------------------------- ring */

static void ring_put(struct sema *s, struct waiter *w)
{
	struct waiter *first = s->first ? s->first : w;

	w->next = first;
	w->prev = s->first ? first->prev : w;
	w->prev->next = w;
	first->prev = w;
	s->first = first;
}

static void ring_remove(struct sema *s, struct waiter *w)
{
	w->prev->next = w->next;
	w->next->prev = w->prev;
	if (s->first == w)
		s->first = w->next == w ? NULL : w->next;
}

/* The invariants. */
static void sema_check(const struct sema *s)
{
	check(lock_is_held((struct lock *)&s->lock));
	check(0 <= s->held && s->held <= s->total);
	check(!s->first || s->first->units > s->total - s->held);
	check(!s->first || (s->first->prev->next == s->first && s->first->next->prev == s->first));
	(void)s;
}

/* Gives units to the first waiters, as far as the units go. Lock held; releases it. */
static void notify_unlock(struct m *mp, struct sema *s)
{
	struct waiter *list = NULL, **end = &list, *w;

	while ((w = s->first) && s->total - s->held >= w->units) {
		s->held += w->units;
		w->ok = true;
		ring_remove(s, w);
		w->next = NULL;
		*end = w;
		end = &w->next;
	}
	sema_check(s);
	lock_release(&s->lock);
	linger();
	ready_in_order(mp, list);
}

/* ----------------------------------------------------------------- acquire */

/* Lock held. */
static bool take_now(struct sema *s, int64_t units)
{
	sema_check(s);
	if (s->first || s->total - s->held < units)
		return false;
	s->held += units;
	return true;
}

/* A waiter's deadline: "Who wakes" in deadline.c. Those behind it may have enough now. */
static void expire(struct m *mp, struct timer *t, int64_t now)
{
	struct g *gp = deadline_g(t);
	struct waiter *w = &gp->waiter;
	struct sema *s = w->elem;
	bool granted;

	(void)now;
	lock_acquire(&s->lock);
	check(s->first || !w->queued || w->ok);
	granted = w->ok;
	if (!granted && w->queued)
		ring_remove(s, w);
	notify_unlock(mp, s);
	timer_fired(t);
	if (!granted)
		g_ready_in_order(mp, gp);
}

/* Lock held; releases it. True: the goroutine has its units. */
static bool wait_for_units(struct m **mp, struct sema *s, int64_t units, int64_t deadline)
{
	struct waiter *w = &(*mp)->curg->waiter;
	int64_t since = profile_wait_start();

	w->gp = (*mp)->curg;
	w->units = units;
	w->elem = s;
	w->ok = false;
	w->queued = units <= s->total;
	if (w->queued)
		ring_put(s, w);
	*mp = park_until(*mp, &s->lock, WAIT_SEMACQUIRE, deadline, expire);
	profile_block_event(*mp, since);
	return w->ok;
}

int goro_sema_acquire(goro_sema *sema, int64_t units, int64_t deadline)
{
	struct sema *s = (struct sema *)sema;
	struct m *mp;
	bool got;

	if (deadline_is_past(deadline))
		return -ETIMEDOUT;
	mp = rt_enter_free();
	lock_acquire(&s->lock);
	if (take_now(s, units)) {
		lock_release(&s->lock);
		rt_exit_free(mp);
		return 0;
	}
	got = wait_for_units(&mp, s, units, deadline);
	rt_exit_free(mp);
	if (got && deadline_is_past(deadline)) {
		goro_sema_release(sema, units);
		got = false;
	}
	return got ? 0 : -ETIMEDOUT;
}

bool goro_sema_try_acquire(goro_sema *sema, int64_t units)
{
	struct sema *s = (struct sema *)sema;
	struct m *mp = rt_enter_lock(&s->lock);
	bool got;

	got = take_now(s, units);
	rt_unlock_exit(mp, &s->lock);
	return got;
}

void goro_sema_release(goro_sema *sema, int64_t units)
{
	struct sema *s = (struct sema *)sema;
	struct m *mp = rt_enter_lock(&s->lock);

	if (s->held < units) {
		lock_release(&s->lock);
		panic_misuse("semaphore: released more than held");
	}
	s->held -= units;
	notify_unlock(mp, s);
	rt_exit(mp);
}
