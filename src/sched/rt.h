/*
 * rt.h - crossing the border between user code and the runtime.
 *
 * Owning a P
 *
 * Every call of goro's opens with rt_enter and ends with rt_exit. In between the M is in
 * state RUNTIME and no other thread touches its P. In state USER a taker may take the P:
 * sysmon from a thread that sleeps in the kernel, the stopper of the world from every
 * thread. The M finds out at its next entry, and then gets in line for a P.
 *
 * The M writes state and reads attn; the taker writes attn and reads state:
 *
 *	M, entering                     taker
 *	state = RUNTIME                 attn |= CLAIMED
 *	(nothing but program order)     membarrier
 *	read attn                       read state
 *	 0: the P is ours               USER: attn CLAIMED -> TAKEN by CAS
 *	 else the slow way              else: withdraw the claim
 *
 * The taker's membarrier makes every running thread pass a barrier: either the M's store
 * came before it, and the taker reads RUNTIME, or the M's load comes after it and reads
 * the claim. So an entry costs a store and a load instead of a locked instruction; a
 * taking costs microseconds, and is rare. An M that finds a mere claim cancels it by the
 * same CAS that the taker needs to succeed: one of the two has the P, and both know
 * which. A claim is never left behind.
 *
 * A P can also be given to an M in user code that has lost its own and does not know
 * (p_give): TAKEN turns to GIVEN by CAS, unless the M has found out before. The M binds
 * the given P at its next entry, in border_settle.
 *
 * Where the kernel has no membarrier (or GORO_DEBUG=nomembarrier=1), attn of every M
 * always has ATTN_FENCE, so that each crossing goes the slow way and passes a fence of
 * its own.
 *
 * Leaving is the mirror image: state = USER, then read attn. There the M sees a request
 * to yield that another thread left while the state was RUNTIME: always, if that thread
 * passed a membarrier in between (world.c), and almost always without one (retake.c),
 * where the next look makes good what was missed. The reads of attn also see what a
 * signal handler has set: it runs on the same thread.
 */
#ifndef GORO_RT_H
#define GORO_RT_H

#include "platform/context.h"
#include "base/lock.h"
#include "base/throw.h"
#include "sched/types.h"

struct m *rt_enter_slow(struct m *mp);
struct m *rt_enter_free_slow(struct m *mp);
void rt_exit_slow(struct m *mp);
void rt_exit_free_slow(struct m *mp);

/*
 * Two kinds of crossing. A call that never waits (go, try_send, unlock) must not move its
 * caller to another thread: the program may hold a pthread mutex around it. If it has to
 * give way or to get a P it does so where it stands (turn.c). A call that may wait anyway
 * is free to move: rt_enter_free, rt_exit_free, which is cheaper.
 */
static inline bool rt_try_enter(struct m *mp)
{
	if (unlikely(!mp))
		return false;
	check(mp->state == M_USER);
	store_relaxed(&mp->state, M_RUNTIME);
	compiler_barrier();
	return likely(load_relaxed(&mp->attn) == 0);
}

/* The current M, in state RUNTIME. A plain thread gets an M of its own. */
static inline struct m *rt_enter(void)
{
	struct m *mp = m_self();

	return rt_try_enter(mp) ? mp : rt_enter_slow(mp);
}

/* The same, where the goroutine may move to another M on the way. */
static inline struct m *rt_enter_free(void)
{
	struct m *mp = m_self();

	return rt_try_enter(mp) ? mp : rt_enter_free_slow(mp);
}

static inline bool rt_try_exit(struct m *mp)
{
	check(mp == m_self() && mp->state == M_RUNTIME);
	/* release: what we did to the P; pairs with load_acquire in p_take */
	store_release(&mp->state, M_USER);
	compiler_barrier();
	return likely(load_relaxed(&mp->attn) == 0);
}

/* mp is the current M: m_self, if the call may have parked. */
static inline void rt_exit(struct m *mp)
{
	if (!rt_try_exit(mp))
		rt_exit_slow(mp);
}

static inline void rt_exit_free(struct m *mp)
{
	if (!rt_try_exit(mp))
		rt_exit_free_slow(mp);
}

/* In user code: the calling goroutine. A plain thread gets one at its first call. */
static inline struct g *rt_g(void)
{
	struct m *mp = m_self();

	if (unlikely(!mp))
		rt_exit(mp = rt_enter());
	return mp->curg;
}

/* Around what is done under a lock alone. */
static inline struct m *rt_enter_lock(struct lock *l)
{
	struct m *mp = rt_enter();

	lock_acquire(l);
	return mp;
}

static inline void rt_unlock_exit(struct m *mp, struct lock *l)
{
	lock_release(l);
	rt_exit(mp);
}

#endif
