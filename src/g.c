/*
 * g.c - goroutines: made, reused, ended.
 *
 * A dead goroutine keeps its stack and is the quickest to make anew: its page
 * is there and hot. Dead ones of the default size go to the P's own list, last
 * in first out; above P_GFREE_MAX the older half goes to the shared pool of the
 * size class, and from there, when they have not been needed for a while, their
 * memory goes back to the system (stack_give_back).
 *
 * What has not been needed is measured by the pool's low-water mark since the
 * last look: that many lay there all the time. They are given back at leisure (scavenge.c).
 *
 * A goroutine's life: goro_start -> g_get -> g_launch -> (run queue) ->
 * context_entry -> g_start -> fn -> g_end -> g_put.
 */
#include <errno.h>
#include <goro.h>

#include "g.h"
#include "latency.h"
#include "leak.h"
#include "local.h"
#include "os.h"
#include "panic.h"
#include "runq.h"
#include "runtime.h"
#include "stack.h"
#include "trace.h"

/* How many move between the P's list and the pool at a time. */
#define G_BATCH (P_GFREE_MAX / 2)
_Static_assert(G_BATCH <= STACK_TAKE_MAX, "g: a batch is taken at once");
/* .. and of new ones at first; doubled each time. */
#define G_FRESH_FIRST 4

struct gpool {
	struct lock lock;
	struct g *head;
	size_t n;		/* may be read without the lock */
	size_t low;		/* least n since they were last looked at */
	size_t cold;		/* are to be given back; may be read without the lock */
};
static struct gpool pools[STACK_CLASSES];

static void pool_put_list(struct gpool *pool, struct g *head, struct g *tail, size_t n)
{
	lock_acquire(&pool->lock);
	tail->link = pool->head;
	pool->head = head;
	store_relaxed(&pool->n, pool->n + n);
	lock_release(&pool->lock);
}

/* Up to n of them as a list. */
static struct g *pool_take(struct gpool *pool, size_t n, size_t *got)
{
	struct g *head, *last = NULL;

	*got = 0;
	if (n == 0 || load_relaxed(&pool->n) == 0)
		return NULL;
	lock_acquire(&pool->lock);
	head = pool->head;
	for (struct g *gp = head; gp && *got < n; gp = gp->link, ++*got)
		last = gp;
	if (last) {
		pool->head = last->link;
		last->link = NULL;
	}
	store_relaxed(&pool->n, pool->n - *got);
	if (pool->n < pool->low)
		pool->low = pool->n;
	if (pool->n < pool->cold)
		store_relaxed(&pool->cold, pool->n);
	lock_release(&pool->lock);
	return head;
}

/* Fresh stacks, as a list. */
static struct g *make_list(int cls, size_t n, size_t *got)
{
	struct g *gs[G_BATCH], *head = NULL;

	*got = stack_take(cls, gs, n);
	if (unlikely(stack_wants_more()))
		m_spawn();
	for (size_t i = *got; i-- > 0;) {
		gs[i]->link = head;
		head = gs[i];
	}
	return head;
}

/* One to use now; the rest of the batch to the P. */
static __attribute__((noinline)) struct g *g_get_slow(struct m *mp, int cls)
{
	struct p *pp = cls == stack_default_class ? mp->p : NULL;
	size_t n = pp ? G_BATCH : 1, got;
	struct g *gp = pool_take(&pools[cls], n, &got);

	if (!gp) {
		/* Each is a page that is touched. */
		if (pp && pp->gfresh_n < G_BATCH)
			n = pp->gfresh_n = pp->gfresh_n ? 2 * pp->gfresh_n : G_FRESH_FIRST;
		gp = make_list(cls, n, &got);
	}
	if (gp && pp) {
		pp->gfree = gp->link;
		pp->gfree_n = (uint32_t)got - 1;
	}
	return gp;
}

static inline struct g *get(struct m *mp, int cls)
{
	struct p *pp = mp->p;

	if (likely(pp && cls == stack_default_class && pp->gfree)) {
		struct g *gp = pp->gfree;

		pp->gfree = gp->link;
		pp->gfree_n--;
		return gp;
	}
	return g_get_slow(mp, cls);
}

struct g *g_get(struct m *mp, int cls)
{
	return get(mp, cls);
}

/* The newer half stays. */
static __attribute__((noinline)) void gfree_overflow(struct p *pp)
{
	struct g *keep = pp->gfree, *head, *tail;
	size_t n = 0;

	for (uint32_t i = 1; i < G_BATCH; i++)
		keep = keep->link;
	head = tail = keep->link;
	keep->link = NULL;
	for (n = 1; tail->link; n++)
		tail = tail->link;
	pp->gfree_n = G_BATCH;
	pool_put_list(&pools[head->stack_class], head, tail, n);
}

static __attribute__((noinline)) void put_slow(struct g *gp)
{
	pool_put_list(&pools[gp->stack_class], gp, gp, 1);
}

static inline void put(struct m *mp, struct g *gp)
{
	struct p *pp = mp->p;

	check(gp->status == G_DEAD);
	tool_fiber_end(&gp->tool);
	if (unlikely(!pp || gp->stack_class != stack_default_class)) {
		put_slow(gp);
		return;
	}
	gp->link = pp->gfree;
	pp->gfree = gp;
	if (unlikely(++pp->gfree_n > P_GFREE_MAX))
		gfree_overflow(pp);
}

void g_put(struct m *mp, struct g *gp)
{
	put(mp, gp);
}

/* ------------------------------------------------------- giving stacks back */

void g_pool_age(void)
{
	for (int cls = 0; cls < STACK_CLASSES; cls++) {
		struct gpool *pool = &pools[cls];

		lock_acquire(&pool->lock);
		store_seqcst(&pool->cold, pool->low);	/* see the top of scavenge.c */
		pool->low = pool->n;
		lock_release(&pool->lock);
	}
}

size_t g_pool_give_back(size_t *left)
{
	struct g *gs[STACK_RELEASE_BATCH];
	size_t given = 0;

	*left = 0;
	for (int cls = 0; cls < STACK_CLASSES; cls++) {
		struct gpool *pool = &pools[cls];
		size_t cold = load_relaxed(&pool->cold), got = 0;
		size_t n = given ? 0 : cold < STACK_RELEASE_BATCH ? cold : STACK_RELEASE_BATCH;
		struct g *gp = pool_take(pool, n, &got);

		for (size_t i = 0; i < got; i++, gp = gp->link)
			gs[i] = gp;
		if (got > 0)
			stack_give_back(gs, got);
		lock_acquire(&pool->lock);
		store_relaxed(&pool->cold, pool->cold > got ? pool->cold - got : 0);
		*left += pool->cold;
		lock_release(&pool->lock);
		given += got;
	}
	return given;
}

size_t g_pool_cached(void)
{
	size_t n = 0;

	for (int cls = 0; cls < STACK_CLASSES; cls++)
		n += load_relaxed(&pools[cls].n);
	return n;
}

size_t g_pool_cold(void)
{
	size_t n = 0;

	/* seqcst: pairs with scavenge.c's state */
	for (int cls = 0; cls < STACK_CLASSES; cls++)
		n += load_seqcst(&pools[cls].cold);
	return n;
}

size_t g_pool_cached_bytes(void)
{
	size_t n = 0;

	for (int cls = 0; cls < STACK_CLASSES; cls++)
		n += load_relaxed(&pools[cls].n) * stack_class_bytes(cls);
	return n;
}

void g_init(void)
{
	for (int cls = 0; cls < STACK_CLASSES; cls++)
		pools[cls].lock.rank = RANK_GPOOL;
}

/* ------------------------------------------------------------ start and end */

static __attribute__((noinline)) uint64_t id_take_slow(struct p *pp)
{
	if (!pp)
		return fetch_add_relaxed(&sched.id_next, 1) + 1;
	pp->id_next = fetch_add_relaxed(&sched.id_next, ID_BATCH) + 1;
	pp->id_end = pp->id_next + ID_BATCH;
	return pp->id_next++;
}

static inline uint64_t id_take(struct p *pp)
{
	return likely(pp && pp->id_next != pp->id_end) ? pp->id_next++ : id_take_slow(pp);
}

/* fn, arg and what differs from the default are set; gp is nobody else's yet. */
static inline __attribute__((always_inline)) void launch(struct m *mp, struct g *gp, void *caller)
{
	struct p *pp = mp->p;

	gp->id = id_take(pp);
	gp->parent_id = mp->curg ? mp->curg->id : 0;	/* plain threads have none */
	gp->created_at = caller;
	context_make(&gp->context, gp->stack_hi);
	tool_fiber_make(&gp->tool, gp->stack_lo, (size_t)(gp->stack_hi - gp->stack_lo));
	if (likely(pp)) {
		latency_ready(pp, gp);
		count_up(&pp->count.created, 1);
		runq_put_started(pp, gp);
	} else {
		fetch_add_relaxed(&sched.foreign_created, 1);
		lock_acquire(&sched.lock);
		/* release: as in latency_ready */
		store_release(&gp->status, trace_create_outside(mp, gp));
		globq_put_fresh(gp);
		lock_release(&sched.lock);
	}
	wake();
	if (unlikely(!pp))
		sysmon_somebody_waits();
}

void g_launch(struct m *mp, struct g *gp, void *caller)
{
	launch(mp, gp, caller);
}

/* Behind the go macro. Here, so that all of it is one function. */
int goro_start(void (*fn)(void), uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d,
               uintptr_t e, uintptr_t f)
{
	struct m *mp = rt_enter();
	struct g *gp;

	if (unlikely(!fn))
		panic_misuse("go of nil func value");
	gp = get(mp, stack_default_class);
	if (unlikely(!gp)) {
		rt_exit(mp);
		return -ENOMEM;
	}
	gp->fn = fn;
	gp->arg[0] = a;
	gp->arg[1] = b;
	gp->arg[2] = c;
	gp->arg[3] = d;
	gp->arg[4] = e;
	gp->arg[5] = f;
	launch(mp, gp, __builtin_return_address(0));
	rt_exit(mp);
	return 0;
}

static bool launch_call(struct m *mp, void (*fn)(void *), void *arg, void *caller, bool internal)
{
	struct g *gp = g_get(mp, stack_default_class);

	if (!gp)
		return false;
	gp->fn = (void (*)(void))fn;
	gp->arg[0] = (uintptr_t)arg;
	if (internal) {
		gp->is_internal = gp->untidy = true;
		fetch_add_relaxed(&sched.internal, 1);
	}
	g_launch(mp, gp, caller);
	return true;
}

bool g_launch_call(struct m *mp, void (*fn)(void *), void *arg, void *caller)
{
	return launch_call(mp, fn, arg, caller, false);
}

bool g_launch_internal(struct m *mp, void (*fn)(void *), void *arg)
{
	return launch_call(mp, fn, arg, NULL, true);
}

static void after_end(struct m *mp, struct g *gp)
{
	store_relaxed(&gp->status, G_DEAD);
	gp->stack_hi = (char *)gp;
	put(mp, gp);
}

/* What few goroutines have: most of it in user code. The mark goes last, back in the
 * runtime, where nobody sets it meanwhile. */
static __attribute__((noinline)) struct m *tidy_up(struct m *mp, struct g *gp)
{
	rt_exit(mp);
	if (gp->locals)
		g_locals_end(gp);
	if (gp->goexiting && gp->is_main)
		fetch_add_relaxed(&sched.main_exited, 1);
	panic_g_end(gp);
	trace_regions_end(gp);
	mp = rt_enter();
	gp->name[0] = '\0';
	gp->is_main = false;
	if (gp->is_internal)
		fetch_add_relaxed(&sched.internal, (uint32_t)-1);
	gp->is_internal = false;
	store_relaxed(&gp->untidy, false);
	if (gp->watched)
		leak_ended(mp, gp);
	return mp;
}

/* It ends locked to its thread: the thread ends with it. */
static __attribute__((noinline)) void end_locked(struct m *mp, struct g *gp)
{
	gp->locked_m = NULL;
	gp->lock_depth = 0;
	mp->locked_g = NULL;
	mp->ending = true;
}

_Noreturn void g_end(struct g *gp)
{
	struct m *mp = rt_enter();

	if (unlikely(load_relaxed(&gp->untidy)))
		mp = tidy_up(mp, gp);
	if (unlikely(os_guard_kind != OS_GUARD_MARKER && stack_overflowed(gp)))
		fatal("stack overflow");
	count_up(&mp->p->count.ended, 1);
	if (trace_on())
		trace_go_end(mp);
	if (unlikely(gp->locked_m != NULL))
		end_locked(mp, gp);
	sched_exit(mp, after_end);
}

typedef void (*fn6)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

/* The first C function on a goroutine's stack; called by context_entry. A
 * function of fewer parameters finds them in the first of the six registers. */
_Noreturn __attribute__((used)) void g_start(struct m *mp)
{
	struct g *gp = mp->curg;

	sched_arrive(mp);
	rt_exit(mp);
	((fn6)gp->fn)(gp->arg[0], gp->arg[1], gp->arg[2], gp->arg[3], gp->arg[4], gp->arg[5]);
	if (unlikely(gp->defers != NULL))
		panic_run_defers(gp, NULL);
	g_end(gp);
}
