/*
 * deadline.c - waits that end at a deadline.
 *
 * The timer is part of the G, so waiting allocates nothing. One is enough: a goroutine
 * waits for one thing at a time.
 *
 * Who wakes
 *
 * The deadline's fire is a waker like any other, and finds out in the same way whether it
 * is the first: under the lock of what the goroutine waits for, where it takes the waiter
 * off the queue if it is still there; or by claiming the select. Only the first waker
 * makes the goroutine ready.
 *
 *	waker                           deadline
 *	lock                            lock
 *	takes the waiter off the queue  finds it there no more
 *	unlock                          unlock
 *	g_ready                         timer_fired
 *
 *	the goroutine: timer_stop, goes on
 *
 * The commit arms the timer: the stack is at rest, and the lock is still held. After the
 * unlock the goroutine may be awake, and would have stopped a timer that did not run yet.
 * The awake goroutine stops the timer, which waits for a fire that lost. So the fire may
 * use the G, and what the goroutine waits for, until it calls timer_fired.
 */
#include "sync/deadline.h"

static void commit_until(struct m *mp, struct g *gp)
{
	struct lock *held = mp->after.arg;

	check(lock_is_held(held) && !timer_is_firing(&gp->timer));
	timer_start(mp, &gp->timer, gp->timer.when);
	lock_release(held);
}

struct m *park_until(struct m *mp, struct lock *held, enum wait_reason why, int64_t deadline,
                     deadline_fire *fire)
{
	struct g *gp = mp->curg;

	check(lock_is_held(held));
	if (deadline == GORO_FOREVER)
		return park(mp, park_unlock, held, why);
	gp->timer.when = deadline;
	gp->timer.fire = fire;
	mp = park(mp, commit_until, held, why);
	deadline_disarm(gp);
	return mp;
}
