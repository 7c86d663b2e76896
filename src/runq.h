/*
 * runq.h - run queues. Defined in runq.c, which states the protocols.
 */
#ifndef GORO_RUNQ_H
#define GORO_RUNQ_H

#include "types.h"

/* Owner of the P only (the M that has it, or who holds a stopped P). */
void runq_put_started(struct p *pp, struct g *gp);
void runq_put_woken(struct p *pp, struct g *gp);
void runq_put_next(struct p *pp, struct g *gp);	/* runs next; the last next is woken */
/* The next to run; *inherit: it goes on with the slice of the one before. */
struct g *runq_get(struct p *pp, bool *inherit);
/* Moves everything to the global queue. sched.lock held. */
void runq_drain(struct p *pp);

/* Any thread. May say "not empty" of a queue that was just emptied, never the
 * other way about. */
bool runq_empty(const struct p *pp);
size_t runq_length(const struct p *pp);

/* What is in a P's queues, as far as another can see. */
struct runq_look {
	uint32_t started, woken;		/* how many */
	uint32_t started_head, woken_head;	/* the oldest's position: another one's is another */
	const struct g *next;
	uint64_t switches;
};
struct runq_look runq_look(const struct p *pp);

/* Takes half of from's goroutines for pp (owner of pp only), one of which is
 * returned to run: of those kinds that are asked for, the first that there are. */
struct g *runq_steal(struct p *pp, struct p *from, bool started, bool woken, bool next);

/* The global queue. sched.lock held. */
void globq_put(struct g *gp);
void globq_put_urgent(struct g *gp);	/* before all that had their turn given */
void globq_put_list(struct g *head, struct g *tail, size_t n);
/* The first that brings its own M. */
struct g *globq_take_bound(void);
/* One to run, and a fair share of the rest into pp's queue. */
struct g *globq_get(struct p *pp);

static inline size_t globq_length(void)
{
	return load_relaxed(&sched.runq.n) + load_relaxed(&sched.bound.n);
}

/* Visits 0..n-1 once each, from a random start, by a random stride that has no
 * divisor in common with n. */
struct steal_order {
	unsigned left, at, stride, n;
};
struct steal_order steal_order_start(unsigned n, uint64_t random);
static inline bool steal_order_done(const struct steal_order *o)
{
	return o->left == 0;
}
static inline void steal_order_next(struct steal_order *o)
{
	o->left--;
	o->at = (o->at + o->stride) % o->n;
}

#if GORO_CHECKS
void runq_check(const struct p *pp);
#else
static inline void runq_check(const struct p *pp) { (void)pp; }
#endif

#endif
