/*
 * ctx.c - contexts: cancellations, deadlines and values, handed down a tree.
 *
 * Every context is a node that can be cancelled, and the nodes below it with it, except
 * the background and those made by goro_ctx_without_cancel (never). A context costs no
 * goroutine. A deadline costs a timer while it is in the future.
 *
 * Each node has a lock for its own state and for the list of its children. A thread holds
 * at most one of them, and under it at most the lock of the node's channel and those of
 * timers and of the scheduler. So there is no order among nodes to keep.
 *
 * Cancelling a tree
 *
 * walk_step goes through the tree depth first: it marks a node, goes down to its first
 * child, and takes a child off its parent's list when nothing is left below it. Between
 * steps it holds no lock, only references to the nodes from the top down to where it is.
 *
 *	- A child is linked only below a node that is not marked, so that nothing is added
 *	  below a marked one.
 *	- A walk unlinks a child only when all below it is marked. So a walk that finds a
 *	  node without children knows that all below it is marked, whichever walk did it:
 *	  when goro_ctx_cancel returns, everything below is done, also if another walk was
 *	  first and is not finished yet.
 *	- Walks that meet help each other: any walk can make each step.
 *
 * So a timer, which must not take long, can cancel a large tree: after WALK_STEPS steps
 * it leaves the rest to a goroutine that begins anew.
 *
 * Lifetimes
 *
 * A child holds a reference to its parent. The parent's list of children holds none. A
 * walk takes a reference to a child if it has any left (ref_if_alive). A child without
 * references is on its way out and has nothing below it, and the walk passes over it.
 *
 * The runtime cannot free memory. If it drops the last reference to a node, it puts the
 * node on a list, which the next call from user code reaps.
 *
 * A function that is to run when the context is done holds the context's memory only. So
 * when the last user drops its reference, the context is cancelled and the function runs.
 *
 * Rejected: holding the parent's lock while the children are cancelled, as Go does, or
 * one lock a tree: a goroutine that makes a child of the root would wait, with its P,
 * while a hundred thousand others are cancelled.
 */
#include <errno.h>
#include <goro.h>
#include <stdlib.h>

#include "sync/chan.h"
#include "sync/deadline.h"
#include "sync/freed.h"
#include "platform/os.h"

/* Steps after which a walk leaves the runtime, or in a timer the rest to a goroutine. */
#define WALK_STEPS 64

struct goro_ctx {
	/* Constant. */
	goro_ctx *parent;	/* NULL: the background */
	goro_ctx *up;		/* the parent if it can be cancelled, else NULL */
	const void *key;
	void *value;
	int64_t deadline;	/* its own or one from above */
	bool never;		/* is never done */

	uint32_t refs;		/* atomic: of users and children */
	uint32_t holds;		/* atomic, on its memory: of all refs one, of each func */

	/* Under the lock. */
	struct lock lock;
	int err, cause;		/* err is stored after cause, by release; 0: not done */
	goro_chan *done;	/* stored by release; made by goro_ctx_done */
	struct {
		goro_ctx *first, **end;	/* end: where the next one goes */
	} children;
	struct {
		goro_ctx_func *first, **end;
	} funcs;

	/* Under up's lock: its list of children. */
	goro_ctx *next, **at;	/* at: the pointer to this node; NULL: not linked */

	goro_ctx *dead_next;
	struct timer timer;	/* started under the lock */
};

struct goro_ctx_func {
	goro_ctx *ctx;
	goro_ctx_func *next, **at;	/* under ctx's lock; NULL: not linked */
	void (*fn)(void *);
	void *arg;
	void *caller;
	uint32_t refs;		/* the user's handle; the run that may come */
	struct timer timer;	/* to try again to start it */
};

static goro_ctx background = {
	.never = true,
	.deadline = GORO_FOREVER,
	.refs = 1,
	.holds = 1,
	.lock = LOCK_INIT(RANK_CTX),
	.funcs = { .end = &background.funcs.first },
};

/* The lists of children and of functions, in the order of linking. x: a variable. */
#define LIST_INIT(list) ((list)->end = &(list)->first)
#define LIST_PUT(list, x)                               \
	do {                                            \
		check(!*(list)->end);                   \
		(x)->next = NULL;                       \
		(x)->at = (list)->end;                  \
		*(list)->end = (x);                     \
		(list)->end = &(x)->next;               \
	} while (0)
#define LIST_REMOVE(list, x)                            \
	do {                                            \
		check(*(x)->at == (x));                 \
		*(x)->at = (x)->next;                   \
		if ((x)->next)                          \
			(x)->next->at = (x)->at;        \
		else                                    \
			(list)->end = (x)->at;          \
		(x)->at = NULL;                         \
	} while (0)

/* ------------------------------------------------------------------ marking */

static void func_run(void *arg);

static void func_launch(struct m *mp, goro_ctx_func *f)
{
	if (!g_launch_call(mp, func_run, f, f->caller))
		timer_start(mp, &f->timer, os_now() + RETRY_NS);
}

/* The started goroutine waits for the end of this fire: see func_run. */
static void fire_func(struct m *mp, struct timer *t, int64_t now)
{
	goro_ctx_func *f = (goro_ctx_func *)((char *)t - offsetof(goro_ctx_func, timer));
	bool launched = g_launch_call(mp, func_run, f, f->caller);

	timer_fired(t);
	if (!launched)
		timer_start(mp, t, now + RETRY_NS);
}

/* What a cancellation leaves to be done after the unlock. */
struct aftermath {
	struct waiter *waited;
	goro_ctx_func *funcs;
};

/* Lock held. A goroutine that sees err waits until the channel is closed: see settle. */
static void mark(goro_ctx *c, int err, int cause, struct aftermath *a)
{
	check(lock_is_held(&c->lock) && !c->never && !c->err && err < 0);
	c->cause = cause;
	/* release: cause; pairs with load_acquire in goro_ctx_err */
	store_release(&c->err, err);
	if (c->done)
		chan_close_now(c->done, &a->waited);
	timer_try_stop(&c->timer);
	a->funcs = c->funcs.first;
	c->funcs.first = NULL;
	LIST_INIT(&c->funcs);
	for (goro_ctx_func *f = a->funcs; f; f = f->next)
		f->at = NULL;
}

/* In the order of the waits and of the goro_ctx_after_func calls. */
static void see_to(struct m *mp, struct aftermath *a)
{
	ready_in_order(mp, a->waited);
	while (a->funcs) {
		goro_ctx_func *f = a->funcs;

		a->funcs = f->next;
		func_launch(mp, f);
	}
}

/* ------------------------------------------------------------- the walk down */

static bool ref_if_alive(goro_ctx *c)
{
	uint32_t n = load_relaxed(&c->refs);

	while (n > 0)
		if (cas_relaxed(&c->refs, &n, n + 1))
			return true;
	return false;
}

static goro_ctx *dead;

/* In the runtime. Drops the caller's reference. After the last one c is left to reap. */
static void drop(goro_ctx *c)
{
	/* acqrel: the last one takes c down, having seen all of c; pairs with itself */
	if (fetch_add_acqrel(&c->refs, (uint32_t)-1) != 1)
		return;
	c->dead_next = load_relaxed(&dead);
	/* release: the node; pairs with exchange_acquire in reap */
	while (!cas_release(&dead, &c->dead_next, c))
		;
}

/* Lock held. */
static goro_ctx *first_child(goro_ctx *c)
{
	goro_ctx *child;

	check(lock_is_held(&c->lock) && c->err);	/* so no child is added */
	while ((child = c->children.first) && !ref_if_alive(child))
		LIST_REMOVE(&c->children, child);
	return child;
}

/* Marks c unless it is marked. Returns a linked child, referenced; or NULL. */
static goro_ctx *visit(struct m *mp, goro_ctx *c, int err, int cause)
{
	struct aftermath a = { 0 };
	goro_ctx *child;

	lock_acquire(&c->lock);
	if (!c->err)
		mark(c, err, cause, &a);
	child = first_child(c);
	lock_release(&c->lock);
	see_to(mp, &a);
	return child;
}

static void unlink_from_parent(goro_ctx *c)
{
	if (!c->up)
		return;
	lock_acquire(&c->up->lock);
	if (c->at)
		LIST_REMOVE(&c->up->children, c);
	lock_release(&c->up->lock);
}

struct walk {
	goro_ctx *top, *at;	/* the walk refers to the nodes from below top to at */
	int err, cause;
};

/* False: the whole tree is marked. */
static bool walk_step(struct m *mp, struct walk *w)
{
	goro_ctx *at = w->at, *child = visit(mp, at, w->err, w->cause);

	if (child) {
		w->at = child;
		return true;
	}
	check(at->err && (at == w->top || at->up));
	unlink_from_parent(at);
	if (at == w->top)
		return false;
	w->at = at->up;
	drop(at);
	return true;
}

static void walk_leave_off(struct walk *w)
{
	while (w->at != w->top) {
		goro_ctx *at = w->at;

		w->at = at->up;
		drop(at);
	}
}

/* --------------------------------------------------------- references, ends */

static void release_memory(goro_ctx *c)
{
	/* acqrel: the last one frees, having seen what others did; pairs with itself */
	if (fetch_add_acqrel(&c->holds, (uint32_t)-1) == 1)
		freed_release(c, &c->lock);
}

/* No references, hence no children: marks c, and drops its memory. */
static void take_down(goro_ctx *c)
{
	struct m *mp = rt_enter();

	check(load_relaxed(&c->refs) == 0 && !c->children.first);
	if (!c->never)
		visit(mp, c, -ECANCELED, -ECANCELED);
	timer_stop(&c->timer);
	unlink_from_parent(c);
	check(!c->at && (c->never || !c->funcs.first));
	rt_exit(mp);
	goro_chan_unref(c->done);
	release_memory(c);
}

static __attribute__((noinline, cold)) void panic_freed(goro_ctx *c, const char *what)
{
	store_relaxed(&c->refs, 0);
	goro_panic("%s freed context", what);
}

static bool is_last_ref(goro_ctx *c)
{
	uint32_t refs;

	if (c == &background)
		return false;
	/* acqrel: the last one takes c down, having seen all of c; pairs with itself */
	refs = fetch_add_acqrel(&c->refs, (uint32_t)-1);
	if (unlikely(refs == 0))
		panic_freed(c, "unref of");
	return refs == 1;
}

/* Takes down c, which has no references, and the ancestors that so lose their last. */
static void take_down_chain(goro_ctx *c)
{
	do {
		goro_ctx *parent = c->parent;

		take_down(c);
		c = parent;
	} while (is_last_ref(c));
}

/* In user code: takes down the nodes that drop has left. */
static void reap(void)
{
	goro_ctx *c;

	while (unlikely(load_relaxed(&dead) != NULL)) {
		/* acquire: the nodes; pairs with cas_release in drop */
		c = exchange_acquire(&dead, NULL);
		while (c) {
			goro_ctx *next = c->dead_next;

			take_down_chain(c);
			c = next;
		}
	}
}

goro_ctx *goro_ctx_ref(goro_ctx *c)
{
	if (c && c != &background && unlikely(fetch_add_relaxed(&c->refs, 1) == 0))
		panic_freed(c, "reference to");
	return c;
}

void goro_ctx_unref(goro_ctx *c)
{
	if (c && is_last_ref(c))
		take_down_chain(c);
	reap();
}

/* --------------------------------------------------------------- cancelling */

/* Takes a reference: a goroutine that the channel wakes may drop the caller's. */
static void cancel(goro_ctx *c, int err, int cause)
{
	struct walk w = { .top = c, .at = c, .err = err, .cause = cause };
	struct m *mp;

	if (c->never)
		return;
	goro_ctx_ref(c);
	mp = rt_enter();
	for (unsigned n = 1; walk_step(mp, &w); n++)
		if (n % WALK_STEPS == 0) {
			rt_exit(mp);
			mp = rt_enter();
		}
	rt_exit(mp);
	goro_ctx_unref(c);
}

void goro_ctx_cancel(goro_ctx *c)
{
	cancel(c, -ECANCELED, -ECANCELED);
}

void goro_ctx_cancel_cause(goro_ctx *c, int cause)
{
	cancel(c, -ECANCELED, cause ? cause : -ECANCELED);
}

static void finish_cancel(void *arg)
{
	goro_ctx *c = arg;

	cancel(c, c->err, c->cause);
	goro_ctx_unref(c);
}

/* Hands the rest of a walk from c, which is marked, to a goroutine. */
static bool hand_over(struct m *mp, goro_ctx *c)
{
	if (!ref_if_alive(c))
		return false;
	if (g_launch_internal(mp, finish_cancel, c))
		return true;
	drop(c);
	return false;
}

static void fire_deadline(struct m *mp, struct timer *t, int64_t now)
{
	goro_ctx *c = (goro_ctx *)((char *)t - offsetof(goro_ctx, timer));
	struct walk w = { .top = c, .at = c, .err = -ETIMEDOUT, .cause = -ETIMEDOUT };

	(void)now;
	for (unsigned n = 1; walk_step(mp, &w); n++)
		if (n == WALK_STEPS && hand_over(mp, c)) {
			walk_leave_off(&w);
			break;
		}
	timer_fired(t);
}

/* ------------------------------------------------------------------- making */

static goro_ctx *ctx_make(goro_ctx *parent)
{
	goro_ctx *c;

	if (!parent)
		goro_panic("cannot create context from nil parent");
	reap();
	c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->parent = goro_ctx_ref(parent);
	c->up = parent->never ? NULL : parent;
	c->deadline = parent->deadline;
	c->refs = 1;
	c->holds = 1;
	c->lock = (struct lock)LOCK_INIT(RANK_CTX);
	LIST_INIT(&c->children);
	LIST_INIT(&c->funcs);
	return c;
}

/* Links c to its parent. If that is done already, so is c now. */
static goro_ctx *ctx_link(goro_ctx *c)
{
	goro_ctx *up = c->up;
	struct m *mp;

	if (!up)
		return c;
	mp = rt_enter_lock(&up->lock);
	check(!up->never && !c->at);
	if (up->err) {
		c->cause = up->cause;
		c->err = up->err;
	} else {
		LIST_PUT(&up->children, c);
	}
	rt_unlock_exit(mp, &up->lock);
	return c;
}

goro_ctx *goro_ctx_background(void)
{
	return &background;
}

goro_ctx *goro_ctx_with_cancel(goro_ctx *parent)
{
	goro_ctx *c = ctx_make(parent);

	return c ? ctx_link(c) : NULL;
}

static void start_deadline(goro_ctx *c)
{
	struct m *mp = rt_enter_lock(&c->lock);

	if (!c->err) {
		c->timer.fire = fire_deadline;
		timer_start(mp, &c->timer, c->deadline);
	}
	rt_unlock_exit(mp, &c->lock);
}

goro_ctx *goro_ctx_with_deadline(goro_ctx *parent, int64_t deadline)
{
	goro_ctx *c = ctx_make(parent);

	if (!c)
		return NULL;
	if (deadline >= c->deadline)
		return ctx_link(c);
	c->deadline = deadline;
	ctx_link(c);
	if (deadline <= os_now())
		cancel(c, -ETIMEDOUT, -ETIMEDOUT);
	else
		start_deadline(c);
	return c;
}

goro_ctx *goro_ctx_with_timeout(goro_ctx *parent, int64_t ns)
{
	return goro_ctx_with_deadline(parent, deadline_after(os_now(), ns));
}

goro_ctx *goro_ctx_with_value(goro_ctx *parent, const void *key, void *value)
{
	goro_ctx *c;

	if (parent && !key)
		goro_panic("nil key");
	c = ctx_make(parent);
	if (!c)
		return NULL;
	c->key = key;
	c->value = value;
	return ctx_link(c);
}

goro_ctx *goro_ctx_without_cancel(goro_ctx *parent)
{
	goro_ctx *c = ctx_make(parent);

	if (!c)
		return NULL;
	c->never = true;
	c->up = NULL;
	c->deadline = GORO_FOREVER;
	return c;
}

/* ------------------------------------------------------------------- asking */

/* A goroutine that knows that c is done is to find its channel closed. Between the two
 * stores the canceller holds the lock, so taking the lock waits for the second. */
static void settle(goro_ctx *c)
{
	goro_chan *done = load_acquire(&c->done);
	struct m *mp;

	if (!done || load_acquire(&done->closed))
		return;
	mp = rt_enter_lock(&c->lock);
	check(load_relaxed(&done->closed));
	rt_unlock_exit(mp, &c->lock);
}

int goro_ctx_err(goro_ctx *c)
{
	/* acquire: cause; pairs with store_release in mark */
	int err = load_acquire(&c->err);

	if (unlikely(err))
		settle(c);
	return err;
}

int goro_ctx_cause(goro_ctx *c)
{
	return goro_ctx_err(c) ? c->cause : 0;
}

int64_t goro_ctx_deadline(goro_ctx *c)
{
	return c->deadline;
}

void *goro_ctx_value(goro_ctx *c, const void *key)
{
	while (c && c->key != key)
		c = c->parent;
	return c ? c->value : NULL;
}

/* Makes `made` c's channel unless it has one. Returns c's channel. */
static goro_chan *set_done(goro_ctx *c, goro_chan *made)
{
	struct m *mp = rt_enter_lock(&c->lock);
	goro_chan *done;

	done = c->done;
	if (!done) {
		done = made;
		made->closed = c->err != 0;
		/* release: the channel; pairs with load_acquire in goro_ctx_done */
		store_release(&c->done, made);
	}
	rt_unlock_exit(mp, &c->lock);
	return done;
}

goro_chan *goro_ctx_done(goro_ctx *c)
{
	goro_chan *done = load_acquire(&c->done), *made;

	if (done || c->never)
		return done;
	made = goro_chan_make(0, 0);
	if (!made)
		goro_panic("runtime error: out of memory");
	if (!c->up && c->deadline == GORO_FOREVER) {	/* no timer or ancestor cancels */
		made->owner = c;
		made->owner_bytes = sizeof *c;
	}
	done = set_done(c, made);
	if (done != made)
		goro_chan_unref(made);
	return done;
}

/* ---------------------------------------------------------------- functions */

static void func_unref(goro_ctx_func *f)
{
	/* acqrel: the last one frees, having seen what others did; pairs with itself */
	if (fetch_add_acqrel(&f->refs, (uint32_t)-1) != 1)
		return;
	release_memory(f->ctx);
	freed_release(f, NULL);
}

/* Runs in a goroutine of its own. */
static void func_run(void *arg)
{
	goro_ctx_func *f = arg;
	void (*fn)(void *) = f->fn;
	void *fn_arg = f->arg;

	timer_wait_fired(&f->timer);
	func_unref(f);
	fn(fn_arg);
}

goro_ctx_func *goro_ctx_after_func(goro_ctx *c, void (*fn)(void *), void *arg)
{
	goro_ctx_func *f;
	struct m *mp;
	bool now;

	if (!fn)
		g_of_nil();
	f = malloc(sizeof *f);
	if (!f)
		return NULL;
	*f = (goro_ctx_func){ .ctx = c, .fn = fn, .arg = arg, .refs = 2,
	                      .caller = __builtin_return_address(0),
	                      .timer = { .fire = fire_func } };
	fetch_add_relaxed(&c->holds, 1);
	mp = rt_enter_lock(&c->lock);
	now = c->err != 0;
	if (!now)
		LIST_PUT(&c->funcs, f);
	lock_release(&c->lock);
	if (now)
		func_launch(mp, f);
	rt_exit(mp);
	return f;
}

bool goro_ctx_func_stop(goro_ctx_func *f)
{
	struct m *mp;
	bool in_time;

	if (!f)
		return false;
	mp = rt_enter_lock(&f->ctx->lock);
	in_time = f->at != NULL;
	check(!in_time || !f->ctx->err);
	if (in_time)
		LIST_REMOVE(&f->ctx->funcs, f);
	rt_unlock_exit(mp, &f->ctx->lock);
	if (in_time)
		func_unref(f);		/* the run that will not come */
	func_unref(f);
	return in_time;
}
