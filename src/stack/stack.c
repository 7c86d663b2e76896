/*
 * stack.c - goroutine stacks: reserved address space, committed by touch.
 *
 * Regions of address space are cut into slots of one size class each:
 *
 *	slot i                                             slot i+1
 *	+-------+------------------------------+---------+-------+---
 *	| guard |  . . . untouched . . .  frames | struct g | guard |
 *	+-------+------------------------------+---------+-------+---
 *	        ^ stack_lo          contexts grow down ^ stack_hi
 *
 * The G is at the top of its own stack, in the page that running touches anyway: a parked
 * goroutine costs one page and its share of a page table; less if it waits for long
 * (evacuate.c). Guards are markers in the page table where the kernel has them (Linux
 * 6.13): they make no mappings, so a million stacks fit under vm.max_map_count. Otherwise
 * mprotect makes guards, until the mappings run out. From then on a stack has a check
 * word instead, which is zero until an overflow runs over it.
 *
 * A slot is fresh (never used), warm (has a G: alive, or dead in a pool), or cold (its
 * memory was given back; its guard is kept). Cold slots are linked by index outside the
 * stacks, since their memory is gone.
 *
 * Fresh slots are taken from a region in batches. The guard and the first touch of a
 * stack, a page fault, are most of what starting one more goroutine costs. So once a
 * program has begun several batches, an otherwise idle thread prepares the next ones
 * (stack_prepare), at most an eighth of what it has begun. That thread needs a CPU, so
 * meanwhile one P less is woken for work (procs_help).
 *
 * Slots of 8 MiB and more start 1 MiB off a page table's reach (2 MiB). So a guard shares
 * its page-table page with the top of the slot below it.
 *
 * Colours
 *
 * A goroutine mostly touches the top of its stack. At a distance of 256 KiB all tops
 * would lie in the same few sets of the first and second-level caches, and a chain of a
 * thousand goroutines would run from the third level. So slots are a page more than a
 * power of two apart, which spreads the tops over the sets of the second level; and tops
 * begin at one of four places within their page, which spreads them over those of the
 * first.
 *
 * Rejected: one huge reservation for everything (fails under RLIMIT_AS and strict
 * overcommit); mapping each stack (2 us and a mapping each).
 */
#include "stack/stack.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/debug.h"
#include "base/environment.h"
#include "base/lock.h"
#include "base/mem.h"
#include "platform/os.h"
#include "base/throw.h"
#include "platform/tool.h"

/* Address space that is reserved at a time, for stacks that are not larger. */
#define STACK_REGION_BYTES (1LL << 30)
/* The same under valgrind, which warns of a mapping above 256 MiB. */
#define STACK_REGION_BYTES_VALGRIND (128LL << 20)
/* The first batch has STACK_CARVE_BATCH stacks halved this many times. */
#define STACK_CARVE_DOUBLINGS 4

enum slot_state { SLOT_FRESH, SLOT_WARM, SLOT_COLD };
enum { SLOT_STATE = 3, SLOT_UNGUARDED = 4 };

struct region {
	char *base;
	size_t slot_bytes;
	int cls;
	uint32_t slots;
	uint32_t carved;	/* slots below belong to batches; read without the lock */
	uint8_t *state;		/* slot_state and flags, one a slot */
	uint32_t *cold_next;	/* + 1, 0: end */
	uint32_t cold;		/* + 1 */
	struct region *next_cold;	/* in klass.cold */
	bool in_cold;
};

struct slot {
	struct region *region;
	uint32_t i;
};

/* Fresh slots [at, end), guarded. */
struct batch {
	struct region *region;
	uint32_t at, end;
};

/* Under lock. regions[], n and reserved are read without; a region comes before n. */
static struct region *regions[STACK_REGIONS_MAX];
static struct {
	struct lock lock;
	uint32_t n;
	struct {
		struct region *current;	/* the one with slots that are in no batch */
		struct region *cold;	/* regions that have cold slots */
		struct batch fresh;	/* the batch in use */
		struct batch ready[STACK_AHEAD_MAX];	/* prepared batches */
		uint32_t ready_n;
		bool preparing;		/* a thread prepares a batch */
		uint32_t begun;		/* batches begun so far */
	} klass[STACK_CLASSES];
	size_t reserved;
} stacks = { .lock = LOCK_INIT(RANK_STACK) };

/* Held while stacks are given back: a warm slot has its first page meanwhile. */
static struct lock giving = LOCK_INIT(RANK_LEAF);

int stack_default_class;

#define PAGE_TABLE_REACH (2u << 20)
#define HUGE_SLOT_BYTES  (8u << 20)
#define CHECK_WORD_BYTES 8
#define GIVE_TOGETHER    64	/* stacks given back by one system call */

/* Of a struct g: its size, rounded up to cache lines, and where its struct stack is. */
static size_t top_bytes, stack_at;

size_t stack_class_bytes(int cls)
{
	return (size_t)STACK_MIN_BYTES << cls;
}

int stack_class(size_t n)
{
	for (int cls = 0; cls < STACK_CLASSES; cls++)
		if (stack_class_bytes(cls) >= n)
			return cls;
	return -1;
}

/* "64k", "1M", "262144"; 0: not a number like these. */
static size_t parse_bytes(const char *s)
{
	char *end;
	unsigned long long n = strtoull(s, &end, 10);

	switch (*end) {
	case 'k': case 'K': n <<= 10; end++; break;
	case 'm': case 'M': n <<= 20; end++; break;
	case 'g': case 'G': n <<= 30; end++; break;
	}
	return *end ? 0 : (size_t)n;
}

void stack_init(size_t g_bytes, size_t stack_at_byte)
{
	const char *s = environment_get("GORO_STACK");
	size_t n = s ? parse_bytes(s) : 0;
	int cls = stack_class(n ? n : STACK_DEFAULT_BYTES);

	check(g_bytes <= STACK_TOP_MAX);
	top_bytes = (g_bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	stack_at = stack_at_byte;
	stack_default_class = cls >= 0 ? cls : STACK_CLASSES - 1;
}

static size_t guard_bytes(size_t slot)
{
	size_t n = slot / 16 / os_page_bytes * os_page_bytes;

	if (n < os_page_bytes)
		n = os_page_bytes;
	if (n > 16 * os_page_bytes)
		n = 16 * os_page_bytes;
	return n;
}

static struct g *slot_g(const struct region *r, uint32_t i)
{
	size_t n = top_bytes + i % STACK_COLOURS * STACK_COLOUR_BYTES;

	return (struct g *)(r->base + (size_t)(i + 1) * r->slot_bytes - n);
}

static struct stack *stack_of(const struct g *gp)
{
	return (struct stack *)((uintptr_t)gp + stack_at);
}

/* For at least one slot: the usual size or, where limits forbid that, half of it, ... */
static char *reserve_slots(size_t slot, uint32_t *count)
{
	size_t usual = tool_on_valgrind() ? STACK_REGION_BYTES_VALGRIND : STACK_REGION_BYTES;
	size_t want = slot > usual ? slot : usual;
	size_t offset = slot >= HUGE_SLOT_BYTES ? PAGE_TABLE_REACH / 2 : 0;

	for (; want >= slot; want /= 2) {
		size_t n = want + PAGE_TABLE_REACH + offset;
		char *p = os_reserve(n);

		if (!p)
			continue;
		store_relaxed(&stacks.reserved, stacks.reserved + n);
		p += PAGE_TABLE_REACH - (uintptr_t)p % PAGE_TABLE_REACH;
		*count = (uint32_t)(want / slot);
		return p + offset;
	}
	return NULL;
}

/* stacks.lock held. */
static struct region *region_make(int cls)
{
	size_t slot = stack_class_bytes(cls);
	struct region *r;
	uint32_t count;
	char *base;

	check(lock_is_held(&stacks.lock));
	if (slot < HUGE_SLOT_BYTES)
		slot += os_page_bytes;		/* see "Colours" */
	if (stacks.n == STACK_REGIONS_MAX)
		return NULL;
	base = reserve_slots(slot, &count);
	if (!base)
		return NULL;
	r = mem_alloc(sizeof *r);
	if (!r)
		return NULL;
	r->state = mem_alloc(count);
	r->cold_next = mem_alloc(count * sizeof *r->cold_next);
	if (!r->state || !r->cold_next)
		return NULL;
	r->base = base;
	r->slot_bytes = slot;
	r->cls = cls;
	r->slots = count;
	regions[stacks.n] = r;
	/* release: the region is whole; pairs with load_acquire in stack_regions */
	store_release(&stacks.n, stacks.n + 1);
	stacks.klass[cls].current = r;
	return r;
}

/* The first batches are small: a program of a few goroutines is not to pay for many. */
static uint32_t batch_slots(int cls)
{
	uint32_t begun = stacks.klass[cls].begun;

	return begun < STACK_CARVE_DOUBLINGS ? STACK_CARVE_BATCH >> (STACK_CARVE_DOUBLINGS - begun)
	                                     : STACK_CARVE_BATCH;
}

/* stacks.lock held. The next slots that are in no batch; false: no memory. */
static bool batch_cut(int cls, struct batch *b)
{
	struct region *r = stacks.klass[cls].current;
	uint32_t n;

	check(lock_is_held(&stacks.lock));
	check(!r || (r->cls == cls && r->carved <= r->slots));
	if ((!r || r->carved == r->slots) && !(r = region_make(cls)))
		return false;
	n = r->slots - r->carved;
	if (n > batch_slots(cls))
		n = batch_slots(cls);
	*b = (struct batch){ r, r->carved, r->carved + n };
	store_relaxed(&r->carved, r->carved + n);
	return true;
}

static char *slot_base(const struct region *r, uint32_t i)
{
	return r->base + (size_t)i * r->slot_bytes;
}

/* Only the caller knows the batch. */
static void batch_guard(const struct batch *b)
{
	const struct region *r = b->region;
	size_t n = os_guard(slot_base(r, b->at), guard_bytes(r->slot_bytes), r->slot_bytes,
	                    b->end - b->at);

	for (size_t i = b->at + n; i < b->end; i++)
		r->state[i] |= SLOT_UNGUARDED;
}

/* stacks.lock held. The batch to use next. */
static bool batch_begin(int cls)
{
	struct batch *b = &stacks.klass[cls].fresh;

	check(lock_is_held(&stacks.lock) && b->at == b->end);
	if (stacks.klass[cls].ready_n > 0) {
		*b = stacks.klass[cls].ready[--stacks.klass[cls].ready_n];
	} else if (batch_cut(cls, b)) {
		batch_guard(b);
	} else {
		return false;
	}
	stacks.klass[cls].begun++;
	return true;
}

static void set_state(struct region *r, uint32_t i, enum slot_state s)
{
	/* release: the G is set up, or gone; pairs with load_acquire in warm_g */
	store_release(&r->state[i], (uint8_t)((r->state[i] & ~SLOT_STATE) | s));
}

/* The G of a warm slot, else NULL. */
static struct g *warm_g(const struct region *r, uint32_t i)
{
	/* acquire: the G is set up; pairs with set_state */
	return (load_acquire(&r->state[i]) & SLOT_STATE) == SLOT_WARM ? slot_g(r, i) : NULL;
}

/* The slot is the caller's alone. Touches its memory, so no lock is held. */
static struct g *slot_use(struct slot s)
{
	struct region *r = s.region;
	struct g *gp = slot_g(r, s.i);
	struct stack *stack = stack_of(gp);

	check((r->state[s.i] & SLOT_STATE) != SLOT_WARM);
	check(s.i < load_relaxed(&r->carved));
	store_relaxed(&stack->lo, slot_base(r, s.i) + guard_bytes(r->slot_bytes));
	store_relaxed(&stack->hi, (char *)gp);
	set_state(r, s.i, SLOT_WARM);
	tool_stack_made(stack->lo, stack->hi);
	return gp;
}

/* stacks.lock held. */
static bool take_cold(int cls, struct slot *s)
{
	struct region *r = stacks.klass[cls].cold;

	if (!r)
		return false;
	check(r->in_cold && r->cold != 0);
	*s = (struct slot){ r, r->cold - 1 };
	check((r->state[s->i] & SLOT_STATE) == SLOT_COLD);
	r->cold = r->cold_next[s->i];
	if (r->cold == 0) {
		stacks.klass[cls].cold = r->next_cold;
		r->in_cold = false;
	}
	return true;
}

/* stacks.lock held. */
static bool take_fresh(int cls, struct slot *s)
{
	struct batch *b = &stacks.klass[cls].fresh;

	if (b->at == b->end && !batch_begin(cls))
		return false;
	*s = (struct slot){ b->region, b->at++ };
	return true;
}

size_t stack_take(int cls, struct g **out, size_t n)
{
	struct slot slot[STACK_TAKE_MAX];
	size_t got = 0;

	if (n > STACK_TAKE_MAX)
		n = STACK_TAKE_MAX;
	lock_acquire(&stacks.lock);
	while (got < n) {
		if (take_cold(cls, &slot[got]) || take_fresh(cls, &slot[got])) {
			got++;
		} else if (stacks.klass[cls].preparing) {
			lock_release(&stacks.lock);	/* the last are prepared */
			os_yield();
			lock_acquire(&stacks.lock);
		} else {
			break;
		}
	}
	lock_release(&stacks.lock);
	for (size_t i = 0; i < got; i++)
		out[i] = slot_use(slot[i]);
	return got;
}

/* ------------------------------------------------------------------- ahead */

/* stacks.lock held. */
static bool wants_more(int cls)
{
	uint32_t begun = stacks.klass[cls].begun;
	uint32_t ahead = begun > STACK_CARVE_DOUBLINGS ? (begun - STACK_CARVE_DOUBLINGS) / 8 : 0;

	if (ahead > STACK_AHEAD_MAX)
		ahead = STACK_AHEAD_MAX;
	return !debug.noahead && os_many_cpus && os_guard_kind == OS_GUARD_MARKER &&
	       !stacks.klass[cls].preparing && stacks.klass[cls].ready_n < ahead;
}

bool stack_wants_more(void)
{
	bool wants;

	lock_acquire(&stacks.lock);
	wants = wants_more(stack_default_class);
	lock_release(&stacks.lock);
	return wants;
}

bool stack_prepare(void)
{
	int cls = stack_default_class;
	struct batch b;
	bool any;

	lock_acquire(&stacks.lock);
	any = wants_more(cls) && batch_cut(cls, &b);
	stacks.klass[cls].preparing = any;
	lock_release(&stacks.lock);
	if (!any)
		return false;
	batch_guard(&b);
	os_populate(slot_base(b.region, b.at + 1) - os_page_bytes, os_page_bytes,
	            b.region->slot_bytes, b.end - b.at);
	lock_acquire(&stacks.lock);
	check(stacks.klass[cls].ready_n < STACK_AHEAD_MAX);
	stacks.klass[cls].ready[stacks.klass[cls].ready_n++] = b;
	stacks.klass[cls].preparing = false;
	lock_release(&stacks.lock);
	return true;
}

/* ---------------------------------------------------------------- and back */

bool stack_slot_of(const void *addr, uint32_t *region, uint32_t *slot)
{
	for (uint32_t i = 0, n = stack_regions(); i < n; i++) {
		const struct region *r = regions[i];

		if ((const char *)addr >= r->base && (const char *)addr < slot_base(r, r->slots)) {
			*region = i;
			*slot = (uint32_t)((size_t)((const char *)addr - r->base) / r->slot_bytes);
			return true;
		}
	}
	return false;
}

/* The slot that an address lies in; its region is NULL if it is in none. */
static struct slot slot_of(const void *addr)
{
	uint32_t region;
	struct slot s = { NULL, 0 };

	if (stack_slot_of(addr, &region, &s.i))
		s.region = regions[region];
	return s;
}

/* stacks.lock held. */
static void put_cold(struct slot s)
{
	struct region *r = s.region;

	check(lock_is_held(&stacks.lock) && (r->state[s.i] & SLOT_STATE) == SLOT_COLD);
	r->cold_next[s.i] = r->cold;
	r->cold = s.i + 1;
	if (!r->in_cold) {
		r->in_cold = true;
		r->next_cold = stacks.klass[r->cls].cold;
		stacks.klass[r->cls].cold = r;
	}
}

/* Does not read the stacks: a holder of giving must not wait for a missing page. */
static void release(const struct slot *s, size_t n)
{
	struct os_range range[GIVE_TOGETHER];

	lock_acquire(&giving);
	for (size_t i = 0; i < n; i++) {
		struct region *r = s[i].region;
		size_t guard = guard_bytes(r->slot_bytes);

		check((r->state[s[i].i] & SLOT_STATE) == SLOT_WARM);
		range[i] = (struct os_range){ slot_base(r, s[i].i) + guard, r->slot_bytes - guard };
		set_state(r, s[i].i, SLOT_COLD);
	}
	os_release(range, n);
	lock_release(&giving);
}

void stack_give_back(struct g **gs, size_t n)
{
	struct slot slot[GIVE_TOGETHER];

	for (size_t at = 0, k; at < n; at += k) {
		for (k = 0; k < GIVE_TOGETHER && at + k < n; k++) {
			slot[k] = slot_of(gs[at + k]);
			check(slot[k].region && slot_g(slot[k].region, slot[k].i) == gs[at + k]);
		}
		release(slot, k);
		lock_acquire(&stacks.lock);
		for (size_t i = 0; i < k; i++)
			put_cold(slot[i]);
		lock_release(&stacks.lock);
	}
}

enum stack_place stack_find(const void *addr, struct g **gp)
{
	struct slot s = slot_of(addr);

	*gp = NULL;
	if (!s.region)
		return STACK_NOT;
	*gp = warm_g(s.region, s.i);
	return (const char *)addr < slot_base(s.region, s.i) + guard_bytes(s.region->slot_bytes)
	               ? STACK_GUARD
	               : STACK_INSIDE;
}

bool stack_overflowed(const struct g *gp)
{
	struct slot s;

	if (os_guard_kind == OS_GUARD_MARKER)
		return false;
	s = slot_of(gp);
	return s.region && (s.region->state[s.i] & SLOT_UNGUARDED) &&
	       *(const uint64_t *)(stack_of(gp)->lo - CHECK_WORD_BYTES) != 0;
}

void stack_each(void (*fn)(struct g *gp, void *arg), void *arg)
{
	struct g *gp;

	for (uint32_t n = stack_regions(), k = 0; k < n; k++)
		for (uint32_t i = 0; i < load_relaxed(&regions[k]->carved); i++)
			if ((gp = warm_g(regions[k], i)))
				fn(gp, arg);
}

void stack_each_region(void (*fn)(const void *lo, const void *hi, void *arg), void *arg)
{
	for (uint32_t i = 0, n = stack_regions(); i < n; i++)
		fn(regions[i]->base, slot_base(regions[i], regions[i]->slots), arg);
}

size_t stack_bytes_reserved(void)
{
	return load_relaxed(&stacks.reserved);
}

/* ------------------------------------------------------------ from outside */

uint32_t stack_regions(void)
{
	/* acquire: pairs with store_release in region_make */
	return load_acquire(&stacks.n);
}

struct stack_region stack_region(uint32_t region)
{
	const struct region *r = regions[region];

	return (struct stack_region){ r->base, r->slot_bytes, guard_bytes(r->slot_bytes), r->slots };
}

uint32_t stack_region_begun(uint32_t region)
{
	return load_relaxed(&regions[region]->carved);
}

struct g *stack_slot_g(uint32_t region, uint32_t slot)
{
	return warm_g(regions[region], slot);
}

bool stack_keep_try(void)
{
	return lock_try(&giving);
}

void stack_keep_end(void)
{
	lock_release(&giving);
}
