/*
 * latency.h - the time from ready to running. Defined in latency.c, which
 * explains the sampling.
 *
 * A goroutine that is made ready is timed by a stamp, which goes with it until
 * it runs: most carry none. Its state says whether it does, since that is looked
 * at anyway, and the stamp lies where the time of its park was.
 */
#ifndef GORO_LATENCY_H
#define GORO_LATENCY_H

#include "types.h"

/* The seldom taken half of the two below; here traces hear of it, too. */
uint64_t latency_stamp(struct p *pp, struct g *gp);
void latency_record(struct p *pp, struct g *gp);

/* gp becomes runnable, and is about to be put where others find it. Owner P
 * only. */
static inline void latency_ready(struct p *pp, struct g *gp)
{
	/* release: it is whole, should a dump find it; pairs with is_shown in dump.c */
	if (__builtin_expect(--pp->latency_in == 0, 0)) {
		gp->wait_since = (int64_t)latency_stamp(pp, gp);
		store_release(&gp->status, G_RUNNABLE_TIMED);
	} else {
		store_release(&gp->status, G_RUNNABLE);
	}
}

/* A runnable gp is about to run on pp: counts it if it was timed. Owner P only. */
static inline __attribute__((always_inline)) void latency_run(struct p *pp, struct g *gp)
{
	if (__builtin_expect(load_relaxed(&gp->status) == G_RUNNABLE_TIMED, 0))
		latency_record(pp, gp);
}

/* The bucket of a time, and the time at which a bucket ends, in seconds. */
unsigned latency_bucket(int64_t ns);
double latency_upper_bound(unsigned bucket);

#endif
