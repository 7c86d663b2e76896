/*
 * timer_far.h - sleeps that end long from now, out of the heap's way. Defined in timer_far.c.
 */
#ifndef GORO_TIMER_FAR_H
#define GORO_TIMER_FAR_H

#include <stdbool.h>
#include <stdint.h>

struct timers;
struct timer_far;

struct timer_entry {
	int64_t when;		/* a copy, so that sifting stays in the array */
	uintptr_t what;		/* a timer, or a goroutine that sleeps | SLEEP */
};

/* Times are looked at in units of 1 ms, and so many of these have places of their own. */
#define FAR_UNIT_BITS 20
#define FAR_PLACES    4096

static inline int64_t far_unit(int64_t when)
{
	return when >> FAR_UNIT_BITS;
}

/* With nothing in it. NULL: no memory. */
struct timer_far *far_make(void);
/* False: no memory. */
bool far_put(struct timer_far *f, struct timer_entry e);
/* When the first of them ends; TIMER_NEVER: there are none. */
int64_t far_first(const struct timer_far *f);
/* Puts those of the first unit to ts; how many there were, at least one. */
uint32_t far_take(struct timer_far *f, void (*put)(struct timers *ts, struct timer_entry e),
                  struct timers *ts);

#endif
