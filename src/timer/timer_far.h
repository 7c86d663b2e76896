/*
 * timer_far.h - sleeps that end long from now, out of the heap's way. Defined in timer_far.c.
 */
#ifndef GORO_TIMER_FAR_H
#define GORO_TIMER_FAR_H

#include <stdbool.h>
#include <stdint.h>

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

/* Room for so many; there is, or the program ends. */
struct timer_entry *entries_map(uint32_t n);
void entries_unmap(struct timer_entry *e, uint32_t n);

/* With nothing in it. NULL: no memory. */
struct timer_far *far_make(void);
/* False: no memory, or it ends too soon for this. */
bool far_put(struct timer_far *f, struct timer_entry e);
/* When the first of them ends; TIMER_NEVER: there are none. */
int64_t far_first(const struct timer_far *f);
/* Takes those that end by then, in order, as far as max; how many. */
uint32_t far_take(struct timer_far *f, int64_t by, struct timer_entry *out, uint32_t max);
/* How many end by then, which is soon after the first does; max if there are more. */
uint32_t far_count(const struct timer_far *f, int64_t by, uint32_t max);

#endif
