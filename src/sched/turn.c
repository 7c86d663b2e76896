/*
 * turn.c - a goroutine gets in line for a P on the thread that it is on, and stays there.
 *
 * That happens to a goroutine that was stopped where it stood (preempt.c), to one whose P
 * was taken while its thread slept in the kernel, and to one that was asked to give way
 * while it was in the runtime. What it holds may belong to its thread, so it is not
 * moved. It waits in the global queue, bound to this M, which is handed the P that the
 * goroutine was picked with.
 *
 * Called in state RUNTIME, also from a signal handler: takes no libc lock.
 */
#include "sched/latency.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/trace_hook.h"

void (*turn_pass_on)(struct m *mp);

/* sched.lock held. A P that no M runs; NULL: there is none. *was_to_look: the P was for
 * an M that counts as spinning already. */
static struct p *free_p(bool *was_to_look)
{
	struct p *pp;

	check(lock_is_held(&sched.lock));
	if (load_relaxed(&sched.stopping))
		return NULL;
	pp = p_idle_get();
	if (!pp && (pp = need_m_take()))
		*was_to_look = pp->spawn_spinning;
	return pp;
}

/* A P whose M is in an announced call, taken from it. */
static struct p *take_left_behind(void)
{
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++) {
		struct p *pp = p_at(i);

		if (p_take_left_behind(pp))
			return pp;
	}
	return NULL;
}

void turn_wait(struct m *mp, bool fresh)
{
	struct g *gp = mp->curg;
	struct p *pp = NULL;
	bool was_to_look = false;

	check(mp == m_self() && mp->state == M_RUNTIME && !mp->spinning);
	check(gp->status == G_RUNNING && (!gp->locked_m || gp->locked_m == mp));
	gp->locked_m = mp;
	mp->locked_g = gp;
	if (mp->p) {
		runq_stopped(mp->p);
		g_set_runnable(mp->p, gp);
	} else {
		store_relaxed(&gp->status, G_RUNNABLE);
	}
	if (!mp->p && trace_on()) {	/* before more is told of this thread */
		lock_acquire(&sched.lock);
		trace_go_back(mp, gp);
		lock_release(&sched.lock);
	}
	if (!mp->p && !load_relaxed(&sched.stopping))
		pp = take_left_behind();
	lock_acquire(&sched.lock);
	if (!mp->p)
		trace_go_back(mp, gp);
	if (!mp->p && !pp)
		pp = free_p(&was_to_look);
	if (!pp && fresh)
		globq_put_fresh(gp);
	else if (!pp)
		globq_put(gp);
	lock_release(&sched.lock);
	if (pp) {
		p_bind(mp, pp);
	} else {
		if (fresh)
			monitor.somebody_waits();
		if (mp->p)
			store_relaxed(&mp->p->stopped, gp);
		if (mp->p)
			turn_pass_on(mp);
		m_stop_locked(mp);
		store_relaxed(&mp->stop_where, STOP_ANYWHERE);
	}
	if (was_to_look) {
		/* This M has something to run; another one is to look around. */
		fetch_add_seqcst(&sched.spinning, -1);
		wake();
	}
	if (gp->lock_depth == 0) {
		gp->locked_m = NULL;
		mp->locked_g = NULL;
	}
	check(mp->p->mp == mp && mp->curg == gp);
	trace_go_start(mp, gp);
	latency_run(mp->p, gp);
	store_relaxed(&gp->status, G_RUNNING);
	p_slice_begin(mp->p);
}
