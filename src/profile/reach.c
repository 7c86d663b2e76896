/*
 * reach.c - goroutines that wait for what nobody can reach: the goroutineleak profile.
 *
 * A goroutine that waits for a channel to which nothing that can still run has a pointer
 * waits for ever. Go finds such by its collector. Here there is none, so all memory is
 * looked through, conservatively: whatever word has the value of a pointer is one.
 *
 * Candidates
 *
 * .. are goroutines at rest that wait for a channel, a select, a pool or a type of sync,
 * without a deadline. Who sleeps, waits for a descriptor, runs or could, or is a plain
 * thread, can go on by itself or from outside.
 *
 * Marking
 *
 * The world is stopped, and threads that run on in user code are held where they stand
 * (reach_threads.c). An object that somebody waits for is reached if a pointer to it is
 * found in what is live; then those who wait for it are live, and what they have on
 * their stacks. That is repeated until nothing is added. Live from the start are
 *
 *	- all that the program can write to: data, heap, mappings, threads' stacks
 *	- the registers of threads
 *	- the stacks of goroutines that are no candidates, from sp up
 *
 * but not what would make every waiter reachable, or what is over:
 *
 *	- stacks of goroutines, live or dead, beyond what was named above. A G lies at the
 *	  top of its own: with its arguments, and its waiters, that name what it waits for
 *	- channels that are waited for, and what is buffered in them, until they are reached
 *	- what a candidate keeps elsewhere: defers, the cases of a wide select
 *	- the runtime's own memory (mem.c): Ms, that remember the lock that was last
 *	  released for somebody, the Gs of plain threads, descriptors
 *	- stacks of the runtime's threads below their sp, and their signal stacks
 *	- what is used here, and the frames of who looks
 *
 * Tables of the runtime that lead to waiters (the buckets of sema.c, queues in channels
 * and pools, run queues) lead to Gs; a pointer to a G reaches nothing. Subscriptions to
 * signals (signal.c), timers (timer.c, time.c) and contexts (ctx.c) lead to channels, as
 * they should: that is how somebody may yet be woken.
 *
 * Objects
 *
 * A channel or a pool is memory of its own, and pointed to at its beginning. A type of
 * sync lies within something: on a stack, it is within reach of whose stack that is, and
 * of whoever has a pointer to anything there. Elsewhere nobody can tell what it is
 * part of, or how far before it a pointer to that may point, so it counts as reached.
 *
 * What this cannot do
 *
 * Leaks are missed where a pointer is left in memory that was freed, in a part of a
 * plain thread's stack that is over, in anything allocated that is itself leaked, or
 * where a number looks like a pointer. For the wrong ones to be blamed, the only pointer
 * to a channel would have to be in hiding: in a shared mapping of a file, not aligned, coded,
 * or in a register of a thread that sleeps in a system call (which is why of such a
 * goroutine the whole stack is looked at, where calls made before have left copies).
 */
#include "reach.h"

#include <goro.h>

#include "chan.h"
#include "mem.h"
#include "os.h"
#include "reach_scan.h"
#include "runtime.h"
#include "stack.h"
#include "unwind.h"

#define NONE UINT32_MAX
/* Below sp the compiler may keep variables, too. */
#define RED_ZONE_BYTES 128
/* What a goroutine's first frames take at the most. */
#define BEGINNING_BYTES 512
/* Looks at most, while threads move that sleep. */
#define LOOKS_MAX 3

enum mark { UNMARKED, MARKED, SCANNED };

/* What somebody waits for. */
struct object {
	uintptr_t addr;
	size_t bytes;		/* of memory that is live when it is reached */
	uint32_t waits;		/* first of those who do; NONE: end */
	uint32_t next_there;	/* on the same stack */
	uint8_t mark;
};

struct candidate {
	struct g *gp;
	uint32_t there;		/* objects on its stack */
	uint8_t mark;
};

struct wait {
	uint32_t candidate;
	uint32_t next;		/* for the same object */
};

/* Numbers by address. */
struct table {
	uintptr_t *key;		/* 0: free */
	uint32_t *value;
	size_t mask;
};

struct reach {
	size_t bytes;		/* of this and all tables: one mapping */
	struct candidate *candidate;
	struct object *object;
	struct wait *wait;
	uint32_t *todo;		/* objects and candidates that were marked and not scanned */
	uint32_t candidates, objects, waits, todo_n;
	uint32_t candidates_max, waits_max;
	uint32_t on_stacks;	/* objects that lie on stacks of candidates */
	struct table by_addr, by_g;
	uintptr_t lowest, highest;	/* of by_addr */
	struct span stacks;	/* all stacks lie in it */

	struct thread_view *thread;
	size_t threads;
	struct memory memory;
	struct spans but;	/* where nobody is to look */
	const struct g *self;
	struct unwind_regs self_regs;
};

/* ------------------------------------------------------------------ tables */

static size_t hash(uintptr_t key)
{
	return (size_t)((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15) >> 20);
}

static uint32_t table_find(const struct table *t, uintptr_t key)
{
	for (size_t i = hash(key) & t->mask; t->key[i]; i = (i + 1) & t->mask)
		if (t->key[i] == key)
			return t->value[i];
	return NONE;
}

static void table_add(struct table *t, uintptr_t key, uint32_t value)
{
	size_t i = hash(key) & t->mask;

	while (t->key[i])
		i = (i + 1) & t->mask;
	t->key[i] = key;
	t->value[i] = value;
}

static size_t table_slots(size_t n)
{
	size_t slots = 64;

	while (slots < 2 * n)
		slots *= 2;
	return slots;
}

/* -------------------------------------------------------------- candidates */

static TOOL_RACY bool is_candidate(const struct g *gp)
{
	if (peek(&gp->status) != G_WAITING || peek(&gp->mp) || gp->timer.heap || gp->is_internal)
		return false;
	switch (gp->wait_reason) {
	case WAIT_SELECT_NO_CASES:
		return !gp->is_main;	/* a way to say that the others are to go on */
	case WAIT_CHAN_RECV:
	case WAIT_CHAN_SEND:
	case WAIT_CHAN_RECV_NIL:
	case WAIT_CHAN_SEND_NIL:
	case WAIT_SELECT:
	case WAIT_SEMACQUIRE:
	case WAIT_MUTEX_LOCK:
	case WAIT_RWMUTEX_RLOCK:
	case WAIT_RWMUTEX_LOCK:
	case WAIT_WAITGROUP_WAIT:
	case WAIT_COND_WAIT:
		return true;
	default:
		return false;
	}
}

/* The waiters of a select: those in the G that are in use, or elsewhere if it is wide. */
static const struct waiter *select_waiters(const struct g *gp, size_t *n)
{
	const struct waiter *w = gp->waiters;

	if (select_is_wide(gp)) {
		*n = (size_t)w->index;
		return w->elem;
	}
	*n = G_WAITERS;
	return w;
}

static size_t count_waits(const struct g *gp)
{
	size_t n = 1;

	if (gp->wait_reason == WAIT_SELECT)
		select_waiters(gp, &n);
	return n;
}

static void count_one(struct g *gp, void *arg)
{
	struct reach *r = arg;

	if (is_candidate(gp)) {
		r->candidates_max++;
		r->waits_max += (uint32_t)count_waits(gp);
	}
}

/* Where the part of its stack that is in use begins. */
static uintptr_t live_from(const struct g *gp)
{
	return (uintptr_t)gp->context.sp - RED_ZONE_BYTES;
}

static uint32_t object_of(struct reach *r, uintptr_t addr, size_t bytes)
{
	uint32_t i = table_find(&r->by_addr, addr);

	if (i != NONE)
		return i;
	i = r->objects++;
	r->object[i] = (struct object){ .addr = addr, .bytes = bytes, .waits = NONE, .next_there = NONE };
	table_add(&r->by_addr, addr, i);
	if (addr < r->lowest)
		r->lowest = addr;
	if (addr > r->highest)
		r->highest = addr;
	return i;
}

static void wait_for(struct reach *r, uint32_t c, uint32_t o)
{
	r->wait[r->waits] = (struct wait){ .candidate = c, .next = r->object[o].waits };
	r->object[o].waits = r->waits++;
}

static void mark_candidate(struct reach *r, uint32_t c)
{
	if (r->candidate[c].mark == UNMARKED) {
		r->candidate[c].mark = MARKED;
		r->todo[r->todo_n++] = c << 1;
	}
}

static void mark_object(struct reach *r, uint32_t o)
{
	if (r->object[o].mark != UNMARKED)
		return;
	r->object[o].mark = MARKED;
	if (r->object[o].bytes > 0)
		r->todo[r->todo_n++] = o << 1 | 1;
	for (uint32_t w = r->object[o].waits; w != NONE; w = r->wait[w].next)
		mark_candidate(r, r->wait[w].candidate);
}

/* A channel, or a pool, which begins with a lock, too. */
static void wait_for_block(struct reach *r, uint32_t c, const void *key)
{
	const goro_chan *ch = key;
	size_t bytes = 0;

	if (ch->lock.rank == RANK_CHAN)
		bytes = sizeof *ch + ch->ring_bytes;
	wait_for(r, c, object_of(r, (uintptr_t)key, bytes));
}

/* A type of sync. All candidates are known already. */
static void wait_for_part(struct reach *r, uint32_t c, const void *addr)
{
	struct g *gp;
	uint32_t owner, o;

	owner = stack_find(addr, &gp) == STACK_INSIDE && gp ? table_find(&r->by_g, (uintptr_t)gp) : NONE;
	if (owner == NONE) {
		mark_candidate(r, c);
		return;
	}
	o = object_of(r, (uintptr_t)addr, 0);
	if (r->object[o].waits == NONE) {
		r->object[o].next_there = r->candidate[owner].there;
		r->candidate[owner].there = o;
		r->on_stacks++;
	}
	wait_for(r, c, o);
}

static void add_waits(struct reach *r, uint32_t c)
{
	const struct g *gp = r->candidate[c].gp;
	const struct waiter *w;
	size_t n;

	switch (gp->wait_reason) {
	case WAIT_CHAN_RECV:
	case WAIT_CHAN_SEND:
		wait_for_block(r, c, gp->waiter.key);
		break;
	case WAIT_SELECT:
		w = select_waiters(gp, &n);
		for (size_t i = 0; i < n; i++)
			if (w[i].key && w[i].gp == gp && w[i].is_select)
				wait_for_block(r, c, w[i].key);
		break;
	case WAIT_SEMACQUIRE:
	case WAIT_COND_WAIT:
		wait_for_part(r, c, gp->waiter.elem);
		break;
	case WAIT_WAITGROUP_WAIT:
		wait_for_part(r, c, gp->waiter.key);
		break;
	case WAIT_MUTEX_LOCK:
	case WAIT_RWMUTEX_RLOCK:
	case WAIT_RWMUTEX_LOCK:
		wait_for_part(r, c, gp->sleeper.addr);
		break;
	default:		/* for nothing that there is */
		break;
	}
}

static void add_one(struct g *gp, void *arg)
{
	struct reach *r = arg;

	if (!is_candidate(gp) || r->candidates == r->candidates_max)
		return;
	r->candidate[r->candidates] = (struct candidate){ .gp = gp, .there = NONE };
	table_add(&r->by_g, (uintptr_t)gp, r->candidates++);
}

/* ----------------------------------------------------------------- marking */

static void mark_there(struct reach *r, uint32_t c)
{
	for (uint32_t o = r->candidate[c].there; o != NONE; o = r->object[o].next_there)
		mark_object(r, o);
}

/* A pointer into a stack reaches what lies there, if that part is in use. */
static void visit_stack_pointer(struct reach *r, uintptr_t word)
{
	struct g *gp;
	uint32_t c;

	if (stack_find((void *)word, &gp) != STACK_INSIDE || !gp)
		return;
	c = table_find(&r->by_g, (uintptr_t)gp);
	if (c != NONE && word >= live_from(gp) && word < (uintptr_t)gp)
		mark_there(r, c);
}

static TOOL_UNCHECKED void visit(void *arg, const uintptr_t *words, size_t n)
{
	struct reach *r = arg;
	uintptr_t lowest = r->lowest, range = r->highest - lowest;
	uintptr_t stacks = r->stacks.lo, stacks_range = r->on_stacks ? r->stacks.hi - stacks : 0;

	for (size_t i = 0; i < n; i++) {
		uintptr_t word = words[i];

		if (word - lowest <= range) {
			uint32_t o = table_find(&r->by_addr, word);

			if (o != NONE)
				mark_object(r, o);
		}
		if (word - stacks < stacks_range)
			visit_stack_pointer(r, word);
	}
}

static void visit_memory(struct reach *r, const void *lo, const void *hi)
{
	uintptr_t at = ((uintptr_t)lo + sizeof at - 1) & ~(sizeof at - 1);

	if (at < (uintptr_t)hi)
		visit(r, (const uintptr_t *)at, ((uintptr_t)hi - at) / sizeof at);
}

/* One at rest: its stack, and what it keeps elsewhere. */
static void visit_rest(struct reach *r, const struct g *gp)
{
	visit(r, (const uintptr_t *)&gp->context.fp, 1);
	if (gp->context.pc == (void *)context_entry)
		visit(r, gp->arg, G_ARGS);	/* not begun yet */
	visit_memory(r, (const char *)gp->context.sp - RED_ZONE_BYTES, gp);
	for (const struct defer *d = gp->defers; d; d = d->next)
		visit_memory(r, d, d + 1);
}

static void visit_todo(struct reach *r)
{
	while (r->todo_n > 0) {
		uint32_t x = r->todo[--r->todo_n];

		if (x & 1) {
			const struct object *o = &r->object[x >> 1];

			visit_memory(r, (void *)o->addr, (char *)o->addr + o->bytes);
		} else {
			visit_rest(r, r->candidate[x >> 1].gp);
			mark_there(r, x >> 1);
		}
	}
}

/* ------------------------------------------------------------------- roots */

static const struct thread_view *view_of(const struct reach *r, int tid)
{
	for (size_t i = 0; i < r->threads; i++)
		if (r->thread[i].tid == tid)
			return &r->thread[i];
	return NULL;
}

static bool within(uintptr_t sp, const void *lo, const void *hi)
{
	return sp >= (uintptr_t)lo && sp < (uintptr_t)hi;
}

static void visit_span(struct reach *r, uintptr_t lo, uintptr_t hi)
{
	memory_scan(&r->memory, (struct span){ lo, hi }, visit, r);
}

/* One that a thread is on: from where sp is known to be; else all of it. */
static TOOL_RACY void visit_running(struct reach *r, const struct g *gp, const struct m *mp)
{
	const void *stopped = load_acquire(&mp->stopped_at);
	const struct thread_view *v = view_of(r, load_relaxed(&mp->tid));
	uintptr_t lo = (uintptr_t)gp->stack_lo, sp = 0;
	struct unwind_regs regs;

	/* On its way to rest, or from there, its thread may be on another stack. */
	visit(r, (const uintptr_t *)&gp->context.fp, 1);
	if (gp == r->self) {
		sp = r->self_regs.reg[UNWIND_SP];
	} else if (stopped) {
		unwind_regs_from_ucontext(&regs, stopped);
		visit(r, regs.reg, UNWIND_NREG);
		visit_span(r, (uintptr_t)stopped, (uintptr_t)stopped + REACH_FRAME_BYTES);
		sp = regs.reg[UNWIND_SP];
	} else if (v && v->held) {
		sp = v->sp;
	}
	/* It has perhaps not taken its arguments up yet (g_start). */
	if (!within(sp, gp->stack_lo, gp->stack_hi - BEGINNING_BYTES))
		visit(r, gp->arg, G_ARGS);
	if (within(sp, gp->stack_lo, gp))
		lo = sp - (gp == r->self ? 0 : RED_ZONE_BYTES);
	visit_span(r, lo, (uintptr_t)gp);
}

static void visit_g(struct g *gp, void *arg)
{
	struct reach *r = arg;
	struct m *mp;

	/* acquire: plain threads may be starting one; pairs with store_release in launch */
	if (load_acquire(&gp->status) == G_DEAD || table_find(&r->by_g, (uintptr_t)gp) != NONE)
		return;
	/* acquire: its context, if it is at rest; pairs with after_run */
	mp = load_acquire(&gp->mp);
	if (mp)
		visit_running(r, gp, mp);
	else
		visit_rest(r, gp);
}

static void visit_threads(struct reach *r)
{
	visit(r, r->self_regs.reg, UNWIND_NREG);
	for (size_t i = 0; i < r->threads; i++) {
		const struct thread_view *v = &r->thread[i];

		visit(r, v->word, v->n);
		if (v->held)
			visit_span(r, v->frame.lo, v->frame.hi);
	}
}

/* Parts of an M's stacks that are over, or never hold anything of the program's. It may be
 * about to end. */
static TOOL_RACY void leave_out_m(struct reach *r, const struct m *mp)
{
	const struct thread_view *v = view_of(r, load_relaxed(&mp->tid));
	const char *lo = mp->thread_stack_lo, *hi = mp->thread_stack_hi;
	const char *signals = mp->signal_stack;
	uintptr_t sp = v ? v->sp : 0;

	if (mp == m_self())
		sp = r->self_regs.reg[UNWIND_SP];
	if (load_relaxed(&mp->tid) == 0)
		return;
	/* In the handler and awake, it has the registers of its goroutine there. */
	if (signals && (load_acquire(&mp->stopped_at) || !load_relaxed(&mp->curg) || mp == m_self() ||
	                (v && v->held) || (v && v->asleep && !within(sp, signals, signals +
	                                                             mp->signal_stack_bytes))))
		spans_add(&r->but, signals, signals + mp->signal_stack_bytes);
	if (!load_relaxed(&mp->is_foreign) && !within(sp, lo, hi) && load_relaxed(&mp->curg))
		sp = (uintptr_t)mp->sched_context.sp;
	if (load_relaxed(&mp->is_foreign) && mp != m_self() && !(v && v->held))
		return;		/* asleep: what is over may tell of its registers */
	if (within(sp, lo, hi))
		spans_add(&r->but, lo, (char *)sp - (mp == m_self() ? 0 : RED_ZONE_BYTES));
}

static void leave_out(const void *lo, const void *hi, void *arg)
{
	struct reach *r = arg;

	spans_add(&r->but, lo, hi);
}

static void leave_out_stacks(const void *lo, const void *hi, void *arg)
{
	struct reach *r = arg;

	spans_add(&r->but, lo, hi);
	if ((uintptr_t)lo < r->stacks.lo || !r->stacks.lo)
		r->stacks.lo = (uintptr_t)lo;
	if ((uintptr_t)hi > r->stacks.hi)
		r->stacks.hi = (uintptr_t)hi;
}

/* ------------------------------------------------------------------ the look */

static void leave_out_candidate(struct reach *r, const struct g *gp)
{
	const struct waiter *w;
	size_t n;

	for (const struct defer *d = gp->defers; d; d = d->next)
		spans_add(&r->but, d, d + 1);
	if (gp->wait_reason == WAIT_SELECT && (w = select_waiters(gp, &n)) != gp->waiters)
		spans_add(&r->but, w, w + n);
}

/* Anew each time: threads may have moved. */
static void leave_out_all(struct reach *r)
{
	spans_free(&r->but);
	spans_add(&r->but, r, (char *)r + r->bytes);
	spans_add(&r->but, r->memory.buf, (char *)r->memory.buf + MEMORY_BUF_BYTES);
	stack_each_region(leave_out_stacks, r);
	mem_each(leave_out, r);
	for (uint32_t o = 0; o < r->objects; o++)
		spans_add(&r->but, (void *)r->object[o].addr,
		          (char *)r->object[o].addr + r->object[o].bytes);
	for (uint32_t c = 0; c < r->candidates; c++)
		leave_out_candidate(r, r->candidate[c].gp);
	for (const struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link)
		leave_out_m(r, mp);
	spans_add_self(&r->but);
	spans_sort(&r->but);
}

static void look(struct reach *r)
{
	leave_out_all(r);
	visit_threads(r);
	stack_each(visit_g, r);
	visit_todo(r);
	memory_scan_all(&r->memory, &r->but, visit, r);
	visit_todo(r);
}

static void *carve(char **at, size_t n)
{
	void *p = *at;

	*at += (n + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	return p;
}

static void table_make(struct table *t, char **at, size_t slots)
{
	t->mask = slots - 1;
	t->key = carve(at, slots * sizeof *t->key);
	t->value = carve(at, slots * sizeof *t->value);
}

/* All tables in one mapping; of the size that count says. */
static struct reach *reach_make(const struct reach *count)
{
	size_t cs = count->candidates_max, ws = count->waits_max;
	size_t by_addr = table_slots(ws), by_g = table_slots(cs);
	size_t bytes = sizeof *count + cs * sizeof(struct candidate) + ws * sizeof(struct object) +
	               ws * sizeof(struct wait) + (cs + ws) * sizeof(uint32_t) +
	               HOLD_MAX * sizeof(struct thread_view) +
	               (by_addr + by_g) * (sizeof(uintptr_t) + sizeof(uint32_t)) + 16 * CACHE_LINE;
	char *at = os_map(bytes);
	struct reach *r;

	if (!at)
		return NULL;
	r = carve(&at, sizeof *r);
	*r = (struct reach){ .bytes = bytes, .lowest = UINTPTR_MAX,
	                     .candidates_max = (uint32_t)cs, .waits_max = (uint32_t)ws };
	r->candidate = carve(&at, cs * sizeof *r->candidate);
	r->object = carve(&at, ws * sizeof *r->object);
	r->wait = carve(&at, ws * sizeof *r->wait);
	r->todo = carve(&at, (cs + ws) * sizeof *r->todo);
	r->thread = carve(&at, HOLD_MAX * sizeof *r->thread);
	table_make(&r->by_addr, &at, by_addr);
	table_make(&r->by_g, &at, by_g);
	return r;
}

/* Nothing is known: nobody is blamed. */
static void mark_all(struct reach *r)
{
	for (uint32_t c = 0; c < r->candidates; c++)
		r->candidate[c].mark = MARKED;
}

static void find(struct reach *r)
{
	bool looked = false;

	stack_each(add_one, r);
	for (uint32_t c = 0; c < r->candidates; c++)
		add_waits(r, c);
	if (r->lowest > r->highest)
		r->lowest = r->highest = 0;
	for (int i = 0; i < LOOKS_MAX; i++) {
		bool held = threads_hold(r->thread, &r->threads), still;

		if (held)
			look(r);
		still = held && threads_still(r->thread, r->threads);
		threads_let_go();
		if (still)
			return;
		looked |= held;
	}
	if (!looked)
		mark_all(r);
}

/* The frames below, which know all objects, are left out: so this one knows none. */
__attribute__((noinline)) struct reach *reach_find(void)
{
	struct reach count = { .bytes = 0 }, *r;
	struct m *mp = m_self();
	int saved = *mp->errno_at;

	stack_each(count_one, &count);
	r = reach_make(&count);
	if (!r)
		return NULL;
	r->self = mp->is_foreign ? NULL : mp->curg;
	unwind_regs_here(&r->self_regs);
	if (memory_open(&r->memory)) {
		find(r);
		memory_close(&r->memory);
	}
	if (r->but.failed) {
		reach_free(r);
		r = NULL;
	}
	*mp->errno_at = saved;
	return r;
}

/* One that a plain thread has woken meanwhile is not lost. */
static TOOL_RACY bool is_lost(const struct candidate *c)
{
	return c->mark == UNMARKED && peek(&c->gp->status) == G_WAITING;
}

bool reach_is_lost(const struct reach *r, const struct g *gp)
{
	uint32_t c = table_find(&r->by_g, (uintptr_t)gp);

	return c != NONE && is_lost(&r->candidate[c]);
}

size_t reach_lost(const struct reach *r)
{
	size_t n = 0;

	for (uint32_t c = 0; c < r->candidates; c++)
		n += is_lost(&r->candidate[c]);
	return n;
}

void reach_free(struct reach *r)
{
	spans_free(&r->but);
	os_unmap(r, r->bytes);
}
