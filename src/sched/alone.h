/*
 * alone.h - the locks of a program whose one P runs alone.
 *
 * Alone
 *
 * With GOMAXPROCS 1, and without plain threads in calls of goro, an M that is in the
 * runtime with its P is the only one there: no other M holds a P, no thread takes the P
 * from it (rt.h, "Owning a P"), and no goroutine is preempted in there. What only Ms with
 * a P touch then needs no locked instruction, which is most of what an uncontended send,
 * receive or lock costs. While sched.alone is set, the locks of channels and the states
 * of mutexes are read and written in two steps, by ordinary loads and stores, and only in
 * state RUNTIME with a P.
 *
 *	sched.alone is set by alone_begin, before the first M is made, if there is one P
 *	and the process has one thread. It is never set again: a thread that found it
 *	clear may be about to change a mutex by a locked instruction, from user code.
 *
 *	It is cleared while the world is stopped, so no M is between the two steps: by
 *	world_start, for more Ps, and by alone_end, for a plain thread that enters the
 *	runtime for the first time.
 *
 * A goroutine in an announced call, which has no P, ends the call for the moment of an
 * operation on a mutex. A caller in user code that finds sched.alone set enters the
 * runtime and looks again there. A thread that is in the runtime without a P for good
 * (sysmon, the trace's writer) takes none of these locks, or calls alone_end first.
 *
 * Rejected: following how many Ps are busy. The first P would wait for a stop of the
 * world each time a second one wakes.
 */
#ifndef GORO_ALONE_H
#define GORO_ALONE_H

#include "sched/runtime.h"

/* In state RUNTIME: locks need no locked instruction until the M leaves. Else a hint. */
static inline bool is_alone(void)
{
	return unlikely(load_relaxed(&sched.alone));
}

/* goro_run is about to make the first M. */
void alone_begin(void);
/* Clears sched.alone. In state RUNTIME, no locks held. */
void alone_end(struct m *mp);

/* For locks that only the program's calls take. TSan needs the orders of the locked
 * forms. */
static inline bool alone_lock_try(struct lock *l)
{
	if (!is_alone())
		return lock_try(l);
	check(m_self()->p);
	if (unlikely(load_acquire(&l->word) != 0))
		return false;
	lock_rank_push(l);
	store_relaxed(&l->word, LOCK_HELD);
	return true;
}

static inline uint32_t alone_lock_release(struct lock *l)
{
	if (!is_alone())
		return lock_release_quietly(l);
	lock_rank_pop(l);
	store_release(&l->word, 0);
	return 0;
}

#endif
