/*
 * syscall.c - announced blocking calls.
 *
 * An M in an announced call leaves its P behind in P_SYSCALL, marked with its
 * own id, for anybody to take by a CAS: sysmon after 20 us if somebody waits, a
 * thread that comes back from a call of its own and needs one, or who stops the
 * world. Coming back, the M takes it again by the same CAS if nobody else has.
 * (The id in it keeps a P that was taken, and left behind by another M since,
 * from being mistaken for ours.) A call during which nobody wants the P costs a
 * store and a CAS.
 *
 * Where somebody waits already and the call is known to block (goro_blocking),
 * the P is handed on at once.
 *
 * A panic, a goexit or a C++ exception that leaves goro_blocking ends the call first:
 * deferred functions run in user code. goro_syscall_exit has no effect the second time.
 *
 * The goroutine stays on its thread throughout: what it has to wait for in the
 * end is its turn, see preempt.c.
 */
#include <goro.h>

#include "cxx.h"
#include "fd.h"
#include "preempt.h"
#include "runq.h"
#include "runtime.h"
#include "trace.h"

/* Between the two the P may be another thread's: what has used it meanwhile cannot go on. */
static _Noreturn __attribute__((noinline, cold)) void fatal_within(void)
{
	fatal("goro call between goro_syscall_enter and goro_syscall_exit, or in goro_blocking");
}

/* In state RUNTIME, with a P. */
static inline void leave_p_behind(struct m *mp)
{
	if (unlikely(fd_posts(mp->p)))
		fd_post_flush(mp);
	if (trace_on())
		trace_call_begin(mp);
	store_relaxed(&mp->curg->status, G_SYSCALL);
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
	/* acquire: pairs with whoever gave it back the same; there is nobody */
	if (unlikely(!mp->p || !cas_acquire(&mp->p->status, &left, P_RUNNING))) {
		store_relaxed(&mp->p, NULL);
		preempt_wait_turn(mp, true);
	} else if (trace_on()) {
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
	if (runq_empty(mp->p) && globq_length() == 0 && !fd_posts(mp->p)) {
		leave_p_behind(mp);
	} else {
		struct p *pp;

		if (trace_on())
			trace_call_begin(mp);
		pp = p_unbind(mp);
		count_up(&pp->count.handoffs, 1);
		store_relaxed(&mp->curg->status, G_SYSCALL);
		store_relaxed(&mp->state, M_SYSCALL);
		p_handoff(pp);
	}
	fn(arg);
	goro_syscall_exit();
}
