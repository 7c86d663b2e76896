/*
 * pool.c - workers behind a bounded queue.
 *
 * A ring of tasks under a lock, a queue of submitters that found it full, and a queue of
 * workers that found it empty. As with a channel, a submitter hands its task straight to
 * a waiting worker, and a worker that takes a task from a full ring puts the first
 * waiting submitter's task in.
 *
 * Invariants, under the lock:
 *	- idle is not empty only if count is 0 and no submitter waits;
 *	- a submitter waits only if count is room;
 *	- submitted = completed + busy + count: a task counts as busy from when it is
 *	  given to a worker, also if the worker has not run yet.
 *
 * A worker that has finished a task reports it in the step in which it takes the next. If
 * there are more workers than there should be, the worker ends there; waiting workers are
 * woken for that.
 *
 * Closing waits until no worker is left and no submitter that waited, whose deadline may
 * be about to look at the pool. The last of them to leave unlocks, then wakes the closer,
 * and the closer frees the pool.
 *
 * Rejected: a channel of tasks and a select with the deadline. Closing such a channel
 * panics goroutines that wait to send on it, and the counts of queued, busy and done
 * tasks could not be read at one moment.
 */
#include <errno.h>
#include <goro.h>
#include <stdlib.h>

#include "sync/deadline.h"
#include "sync/freed.h"
#include "sched/g.h"
#include "goroutine/panic.h"
#include "sync/waitq.h"

struct task {
	void (*fn)(void *);
	void *arg;
};

struct goro_pool {
	struct lock lock;

	/* Under the lock. */
	size_t at, count;	/* in the ring: the oldest task; how many */
	struct waitq submitters;	/* elem: the task */
	struct waitq idle;	/* elem: where the worker wants its task */
	int workers;		/* the number wanted */
	int live;		/* those that run or were started */
	int busy;
	int waiting;		/* submitters that have queued and not left */
	bool closed;
	struct g *closer;	/* waits for the last to leave; NULL: not yet */
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

/* Lock held: the invariants. */
static void pool_check(const goro_pool *p)
{
	check(lock_is_held((struct lock *)&p->lock));
	check(p->at <= p->room && p->count <= p->room);
	check(waitq_empty(&p->idle) || (p->count == 0 && waitq_empty(&p->submitters)));
	check(waitq_empty(&p->submitters) || (p->count == p->room && p->waiting > 0));
	check(p->submitted == p->completed + (uint64_t)p->busy + p->count);
	check(0 <= p->busy && p->busy <= p->live);
	(void)p;
}

/* ------------------------------------------------------------------ waiting */

/* Lock held; releases it. Waits in q. True: a task went from or to elem. */
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

/* Lock held. Takes the first waiter, which the caller makes ready after the unlock; NULL:
 * none. ok: a task goes from or to it. */
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

/* Lock held; releases it. The last to leave wakes the closer: the pool may be gone. */
static void unlock_and_leave(struct m *mp, goro_pool *p)
{
	struct g *closer = NULL;

	pool_check(p);
	if (p->closed && p->live == 0 && p->waiting == 0) {
		closer = p->closer;
		p->closer = NULL;
	}
	lock_release(&p->lock);
	if (closer)
		g_ready(mp, closer);
}

/* ------------------------------------------------------------------ workers */

/* Lock held. Takes the next task. *submitter, unless NULL: its task is in now, and the
 * caller makes it ready after the unlock. */
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

/* The next task for a worker. done: it has finished one. False: the worker ends. */
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
	pool_check(p);
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

/* The worker's last defer. If a task has ended the worker's goroutine, starts another. */
static void worker_end(void *arg)
{
	struct worker *w = arg;
	goro_pool *p = w->pool;
	struct m *mp;

	if (!w->in_task)
		return;
	mp = rt_enter_lock(&p->lock);
	p->busy--;
	p->completed++;
	rt_unlock_exit(mp, &p->lock);
	/* The worker still counts, so the pool stays until it is replaced. */
	while (goro_go(worker_main, p) < 0)
		goro_sleep(RETRY_NS);
}

/* A task begins like a goroutine. It sees of earlier tasks only what they kept with
 * goro_local_set, which belongs to the worker. A task that stays locked to its thread
 * ends the worker's goroutine, and with it the thread. */
static __attribute__((noinline)) void tidy_up(struct g *gp, struct defer *own)
{
	panic_run_defers(gp, own);
	g_end_task(gp);
	g_forget(gp);
	if (gp->lock_depth > 0)
		goro_goexit();
}

/* Does not touch the pool after the last next_task. */
static void worker_main(goro_pool *p)
{
	struct worker w = { .pool = p };
	struct g *gp = m_self()->curg;
	struct defer own;
	struct task t;

	panic_defer(&own, worker_end, &w);
	while (next_task(p, &t, w.in_task)) {
		w.in_task = true;
		t.fn(t.arg);
		if (unlikely(gp->defers != &own || gp->lock_depth > 0 || load_relaxed(&gp->untidy)))
			tidy_up(gp, &own);
	}
	w.in_task = false;
	panic_run_defers(gp, NULL);	/* while w is there */
}

/* Starts n workers, which count already. Returns how many could not be started. */
static int start_workers(goro_pool *p, int n)
{
	while (n > 0 && goro_go(worker_main, p) == 0)
		n--;
	return n;
}

/* Lock held. Takes up to n waiters of q, to be woken without a task. */
static struct waiter *take_some(struct waitq *q, int n)
{
	struct waiter *first = NULL, *w;

	while (n-- > 0 && (w = take_waiter(q, false))) {
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

/* Lock held. Takes t in if there is room. *worker, unless NULL, is to be made ready. */
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
	pool_check(p);
	if (unlikely(p->closed)) {
		err = -ESHUTDOWN;
	} else if (!take_in(p, *t, &worker)) {
		if (!deadline_is_past(deadline))
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
	mp = deadline_enter(now);
	err = submit(&mp, p, &t, deadline);
	deadline_exit(mp, now);
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
	struct m *mp = rt_enter_lock(&p->lock);

	p->live -= n;
	if (p->workers > p->live)
		p->workers = p->live;
	unlock_and_leave(mp, p);
	rt_exit(mp);
}

int goro_pool_resize(goro_pool *p, int workers)
{
	struct m *mp = rt_enter_lock(&p->lock);
	struct waiter *ending = NULL;
	int more = 0, missing, err = 0;

	if (workers < 1)
		err = -EINVAL;
	else if (p->closed)
		err = -ESHUTDOWN;
	if (!err) {
		p->workers = workers;
		if (workers < p->live) {
			ending = take_some(&p->idle, p->live - workers);
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
	goro_pool *p = mp->after.arg;

	gp->waiter.key = p;		/* for reach.c */
	p->closer = gp;
	lock_release(&p->lock);
}

void goro_pool_close(goro_pool *p)
{
	struct m *mp = rt_enter_free();
	struct waiter *refused, *ending;

	lock_acquire(&p->lock);
	pool_check(p);
	p->closed = true;
	refused = take_some(&p->submitters, p->waiting);
	ending = take_some(&p->idle, p->live);
	lock_release(&p->lock);
	ready_in_order(mp, refused);
	ready_in_order(mp, ending);
	lock_acquire(&p->lock);
	if (p->live > 0 || p->waiting > 0)
		mp = park(mp, commit_close, p, WAIT_WAITGROUP_WAIT);
	else
		lock_release(&p->lock);
	rt_exit_free(mp);
	check(p->live == 0 && p->waiting == 0 && waitq_empty(&p->idle));
	freed_release(p, &p->lock);
}

void goro_pool_stats(goro_pool *p, struct goro_pool_stats *out)
{
	struct m *mp = rt_enter_lock(&p->lock);

	*out = (struct goro_pool_stats){
		.submitted = p->submitted,
		.completed = p->completed,
		.rejected = p->rejected,
		.queued = p->count,
		.workers = p->workers,
		.busy = p->busy,
		.waiting = p->waiting,
	};
	rt_unlock_exit(mp, &p->lock);
}
