/*
 * timer_far.c - sleeps that end long from now, out of the heap's way.
 *
 * To take one from a heap of a hundred thousand is a walk down to its leaves, most of it
 * through memory that is in no near cache: 0.3 us. Nearly all of what is there is of no
 * interest yet. So a large heap keeps what comes soon (timer.c), and sleeps that end later
 * lie here, in no order, until their time comes near.
 *
 * Time is cut into units of 1 ms. A unit's entries lie in the place that the unit's lowest
 * bits say, together with those of the units a round of places (4.3 s) before and after
 * it. What matters of a place is the time of its first entry; a tree over the places, each
 * node the lesser of its two, has the first of all at its root. When that comes near, its
 * unit is taken out of its place, and the others there are looked through for the next. So
 * the thousands that end within one round are each written once and read once, from one
 * end of an array to the other, which caches are good at; and a place is looked through no
 * more often than it has units with something in them.
 *
 * Only sleeps are kept here: they are never stopped, so nobody needs to find one again.
 *
 * Rejected: a timing wheel, whose hand has to be moved while nothing happens, and which
 * rounds; this has no hand, and knows what comes first. A radix heap, whose places hold ever
 * longer times: to spread one of the long ones over the shorter, all at once, made others
 * half a millisecond late.
 */
#include "timer_far.h"

#include "mem.h"
#include "throw.h"
#include "timer.h"

#define CHUNKS_TOGETHER 64

struct far_chunk {
	struct far_chunk *next;
	uint32_t n;
	struct timer_entry entry[63];
};
_Static_assert(sizeof(struct far_chunk) == 1024, "timer_far: a KiB");

struct timer_far {
	int64_t first[2 * FAR_PLACES];	/* of place i at FAR_PLACES + i; of two nodes, the root at 1 */
	struct far_chunk *place[FAR_PLACES];
	struct far_chunk *spare;
};

struct timer_far *far_make(void)
{
	struct timer_far *f = mem_alloc(sizeof *f);

	for (int i = 0; f && i < 2 * FAR_PLACES; i++)
		f->first[i] = TIMER_NEVER;
	return f;
}

/* ------------------------------------------------------------------ chunks */

static void chunk_free(struct timer_far *f, struct far_chunk *c)
{
	c->next = f->spare;
	f->spare = c;
}

static struct far_chunk *chunk_make(struct timer_far *f)
{
	struct far_chunk *c = f->spare;

	if (!c) {
		c = mem_alloc(CHUNKS_TOGETHER * sizeof *c);
		for (int i = 1; c && i < CHUNKS_TOGETHER; i++)
			chunk_free(f, &c[i]);
		return c;
	}
	f->spare = c->next;
	c->n = 0;
	return c;
}

/* -------------------------------------------------------------------- tree */

static void set_first(struct timer_far *f, uint32_t place, int64_t when)
{
	uint32_t i = FAR_PLACES + place;

	f->first[i] = when;
	for (i /= 2; i > 0; i /= 2)
		f->first[i] = soonest(f->first[2 * i], f->first[2 * i + 1]);
}

int64_t far_first(const struct timer_far *f)
{
	return f->first[1];
}

/* ----------------------------------------------------------------- entries */

static inline uint32_t place_of(int64_t when)
{
	return (uint32_t)far_unit(when) % FAR_PLACES;
}

bool far_put(struct timer_far *f, struct timer_entry e)
{
	uint32_t place = place_of(e.when);
	struct far_chunk *c = f->place[place];

	if (!c || c->n == sizeof c->entry / sizeof *c->entry) {
		c = chunk_make(f);
		if (!c)
			return false;
		c->next = f->place[place];
		f->place[place] = c;
	}
	c->entry[c->n++] = e;
	if (e.when < f->first[FAR_PLACES + place])
		set_first(f, place, e.when);
	return true;
}

/* Takes those of the unit from a chunk; *left is made the first of the others. */
static uint32_t take_unit(struct far_chunk *c, int64_t unit, int64_t *left,
                          void (*put)(struct timers *, struct timer_entry), struct timers *ts)
{
	uint32_t kept = 0, all = c->n;

	for (uint32_t i = 0; i < all; i++) {
		struct timer_entry e = c->entry[i];

		if (far_unit(e.when) == unit) {
			put(ts, e);
		} else {
			c->entry[kept++] = e;
			*left = soonest(*left, e.when);
		}
	}
	c->n = kept;
	return all - kept;
}

uint32_t far_take(struct timer_far *f, void (*put)(struct timers *, struct timer_entry),
                  struct timers *ts)
{
	int64_t first = f->first[1], left = TIMER_NEVER;
	struct far_chunk **at = &f->place[place_of(first)], *c;
	uint32_t taken = 0;

	check(first != TIMER_NEVER);
	while ((c = *at)) {
		taken += take_unit(c, far_unit(first), &left, put, ts);
		if (c->n == 0) {
			*at = c->next;
			chunk_free(f, c);
		} else {
			at = &c->next;
		}
	}
	set_first(f, place_of(first), left);
	return taken;
}
