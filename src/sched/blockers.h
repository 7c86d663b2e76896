/*
 * blockers.h - goroutines that block unannounced, again and again. Defined in blockers.c.
 */
#ifndef GORO_BLOCKERS_H
#define GORO_BLOCKERS_H

#include "sched/types.h"

/* sysmon took the P of a goroutine that runs fn, and whose thread sleeps in a call that
 * nobody announced. */
void blockers_saw(void (*fn)(void));
/* How often a P was handed over by a goroutine that is known to block; atomic. */
extern uint64_t blockers_foreseen;
void blockers_begin_slow(struct m *mp, const struct g *gp);
bool blockers_leave_slow(struct m *mp);
void blockers_return_slow(struct m *mp);

/* gp begins or goes on on mp, whose P it has: if goroutines like it block, its P is to be
 * handed over when it leaves the runtime. */
static inline void blockers_begin(struct m *mp, const struct g *gp)
{
	if (__builtin_expect(load_relaxed(&sched.program) & PROGRAM_BLOCKS, 0))
		blockers_begin_slow(mp, gp);
}

/* In user code. True: mp has handed its P over. */
static inline bool blockers_leave(struct m *mp)
{
	return load_relaxed(&mp->attn) & ATTN_BLOCKER && blockers_leave_slow(mp);
}

/* mp comes back without a P. */
static inline void blockers_return(struct m *mp)
{
	if (mp->sleeps_before != 0)
		blockers_return_slow(mp);
}

#endif
