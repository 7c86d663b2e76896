/*
 * profile_hooks.h - where the block and mutex profiles hear of waits.
 *
 * Who is about to wait notes the time with profile_wait_start, which looks at
 * the clock only while somebody profiles; afterwards it says how long it was,
 * and whoever let it go on says so too, since the mutex profile charges the
 * wait to who held the lock. While nobody profiles all this is one load.
 */
#ifndef GORO_PROFILE_HOOKS_H
#define GORO_PROFILE_HOOKS_H

#include "os.h"
#include "rt.h"

enum { PROFILE_BLOCK = 1, PROFILE_MUTEX = 2 };
extern uint32_t profile_wanted;		/* of the above; defined in sema.c */

/* 0: nobody profiles. */
static inline int64_t profile_wait_start(void)
{
	return unlikely(load_relaxed(&profile_wanted)) ? os_now() : 0;
}

/* The running goroutine has waited since then. In state RUNTIME. */
static inline void profile_block_event(const struct m *mp, int64_t since)
{
	(void)mp; (void)since;
}

/* The running goroutine lets gp have a lock that gp has waited for since then.
 * In state RUNTIME, gp still at rest. */
static inline void profile_mutex_event(const struct m *mp, const struct g *gp, int64_t since)
{
	(void)mp; (void)gp; (void)since;
}

#endif
