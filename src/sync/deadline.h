/*
 * deadline.h - waiting no longer than until a time. Defined in deadline.c.
 */
#ifndef GORO_DEADLINE_H
#define GORO_DEADLINE_H

#include <goro.h>
#include <stddef.h>

#include "runtime.h"

/* What a deadline does when it comes first: wakes the goroutine, if nobody else
 * has. See "Who wakes" in deadline.c. */
typedef void deadline_fire(struct m *mp, struct timer *t, int64_t now);

/* Parks like park(mp, park_unlock, held, why), but for no longer than until the
 * deadline, at which fire is called; GORO_FOREVER: without one. */
struct m *park_until(struct m *mp, struct lock *held, enum wait_reason why, int64_t deadline,
                     deadline_fire *fire);

/* The same by hand. In a commit, while what would let another waker in is still
 * locked and everything is read from the goroutine's stack that will be .. */
static inline void deadline_arm(struct m *mp, struct g *gp, int64_t deadline, deadline_fire *fire)
{
	gp->timer.fire = fire;
	timer_start(mp, &gp->timer, deadline);
}
/* .. and by the goroutine itself when it is awake, before it goes on. */
static inline void deadline_disarm(struct g *gp)
{
	timer_stop(&gp->timer);
}

/* In a fire: whose deadline it is. Its last use of t is timer_fired(t), and then
 * it makes the goroutine ready, if that is its to do. */
static inline struct g *deadline_g(struct timer *t)
{
	return (struct g *)((char *)t - offsetof(struct g, timer));
}

/* now + ns, in the range of times that timers can have. */
static inline int64_t deadline_after(int64_t now, int64_t ns)
{
	if (ns <= 0)
		return now;
	return ns < TIMER_LAST - now ? now + ns : TIMER_LAST;
}

#endif
