/*
 * wait_profile.h - tells the block and mutex profiles of waits.
 *
 * A goroutine that is about to wait notes the time with profile_wait_start, which reads
 * the clock only while a profile is on. Afterwards it reports the wait. A goroutine that
 * unlocks reports, too (sema.c): the mutex profile charges it with the waits of others.
 * While no profile is on all this is one load.
 */
#ifndef GORO_WAIT_PROFILE_H
#define GORO_WAIT_PROFILE_H

#include "platform/os.h"
#include "sched/rt.h"

enum { PROFILE_BLOCK = 1, PROFILE_MUTEX = 2 };

/* What the profiles want, and the functions that count for them. Filled by
 * profile_block.c. Hidden: finding it takes an instruction less. */
extern struct wait_profile {
	uint32_t wanted;	/* PROFILE_ bits */
	/* In state RUNTIME: the running goroutine has waited since then. */
	void (*block)(struct m *mp, int64_t since);
	/* The same: it gives up a lock that others have waited for, ns in sum. */
	void (*mutex)(struct m *mp, int64_t ns);
} wait_profile __attribute__((visibility("hidden")));

static inline bool profile_on(void)
{
	return load_relaxed(&wait_profile.wanted) != 0;
}

/* 0: no profile is on. */
static inline int64_t profile_wait_start(void)
{
	return unlikely(profile_on()) ? os_now() : 0;
}

/* The running goroutine has waited since then. In state RUNTIME. */
static inline void profile_block_event(struct m *mp, int64_t since)
{
	if (unlikely(since))
		wait_profile.block(mp, since);
}

#endif
