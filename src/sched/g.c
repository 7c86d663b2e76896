/*
 * g.c - goroutines: made, reused, ended.
 *
 * A dead goroutine keeps its stack and is the quickest to make anew: its page
 * is there and hot. Dead ones of the default size go to the P's own few, last
 * in first out; above P_GFREE_MAX the older half goes to the shared pool of the
 * size class, and from there, when they have not been needed for a while, their
 * memory goes back to the system (stack_give_back).
 *
 * What has not been needed is measured by the pool's low-water mark since the
 * last look: that many lay there all the time. They are given back at leisure (scavenge.c).
 *
 * A goroutine's life: goro_start -> g_get -> g_launch -> (run queue) ->
 * context_entry -> g_start -> fn, and back -> sched_exit -> g_ended.
 */
#include <errno.h>
#include <goro.h>
#include <string.h>

#include "cxx.h"
#include "g.h"
#include "latency.h"
#include "leak.h"
#include "local.h"
#include "mem.h"
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

/* Arrays, since the dead are in no cache: to find one must not take a look at another. */
struct gchunk {
	struct gchunk *next;
	size_t n;
	struct g *g[G_BATCH * 8 - 2];
};

struct gpool {
	struct lock lock;
	struct gchunk *chunk;	/* only the first may have room; none is empty */
	struct gchunk *spare;
	struct g *list;		/* by link: those for whom there was no chunk */
	size_t n;		/* may be read without the lock */
	size_t low;		/* least n since they were last looked at */
	size_t cold;		/* are to be given back; may be read without the lock */
};
static struct gpool pools[STACK_CLASSES];

static bool chunk_has_room(const struct gchunk *c)
{
	return c && c->n < sizeof c->g / sizeof *c->g;
}

/* Lock held. Sees to it that the first chunk has room; false: no memory. */
static bool pool_make_room(struct gpool *pool)
{
	struct gchunk *c = pool->spare;

	if (chunk_has_room(pool->chunk))
		return true;
	if (c)
		pool->spare = c->next;
	else if (!(c = mem_alloc(sizeof *c)))
		return false;
	c->next = pool->chunk;
	pool->chunk = c;
	return true;
}

static void pool_put(struct gpool *pool, struct g **gs, size_t n)
{
	lock_acquire(&pool->lock);
	for (size_t i = 0; i < n; i++) {
		if (likely(pool_make_room(pool))) {
			pool->chunk->g[pool->chunk->n++] = gs[i];
		} else {
			gs[i]->link = pool->list;
			pool->list = gs[i];
		}
	}
	store_relaxed(&pool->n, pool->n + n);
	lock_release(&pool->lock);
}

/* Lock held; it is not empty. The newest. */
static struct g *pool_pop(struct gpool *pool)
{
	struct gchunk *c = pool->chunk;
	struct g *gp;

	if (unlikely(pool->list)) {
		gp = pool->list;
		pool->list = gp->link;
		return gp;
	}
	gp = c->g[--c->n];
	if (c->n == 0) {
		pool->chunk = c->next;
		c->next = pool->spare;
		pool->spare = c;
	}
	return gp;
}

/* Up to n of them, the newest first; how many. */
static size_t pool_take(struct gpool *pool, struct g **gs, size_t n)
{
	size_t got = 0;

	if (n == 0 || load_relaxed(&pool->n) == 0)
		return 0;
	lock_acquire(&pool->lock);
	for (; got < n && got < pool->n; got++)
		gs[got] = pool_pop(pool);
	store_relaxed(&pool->n, pool->n - got);
	if (pool->n < pool->low)
		pool->low = pool->n;
	if (pool->n < pool->cold)
		store_relaxed(&pool->cold, pool->n);
	lock_release(&pool->lock);
	return got;
}

/* Fresh stacks; how many. */
static size_t take_fresh(struct p *pp, int cls, struct g **gs)
{
	size_t n = 1, got;

	/* Each is a page that is touched. */
	if (pp)
		n = pp->gfresh_n = pp->gfresh_n == 0 ? G_FRESH_FIRST :
		                   pp->gfresh_n < G_BATCH ? 2 * pp->gfresh_n : G_BATCH;
	got = stack_take(cls, gs, n);
	if (unlikely(stack_wants_more()))
		m_spawn();
	return got;
}

/* One to use now; the rest of the batch to the P, whose list is empty. */
static __attribute__((noinline)) struct g *g_get_slow(struct m *mp, int cls)
{
	struct p *pp = cls == stack_default_class ? mp->p : NULL;
	struct g *gs[G_BATCH];
	size_t got = pool_take(&pools[cls], gs, pp ? G_BATCH : 1);

	if (got > 0) {
		/* Together; see wake_sleepers in timer.c. */
		for (size_t i = 0; i < got; i++)
			__builtin_prefetch(gs[i], 1);
	} else {
		got = take_fresh(pp, cls, gs);
	}
	for (size_t i = got; i-- > 1;)
		pp->gfree[pp->gfree_n++] = gs[i];
	return got > 0 ? gs[0] : NULL;
}

static inline struct g *get(struct m *mp, int cls)
{
	struct p *pp = mp->p;

	if (likely(pp && cls == stack_default_class && pp->gfree_n > 0))
		return pp->gfree[--pp->gfree_n];
	return g_get_slow(mp, cls);
}

struct g *g_get(struct m *mp, int cls)
{
	return get(mp, cls);
}

/* The newer half stays. */
static __attribute__((noinline)) void gfree_overflow(struct p *pp)
{
	pool_put(&pools[stack_default_class], pp->gfree, G_BATCH);
	memmove(pp->gfree, pp->gfree + G_BATCH, (P_GFREE_MAX - G_BATCH) * sizeof *pp->gfree);
	pp->gfree_n = P_GFREE_MAX - G_BATCH;
}

static __attribute__((noinline)) void put_slow(struct g *gp)
{
	pool_put(&pools[gp->stack_class], &gp, 1);
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
	if (unlikely(pp->gfree_n == P_GFREE_MAX))
		gfree_overflow(pp);
	pp->gfree[pp->gfree_n++] = gp;
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
		size_t cold = load_relaxed(&pool->cold), got;
		size_t n = given ? 0 : cold < STACK_RELEASE_BATCH ? cold : STACK_RELEASE_BATCH;

		got = pool_take(pool, gs, n);
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
	pp->id_batch = pp->id_batch == 0 ? ID_BATCH :
	               pp->id_batch < ID_BATCH_MAX ? 2 * pp->id_batch : ID_BATCH_MAX;
	pp->id_next = fetch_add_relaxed(&sched.id_next, pp->id_batch) + 1;
	pp->id_end = pp->id_next + pp->id_batch;
	return pp->id_next++;
}

static inline uint64_t id_take(struct p *pp)
{
	return likely(pp && pp->id_next != pp->id_end) ? pp->id_next++ : id_take_slow(pp);
}

static inline void prepare(struct g *gp, uint64_t id, uint64_t parent_id, void *caller)
{
	gp->id = id;
	gp->parent_id = parent_id;
	gp->created_at = caller;
	context_make(&gp->context, gp->stack_hi);
	tool_fiber_make(&gp->tool, gp->stack_lo, (size_t)(gp->stack_hi - gp->stack_lo));
}

/* fn, arg and what differs from the default are set; gp is nobody else's yet. in_order: it
 * begins after all that wait here, and does not go before those that are started later. */
static inline __attribute__((always_inline)) void
launch(struct m *mp, struct g *gp, void *caller, bool in_order)
{
	struct p *pp = mp->p;

	/* plain threads have no id */
	prepare(gp, id_take(pp), mp->curg ? mp->curg->id : 0, caller);
	if (likely(pp)) {
		latency_ready(pp, gp);
		count_up(&pp->count.created, 1);
		if (in_order)
			runq_put_woken(pp, gp);
		else
			runq_put_started(pp, gp);
		wake();
	} else {
		fetch_add_relaxed(&sched.foreign_created, 1);
		lock_acquire(&sched.lock);
		/* release: as in latency_ready */
		store_release(&gp->status, trace_create_outside(mp, gp));
		globq_put_fresh(gp);
		lock_release(&sched.lock);
		wake();
		sysmon_somebody_waits();
	}
}

void g_of_nil(void)
{
	fatal("go of nil func value");
}

void g_launch(struct m *mp, struct g *gp, void *caller)
{
	launch(mp, gp, caller, false);
}

/*
 * Behind the go macro. What a start mostly is goes without a call, and with all calls at
 * the ends of others the arguments need not be put aside either. Whatever is not
 * as usual is left to those below, before anything is done or after all but that.
 */
#define ARGS      uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f
#define PASS_ARGS a, b, c, d, e, f

static inline __attribute__((always_inline)) void set_call(struct g *gp, void (*fn)(void), ARGS)
{
	gp->fn = fn;
	gp->arg[0] = a;
	gp->arg[1] = b;
	gp->arg[2] = c;
	gp->arg[3] = d;
	gp->arg[4] = e;
	gp->arg[5] = f;
}

static __attribute__((noinline)) int start_slow(struct m *mp, void *caller, void (*fn)(void), ARGS)
{
	struct g *gp;

	if (unlikely(!fn))
		g_of_nil();
	gp = get(mp, stack_default_class);
	if (gp) {
		set_call(gp, fn, PASS_ARGS);
		launch(mp, gp, caller, false);
	}
	rt_exit(mp);
	return gp ? 0 : -ENOMEM;
}

static __attribute__((noinline)) int start_enter_slow(struct m *mp, void *caller, void (*fn)(void), ARGS)
{
	return start_slow(rt_enter_slow(mp), caller, fn, PASS_ARGS);
}

/* gp is whole; the P's queue is full. */
static __attribute__((noinline)) int start_overflow(struct m *mp, struct g *gp)
{
	runq_put_started_slow(mp->p, gp);
	wake();
	rt_exit(mp);
	return 0;
}

static __attribute__((noinline)) int start_wake(struct m *mp)
{
	wake_slow();
	rt_exit(mp);
	return 0;
}

static __attribute__((noinline)) int start_exit_slow(struct m *mp)
{
	rt_exit_slow(mp);
	return 0;
}

int goro_start(void (*fn)(void), ARGS)
{
	void *caller = __builtin_return_address(0);
	struct m *mp = m_self();
	struct p *pp;
	struct g *gp;

	if (unlikely(!rt_try_enter(mp)))
		return start_enter_slow(mp, caller, fn, PASS_ARGS);
	pp = mp->p;
	if (unlikely(!pp || !fn || pp->gfree_n == 0 || pp->id_next == pp->id_end || pp->latency_in == 1))
		return start_slow(mp, caller, fn, PASS_ARGS);
	gp = pp->gfree[--pp->gfree_n];
	set_call(gp, fn, PASS_ARGS);
	prepare(gp, pp->id_next++, mp->curg->id, caller);
	latency_ready(pp, gp);
	count_up(&pp->count.created, 1);
	if (unlikely(!deque_push(&pp->started, gp)))
		return start_overflow(mp, gp);
	if (unlikely(wake_wanted()))
		return start_wake(mp);
	if (unlikely(!rt_try_exit(mp)))
		return start_exit_slow(mp);
	return 0;
}

/* Of go_entry (go_entry.S): the words are what the compiler has passed for call->fn. */
void go_called(ARGS, struct goro_call *call, void *caller);
__attribute__((used)) void go_called(ARGS, struct goro_call *call, void *caller)
{
	call->result = start_slow(rt_enter(), caller, call->fn, PASS_ARGS);
}

void go_entry(void);
void (*const goro_go_entry)(void) = go_entry;

#undef ARGS
#undef PASS_ARGS

static bool launch_call(struct m *mp, int stack_cls, void (*fn)(void *), void *arg, void *caller,
                        bool internal)
{
	struct g *gp = g_get(mp, stack_cls);

	if (!gp)
		return false;
	gp->fn = (void (*)(void))fn;
	gp->arg[0] = (uintptr_t)arg;
	if (internal) {
		gp->is_internal = gp->untidy = true;
		fetch_add_relaxed(&sched.internal, 1);
	}
	launch(mp, gp, caller, true);
	return true;
}

bool g_launch_call(struct m *mp, void (*fn)(void *), void *arg, void *caller)
{
	return launch_call(mp, stack_default_class, fn, arg, caller, false);
}

bool g_launch_internal(struct m *mp, void (*fn)(void *), void *arg)
{
	return launch_call(mp, stack_class(INTERNAL_STACK_BYTES), fn, arg, NULL, true);
}

void g_ended(struct m *mp, struct g *gp)
{
	g_set_dead(gp);
	put(mp, gp);
}

void g_forget(struct g *gp)
{
	gp->name[0] = '\0';
	store_relaxed(&gp->preempt_off, 0);
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
	cxx_set(mp, (struct cxx_state){ 0 });	/* it may have left a catch block by goexit */
	g_forget(gp);
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

/* All there is to do at its end but to leave its stack, for sched_exit to do. */
static inline __attribute__((always_inline)) struct m *finish(struct g *gp)
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
	return mp;
}

_Noreturn void g_end(struct g *gp)
{
	sched_exit(finish(gp));
}

typedef void (*fn6)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

/* The first C function on a goroutine's stack; called by context_entry, which goes on to
 * sched_exit with what it returns. A function of fewer parameters finds them in the first of
 * the six registers. */
__attribute__((used)) struct m *g_start(struct m *mp)
{
	struct g *gp = mp->curg;

	CXX_PERSONALITY(cxx_no_way_out);
	/* A frame pointer of its own, so that chains of those end here (context_make). */
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
	sched_arrive(mp);
	rt_exit(mp);
	((fn6)gp->fn)(gp->arg[0], gp->arg[1], gp->arg[2], gp->arg[3], gp->arg[4], gp->arg[5]);
	if (unlikely(gp->defers != NULL))
		panic_run_defers(gp, NULL);
	return finish(gp);
}
