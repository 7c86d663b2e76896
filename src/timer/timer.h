/*
 * timer.h - the room timer: heaps of timers and sleeps.
 *
 * A heap knows times, but no Ps, Ms or clocks; sched/timers.c says who looks at a heap,
 * and when. The room may use base and platform.
 *
 *	heap.c		the heap of a P
 *	timer_far.c	sleeps that end far away, beside a large heap
 */
#ifndef GORO_TIMER_H
#define GORO_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/throw.h"

struct g;
struct m;
struct timer;
struct timers;

#define TIMER_NEVER INT64_MAX

static inline int64_t soonest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* 146 years after the system started, and no later, so that sums do not overflow. */
#define TIMER_LAST (INT64_MAX / 2)

/*
 * Something to be done at a time. Embedded in what it belongs to; valid when zeroed. fire
 * is called in state RUNTIME, without locks, on any P, and must not wait. It calls
 * timer_fired(t) as its last use of t: before another goroutine can start t again or free
 * it, and before it starts t again itself.
 */
struct timer {
	int64_t when;		/* under the heap's lock while it is on a heap */
	void (*fire)(struct m *mp, struct timer *t, int64_t now);
	/* NULL, or prefetches for fire, under the heap's lock: what t points to, then
	 * (step 1) what that points to. */
	void (*fetch)(const struct timer *t, int step);
	struct timers *heap;	/* NULL: none; written under its lock */
	uint32_t index;		/* its place in the heap; under its lock */
	uint32_t firing;	/* fire is being called; atomic */
};

/* An entry of a heap: a timer, or a goroutine that sleeps. */
struct timer_entry {
	int64_t when;		/* a copy, so that sifting stays in the array */
	uintptr_t what;		/* the timer, or the goroutine | ENTRY_SLEEP */
};
#define ENTRY_SLEEP 1

static inline bool entry_is_sleep(struct timer_entry e)
{
	return e.what & ENTRY_SLEEP;
}

static inline struct timer *entry_timer(struct timer_entry e)
{
	return (struct timer *)e.what;
}

static inline struct g *entry_g(struct timer_entry e)
{
	return (struct g *)(e.what - ENTRY_SLEEP);
}

static inline struct timer_entry entry_of_timer(const struct timer *t)
{
	return (struct timer_entry){ t->when, (uintptr_t)t };
}

static inline struct timer_entry entry_of_sleep(struct g *gp, int64_t when)
{
	return (struct timer_entry){ when, (uintptr_t)gp | ENTRY_SLEEP };
}

/* The timers of a P, earliest first. */
struct timers {
	struct lock lock;
	uint32_t n, room;
	struct timer_entry *entry;
	int64_t min_when;	/* TIMER_NEVER if empty; read without the lock */

	/* Sleeps that are not on the heap: see "Sleeps" in heap.c. */
	struct timer_far *far;	/* NULL: never needed */
	uint32_t far_n;
};

/* How many timers and sleeps wait. Needs no lock. */
static inline uint32_t timers_count(const struct timers *ts)
{
	return load_relaxed(&ts->n) + load_relaxed(&ts->far_n);
}

void timers_init(struct timers *ts);

/* Adds e. True: it is the earliest of ts now. */
bool timers_put(struct timers *ts, struct timer_entry e);
/* Moves t to when. False: t does not wait on ts. *first: t is the earliest now. */
bool timers_change(struct timers *ts, struct timer *t, int64_t when, bool *first);

/* Takes what is due: up to TIMERS_TOGETHER sleeps, or one timer, marked as firing.
 * Returns how many. */
#define TIMERS_TOGETHER 64
uint32_t timers_take_due(struct timers *ts, int64_t now, struct timer_entry *due);
/* Prefetches what the timers that are due at now will need. Returns their number. */
uint32_t timers_fetch_due(struct timers *ts, int64_t now);
/* How many are due by then; counts to about max, which is at most TIMERS_TOGETHER. */
uint32_t timers_count_due(struct timers *ts, int64_t by, uint32_t max);
/* Moves all. No other thread uses the two, but a plain thread may stop a timer
 * meanwhile. */
void timers_move(struct timers *from, struct timers *to);

#if GORO_CHECKS
/* Throws unless the heap is in order. Returns how many entries it looked at. */
size_t timers_check(struct timers *ts);
#endif

/* True: it waited and will not fire. False: its fire is over. Not from its own fire. */
bool timer_stop(struct timer *t);
/* Without waiting for a fire: false means only that t was not found waiting. */
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
	check(load_relaxed(&t->firing));
	/* release: the fire is over; pairs with timer_is_firing */
	store_release(&t->firing, 0);
}

#endif
