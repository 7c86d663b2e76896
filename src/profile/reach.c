/*
 * reach.c - goroutines that wait for what nothing can reach: the goroutineleak profile.
 *
 * A goroutine waits for ever if nothing that can still run has a pointer to the channel
 * that it waits for. Go's collector finds such goroutines. Without a collector all memory
 * is scanned, conservatively: any word that equals an address counts as a pointer.
 *
 * Candidates
 *
 * Candidates are goroutines at rest that wait without a deadline for a channel, a select,
 * a pool or a type of sync. Any other can go on by itself or be woken from outside: it is
 * running or runnable, sleeps, waits for a descriptor, or is a plain thread.
 *
 * Marking
 *
 * The world is stopped, and threads that run on in user code are held (reach_threads.c).
 * An object that a candidate waits for is reached if live memory has a pointer to it.
 * Then all candidates that wait for it are live, and so are their stacks. This repeats
 * until nothing is added. Live from the start are
 *
 *	- all that the program can write to: data, heap, mappings, threads' stacks
 *	- the registers of threads
 *	- the stacks of goroutines that are no candidates, from sp up
 *
 * but not the following, which would make every waiter reachable, or is not in use:
 *
 *	- all other memory of goroutines' stacks. At the top of each lies its G, with its
 *	  arguments, and with waiters that point to what it waits for
 *	- channels that candidates wait for, and their buffers, until they are reached
 *	- a candidate's memory elsewhere: defers, the cases of a wide select
 *	- the runtime's own memory (mem.c): Ms, which remember the last lock that they
 *	  released for another goroutine, the Gs of plain threads, descriptors
 *	- stacks of the runtime's threads below their sp, and their signal stacks
 *	- this file's own memory, and the frames of the functions that scan
 *
 * The runtime's tables of waiters (the buckets of sema.c, queues of channels and pools,
 * run queues) point to Gs, and a pointer to a G reaches nothing. Subscriptions to signals
 * (signal.c), timers (timers.c, time.c) and contexts (ctx.c) point to channels and reach
 * them, rightly: they may yet wake a goroutine.
 *
 * Objects
 *
 * A channel or a pool is an allocation of its own, and pointers point to its beginning. A
 * pointer to a context reaches the context's channel, too. A context's memory is live
 * only once it is reached, unless a timer or a context above it can end it.
 *
 * A type of sync lies within another object. On a stack, it is reached with the goroutine
 * whose stack that is, and by any pointer into the part of the stack that is in use.
 * Elsewhere the bounds of the object around it are unknown, and so is where pointers to
 * that object point. So it counts as reached.
 *
 * What this cannot do
 *
 * A leak is missed if a pointer to the object is left in freed memory, in an unused part
 * of a plain thread's stack or in memory that is itself leaked, or if a number looks like
 * a pointer. A goroutine is wrongly reported only if the only pointer to its channel is
 * hidden: in a shared mapping of a file, unaligned, encoded, or in a register of a thread
 * that sleeps in a system call. Because of the last, such a goroutine's whole stack is
 * scanned: earlier calls have left copies of registers there.
 */
#include "profile/reach.h"

#include <goro.h>

#include "sync/chan.h"
#include "base/mem.h"
#include "platform/os.h"
#include "base/table.h"
#include "sched/runtime.h"
#include "stack/stack.h"
#include "unwind/unwind.h"

/* The compiler may keep variables up to here below sp. */
#define RED_ZONE_BYTES 128
/* A goroutine's first frames are not larger. */
#define BEGINNING_BYTES 512
/* Scans at most, if sleeping threads wake meanwhile. */
#define LOOKS_MAX 3

/* What is to be scanned is on a list, linked by todo. */
struct todo {
	struct todo *next;
	bool marked;
	bool is_object;
};

/* What a candidate waits for. */
struct object {
	struct todo todo;
	uintptr_t addr;
	size_t bytes;		/* of memory that is live once the object is reached */
	struct wait *waits;	/* for it */
	struct object *next_there;	/* on the same stack */
};

struct candidate {
	struct todo todo;
	struct g *gp;
	struct object *there;	/* on its stack */
};

struct wait {
	struct candidate *candidate;
	struct wait *next;	/* for the same object */
};

struct reach {
	struct table objects, candidates;	/* by address */
	struct chunks waits;
	bool failed;		/* there was no memory */
	struct todo *todo;	/* marked but not yet scanned */
	uint32_t on_stacks;	/* objects that lie on stacks of candidates */
	uintptr_t lowest, highest;	/* addresses of objects */
	struct span stacks;	/* from the lowest to the highest stack */

	struct thread_view thread[HOLD_MAX];
	size_t threads;
	struct memory memory;
	struct spans but;	/* memory that is not scanned */
	const struct g *self;
	struct unwind_regs self_regs;
};

/* -------------------------------------------------------------- candidates */

static TOOL_RACY bool is_candidate(const struct g *gp)
{
	if (peek(&gp->status) != G_WAITING || peek(&gp->mp) || gp->timer.heap || gp->is_internal)
		return false;
	switch (gp->wait_reason) {
	case WAIT_SELECT_NO_CASES:
		return !gp->is_main;	/* main may wait for ever while the others work */
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

/* The waiters of a select: in the G, or elsewhere if it is wide. */
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

/* The lowest address of its stack that is in use. */
static uintptr_t live_from(const struct g *gp)
{
	return (uintptr_t)gp->context.sp - RED_ZONE_BYTES;
}

static struct candidate *candidate_of(const struct reach *r, const struct g *gp)
{
	struct table_entry *e = table_find(&r->candidates, &gp, sizeof gp);

	return e ? table_data(e) : NULL;
}

/* NULL: no memory. */
static struct object *object_of(struct reach *r, uintptr_t addr, size_t bytes)
{
	struct table_entry *e = table_put(&r->objects, &addr, sizeof addr);
	struct object *o = e ? table_data(e) : NULL;

	r->failed |= !o;
	if (!o || o->addr)
		return o;
	*o = (struct object){ .todo.is_object = true, .addr = addr, .bytes = bytes };
	if (addr < r->lowest)
		r->lowest = addr;
	if (addr > r->highest)
		r->highest = addr;
	return o;
}

static void wait_for(struct reach *r, struct candidate *c, struct object *o)
{
	struct wait *w = o ? chunks_take(&r->waits, sizeof *w, SIZE_MAX) : NULL;

	r->failed |= !w;
	if (!w)
		return;
	*w = (struct wait){ .candidate = c, .next = o->waits };
	o->waits = w;
}

static void mark(struct reach *r, struct todo *x)
{
	if (x->marked)
		return;
	x->marked = true;
	x->next = r->todo;
	r->todo = x;
}

static void mark_object(struct reach *r, struct object *o)
{
	if (o->todo.marked)
		return;
	mark(r, &o->todo);
	for (struct wait *w = o->waits; w; w = w->next)
		mark(r, &w->candidate->todo);
}

/* key is a channel or a pool; both begin with a lock. */
static void wait_for_block(struct reach *r, struct candidate *c, const void *key)
{
	const goro_chan *ch = key;
	size_t bytes = 0;

	if (ch->lock.rank == RANK_CHAN)
		bytes = sizeof *ch + ch->ring_bytes;
	wait_for(r, c, object_of(r, (uintptr_t)key, bytes));
	if (bytes > 0 && ch->owner)
		wait_for(r, c, object_of(r, (uintptr_t)ch->owner, ch->owner_bytes));
}

/* addr is a type of sync. All candidates are known already. */
static void wait_for_part(struct reach *r, struct candidate *c, const void *addr)
{
	struct candidate *owner;
	struct object *o;
	struct g *gp;

	owner = stack_find(addr, &gp) == STACK_INSIDE && gp ? candidate_of(r, gp) : NULL;
	if (!owner) {
		mark(r, &c->todo);
		return;
	}
	o = object_of(r, (uintptr_t)addr, 0);
	if (o && !o->waits) {
		o->next_there = owner->there;
		owner->there = o;
		r->on_stacks++;
	}
	wait_for(r, c, o);
}

static void add_waits(struct reach *r, struct candidate *c)
{
	const struct g *gp = c->gp;
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
	default:		/* it waits for no object: nothing can wake it */
		break;
	}
}

static void add_one(struct g *gp, void *arg)
{
	struct reach *r = arg;
	struct table_entry *e;

	if (!is_candidate(gp))
		return;
	e = table_put(&r->candidates, &gp, sizeof gp);
	r->failed |= !e;
	if (e)
		((struct candidate *)table_data(e))->gp = gp;
}

/* ----------------------------------------------------------------- marking */

static void mark_there(struct reach *r, const struct candidate *c)
{
	for (struct object *o = c->there; o; o = o->next_there)
		mark_object(r, o);
}

/* A pointer into the used part of a stack reaches all objects on that stack. */
static void visit_stack_pointer(struct reach *r, uintptr_t word)
{
	const struct candidate *c;
	struct g *gp;

	if (stack_find((void *)word, &gp) != STACK_INSIDE || !gp)
		return;
	c = candidate_of(r, gp);
	if (c && word >= live_from(gp) && word < (uintptr_t)gp)
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
			struct table_entry *e = table_find(&r->objects, &word, sizeof word);

			if (e)
				mark_object(r, table_data(e));
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

/* Visits the stack of a goroutine at rest, and its memory elsewhere. */
static void visit_rest(struct reach *r, const struct g *gp)
{
	visit(r, (const uintptr_t *)&gp->context.fp, 1);
	if (gp->context.pc == (void *)context_entry)
		visit(r, gp->arg, G_ARGS);	/* it has not run yet */
	visit_memory(r, (const char *)gp->context.sp - RED_ZONE_BYTES, gp);
	for (const struct defer *d = gp->defers; d; d = d->next)
		visit_memory(r, d, d + 1);
}

static void visit_todo(struct reach *r)
{
	for (struct todo *x; (x = r->todo);) {
		r->todo = x->next;
		if (x->is_object) {
			const struct object *o = (const struct object *)x;

			visit_memory(r, (void *)o->addr, (char *)o->addr + o->bytes);
		} else {
			const struct candidate *c = (const struct candidate *)x;

			visit_rest(r, c->gp);
			mark_there(r, c);
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

/* Visits the stack of a goroutine on a thread: from sp up if sp is known, else all. */
static TOOL_RACY void visit_running(struct reach *r, const struct g *gp, const struct m *mp)
{
	const void *stopped = load_acquire(&mp->stopped_at);
	const struct thread_view *v = view_of(r, load_relaxed(&mp->tid));
	uintptr_t lo = (uintptr_t)gp->stack.lo, sp = 0;
	struct unwind_regs regs;

	/* While the goroutine comes to rest, its thread may be on another stack. */
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
	/* g_start may not have read the arguments yet. */
	if (!within(sp, gp->stack.lo, gp->stack.hi - BEGINNING_BYTES))
		visit(r, gp->arg, G_ARGS);
	if (within(sp, gp->stack.lo, gp))
		lo = sp - (gp == r->self ? 0 : RED_ZONE_BYTES);
	visit_span(r, lo, (uintptr_t)gp);
}

static void visit_g(struct g *gp, void *arg)
{
	struct reach *r = arg;
	struct m *mp;

	/* acquire: a plain thread may start gp; pairs with store_release in launch */
	if (load_acquire(&gp->status) == G_DEAD || candidate_of(r, gp))
		return;
	/* acquire: gp's context, if gp is at rest; pairs with after_run */
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

/* Leaves out the parts of an M's stacks that are not in use, or never hold anything of
 * the program's. The M may be about to end. */
static TOOL_RACY void leave_out_m(struct reach *r, const struct m *mp)
{
	const struct thread_view *v = view_of(r, load_relaxed(&mp->tid));
	const char *lo = mp->thread_stack.lo, *hi = mp->thread_stack.hi;
	const char *signals = mp->signal_stack.at;
	uintptr_t sp = v ? v->sp : 0;

	if (mp == m_self())
		sp = r->self_regs.reg[UNWIND_SP];
	if (load_relaxed(&mp->tid) == 0)
		return;
	/* Awake in the handler, the M has its goroutine's registers on this stack. */
	if (signals && (load_acquire(&mp->stopped_at) || !load_relaxed(&mp->curg) || mp == m_self() ||
	                (v && v->held) || (v && v->asleep && !within(sp, signals, signals +
	                                                             mp->signal_stack.bytes))))
		spans_add(&r->but, signals, signals + mp->signal_stack.bytes);
	if (!load_relaxed(&mp->is_foreign) && !within(sp, lo, hi) && load_relaxed(&mp->curg))
		sp = (uintptr_t)mp->sched_context.sp;
	if (load_relaxed(&mp->is_foreign) && mp != m_self() && !(v && v->held))
		return;		/* asleep: old frames may have copies of its registers */
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

	leave_out(lo, hi, r);
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
		if (!d->in_frame)
			spans_add(&r->but, d, d + 1);
	if (gp->wait_reason == WAIT_SELECT && (w = select_waiters(gp, &n)) != gp->waiters)
		spans_add(&r->but, w, w + n);
}

static void leave_out_chunks(struct reach *r, const struct chunks *c)
{
	for (const struct chunk *k = c->first; k; k = k->next)
		spans_add(&r->but, k, (const char *)k + CHUNK_MAP_BYTES);
}

/* Made anew for each look: threads may have moved. */
static void leave_out_all(struct reach *r)
{
	spans_free(&r->but);
	spans_add(&r->but, r, r + 1);
	leave_out_chunks(r, &r->objects.chunks);
	leave_out_chunks(r, &r->candidates.chunks);
	leave_out_chunks(r, &r->waits);
	spans_add(&r->but, r->memory.buf, (char *)r->memory.buf + MEMORY_BUF_BYTES);
	stack_each_region(leave_out_stacks, r);
	mem_each(leave_out, r);
	for (const struct table_entry *e = r->objects.first; e; e = e->after) {
		const struct object *o = table_data(e);

		spans_add(&r->but, (void *)o->addr, (char *)o->addr + o->bytes);
	}
	for (const struct table_entry *e = r->candidates.first; e; e = e->after)
		leave_out_candidate(r, ((const struct candidate *)table_data(e))->gp);
	for (const struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link)
		leave_out_m(r, mp);
	spans_add_self(&r->but);
	spans_sort(&r->but);
}

/* False: some memory was not scanned. */
static bool look(struct reach *r)
{
	bool everywhere;

	leave_out_all(r);
	visit_threads(r);
	stack_each(visit_g, r);
	visit_todo(r);
	everywhere = memory_scan_all(&r->memory, &r->but, visit, r);
	visit_todo(r);
	return everywhere;
}

/* False: nothing is known, so no goroutine is to be reported. */
static __attribute__((noinline)) bool find(struct reach *r)
{
	bool looked = false;

	stack_each(add_one, r);
	for (struct table_entry *e = r->candidates.first; e; e = e->after)
		add_waits(r, table_data(e));
	if (r->lowest > r->highest)
		r->lowest = r->highest = 0;
	for (int i = 0; i < LOOKS_MAX; i++) {
		bool held = threads_hold(r->thread, &r->threads) && look(r);
		bool still = held && threads_still(r->thread, r->threads);
		threads_let_go();
		if (still)
			return true;
		looked |= held;
	}
	return looked;
}

/* The frames inside this one have pointers to all objects, and are not scanned. This
 * frame is scanned, so it must have none. */
__attribute__((noinline)) struct reach *reach_find(void)
{
	struct reach *r = os_map(sizeof *r);
	struct m *mp = m_self();
	int saved = *mp->errno_at;
	bool found = false;

	check(load_relaxed(&sched.stopping));
	if (!r)
		return NULL;
	r->lowest = UINTPTR_MAX;
	r->objects.extra = sizeof(struct object);
	r->candidates.extra = sizeof(struct candidate);
	r->self = mp->is_foreign ? NULL : mp->curg;
	unwind_regs_here(&r->self_regs);
	if (memory_open(&r->memory)) {
		found = find(r);
		memory_close(&r->memory);
	}
	if (!found || r->failed || r->but.list.failed) {
		reach_free(r);
		r = NULL;
	}
	*mp->errno_at = saved;
	return r;
}

/* A plain thread may have woken it meanwhile: then it is not lost. */
static TOOL_RACY bool is_lost(const struct candidate *c)
{
	return !c->todo.marked && peek(&c->gp->status) == G_WAITING;
}

bool reach_is_lost(const struct reach *r, const struct g *gp)
{
	const struct candidate *c = candidate_of(r, gp);

	return c && is_lost(c);
}

size_t reach_lost(const struct reach *r)
{
	size_t n = 0;

	for (const struct table_entry *e = r->candidates.first; e; e = e->after)
		n += is_lost(table_data(e));
	return n;
}

void reach_free(struct reach *r)
{
	if (!r)
		return;
	spans_free(&r->but);
	table_free(&r->objects);
	table_free(&r->candidates);
	chunks_free(&r->waits);
	os_unmap(r, sizeof *r);
}
