/*
 * profile_hooks.h - where the block and mutex profiles hear of waits.
 *
 * Who is about to wait notes the time with profile_wait_start, which looks at
 * the clock only while somebody profiles; afterwards it says how long it was,
 * and whoever let it go on says so too (sema.c), since the mutex profile charges
 * the wait to who held the lock. While nobody profiles all this is one load.
 */
#ifndef GORO_PROFILE_HOOKS_H
#define GORO_PROFILE_HOOKS_H

#include "os.h"
#include "rt.h"

enum { PROFILE_BLOCK = 1, PROFILE_MUTEX = 2 };
extern uint32_t profile_wanted		/* of the above; hidden: an instruction less to find it */
	__attribute__((visibility("hidden")));

/* In state RUNTIME. Defined in profile_block.c. */
void profile_block_count(struct m *mp, int64_t since);
/* The running goroutine lets others have a lock that they have waited for, so long
 * together. */
void profile_mutex_count(struct m *mp, int64_t ns);

static inline bool profile_on(void)
{
	return load_relaxed(&profile_wanted) != 0;
}

/* 0: nobody profiles. */
static inline int64_t profile_wait_start(void)
{
	return unlikely(profile_on()) ? os_now() : 0;
}

/* The running goroutine has waited since then. In state RUNTIME. */
static inline void profile_block_event(struct m *mp, int64_t since)
{
	if (unlikely(since))
		profile_block_count(mp, since);
}

#endif
