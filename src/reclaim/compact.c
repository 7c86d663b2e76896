/*
 * compact.c - memory for many small blocks of many sizes.
 *
 * Address space is taken in arenas of 64 MiB. An arena is cut into spans of 64 KiB, each
 * for blocks of one size, a multiple of 64 bytes:
 *
 *	+--------+-------+-------+-------+-- - -
 *	| header | block | free ---> free |  not yet touched
 *	+--------+-------+-------+-------+-- - -
 *
 * A span is in one of three states:
 *
 *	has room	in the list of its size
 *	full		in no list
 *	unused		a bit in its arena; its memory is given back
 *
 * An empty span stays if it is the only one of its size with room. Otherwise one block
 * that is allocated and freed again and again would cost system calls each time.
 */
#include "reclaim/compact.h"

#include <stdbool.h>
#include <stdint.h>

#include "platform/atomic.h"
#include "platform/os.h"
#include "base/throw.h"

#define GRAIN       64
#define CLASSES     (COMPACT_MAX / GRAIN)
#define SPAN_BYTES  (64u << 10)
#define ARENA_SPANS 1024
#define ARENAS_MAX  1024
_Static_assert(COMPACT_MAX % GRAIN == 0, "compact: classes");

struct span {
	struct span *next, *prev;	/* in the list of spans with room */
	void *free;			/* freed blocks, linked */
	uint32_t size;
	uint32_t used;			/* blocks in use */
	uint32_t fresh;			/* offset of the part that was never used */
	uint32_t arena;
};

struct arena {
	char *base;
	uint64_t unused[ARENA_SPANS / 64];
};

static struct arena arenas[ARENAS_MAX];
static uint32_t arenas_n;
static struct span *room[CLASSES];
static size_t taken_bytes;

static bool arena_make(void)
{
	struct arena *a = &arenas[arenas_n];
	char *p;

	if (arenas_n == ARENAS_MAX || !(p = os_reserve((ARENA_SPANS + 1) * (size_t)SPAN_BYTES)))
		return false;
	a->base = p + SPAN_BYTES - (uintptr_t)p % SPAN_BYTES;
	for (int i = 0; i < ARENA_SPANS / 64; i++)
		a->unused[i] = ~UINT64_C(0);
	arenas_n++;
	return true;
}

static struct span *span_from(struct arena *a)
{
	for (unsigned i = 0; i < ARENA_SPANS / 64; i++) {
		unsigned bit;

		if (!a->unused[i])
			continue;
		bit = (unsigned)__builtin_ctzll(a->unused[i]);
		a->unused[i] &= ~(UINT64_C(1) << bit);
		return (struct span *)(a->base + (i * 64 + bit) * (size_t)SPAN_BYTES);
	}
	return NULL;
}

static struct span *span_take(void)
{
	for (uint32_t i = 0; i < arenas_n || arena_make(); i++) {
		struct span *s = span_from(&arenas[i]);

		if (!s)
			continue;
		store_relaxed(&taken_bytes, taken_bytes + SPAN_BYTES);
		s->arena = i;
		return s;
	}
	return NULL;
}

static void span_give_back(struct span *s)
{
	struct arena *a = &arenas[s->arena];
	size_t i = (size_t)((char *)s - a->base) / SPAN_BYTES;

	store_relaxed(&taken_bytes, taken_bytes - SPAN_BYTES);
	os_release(&(struct os_range){ s, SPAN_BYTES }, 1);
	a->unused[i / 64] |= UINT64_C(1) << i % 64;
}

static void link_in(struct span *s)
{
	struct span **head = &room[s->size / GRAIN - 1];

	s->prev = NULL;
	s->next = *head;
	if (s->next)
		s->next->prev = s;
	*head = s;
}

static void link_out(struct span *s)
{
	if (s->next)
		s->next->prev = s->prev;
	if (s->prev)
		s->prev->next = s->next;
	else
		room[s->size / GRAIN - 1] = s->next;
}

static bool is_full(const struct span *s)
{
	return !s->free && s->fresh + s->size > SPAN_BYTES;
}

static struct span *span_make(uint32_t size)
{
	struct span *s = span_take();

	if (!s)
		return NULL;
	s->free = NULL;
	s->size = size;
	s->used = 0;
	s->fresh = GRAIN;
	link_in(s);
	return s;
}
_Static_assert(sizeof(struct span) <= GRAIN, "compact: the header");

void *compact_alloc(size_t n)
{
	size_t class = n ? (n - 1) / GRAIN : 0;
	struct span *s;
	void *p;

	check(n <= COMPACT_MAX);
	s = room[class];
	if (!s && !(s = span_make((uint32_t)(class + 1) * GRAIN)))
		return NULL;
	if ((p = s->free)) {
		s->free = *(void **)p;
	} else {
		p = (char *)s + s->fresh;
		s->fresh += s->size;
	}
	s->used++;
	if (is_full(s))
		link_out(s);
	return p;
}

void compact_free(void *p)
{
	struct span *s = (struct span *)((uintptr_t)p & ~(uintptr_t)(SPAN_BYTES - 1));
	bool was_full = is_full(s);

	check(s->used > 0 && ((char *)p - (char *)s - GRAIN) % s->size == 0);
	*(void **)p = s->free;
	s->free = p;
	s->used--;
	if (was_full)
		link_in(s);
	if (s->used == 0 && (s->next || s->prev)) {
		link_out(s);
		span_give_back(s);
	}
}

size_t compact_bytes(void)
{
	return load_relaxed(&taken_bytes);
}
