/*
 * deadline.c - waiting no longer than until a time.
 *
 * The timer is the G's own, so that waiting allocates nothing; a goroutine waits
 * for one thing at a time and needs no more than one.
 *
 * Who wakes
 *
 * The deadline's fire is a waker like any other and has to find out in the same
 * way whether it is the first: under the lock of what is waited for, where it
 * takes the waiter off the queue if it is still there; or by the claim on a
 * select. The one who does makes the goroutine ready, and nobody else does.
 *
 *	waker                           deadline
 *	lock                            lock
 *	takes the waiter off the queue  finds it there no more
 *	unlock                          unlock
 *	g_ready                         timer_fired
 *
 *	the goroutine: timer_stop, goes on
 *
 * It is armed in the commit, when the stack is at rest, and before the unlock:
 * afterwards the goroutine may be awake already and have stopped a timer that
 * was not running yet. Awake, the goroutine stops it, which waits for a fire that
 * lost; so the fire may use the G and what was waited for until it is over.
 */
#include "deadline.h"

static void commit_until(struct m *mp, struct g *gp)
{
	struct lock *held = mp->after_arg;

	timer_start(mp, &gp->timer, gp->timer.when);
	lock_release(held);
}

struct m *park_until(struct m *mp, struct lock *held, enum wait_reason why, int64_t deadline,
                     deadline_fire *fire)
{
	struct g *gp = mp->curg;

	if (deadline == GORO_FOREVER)
		return park(mp, park_unlock, held, why);
	gp->timer.when = deadline;
	gp->timer.fire = fire;
	mp = park(mp, commit_until, held, why);
	deadline_disarm(gp);
	return mp;
}
