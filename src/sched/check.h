/*
 * check.h - the scheduler's structures looked at as a whole, in builds with checks. Each
 * function throws at the first invariant that does not hold. Some return how many entries
 * they looked at. Defined in check.c; the last four in the file of what they look at.
 */
#ifndef GORO_CHECK_H
#define GORO_CHECK_H

#include <stddef.h>

struct m;
struct p;

#if GORO_CHECKS

/* A thread looks at its P after this many switches, and at the rest after
 * CHECK_SCHED_TURNS times as many; later by the number of entries that the last look
 * took. */
#define CHECK_PERIOD      1024
#define CHECK_SCHED_TURNS 4

/* In state RUNTIME, without locks. */
void check_often(struct m *mp);
/* Owner of pp only. */
size_t p_check(const struct p *pp);
/* sched.lock held. */
size_t sched_check(void);

/* Owner of pp only; thieves may steal meanwhile. */
size_t runq_check(const struct p *pp);
/* sched.lock held. */
size_t globq_check(void);
void procs_check(void);
void world_check(void);

#else
static inline void check_often(struct m *mp) { (void)mp; }
#endif

#endif
