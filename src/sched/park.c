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
 * Where one is made ready while all other threads sleep, two can go on and one thread is awake, and it
 * takes 30 to 60 us until there is another; more where the kernel puts it on the CPU of the one that
 * woke it. One of the two has to wait for that. In a send or a receive, which may wait anyhow, it
 * is the caller: whoever it wakes runs at once, in its place and from a warm cache, and if that is
 * short, as an answer mostly is, the caller is back before the other thread is there. Else the
 * thread takes it along. (From a send by one that computes on until the receiver runs, two Ps: 4 us, and 50
 * where the receiver waits for the thread; in 99 of 100 cases within 20 us, and 3,000.) It is asked
 * for only together with a wake, which costs a hundred times as much: while others run, or look for work, the caller goes
 * on. And it does where it must not be moved: one that is locked to its thread, or has preemption
 * switched off; and in calls that never wait, such as go, or unlocking.
 */
#include "debug.h"
#include "latency.h"
#include "runq.h"
#include "runtime.h"
#include "trace.h"

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
	lock_release(mp->after_arg);
}

static void ready_elsewhere(struct m *mp, struct g *gp)
{
	lock_acquire(&sched.lock);
	store_relaxed(&gp->status, trace_ready_outside(mp, gp));
	globq_put_fresh(gp);
	lock_release(&sched.lock);
	wake();
	sysmon_somebody_waits();
}

/* See g_make_runnable. */
static inline bool ready_here(struct m *mp, struct g *gp)
{
	check(gp->status == G_WAITING);
	if (unlikely(gp->is_foreign)) {
		foreign_ready(gp);
		return false;
	}
	if (unlikely(!mp->p || debug.migrate)) {
		ready_elsewhere(mp, gp);
		return false;
	}
	latency_ready(mp->p, gp);
	return true;
}

bool g_make_runnable(struct m *mp, struct g *gp)
{
	if (likely(mp->p))
		return ready_here(mp, gp);
	check(gp->status == G_WAITING);
	if (gp->is_foreign) {
		foreign_ready(gp);
		return false;
	}
	lock_acquire(&sched.lock);
	store_relaxed(&gp->status, trace_ready_outside(mp, gp));
	lock_release(&sched.lock);
	return true;
}

void g_ready(struct m *mp, struct g *gp)
{
	if (likely(ready_here(mp, gp))) {
		runq_put_next(mp->p, gp);
		wake();
	}
}

/* See "Who goes first". The one made ready is next here. */
static __attribute__((noinline)) bool wake_exit_second(struct m *mp)
{
	struct g *gp = mp->curg;

	if (wake_slow() && !gp->locked_m && !gp->preempt_off && runq_only_next(mp->p) &&
	    globq_length() == 0)
		mp = sched_go_second(mp);
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
		runq_put_woken(mp->p, gp);
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

/* Whoever moves spinning from 0 to 1 starts the M that this counts. */
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
	/* No P was idle after all. The next M that is about to sleep is to look
	 * around first: it may have missed what we came for while we counted as
	 * spinning. */
	store_relaxed(&sched.need_spinning, 1);
	lock_release(&sched.lock);
	fetch_add_seqcst(&sched.spinning, -1);
	return false;
}
