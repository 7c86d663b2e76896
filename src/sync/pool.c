/*
 * pool.c - workers behind a bounded queue.
 *
 * A ring of tasks under a lock; a queue of submitters that found it full, and one
 * of workers that found it empty. As with a channel, a task goes straight to a
 * worker that waits, and a worker that takes a task makes room for the first
 * submitter that waits.
 *
 * Invariants, under the lock:
 *	- idle is not empty only if count is 0 and no submitter waits;
 *	- a submitter waits only if count is room;
 *	- submitted = completed + busy + count: a task counts as busy from when it
 *	  is given to a worker, also if the worker has not run yet.
 *
 * A worker that is done with a task comes for the next one and reports the last
 * in the same step. If there are more workers than there are to be it ends there;
 * those that wait are woken for it.
 *
 * Closing waits until nobody is left: no worker, and no submitter that waited,
 * whose deadline may be about to look at the pool. The last of them to leave wakes
 * the closer when it has unlocked, and the closer frees the pool.
 *
 * Rejected: a channel of tasks and a select with the deadline. Closing such a
 * channel panics those who wait to send on it, and what is queued, busy and done
 * could not be told at one moment.
 */
#include <errno.h>
#include <goro.h>
#include <stdlib.h>

#include "deadline.h"
#include "freed.h"
#include "g.h"
#include "os.h"
#include "panic.h"
#include "trace.h"
#include "waitq.h"

/* A goroutine that could not be started, for lack of memory, is tried again. */
#define RETRY_NS (1 * GORO_MILLISECOND)

struct task {
	void (*fn)(void *);
	void *arg;
};

struct goro_pool {
	struct lock lock;

	/* Under the lock. */
	size_t at, count;	/* in the ring: the oldest, how many */
	struct waitq submitters;	/* elem: its task */
	struct waitq idle;	/* elem: where the worker wants its task */
	int workers;		/* how many there are to be */
	int live;		/* .. and are, or have been started */
	int busy;
	int waiting;		/* submitters that have not left */
	bool closed;
	struct g *closer;	/* waits for the last to leave */
	uint64_t submitted, completed, rejected;

	/* Constant. */
	size_t room;
	struct task ring[];
};

/* --------------------------------------------------------------------- ring */

static void ring_add(goro_pool *p, struct task t)
{
	size_t i = p->at + p->count;

	p->ring[i < p->room ? i : i - p->room] = t;
	p->count++;
}

static struct task ring_take(goro_pool *p)
{
	struct task t = p->ring[p->at];

	if (++p->at == p->room)
		p->at = 0;
	p->count--;
	return t;
}

/* ------------------------------------------------------------------ waiting */

/* Waits in q, and releases the lock. True: a task went from or to elem. */
static bool wait_in(struct m **mp, goro_pool *p, struct waitq *q, struct task *elem,
                    int64_t deadline, deadline_fire *fire)
{
	struct g *gp = (*mp)->curg;
	struct waiter *w = &gp->waiter;

	w->gp = gp;
	w->key = p;
	w->elem = elem;
	w->queued = true;
	w->ok = false;
	waitq_put(q, w);
	*mp = park_until(*mp, &p->lock, fire ? WAIT_CHAN_SEND : WAIT_CHAN_RECV, deadline, fire);
	return w->ok;
}

/* Lock held. The first in line, to be made ready after the unlock; or NULL. ok: a
 * task goes from or to it. */
static struct waiter *take_waiter(struct waitq *q, bool ok)
{
	struct waiter *w = waitq_take(q);

	if (w) {
		w->queued = false;
		w->ok = ok;
	}
	return w;
}

static void fire_submit(struct m *mp, struct timer *t, int64_t now)
{
	struct g *gp = deadline_g(t);
	struct waiter *w = &gp->waiter;
	goro_pool *p = w->key;
	bool first;

	(void)now;
	lock_acquire(&p->lock);
	first = w->queued;
	if (first) {
		waitq_remove(&p->submitters, w);
		w->queued = false;
	}
	lock_release(&p->lock);
	timer_fired(t);
	if (first)
		g_ready_in_order(mp, gp);
}

/* Lock held; releases it. After the last has left the pool may be gone. */
static void unlock_and_leave(struct m *mp, goro_pool *p)
{
	struct g *closer = NULL;

	if (p->closed && p->live == 0 && p->waiting == 0) {
		closer = p->closer;
		p->closer = NULL;
	}
	lock_release(&p->lock);
	if (closer)
		g_ready(mp, closer);
}

/* ------------------------------------------------------------------ workers */

/* Lock held. The next task, and who is to be made ready after the unlock: the
 * submitter for whom there is room now. */
static bool take_task(goro_pool *p, struct task *out, struct waiter **submitter)
{
	struct waiter *w = take_waiter(&p->submitters, true);

	*submitter = w;
	if (p->count > 0)
		*out = ring_take(p);
	else if (w)
		*out = *(struct task *)w->elem;
	else
		return false;
	if (w) {
		p->submitted++;
		if (p->room > 0)
			ring_add(p, *(struct task *)w->elem);
	}
	p->busy++;
	return true;
}

/* The next task for a worker; done: it has finished one. False: it is to end, and
 * does not count any more. */
static bool next_task(goro_pool *p, struct task *out, bool done)
{
	struct m *mp = rt_enter_free();
	struct waiter *submitter;
	bool got = false;

	lock_acquire(&p->lock);
	if (done) {
		p->busy--;
		p->completed++;
	}
	while (!got && p->live <= p->workers) {
		got = take_task(p, out, &submitter);
		if (got) {
			lock_release(&p->lock);
			if (submitter)
				g_ready_in_order(mp, submitter->gp);
		} else if (p->closed) {
			break;
		} else {
			got = wait_in(&mp, p, &p->idle, out, GORO_FOREVER, NULL);
			if (!got)
				lock_acquire(&p->lock);
		}
	}
	if (!got) {
		p->live--;
		unlock_and_leave(mp, p);
	}
	rt_exit_free(mp);
	return got;
}

struct worker {
	goro_pool *pool;
	bool in_task;
};

static void worker_main(goro_pool *p);

/* The worker's last defer. Unless it ends by itself, a task has ended its
 * goroutine: another one takes its place. */
static void worker_end(void *arg)
{
	struct worker *w = arg;
	goro_pool *p = w->pool;
	struct m *mp;

	if (!w->in_task)
		return;
	mp = rt_enter();
	lock_acquire(&p->lock);
	p->busy--;
	p->completed++;
	lock_release(&p->lock);
	rt_exit(mp);
	/* It counts still, so the pool is there until it is replaced. */
	while (goro_go(worker_main, p) < 0)
		goro_sleep(RETRY_NS);
}

/* A task begins as a goroutine does. Only what the last one kept with goro_local_set is
 * there: that is the worker's. One that stays locked to its thread ends its goroutine, and
 * the thread with it. */
static __attribute__((noinline)) void tidy_up(struct g *gp, struct defer *own)
{
	panic_run_defers(gp, own);
	trace_regions_end(gp);
	g_forget(gp);
	if (gp->lock_depth > 0)
		goro_goexit();
}

/* The pool is not touched after the last next_task. */
static void worker_main(goro_pool *p)
{
	struct worker w = { .pool = p };
	struct g *gp = m_self()->curg;
	struct defer *own;
	struct task t;

	goro_defer(worker_end, &w);
	own = gp->defers;
	while (next_task(p, &t, w.in_task)) {
		w.in_task = true;
		t.fn(t.arg);
		if (unlikely(gp->defers != own || gp->lock_depth > 0 || load_relaxed(&gp->untidy)))
			tidy_up(gp, own);
	}
	w.in_task = false;
	panic_run_defers(gp, NULL);	/* while w is there */
}

/* Starts n workers, which count already. How many could not be. */
static int start_workers(goro_pool *p, int n)
{
	while (n > 0 && goro_go(worker_main, p) == 0)
		n--;
	return n;
}

/* Lock held. Up to n workers that wait, to be woken without a task. */
static struct waiter *take_idle(goro_pool *p, int n)
{
	struct waiter *first = NULL, *w;

	while (n-- > 0 && (w = take_waiter(&p->idle, false))) {
		w->next = first;
		first = w;
	}
	return first;
}

/* --------------------------------------------------------------- submitting */

/* Lock held; releases it. */
static int wait_for_room(struct m **mp, goro_pool *p, struct task *t, int64_t deadline)
{
	int err;

	p->waiting++;
	err = wait_in(mp, p, &p->submitters, t, deadline, fire_submit) ? 0 : -ETIMEDOUT;
	lock_acquire(&p->lock);
	p->waiting--;
	if (err && p->closed)
		err = -ESHUTDOWN;
	if (err)
		p->rejected++;
	unlock_and_leave(*mp, p);
	return err;
}

/* Lock held. Whether t is in, without waiting; *worker is to be made ready. */
static bool take_in(goro_pool *p, struct task t, struct waiter **worker)
{
	struct waiter *w = take_waiter(&p->idle, true);

	*worker = w;
	if (w) {
		*(struct task *)w->elem = t;
		p->busy++;
	} else if (p->count < p->room) {
		ring_add(p, t);
	} else {
		return false;
	}
	p->submitted++;
	return true;
}

/* In the runtime. */
static int submit(struct m **mp, goro_pool *p, struct task *t, int64_t deadline)
{
	struct waiter *worker = NULL;
	int err = 0;

	lock_acquire(&p->lock);
	if (unlikely(p->closed)) {
		err = -ESHUTDOWN;
	} else if (!take_in(p, *t, &worker)) {
		if (deadline > os_now())
			return wait_for_room(mp, p, t, deadline);
		err = -ETIMEDOUT;
	}
	if (err)
		p->rejected++;
	lock_release(&p->lock);
	if (worker)
		g_ready_in_order(*mp, worker->gp);
	return err;
}

/* A call that cannot wait stays on its thread. */
int goro_pool_submit(goro_pool *p, void (*fn)(void *), void *arg, int64_t deadline)
{
	struct task t = { fn, arg };
	bool now = deadline <= GORO_NOW;
	struct m *mp;
	int err;

	if (unlikely(!fn))
		g_of_nil();
	mp = now ? rt_enter() : rt_enter_free();
	err = submit(&mp, p, &t, deadline);
	if (now)
		rt_exit(mp);
	else
		rt_exit_free(mp);
	return err;
}

/* -------------------------------------------------------- make, resize, close */

goro_pool *goro_pool_make(int workers, size_t queue)
{
	goro_pool *p;
	size_t bytes;

	if (workers < 1 || __builtin_mul_overflow(queue, sizeof *p->ring, &bytes) ||
	    bytes > PTRDIFF_MAX - sizeof *p)
		return NULL;
	p = malloc(sizeof *p + bytes);
	if (!p)
		return NULL;
	*p = (goro_pool){ .lock = LOCK_INIT(RANK_POOL), .room = queue };
	if (goro_pool_resize(p, workers) < 0) {
		goro_pool_close(p);
		return NULL;
	}
	return p;
}

/* n workers that were counted could not be started. */
static void count_missing(goro_pool *p, int n)
{
	struct m *mp = rt_enter();

	lock_acquire(&p->lock);
	p->live -= n;
	if (p->workers > p->live)
		p->workers = p->live;
	unlock_and_leave(mp, p);
	rt_exit(mp);
}

int goro_pool_resize(goro_pool *p, int workers)
{
	struct m *mp = rt_enter();
	struct waiter *ending = NULL;
	int more = 0, missing, err = 0;

	lock_acquire(&p->lock);
	if (workers < 1)
		err = -EINVAL;
	else if (p->closed)
		err = -ESHUTDOWN;
	if (!err) {
		p->workers = workers;
		if (workers < p->live) {
			ending = take_idle(p, p->live - workers);
		} else {
			more = workers - p->live;
			p->live = workers;
		}
	}
	lock_release(&p->lock);
	ready_in_order(mp, ending);
	rt_exit(mp);
	missing = start_workers(p, more);
	if (missing == 0)
		return err;
	count_missing(p, missing);
	return -ENOMEM;
}

static void commit_close(struct m *mp, struct g *gp)
{
	goro_pool *p = mp->after_arg;

	gp->waiter.key = p;		/* for who looks: reach.c */
	p->closer = gp;
	lock_release(&p->lock);
}

void goro_pool_close(goro_pool *p)
{
	struct m *mp = rt_enter_free();
	struct waiter *refused = NULL, *ending, *w;

	lock_acquire(&p->lock);
	p->closed = true;
	while ((w = take_waiter(&p->submitters, false))) {
		w->next = refused;
		refused = w;
	}
	ending = take_idle(p, p->live);
	lock_release(&p->lock);
	ready_in_order(mp, refused);
	ready_in_order(mp, ending);
	lock_acquire(&p->lock);
	if (p->live > 0 || p->waiting > 0)
		mp = park(mp, commit_close, p, WAIT_WAITGROUP_WAIT);
	else
		lock_release(&p->lock);
	rt_exit_free(mp);
	freed_release(p, &p->lock);
}

void goro_pool_stats(goro_pool *p, struct goro_pool_stats *out)
{
	struct m *mp = rt_enter();

	lock_acquire(&p->lock);
	*out = (struct goro_pool_stats){
		.submitted = p->submitted,
		.completed = p->completed,
		.rejected = p->rejected,
		.queued = p->count,
		.workers = p->workers,
		.busy = p->busy,
		.waiting = p->waiting,
	};
	lock_release(&p->lock);
	rt_exit(mp);
}
