/* deadline.h - waits that end at a deadline. Defined in deadline.c. */
#ifndef GORO_DEADLINE_H
#define GORO_DEADLINE_H

#include <goro.h>
#include <stddef.h>

#include "platform/os.h"
#include "sched/runtime.h"
#include "sched/timers.h"

/* The interval at which starting a goroutine is tried again when memory is short. */
#define RETRY_NS (1 * GORO_MILLISECOND)

/* Called at the deadline: makes the goroutine ready unless another waker has claimed it.
 * See "Who wakes" in deadline.c. */
typedef void deadline_fire(struct m *mp, struct timer *t, int64_t now);

/* Parks like park(mp, park_unlock, held, why), and calls fire if the deadline comes
 * first. GORO_FOREVER: no deadline. */
struct m *park_until(struct m *mp, struct lock *held, enum wait_reason why, int64_t deadline,
                     deadline_fire *fire);

/* Arms the deadline by hand. In a commit, after all that is read from the goroutine's
 * stack has been read, and before the unlock that lets another waker in. */
static inline void deadline_arm(struct m *mp, struct g *gp, int64_t deadline, deadline_fire *fire)
{
	gp->timer.fire = fire;
	timer_start(mp, &gp->timer, deadline);
}
/* Disarms it. By the goroutine itself, awake, before it goes on. */
static inline void deadline_disarm(struct g *gp)
{
	timer_stop(&gp->timer);
}

/* In a fire: the goroutine. The fire's last use of t is timer_fired(t). After that it
 * makes the goroutine ready if it has claimed it. */
static inline struct g *deadline_g(struct timer *t)
{
	return (struct g *)((char *)t - offsetof(struct g, timer));
}

/* Whether the deadline has come. Reads the clock only if it has to. */
static inline bool deadline_is_past(int64_t deadline)
{
	return deadline <= GORO_NOW || (deadline != GORO_FOREVER && deadline <= os_now());
}

/* Around a call with a deadline. now: it cannot wait, and stays on its thread. */
static inline struct m *deadline_enter(bool now)
{
	return now ? rt_enter() : rt_enter_free();
}

static inline void deadline_exit(struct m *mp, bool now)
{
	if (now)
		rt_exit(mp);
	else
		rt_exit_free(mp);
}

/* now + ns, in the range of a timer's times. */
static inline int64_t deadline_after(int64_t now, int64_t ns)
{
	if (ns <= 0)
		return now;
	return ns < TIMER_LAST - now ? now + ns : TIMER_LAST;
}

#endif
