/*
 * timer_far.h - sleeps that end long from now, out of the heap's way. Defined in
 * timer_far.c.
 */
#ifndef GORO_TIMER_FAR_H
#define GORO_TIMER_FAR_H

#include <stdbool.h>
#include <stdint.h>

#include "timer/timer.h"

struct timer_far;

/* A unit of time is about 1 ms. This many units have places of their own. */
#define FAR_UNIT_BITS 20
#define FAR_PLACES    4096

static inline int64_t far_unit(int64_t when)
{
	return when >> FAR_UNIT_BITS;
}

/* Maps room for n entries. Without memory the program ends. */
struct timer_entry *entries_map(uint32_t n);
void entries_unmap(struct timer_entry *e, uint32_t n);

/* With nothing in it. NULL: no memory. */
struct timer_far *far_make(void);
/* Adds e. False: no memory, or e ends too soon to be kept here. */
bool far_put(struct timer_far *f, struct timer_entry e);
/* When the first sleep ends; TIMER_NEVER: there are none. */
int64_t far_first(const struct timer_far *f);
/* Takes up to max sleeps that end by then, in order. Returns how many. */
uint32_t far_take(struct timer_far *f, int64_t by, struct timer_entry *out, uint32_t max);
/* How many sleeps end by then, counted to max. by is soon after the first ends. */
uint32_t far_count(const struct timer_far *f, int64_t by, uint32_t max);

#if GORO_CHECKS
/* Throws unless n sleeps are here, in place. Returns how many entries it looked at. */
size_t far_check(const struct timer_far *f, uint32_t n);
#endif

#endif
