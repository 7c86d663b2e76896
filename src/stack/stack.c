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
 * The G is at the top of its own stack, in the page that running touches
 * anyway: a parked goroutine costs one page and its share of a page table; less if it
 * waits for long (evacuate.c).
 * Guards are markers in the page table where the kernel has them (Linux 6.13):
 * they make no mappings, so a million stacks fit under vm.max_map_count.
 * Otherwise mprotect, until the mappings run out; after that a stack has no
 * guard but a check word, zero until an overflow runs over it.
 *
 * A slot is fresh (never used), warm (has a G: alive, or dead in a pool), or
 * cold (its memory was given back; its guard is kept). Cold slots are linked by
 * index outside the stacks, since their memory is gone.
 *
 * Fresh slots are taken from a region in batches. The first touch of a stack is a
 * page fault, and with its guard that is nine tenths of what starting one more
 * goroutine costs. So a program that has begun several batches has the next ones
 * prepared, guarded and with their top page there, by a thread that has nothing
 * else to do (stack_prepare), while it goes on with those it has; if it is quicker
 * it begins an unprepared one. At most an eighth of what it has begun is prepared
 * ahead. That thread needs a CPU, so there is one P less that is woken for work meanwhile
 * (procs_help): where all CPUs have a P, a third thread would take turns with the two. (A
 * million goroutines on two Ps and CPUs: 1.3 us each, and 2.7 with thieves about, who were
 * woken 20,000 times.)
 *
 * From 8 MiB up slots start 1 MiB off a page table's reach (2 MiB), so that a
 * guard shares its page-table page with the top of the slot below it; otherwise
 * each parked goroutine would cost two.
 *
 * Colours
 *
 * The top of a stack is what its goroutine touches. At a distance of 256 KiB all
 * tops would lie in the same few sets of the first and second-level caches, which
 * hold eight of each: a chain of a thousand goroutines would run from the third
 * level. So slots are a page more than a power of two apart, which takes them
 * through the sets of the second level, and begin at one of four places within
 * their page, for the first. (The sieve of bench/: 85 ms without, 60 with the
 * first, yield and spawn 6% with the second.)
 *
 * A load waits for a store before it whose address has the same lower 12 bits, until the CPU has seen
 * that it is another one. So what of a P and an M a switch writes lies
 * in another part of its page than the tops of stacks: P_PAGE_OFFSET, M_PAGE_OFFSET.
 *
 * Rejected: one huge reservation for everything (fails under RLIMIT_AS and
 * strict overcommit); mapping each stack (2 us and a mapping each).
 */
#include "stack.h"

#include <stdint.h>
#include <stdlib.h>

#include "environment.h"
#include "mem.h"
#include "os.h"
#include "tool.h"
#include "types.h"

enum slot_state { SLOT_FRESH, SLOT_WARM, SLOT_COLD };
enum { SLOT_STATE = 3, SLOT_UNGUARDED = 4 };

struct region {
	char *base;
	size_t slot_bytes;
	int cls;
	uint32_t slots;
	uint32_t carved;	/* slots below belong to batches; may be read without the lock */
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

/* Under lock; regions[] and n may be read without, n last. */
static struct region *regions[STACK_REGIONS_MAX];
static struct {
	struct lock lock;
	uint32_t n;
	struct {
		struct region *current;	/* has slots that are in no batch */
		struct region *cold;	/* have cold slots */
		struct batch fresh;	/* what is used next */
		struct batch ready[STACK_AHEAD_MAX];	/* prepared */
		uint32_t ready_n;
		bool preparing;
		uint32_t begun;		/* batches */
	} klass[STACK_CLASSES];
	size_t reserved;
} stacks = { .lock = LOCK_INIT(RANK_STACK) };

/* Held while stacks are given back: what is in use has its first page then. */
static struct lock giving = LOCK_INIT(RANK_LEAF);

int stack_default_class;

#define PAGE_TABLE_REACH (2u << 20)
#define HUGE_SLOT_BYTES  (8u << 20)
#define CHECK_WORD_BYTES 8
#define COLOURS          4
#define COLOUR_BYTES     (7 * CACHE_LINE)

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

/* "64k", "1M", "262144"; 0 if it is none of them. */
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

void stack_init(void)
{
	const char *s = environment_get("GORO_STACK");
	size_t n = s ? parse_bytes(s) : 0;
	int cls = stack_class(n ? n : STACK_DEFAULT_BYTES);

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
	size_t n = (sizeof(struct g) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;

	n += i % COLOURS * COLOUR_BYTES;
	return (struct g *)(r->base + (size_t)(i + 1) * r->slot_bytes - n);
}

_Static_assert(sizeof(struct g) + CACHE_LINE + COLOURS * COLOUR_BYTES <= 4096,
               "stack: the G is in the first page, see evacuate.c");

static uint32_t slot_index(const struct region *r, const void *addr)
{
	return (uint32_t)((size_t)((const char *)addr - r->base) / r->slot_bytes);
}

/* Address space for at least one slot: as much as is usual, or, where limits
 * forbid that, half of it, and so on. */
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
	/* release: the region is whole; pairs with load_acquire in region_of */
	store_release(&stacks.n, stacks.n + 1);
	stacks.klass[cls].current = r;
	return r;
}

/* The first are small: a program of a few goroutines is not to pay for many. */
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

/* The batch is nobody else's. */
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
	/* release: the G is set up (or gone) when the state says so; pairs with
	 * load_acquire in stack_each and stack_find */
	store_release(&r->state[i], (uint8_t)((r->state[i] & ~SLOT_STATE) | s));
}

/* A slot that is the caller's alone. Without the lock: this touches its memory, for the
 * first time perhaps. */
static struct g *slot_use(struct slot s)
{
	struct region *r = s.region;
	struct g *gp = slot_g(r, s.i);

	gp->stack_class = (uint8_t)r->cls;
	store_relaxed(&gp->stack_lo,
	              r->base + (size_t)s.i * r->slot_bytes + guard_bytes(r->slot_bytes));
	store_relaxed(&gp->stack_hi, (char *)gp);
	set_state(r, s.i, SLOT_WARM);
	tool_stack_made(gp->stack_lo, gp->stack_hi);
	return gp;
}

/* stacks.lock held. */
static bool take_cold(int cls, struct slot *s)
{
	struct region *r = stacks.klass[cls].cold;

	if (!r)
		return false;
	*s = (struct slot){ r, r->cold - 1 };
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
			lock_release(&stacks.lock);	/* the last are on their way */
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
	return os_many_cpus && os_guard_kind == OS_GUARD_MARKER && !stacks.klass[cls].preparing &&
	       stacks.klass[cls].ready_n < ahead;
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
	stacks.klass[cls].ready[stacks.klass[cls].ready_n++] = b;
	stacks.klass[cls].preparing = false;
	lock_release(&stacks.lock);
	return true;
}

/* ---------------------------------------------------------------- and back */

static struct region *region_of(const void *addr)
{
	const char *a = addr;

	/* acquire: pairs with store_release in region_make */
	for (uint32_t i = 0, n = load_acquire(&stacks.n); i < n; i++) {
		struct region *r = regions[i];

		if (a >= r->base && a < r->base + (size_t)r->slots * r->slot_bytes)
			return r;
	}
	return NULL;
}

/* stacks.lock held. */
static void put_cold(struct region *r, uint32_t i)
{
	r->cold_next[i] = r->cold;
	r->cold = i + 1;
	if (!r->in_cold) {
		r->in_cold = true;
		r->next_cold = stacks.klass[r->cls].cold;
		stacks.klass[r->cls].cold = r;
	}
}

/* The slots are the caller's, and dead. Nothing in the stacks themselves is looked at here:
 * whoever holds this lock waits for no page (see evacuate.c). */
static void release(struct g **gs, size_t n)
{
	struct os_range range[64];

	lock_acquire(&giving);
	for (size_t i = 0; i < n; i++) {
		struct region *r = region_of(gs[i]);
		uint32_t s = slot_index(r, gs[i]);
		size_t guard = guard_bytes(r->slot_bytes);

		range[i] = (struct os_range){ slot_base(r, s) + guard, r->slot_bytes - guard };
		set_state(r, s, SLOT_COLD);
	}
	os_release(range, n);
	lock_release(&giving);
}

void stack_give_back(struct g **gs, size_t n)
{
	for (size_t at = 0; at < n;) {
		size_t k = n - at < 64 ? n - at : 64;

		release(gs + at, k);
		lock_acquire(&stacks.lock);
		for (size_t i = 0; i < k; i++) {
			struct region *r = region_of(gs[at + i]);

			put_cold(r, slot_index(r, gs[at + i]));
		}
		lock_release(&stacks.lock);
		at += k;
	}
}

enum stack_place stack_find(const void *addr, struct g **gp)
{
	struct region *r = region_of(addr);
	uint32_t i;

	*gp = NULL;
	if (!r)
		return STACK_NOT;
	i = slot_index(r, addr);
	/* acquire: pairs with set_state */
	if ((load_acquire(&r->state[i]) & SLOT_STATE) == SLOT_WARM)
		*gp = slot_g(r, i);
	if ((size_t)((const char *)addr - r->base) % r->slot_bytes < guard_bytes(r->slot_bytes))
		return STACK_GUARD;
	return STACK_INSIDE;
}

bool stack_overflowed(const struct g *gp)
{
	const struct region *r;

	if (os_guard_kind == OS_GUARD_MARKER)
		return false;
	r = region_of(gp);
	return r && (r->state[slot_index(r, gp)] & SLOT_UNGUARDED) &&
	       *(const uint64_t *)(gp->stack_lo - CHECK_WORD_BYTES) != 0;
}

void stack_each(void (*fn)(struct g *gp, void *arg), void *arg)
{
	for (uint32_t n = load_acquire(&stacks.n), k = 0; k < n; k++) {
		struct region *r = regions[k];

		for (uint32_t i = 0; i < load_relaxed(&r->carved); i++)
			if ((load_acquire(&r->state[i]) & SLOT_STATE) == SLOT_WARM)
				fn(slot_g(r, i), arg);
	}
}

void stack_each_region(void (*fn)(const void *lo, const void *hi, void *arg), void *arg)
{
	for (uint32_t i = 0, n = load_acquire(&stacks.n); i < n; i++)
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

bool stack_slot_of(const void *addr, uint32_t *region, uint32_t *slot)
{
	for (uint32_t i = 0, n = stack_regions(); i < n; i++) {
		const struct region *r = regions[i];

		if ((const char *)addr >= r->base &&
		    (const char *)addr < r->base + (size_t)r->slots * r->slot_bytes) {
			*region = i;
			*slot = slot_index(r, addr);
			return true;
		}
	}
	return false;
}

struct g *stack_slot_g(uint32_t region, uint32_t slot)
{
	const struct region *r = regions[region];

	/* acquire: pairs with set_state */
	if ((load_acquire(&r->state[slot]) & SLOT_STATE) != SLOT_WARM)
		return NULL;
	return slot_g(r, slot);
}

bool stack_keep_try(void)
{
	return lock_try(&giving);
}

void stack_keep_end(void)
{
	lock_release(&giving);
}
