/*
 * latency.h - the time from ready to running. Defined in latency.c, which
 * explains the sampling.
 *
 * A goroutine that is timed carries a stamp from when it is made ready until it runs.
 * Most carry none (g.timed). The stamp replaces the time of the park (g.wait_since).
 */
#ifndef GORO_LATENCY_H
#define GORO_LATENCY_H

#include "sched/trace_hook.h"
#include "sched/types.h"

/* The slow halves of the two below. */
void latency_stamp(struct p *pp, struct g *gp);
void latency_record(struct p *pp, struct g *gp);

/* Owner of pp only. */
static inline void latency_ready(struct p *pp, struct g *gp)
{
	if (unlikely(--pp->latency_in == 0))
		latency_stamp(pp, gp);
}

/* Owner of pp only. gp is about to run on pp: records its time if it carries a stamp. */
static inline __attribute__((always_inline)) void latency_run(struct p *pp, struct g *gp)
{
	if (unlikely(gp->timed))
		latency_record(pp, gp);
}

/* Owner of pp only. gp becomes runnable; the caller queues it next. */
static inline __attribute__((always_inline)) void g_set_runnable(struct p *pp, struct g *gp)
{
	trace_go_ready(pp->mp, gp);
	latency_ready(pp, gp);
	/* release: it is whole, should a dump find it; pairs with is_shown in dump.c */
	store_release(&gp->status, G_RUNNABLE);
}

/* The bucket of a time; the time at which a bucket ends, in seconds. */
unsigned latency_bucket(int64_t ns);
double latency_upper_bound(unsigned bucket);

#endif
