/*
 * g.c - goroutines: made, reused, ended.
 *
 * A dead goroutine keeps its stack and is the quickest to make anew: its page is there
 * and hot. Dead ones of the default size go to the list of the P, last in first out.
 * Above P_GFREE_MAX the older half goes to the shared pool of the size class. When they
 * have not been needed there for a while, their memory goes back to the system
 * (stack_give_back, scavenge.c). How many have not been needed says the pool's low-water
 * mark since the last look.
 *
 * A goroutine's life: goro_start -> g_get -> g_launch -> (run queue) -> context_entry ->
 * g_start -> fn, and back -> sched_exit -> g_ended.
 */
#include <errno.h>
#include <goro.h>
#include <string.h>

#include "sched/cxx.h"
#include "base/probe.h"
#include "sched/g.h"
#include "sched/latency.h"
#include "platform/os.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "stack/stack.h"
#include "sched/trace_hook.h"

/* Ids that a P takes from the shared counter: few at first, so that a small program's ids
 * are small, then twice as many each time, since the counter's line is on another CPU. */
#define ID_BATCH     16
#define ID_BATCH_MAX 256

/* Stacks given back in one batch. After each the scavenger looks whether anything
 * runs. */
#define STACK_RELEASE_BATCH 64

/* The stack of the runtime's own goroutines, whatever GORO_STACK says. */
#define INTERNAL_STACK_BYTES STACK_DEFAULT_BYTES

/* How many goroutines move between the P's list and the pool at a time. */
#define G_BATCH (P_GFREE_MAX / 2)
_Static_assert(G_BATCH <= STACK_TAKE_MAX, "g: a batch is taken at once");
/* Fresh stacks taken at a time: twice as many each time, up to G_BATCH. */
#define G_FRESH_FIRST 4

#define POOL_FIRST_ROOM 512

/* An array: the dead are in no cache, and a link in each would cost a miss. */
struct gpool {
	struct lock lock;
	struct g **g;		/* oldest first */
	size_t room;
	size_t n;		/* may be read without the lock */
	size_t low;		/* the least n since g_pool_age last looked */
	size_t cold;		/* to be given back; may be read without the lock */
};
static struct gpool pools[STACK_CLASSES];

/* Lock held. Makes room for n more; false: no memory. */
static bool pool_make_room(struct gpool *pool, size_t n)
{
	size_t room = pool->room ? 2 * pool->room : POOL_FIRST_ROOM;
	struct g **g;

	check(lock_is_held(&pool->lock) && n <= POOL_FIRST_ROOM);
	if (pool->n + n <= pool->room)
		return true;
	g = os_map(room * sizeof *g);
	if (!g)
		return false;
	if (pool->g) {
		memcpy(g, pool->g, pool->n * sizeof *g);
		os_unmap(pool->g, pool->room * sizeof *g);
	}
	pool->g = g;
	pool->room = room;
	return true;
}

/* Without memory for the array their stacks are given back at once. */
static void pool_put(struct gpool *pool, struct g **gs, size_t n)
{
	bool fits;

	lock_acquire(&pool->lock);
	fits = pool_make_room(pool, n);
	for (size_t i = 0; fits && i < n; i++) {
		check(gs[i]->status == G_DEAD && !gs[i]->locked_m);
		pool->g[pool->n + i] = gs[i];
	}
	if (fits)
		store_relaxed(&pool->n, pool->n + n);
	check(pool->low <= pool->n && pool->cold <= pool->n);
	lock_release(&pool->lock);
	if (!fits)
		stack_give_back(gs, n);
}

/* Up to n of them, the newest first; how many. */
static size_t pool_take(struct gpool *pool, struct g **gs, size_t n)
{
	size_t got = 0;

	if (n == 0 || load_relaxed(&pool->n) == 0)
		return 0;
	lock_acquire(&pool->lock);
	for (; got < n && got < pool->n; got++)
		gs[got] = pool->g[pool->n - 1 - got];
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
	for (size_t i = 0; i < got; i++)
		gs[i]->stack_class = (uint8_t)cls;
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

	check(!pp || pp->gfree_n == 0);
	if (got > 0) {
		/* together, so that they wait for their translations together */
		for (size_t i = 0; i < got; i++)
			__builtin_prefetch(gs[i], 1);
	} else {
		got = take_fresh(pp, cls, gs);
	}
	for (size_t i = got; i-- > 1;)
		pp->gfree[pp->gfree_n++] = gs[i];
	return got > 0 ? gs[0] : NULL;
}

struct g *g_get(struct m *mp, int cls)
{
	struct p *pp = mp->p;

	if (likely(pp && cls == stack_default_class && pp->gfree_n > 0))
		return pp->gfree[--pp->gfree_n];
	return g_get_slow(mp, cls);
}

/* The newer half stays. */
static __attribute__((noinline)) void gfree_overflow(struct p *pp)
{
	check(pp->gfree_n == P_GFREE_MAX);
	pool_put(&pools[stack_default_class], pp->gfree, G_BATCH);
	memmove(pp->gfree, pp->gfree + G_BATCH, (P_GFREE_MAX - G_BATCH) * sizeof *pp->gfree);
	pp->gfree_n = P_GFREE_MAX - G_BATCH;
}

static __attribute__((noinline)) void put_slow(struct g *gp)
{
	pool_put(&pools[gp->stack_class], &gp, 1);
}

void g_ended(struct m *mp, struct g *gp)
{
	struct p *pp = mp->p;

	g_set_dead(gp);
	tool_fiber_end(&gp->tool);
	if (unlikely(!pp || gp->stack_class != stack_default_class)) {
		put_slow(gp);
		return;
	}
	if (unlikely(pp->gfree_n == P_GFREE_MAX))
		gfree_overflow(pp);
	pp->gfree[pp->gfree_n++] = gp;
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
	check(pp->ids.next == pp->ids.end);
	pp->ids.batch = pp->ids.batch == 0 ? ID_BATCH :
	               pp->ids.batch < ID_BATCH_MAX ? 2 * pp->ids.batch : ID_BATCH_MAX;
	pp->ids.next = fetch_add_relaxed(&sched.id_next, pp->ids.batch) + 1;
	pp->ids.end = pp->ids.next + pp->ids.batch;
	return pp->ids.next++;
}

static inline uint64_t id_take(struct p *pp)
{
	return likely(pp && pp->ids.next != pp->ids.end) ? pp->ids.next++ : id_take_slow(pp);
}

/* What differs from the default is set, and gp is the caller's alone. in_order: it begins
 * after all that wait here, and not before goroutines that are started later. */
static inline __attribute__((always_inline)) void
launch(struct m *mp, struct g *gp, void *caller, bool in_order)
{
	struct p *pp = mp->p;

	check(gp->status == G_DEAD && !gp->mp && !gp->locked_m);
	gp->id = id_take(pp);
	gp->parent_id = mp->curg ? mp->curg->id : 0;	/* plain threads have no id */
	gp->created_at = caller;
	context_make(&gp->context, gp->stack.hi);
	tool_fiber_make(&gp->tool, gp->stack.lo, (size_t)(gp->stack.hi - gp->stack.lo));
	if (unlikely(!pp)) {
		fetch_add_relaxed(&sched.plain.created, 1);
		g_runnable_outside(mp, gp, true);
		return;
	}
	g_set_runnable(pp, gp);
	count_up(&pp->count.created, 1);
	if (in_order)
		runq_put_in_order(pp, gp);
	else
		runq_put_started(pp, gp);
	wake();
}

void g_of_nil(void)
{
	fatal("go of nil func value");
}

void g_launch(struct m *mp, struct g *gp, void *caller)
{
	launch(mp, gp, caller, false);
}

/* Behind the go macro. */
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

/* mp has tried to enter. */
static __attribute__((noinline)) int start_slow(struct m *mp, void *caller, void (*fn)(void), ARGS)
{
	struct g *gp;

	mp = rt_enter_slow(mp);
	if (unlikely(!fn))
		g_of_nil();
	gp = g_get(mp, stack_default_class);
	if (gp) {
		set_call(gp, fn, PASS_ARGS);
		launch(mp, gp, caller, false);
	}
	rt_exit(mp);
	return gp ? 0 : -ENOMEM;
}

/* What is not as usual is a call at the end of this one: then the arguments need not be
 * put aside for it. */
int goro_start(void (*fn)(void), ARGS)
{
	void *caller = __builtin_return_address(0);
	struct m *mp = m_self();
	struct g *gp;

	if (unlikely(!rt_try_enter(mp) || !fn || !mp->p || mp->p->gfree_n == 0))
		return start_slow(mp, caller, fn, PASS_ARGS);
	gp = mp->p->gfree[--mp->p->gfree_n];
	set_call(gp, fn, PASS_ARGS);
	launch(mp, gp, caller, false);
	rt_exit(mp);
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

void g_forget(struct g *gp)
{
	gp->name[0] = '\0';
	store_relaxed(&gp->preempt_off, 0);
}

struct g_end_hook *g_end_hooks;

void (*g_run_defers)(struct g *gp, struct defer *until);

void g_end_run(struct g *gp)
{
	for (const struct g_end_hook *h = g_end_hooks; h; h = h->next)
		h->fn(gp);
}

void g_end_task(struct g *gp)
{
	for (const struct g_end_hook *h = g_end_hooks; h; h = h->next)
		if (h->each_task)
			h->fn(gp);
}

/* The end of what few goroutines have, mostly in user code. untidy is cleared last, where
 * no other code of this goroutine sets it again. */
static __attribute__((noinline)) struct m *tidy_up(struct m *mp, struct g *gp)
{
	rt_exit(mp);
	if (gp->goexiting && gp->is_main)
		fetch_add_relaxed(&sched.main_exited, 1);
	g_end_run(gp);
	mp = rt_enter();
	cxx_set(mp, (struct cxx_state){ 0 });	/* goexit may have left a catch block */
	g_forget(gp);
	gp->is_main = false;
	if (gp->is_internal)
		fetch_add_relaxed(&sched.internal, (uint32_t)-1);
	gp->is_internal = false;
	store_relaxed(&gp->untidy, false);
	return mp;
}

/* It ends locked to its thread: the thread ends with it. */
static __attribute__((noinline)) void end_locked(struct m *mp, struct g *gp)
{
	check(gp->locked_m == mp && mp->locked_g == gp);
	gp->locked_m = NULL;
	gp->lock_depth = 0;
	mp->locked_g = NULL;
	mp->ending = true;
}

/* All there is to do at its end but to leave its stack, for sched_exit to do. */
static inline __attribute__((always_inline)) struct m *finish(struct g *gp)
{
	struct m *mp = rt_enter();

	check(mp->curg == gp && gp->status == G_RUNNING && !gp->is_foreign);
	if (unlikely(load_relaxed(&gp->untidy)))
		mp = tidy_up(mp, gp);
	if (unlikely(os_guard_kind != OS_GUARD_MARKER && stack_overflowed(gp)))
		fatal("stack overflow");
	count_up(&mp->p->count.ended, 1);
	PROBE1(end, gp->id);
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

/* The first C function on a goroutine's stack, which returns to context_entry. A function
 * of fewer parameters finds them in the first of the six registers. */
__attribute__((used)) struct m *g_start(struct m *mp)
{
	struct g *gp = mp->curg;

	CXX_PERSONALITY(cxx_no_way_out);
	/* A frame pointer of its own, so that chains of those end here (context_make). */
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
	sched_arrive(mp);
	rt_exit(mp);
	PROBE2(start, gp->id, gp->fn);
	((fn6)gp->fn)(gp->arg[0], gp->arg[1], gp->arg[2], gp->arg[3], gp->arg[4], gp->arg[5]);
	if (unlikely(gp->defers != NULL))
		g_run_defers(gp, NULL);
	return finish(gp);
}

/* -------------------------------------------------------------------- count */

size_t g_alive(void)
{
	int64_t live = (int64_t)load_relaxed(&sched.plain.created) - load_relaxed(&sched.internal);

	for (int i = 0, n = load_acquire(&sched.all_p_n); i < n; i++) {
		const struct p *pp = p_at(i);

		live += (int64_t)(load_relaxed(&pp->count.created) - load_relaxed(&pp->count.ended));
	}
	return live > 0 ? (size_t)live : 0;
}
