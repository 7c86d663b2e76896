/*
 * timer_far.c - sleeps that end long from now, out of the heap's way.
 *
 * To take one from a heap of a hundred thousand is a walk down to its leaves, most of it
 * through memory that is in no near cache: 0.3 us. Nearly all of what is there is of no
 * interest yet. So where there are many (timer.c), sleeps that end later than the first
 * lie here, in no order, until their time comes.
 *
 * Time is cut into units of 1 ms. A unit's entries lie in the place that the unit's lowest
 * bits say, together with those of the units a round of places (4.3 s) before and after
 * it. What matters of a place is the time of its first entry; a tree over the places, each
 * node the lesser of its two, has the first of all at its root. When that is due, its
 * unit is taken out of its place, and the others there are looked through for the next. So
 * the thousands that end within one round are each written once and read once, from one
 * end of an array to the other, which caches are good at; and a place is looked through no
 * more often than it has units with something in them.
 *
 * A unit that was taken out lies in a row, in order, and is taken from its beginning. A row of
 * two hundred is put in order by counting: each is put where those of its 4 us belong, and has
 * hardly a neighbour to be compared with. (To put them on the heap and take them off it
 * was 0.1 us each, and this is 0.03.) Until all of the row were taken, what ends in the same unit
 * or before it is not kept here.
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
#include "os.h"
#include "throw.h"
#include "tool.h"
#include "timer.h"

#define CHUNKS_TOGETHER 64
#define FIRST_ROOM      1024

/* Of a unit, that are told apart by counting. */
#define PARTS_BITS 8
#define PARTS      (1 << PARTS_BITS)

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

	/* Of the unit that was taken out, from at to n, in order. */
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

/* Out of the way: what it needs of the stack is in no cache, see runq_fetch_next. */
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

	if (!row_is_empty(f) && far_unit(e.when) <= f->row.unit)
		return false;
	if (!c || c->n == sizeof c->entry / sizeof *c->entry)
		return put_to_new_chunk(f, place, e);
	chunk_add(f, place, c, e);
	return true;
}

/* --------------------------------------------------------------------- row */

/* While it is empty: for n. */
static void row_make_room(struct timer_far *f, uint32_t n)
{
	uint32_t room = f->row.room ? f->row.room : FIRST_ROOM;

	while (room < n)
		room *= 2;
	if (room == f->row.room)
		return;
	if (f->row.entry)
		entries_unmap(f->row.entry, f->row.room);
	f->row.entry = entries_map(room);
	f->row.room = room;
}

static inline uint32_t part_of(int64_t when)
{
	return (uint32_t)(when >> (FAR_UNIT_BITS - PARTS_BITS)) % PARTS;
}

/* How many of a unit there are in a place, and of each part of it. */
static uint32_t count_unit(const struct far_chunk *c, int64_t unit, uint32_t *parts)
{
	uint32_t n = 0;

	for (; c; c = c->next) {
		for (uint32_t i = 0; i < c->n; i++) {
			if (far_unit(c->entry[i].when) == unit) {
				parts[part_of(c->entry[i].when)]++;
				n++;
			}
		}
	}
	return n;
}

/* Takes those of the unit from a chunk, each to the next place of its part; the first of
 * the others, or left if that is earlier. */
static int64_t take_unit(struct far_chunk *c, int64_t unit, struct timer_entry *row,
                         uint32_t *parts, int64_t left)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		struct timer_entry e = c->entry[i];

		if (far_unit(e.when) == unit) {
			row[parts[part_of(e.when)]++] = e;
		} else {
			c->entry[kept++] = e;
			left = soonest(left, e.when);
		}
	}
	c->n = kept;
	return left;
}

/* Shell's: there are one or two, and if there are many it does not take for ever. */
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
	uint32_t place = place_of(f->first[1]), parts[PARTS] = { 0 }, n, at = 0;
	struct far_chunk **link = &f->place[place], *c;

	check(f->first[1] != TIMER_NEVER);
	n = count_unit(*link, unit, parts);
	row_make_room(f, n);
	for (int i = 0; i < PARTS; i++) {
		uint32_t many = parts[i];

		parts[i] = at;
		at += many;
	}
	while ((c = *link)) {
		left = take_unit(c, unit, f->row.entry, parts, left);
		if (c->n == 0) {
			*link = c->next;
			chunk_free(f, c);
		} else {
			link = &c->next;
		}
	}
	set_first(f, place, left);
	for (uint32_t i = 0, from = 0; i < PARTS; from = parts[i++])
		if (parts[i] - from > 1)
			sort(f->row.entry + from, parts[i] - from);
	f->row.at = 0;
	f->row.n = n;
	f->row.unit = unit;
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

/* Nothing is taken out for this: who asks may ask about what is hours away, and no more
 * could be put before that. */
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
