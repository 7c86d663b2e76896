/*
 * timer.h - timers inside the runtime. Defined in timer.c.
 */
#ifndef GORO_TIMER_H
#define GORO_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "lock.h"

struct g;
struct m;
struct p;
struct timer;
struct timers;

#define TIMER_NEVER INT64_MAX

static inline int64_t soonest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The latest there is, 146 years after the system started: what is later becomes
 * this, so that sums of times do not overflow. */
#define TIMER_LAST (INT64_MAX / 2)

/*
 * Something to be done at a time. Embedded in what it belongs to; valid when
 * zeroed. fire is called in state RUNTIME, without locks, on whichever P finds
 * it due, must not wait, and calls timer_fired(t) as its last use of t (before
 * it lets anybody go on who may start it again or free it), or before it starts t
 * again itself.
 */
struct timer {
	int64_t when;		/* while it waits: under the heap's lock */
	void (*fire)(struct m *mp, struct timer *t, int64_t now);
	/* NULL, or prefetches what fire will look at: first what t points to, then, in the
	 * next step, what that does. While t waits, under the heap's lock. */
	void (*fetch)(const struct timer *t, int step);
	struct timers *heap;	/* where it waits; NULL: nowhere */
	uint32_t index;		/* in the heap */
	uint32_t firing;	/* fire is being called */
};

/* The timers of a P, earliest first. */
struct timers {
	struct lock lock;
	uint32_t n, room;
	struct timer_entry *entry;
	int64_t min_when;	/* TIMER_NEVER if empty; may be read without the lock */

	/* Sleeps that are not on the heap, see "Far away" in timer.c. */
	struct timer_far *far;	/* NULL: never needed */
	uint32_t far_n;
};

/* How many wait; may be read without the lock. */
static inline uint32_t timers_count(const struct timers *ts)
{
	return load_relaxed(&ts->n) + load_relaxed(&ts->far_n);
}

void timers_init(struct timers *ts);

/* Starts t, which waits nowhere, at when (past ones fire soon). */
void timer_start(struct m *mp, struct timer *t, int64_t when);
/* Puts t off, or brings it forward, if it waits on this P: the same as to stop and start
 * it. False: it does not, and nothing has changed. */
bool timer_change(struct m *mp, struct timer *t, int64_t when);
/* Stops t. True: it was waiting and will not fire. False: it had fired, and its
 * fire is over when this returns. Not from its own fire. */
bool timer_stop(struct timer *t);
/* The same without waiting for a fire: false says no more than that t was not
 * found waiting. For those who hold a lock that the fire takes. */
bool timer_try_stop(struct timer *t);
/* Waits for a fire that is under way to be over. Without locks. */
void timer_wait_fired(const struct timer *t);

static inline bool timer_is_firing(const struct timer *t)
{
	/* acquire: what its fire did; pairs with timer_fired */
	return load_acquire(&t->firing);
}

static inline void timer_fired(struct timer *t)
{
	/* release: the fire is over; pairs with timer_is_firing */
	store_release(&t->firing, 0);
}

/* How much later than at next, when the earliest of all is due, is soon enough for
 * whoever sleeps until then. */
int64_t timers_slack(int64_t next);
/* The earliest time at which any P has a timer. */
int64_t timers_earliest(void);
int64_t timers_earliest_after(int64_t after);	/* .. of those Ps whose first is later */
bool timers_are_due(const struct p *pp);
/* Fires what is due on pp, which any M with a P may do; now 0: looks at the
 * clock if there is anything. True if anything fired. */
bool timers_run(struct m *mp, struct p *pp, int64_t now);
/* Whoever sleeps beyond the earliest is woken. */
void timers_tell(struct m *mp);
void timers_run_all(struct m *mp);	/* .. on every P */
/* What timers have made ready on this M's P it runs itself, see "Many timers" in timer.c. */
bool timers_are_hushed(const struct m *mp);
/* World stopped: moves the timers of a P that goes out of use to another. */
void timers_move(struct p *from, struct p *to);

#endif
