/*
 * latency.h - the time from ready to running. Defined in latency.c, which
 * explains the sampling.
 *
 * A goroutine that is made ready is timed by a stamp, which goes with it until
 * it runs. Most carry none: 0.
 */
#ifndef GORO_LATENCY_H
#define GORO_LATENCY_H

#include "types.h"

uint64_t latency_stamp(struct p *pp);
void latency_record(struct p *pp, uint64_t stamp);

/* A goroutine is made ready: sets its stamp if it is to be timed. Before it is
 * put where others find it. Owner P only. */
static inline void latency_ready(struct p *pp, uint64_t *stamp)
{
	if (__builtin_expect(pp->latency_skip-- == 0, 0))
		*stamp = latency_stamp(pp);
}

/* It is about to run on pp: counts it if it was timed. Owner P only. */
static inline void latency_run(struct p *pp, uint64_t *stamp)
{
	if (__builtin_expect(*stamp != 0, 0)) {
		latency_record(pp, *stamp);
		*stamp = 0;
	}
}

/* The bucket of a time, and the time at which a bucket ends, in seconds. */
unsigned latency_bucket(int64_t ns);
double latency_upper_bound(unsigned bucket);

#endif
