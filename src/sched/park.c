/*
 * park.c - a goroutine stops to wait and is made ready again; threads are woken.
 *
 * Waiting is two steps: the goroutine puts itself where its waker will find it
 * (a channel's queue, ...) under a lock, and parks with a commit action that
 * releases the lock once its stack is at rest. The waker takes it from there
 * under the same lock and calls g_ready. So a goroutine is never made ready
 * while it still runs, and never misses its waker.
 *
 * The same calls serve plain threads, whose park is a sleep on a futex: see
 * foreign.c.
 *
 * Who goes first
 *
 * When a goroutine is made ready while all other threads sleep, two goroutines can run,
 * and one thread is awake. To wake another thread takes tens of microseconds, and longer
 * where the kernel puts it on the CPU of its waker. One of the two goroutines waits for
 * that.
 *
 * In a send or a receive (g_ready_exit), which may wait anyhow, the caller waits. The
 * goroutine that it made ready runs at once, in the caller's place and from a warm cache.
 * If it runs shortly, as an answer mostly does, the caller is back before the other
 * thread is awake; else that thread takes the caller along.
 *
 * The caller goes on where it must not be moved: it is locked to its thread, has
 * preemption switched off, or is in a call that never waits, such as go or unlocking. It
 * also goes on where no thread was woken, since others run or look for work.
 */
#include "base/debug.h"
#include "base/probe.h"
#include "sched/latency.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/trace_hook.h"

const char *wait_reason_text(enum wait_reason reason)
{
	static const char *const text[] = {
#define X(id, t) t,
		WAIT_REASON_LIST(X)
#undef X
	};

	return (unsigned)reason < WAIT_REASON_COUNT ? text[reason] : "unknown wait reason";
}

void park_unlock(struct m *mp, struct g *gp)
{
	(void)gp;
	lock_release(mp->after.arg);
}

void g_runnable_outside(struct m *mp, struct g *gp, bool is_new)
{
	check(!mp->p || debug.migrate);
	lock_acquire(&sched.lock);
	if (is_new)
		trace_create_outside(mp, gp);
	else
		trace_ready_outside(mp, gp);
	/* release: as in g_set_runnable */
	store_release(&gp->status, G_RUNNABLE);
	globq_put_fresh(gp);
	lock_release(&sched.lock);
	wake();
	monitor.somebody_waits();
}

/* See g_make_runnable. */
static inline bool ready_here(struct m *mp, struct g *gp)
{
	check(gp->status == G_WAITING);
	PROBE1(ready, gp->id);
	if (unlikely(gp->is_foreign)) {
		foreign_ready(gp);
		return false;
	}
	if (unlikely(!mp->p || debug.migrate)) {
		g_runnable_outside(mp, gp, false);
		return false;
	}
	g_set_runnable(mp->p, gp);
	return true;
}

bool g_make_runnable(struct m *mp, struct g *gp)
{
	return ready_here(mp, gp);
}

void g_ready(struct m *mp, struct g *gp)
{
	if (likely(ready_here(mp, gp))) {
		runq_put_next(mp->p, gp);
		wake();
	}
}

/* See "Who goes first". The goroutine that was made ready is the P's runnext. */
static __attribute__((noinline)) bool wake_exit_second(struct m *mp)
{
	struct g *gp = mp->curg;

	if (wake_slow() && !debug.nofirst && !gp->locked_m && !gp->preempt_off &&
	    runq_only_next(mp->p) && globq_length() == 0)
		mp = sched_yield_local(mp);
	rt_exit_free(mp);
	return true;
}

bool g_ready_exit(struct m *mp, struct g *gp)
{
	struct p *pp = mp->p;

	if (likely(ready_here(mp, gp))) {
		runq_put_next(pp, gp);
		if (unlikely(wake_wanted()))
			return wake_exit_second(mp);
	}
	rt_exit_free(mp);
	return true;
}

void g_ready_in_order(struct m *mp, struct g *gp)
{
	if (likely(ready_here(mp, gp))) {
		runq_put_in_order(mp->p, gp);
		wake();
	}
}

void ready_in_order(struct m *mp, struct waiter *w)
{
	while (w) {
		struct g *gp = w->gp;

		w = w->next;		/* its own again once it is ready */
		g_ready_in_order(mp, gp);
	}
}

void ready_first_next(struct m *mp, struct waiter *w)
{
	struct waiter *others = w ? w->next : NULL;

	if (w)
		g_ready(mp, w->gp);
	ready_in_order(mp, others);
}

void g_ready_quietly(struct m *mp, struct g *gp)
{
	if (likely(ready_here(mp, gp)))
		runq_put_woken(mp->p, gp);
}

/* The thread that moves spinning from 0 to 1 starts the M that this counts. */
bool wake_slow(void)
{
	int none = 0;
	struct p *pp;

	if (!cas_seqcst(&sched.spinning, &none, 1))
		return false;
	lock_acquire(&sched.lock);
	pp = load_relaxed(&sched.stopping) ? NULL : p_idle_get();
	if (pp) {
		m_start_unlock(pp, true);
		return true;
	}
	/* While we counted as spinning, an M on its way to sleep may have missed our
	 * work. */
	store_relaxed(&sched.need_spinning, 1);
	lock_release(&sched.lock);
	fetch_add_seqcst(&sched.spinning, -1);
	return false;
}
