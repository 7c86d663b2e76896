/*
 * timer_far.c - sleeps that end long from now, out of the heap's way.
 *
 * Taking one from a heap of a hundred thousand is a walk down to its leaves, through
 * memory that is in no near cache. So beside a large heap (heap.c), sleeps that end later
 * than the first lie here, in no order, until their time comes.
 *
 * Time is cut into units of 1 ms. The lowest bits of a unit say in which place its
 * entries lie, together with those of the units a round of places (4.3 s) before and
 * after it. A tree over the places, each node the earlier of its two, has the time of the
 * first entry of all at its root. When that is due, its unit is taken out of its place
 * into a row, in order, and the rest of the place is searched for its next first entry.
 * So the thousands that end within one round are each written once and read once, along
 * an array. While the row is not empty, what ends in its unit or before goes to the heap
 * instead.
 *
 * Only sleeps are kept here: they are never stopped, so no caller needs to find one
 * again.
 *
 * Rejected: a timing wheel, whose hand has to be moved while nothing happens, and which
 * rounds; a radix heap, whose places hold ever longer times: spreading a long one over
 * the shorter ones, all at once, makes others late.
 */
#include "timer/timer_far.h"

#include <string.h>

#include "base/mem.h"
#include "platform/os.h"
#include "base/throw.h"
#include "platform/tool.h"
#include "timer/timer.h"

#define CHUNKS_TOGETHER 64
#define FIRST_ROOM      1024

struct far_chunk {
	struct far_chunk *next;
	uint32_t n;
	struct timer_entry entry[63];
};
_Static_assert(sizeof(struct far_chunk) == 1024, "timer_far: a KiB");

struct timer_far {
	/* The tree: place i's first time at FAR_PLACES + i, the root at 1. */
	int64_t first[2 * FAR_PLACES];
	struct far_chunk *place[FAR_PLACES];
	struct far_chunk *spare;

	/* The unit that was taken out: entries [at, n) are left, in order. */
	struct {
		struct timer_entry *entry;
		uint32_t at, n, room;
		int64_t unit;
	} row;
};

struct timer_far *far_make(void)
{
	struct timer_far *f = mem_alloc(sizeof *f);

	for (int i = 0; f && i < 2 * FAR_PLACES; i++)
		f->first[i] = TIMER_NEVER;
	return f;
}

/* ------------------------------------------------------------------- memory */

/* Mapped, not malloced: this may run in state RUNTIME. */
struct timer_entry *entries_map(uint32_t n)
{
	struct timer_entry *e = os_map(n * sizeof *e);

	if (!e)
		throw("out of memory for timers");
	tool_mapped(e, n * sizeof *e);
	return e;
}

void entries_unmap(struct timer_entry *e, uint32_t n)
{
	tool_unmapped(e, n * sizeof *e);
	os_unmap(e, n * sizeof *e);
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

/* ----------------------------------------------------------------- entries */

static inline uint32_t place_of(int64_t when)
{
	return (uint32_t)far_unit(when) % FAR_PLACES;
}

static inline bool row_is_empty(const struct timer_far *f)
{
	return f->row.at == f->row.n;
}

static inline void chunk_add(struct timer_far *f, uint32_t place, struct far_chunk *c,
                             struct timer_entry e)
{
	c->entry[c->n++] = e;
	if (e.when < f->first[FAR_PLACES + place])
		set_first(f, place, e.when);
}

/* Not inlined: else far_put would need stack that is in no cache, see runq_fetch_next. */
static __attribute__((noinline)) bool put_to_new_chunk(struct timer_far *f, uint32_t place,
                                                       struct timer_entry e)
{
	struct far_chunk *c = chunk_make(f);

	if (!c)
		return false;
	c->next = f->place[place];
	f->place[place] = c;
	chunk_add(f, place, c, e);
	return true;
}

bool far_put(struct timer_far *f, struct timer_entry e)
{
	uint32_t place = place_of(e.when);
	struct far_chunk *c = f->place[place];

	check(entry_is_sleep(e));
	if (!row_is_empty(f) && far_unit(e.when) <= f->row.unit)
		return false;
	if (!c || c->n == sizeof c->entry / sizeof *c->entry)
		return put_to_new_chunk(f, place, e);
	chunk_add(f, place, c, e);
	return true;
}

/* --------------------------------------------------------------------- row */

/* Adds e at the end. */
static void row_add(struct timer_far *f, struct timer_entry e)
{
	if (f->row.n == f->row.room) {
		uint32_t room = f->row.room ? 2 * f->row.room : FIRST_ROOM;
		struct timer_entry *row = entries_map(room);

		if (f->row.entry) {
			memcpy(row, f->row.entry, f->row.n * sizeof *row);
			entries_unmap(f->row.entry, f->row.room);
		}
		f->row.entry = row;
		f->row.room = room;
	}
	f->row.entry[f->row.n++] = e;
}

/* Moves the unit's entries to the row. Returns the earliest time of the rest and left. */
static int64_t take_unit(struct timer_far *f, struct far_chunk *c, int64_t unit, int64_t left)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		struct timer_entry e = c->entry[i];

		if (far_unit(e.when) == unit) {
			row_add(f, e);
		} else {
			c->entry[kept++] = e;
			left = soonest(left, e.when);
		}
	}
	c->n = kept;
	return left;
}

/* Shell's sort: simple, and quick for the hundreds of a unit. */
static void sort(struct timer_entry *e, uint32_t n)
{
	uint32_t gap = 1;

	while (gap < n / 3)
		gap = 3 * gap + 1;
	for (; gap > 0; gap /= 3) {
		for (uint32_t i = gap; i < n; i++) {
			struct timer_entry x = e[i];
			uint32_t j = i;

			for (; j >= gap && e[j - gap].when > x.when; j -= gap)
				e[j] = e[j - gap];
			e[j] = x;
		}
	}
}

/* The first unit becomes the row. */
static void row_fill(struct timer_far *f)
{
	int64_t unit = far_unit(f->first[1]), left = TIMER_NEVER;
	uint32_t place = place_of(f->first[1]);
	struct far_chunk **link = &f->place[place], *c;

	check(f->first[1] != TIMER_NEVER);
	f->row.at = f->row.n = 0;
	f->row.unit = unit;
	while ((c = *link)) {
		left = take_unit(f, c, unit, left);
		if (c->n == 0) {
			*link = c->next;
			chunk_free(f, c);
		} else {
			link = &c->next;
		}
	}
	set_first(f, place, left);
	sort(f->row.entry, f->row.n);
}

/* --------------------------------------------------------------- in order */

int64_t far_first(const struct timer_far *f)
{
	return row_is_empty(f) ? f->first[1] : f->row.entry[f->row.at].when;
}

uint32_t far_take(struct timer_far *f, int64_t by, struct timer_entry *out, uint32_t max)
{
	uint32_t n = 0;

	for (; n < max && far_first(f) <= by; n++) {
		if (row_is_empty(f))
			row_fill(f);
		out[n] = f->row.entry[f->row.at++];
	}
	return n;
}

static uint32_t count_in(const struct far_chunk *c, int64_t by, uint32_t max)
{
	uint32_t n = 0;

	for (; c; c = c->next)
		for (uint32_t i = 0; i < c->n && n < max; i++)
			n += c->entry[i].when <= by;
	return n;
}

/* Does not fill the row: no sleep before its unit could be put here then. */
uint32_t far_count(const struct timer_far *f, int64_t by, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && f->row.at + n < f->row.n && f->row.entry[f->row.at + n].when <= by)
		n++;
	if (f->first[1] <= by)
		for (int64_t unit = far_unit(f->first[1]); unit <= far_unit(by) && n < max; unit++)
			n += count_in(f->place[unit % FAR_PLACES], by, max - n);
	return n;
}

#if GORO_CHECKS

/* How many entries are in a place. */
static uint32_t place_check(const struct timer_far *f, uint32_t place)
{
	int64_t first = TIMER_NEVER;
	uint32_t n = 0;

	for (const struct far_chunk *c = f->place[place]; c; c = c->next) {
		check(c->n > 0 && c->n <= sizeof c->entry / sizeof *c->entry);
		for (uint32_t i = 0; i < c->n; i++) {
			check(place_of(c->entry[i].when) == place);
			first = soonest(first, c->entry[i].when);
		}
		n += c->n;
	}
	check(f->first[FAR_PLACES + place] == first);
	return n;
}

size_t far_check(const struct timer_far *f, uint32_t n)
{
	uint32_t found = f->row.n - f->row.at;

	check(f->row.at <= f->row.n && f->row.n <= f->row.room);
	for (uint32_t i = f->row.at; i < f->row.n; i++) {
		check(far_unit(f->row.entry[i].when) == f->row.unit);
		check(i == f->row.at || f->row.entry[i - 1].when <= f->row.entry[i].when);
	}
	for (uint32_t i = 1; i < FAR_PLACES; i++)
		check(f->first[i] == soonest(f->first[2 * i], f->first[2 * i + 1]));
	check(row_is_empty(f) || far_unit(f->first[1]) > f->row.unit);
	for (uint32_t i = 0; i < FAR_PLACES; i++)
		found += place_check(f, i);
	check(found == n);
	return found + 2 * FAR_PLACES;
}

#endif
