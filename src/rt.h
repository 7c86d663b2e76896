/*
 * rt.h - crossing the border between user code and the runtime.
 *
 * Owning a P
 *
 * Every call of goro's opens with rt_enter and ends with rt_exit. In between
 * the M is in state RUNTIME and nobody touches its P. In state USER anybody may
 * take the P: sysmon from a thread that sleeps in the kernel, a stop of the
 * world from every thread at once. The M finds out at its next entry, and then
 * gets in line for a P like everybody else.
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
 * A store followed by a load of another word needs a full barrier on both
 * sides. The taker's membarrier is one for both: it makes every running thread
 * pass a barrier, so either the M's store came before it, and the taker reads
 * RUNTIME, or the M's load comes after it and reads the claim. An entry thereby
 * costs a store and a load instead of a locked instruction (1 ns instead of 2),
 * and a taking 10 us, a thousand times rarer. An M that finds a mere claim
 * cancels it by the same CAS that the taker needs to succeed, so one of the two
 * has the P and both know which. A claim is never left behind: the taker either
 * turns it to TAKEN or withdraws it.
 *
 * Where the kernel has no membarrier (or GORO_DEBUG=nomembarrier=1), rt_fence is
 * set and the M passes a fence of its own.
 *
 * Leaving is the mirror image: state = USER, then read attn. A request to yield
 * that the taker left because it read RUNTIME is seen there, by the same
 * argument. The reads of attn are also what makes a signal handler's note seen:
 * the handler runs on the same thread, so program order is all it needs.
 */
#ifndef GORO_RT_H
#define GORO_RT_H

#include "context.h"
#include "throw.h"
#include "types.h"

extern bool rt_fence;		/* no membarrier: fence at every crossing */

struct m *rt_enter_slow(struct m *mp);
void rt_exit_slow(struct m *mp);

#define unlikely(x) __builtin_expect(!!(x), 0)
#define likely(x)   __builtin_expect(!!(x), 1)

/* The current M, in state RUNTIME. It may be another M than the last time this
 * goroutine looked: use what is returned. A plain thread gets an M of its own. */
static inline struct m *rt_enter(void)
{
	struct m *mp = m_self();

	if (unlikely(!mp))
		return rt_enter_slow(NULL);
	check(mp->state == M_USER);
	store_relaxed(&mp->state, M_RUNTIME);
	if (unlikely(rt_fence))
		fence_seqcst();
	compiler_barrier();
	if (unlikely(load_relaxed(&mp->attn) != 0))
		return rt_enter_slow(mp);
	return mp;
}

/* mp: the current M (m_self, if the call may have parked). */
static inline void rt_exit(struct m *mp)
{
	check(mp == m_self() && mp->state == M_RUNTIME);
	/* release: what we did to the P; pairs with load_acquire in p_take */
	store_release(&mp->state, M_USER);
	if (unlikely(rt_fence))
		fence_seqcst();
	compiler_barrier();
	if (unlikely(load_relaxed(&mp->attn) != 0))
		rt_exit_slow(mp);
}

#endif
