/*
 * syscall.c - announced blocking calls.
 *
 * An M in an announced call leaves its P behind in P_SYSCALL, marked with its own id.
 * Another thread may take it by a CAS: sysmon after SYSCALL_GRACE_NS if a goroutine
 * waits, an M that comes back from a call of its own and needs one, or the thread that
 * stops the world. Coming back, the M takes the P again by the same CAS, unless another
 * thread has. The id in the status tells a P that was taken, and left behind by another M
 * since, from ours. A call during which no thread wants the P costs a store and a CAS.
 *
 * Where goroutines wait already and the call is known to block (goro_blocking), the P is
 * handed on at once.
 *
 * A panic, a goexit or a C++ exception that leaves goro_blocking ends the call first:
 * deferred functions run in user code. goro_syscall_exit has no effect the second time.
 *
 * The goroutine stays on its thread throughout. If it has lost its P, it waits for its
 * turn there (turn.c).
 *
 * Handed over
 *
 * goro_hand_over is for code that goes round a call that it does not own, as the library
 * in extra/calls does. Nothing marks the end of such a call: a longjmp, a cancellation or
 * a signal handler that calls goro may leave it. So the M leaves its P in the state in
 * which sysmon leaves an M whose P it took in user code: ATTN_TAKEN, see "Owning a P" in
 * rt.h. The M runs on without a P when its call returns, and gets in line at its next
 * entry.
 */
#include <goro.h>

#include "sched/cxx.h"
#include "base/probe.h"
#include "sched/netpoll.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/trace_hook.h"
#include "sched/work.h"

/* In between the P may be another thread's: what has used it cannot go on. */
static _Noreturn __attribute__((noinline, cold)) void fatal_within(void)
{
	fatal("goro call between goro_syscall_enter and goro_syscall_exit, or in goro_blocking");
}

/* In state RUNTIME, with a P. */
static inline void leave_p_behind(struct m *mp)
{
	work_before_call(mp);
	check(mp->p->mp == mp && load_relaxed(&mp->p->status) == P_RUNNING);
	PROBE1(syscall, mp->curg->id);
	trace_call_begin(mp);
	/* release: the goroutine's function and stack; pairs with load_acquire in
	 * is_blocked of keepers.c */
	store_release(&mp->curg->status, G_SYSCALL);
	store_relaxed(&mp->state, M_SYSCALL);
	/* release: what we did to the P; pairs with cas_acqrel in p_take */
	store_release(&mp->p->status, P_SYSCALL_OF(mp));
}

void goro_syscall_enter(void)
{
	struct m *mp = rt_enter();

	if (unlikely(mp->curg->status == G_SYSCALL))
		fatal_within();
	if (likely(!mp->is_foreign))
		leave_p_behind(mp);
	else
		rt_exit(mp);
}

void goro_syscall_exit(void)
{
	struct m *mp = m_self();
	uint32_t left;

	if (unlikely(load_relaxed(&mp->state) != M_SYSCALL)) {
		if (load_relaxed(&mp->curg->status) == G_SYSCALL)
			fatal_within();
		return;		/* a plain thread, or not paired */
	}
	left = P_SYSCALL_OF(mp);
	store_relaxed(&mp->state, M_RUNTIME);
	store_relaxed(&mp->curg->status, G_RUNNING);
	/* acquire: has no partner, since only this M stores this status */
	if (unlikely(!mp->p || !cas_acquire(&mp->p->status, &left, P_RUNNING))) {
		store_relaxed(&mp->p, NULL);
		turn_wait(mp, true);
	} else {
		check(mp->p->mp == mp);
		trace_call_end(mp);
	}
	rt_exit(mp);
}

/* An exception passes goro_blocking. */
CXX_ROUTINE(blocking_passed)
{
	if (CXX_PASSES)
		goro_syscall_exit();
	return CXX_GO_ON;
}

void goro_blocking(void (*fn)(void *), void *arg)
{
	struct m *mp = rt_enter();

	CXX_PERSONALITY(blocking_passed);
	if (unlikely(mp->curg->status == G_SYSCALL))
		fatal_within();
	if (mp->is_foreign) {
		rt_exit(mp);
		fn(arg);
		return;
	}
	work_before_call(mp);
	if (runq_empty(mp->p) && globq_length() == 0) {
		leave_p_behind(mp);
	} else {
		struct p *pp;

		trace_call_begin(mp);
		pp = p_unbind(mp);
		count_up(&pp->count.handoffs, 1);
		/* release: as in leave_p_behind */
		store_release(&mp->curg->status, G_SYSCALL);
		store_relaxed(&mp->state, M_SYSCALL);
		p_handoff(pp);
	}
	fn(arg);
	goro_syscall_exit();
}

/* Whether mp is in user code with a P that another goroutine waits for, or will when a
 * timer fires or a descriptor is ready: sysmon would find such a goroutine late. Read
 * without entering: a taker may take the P meanwhile, and the answer is an old one. */
static inline bool is_awaited(const struct m *mp)
{
	const struct p *pp;

	if (!mp || load_relaxed(&mp->state) != M_USER || mp->is_foreign ||
	    load_relaxed(&mp->attn) & (ATTN_TAKEN | ATTN_FORKED))
		return false;
	pp = load_relaxed(&mp->p);
	return pp && (globq_length() != 0 || !runq_empty(pp) || netpoll_on() ||
	              load_relaxed(&pp->timers.min_when) != TIMER_NEVER);
}

bool goro_is_awaited(void)
{
	return is_awaited(m_self());
}

/* The M, in state RUNTIME, has no P, and is to find that out at its next entry. */
static void go_on_without_p(struct m *mp)
{
	check(!mp->p);
	fetch_add_seqcst(&sched.taken, 1);
	/* release: mp->p and slept, before the M may be given a P; pairs with p_give */
	fetch_or_acqrel(&mp->attn, ATTN_TAKEN);
}

/* Gives an owned P to an M that runs it, also where it has no work now: that M sees to
 * its timers and to the poller when it goes to sleep. */
static void hand_on(struct p *pp)
{
	check(!pp->mp);
	lock_acquire(&sched.lock);
	if (!load_relaxed(&sched.stopping)) {
		m_start_unlock(pp, false);
		return;
	}
	world_p_stopped(pp);
	lock_release(&sched.lock);
}

void m_hand_over(struct m *mp)
{
	if (!rt_try_enter(mp) && border_settle(mp) & ATTN_TAKEN) {
		go_on_without_p(mp);
	} else {
		struct p *pp;

		work_before_call(mp);
		trace_call_begin(mp);
		pp = p_unbind(mp);
		count_up(&pp->count.handoffs, 1);
		store_relaxed(&mp->slept, true);
		go_on_without_p(mp);
		hand_on(pp);
	}
	/* Not rt_exit, whose slow way gets in line for a P. */
	store_release(&mp->state, M_USER);
}

void goro_hand_over(void)
{
	struct m *mp = m_self();

	if (is_awaited(mp))
		m_hand_over(mp);
}
