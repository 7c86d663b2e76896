/*
 * steal.h - looking for work in the queues of other Ps. Defined in steal.c.
 */
#ifndef GORO_STEAL_H
#define GORO_STEAL_H

#include <stdbool.h>
#include <stdint.h>

struct g;
struct m;
struct p;

/* A quarter of what it costs to wake a thread. With 30 us fib on two Ps takes 1.3
 * times. */
#define STEAL_AFTER_NS 10000

/* What a thief saw in a P, and when it first saw that. */
struct steal_note {
	uint64_t what;		/* 0: nothing */
	int64_t at;
};

/* Thieves' notes in the P that they look at. Any thief writes; relaxed. */
struct p_steal {
	struct steal_note started;	/* the position of the oldest started */
	struct steal_note woken;	/* the oldest woken when a watch began */
	struct steal_note next;		/* runnext */
	struct steal_note claim;	/* a thief's claim to some of the started */
	uint64_t switches;		/* the P's switches at the last look */
};

/* Stealing on trial: see steal_trial.c. */
struct p_trial {
	/* Thieves' notes in the P that they watch. Any thief writes; relaxed. */
	uint64_t looks;			/* in this watch: all in the upper half, those
					 * that saw one waiting in the lower */
	uint64_t watched_switches;	/* the P's switches when the watch began */
	uint64_t before;		/* the P's switches a millisecond in the last
					 * watch */
	int64_t watched_at;		/* when the watch began */
	int64_t watch_ns;		/* how long a watch takes; 0: WATCH_NS */

	/* Owner only: the trial that this P's M began as a thief. */
	struct p *from;			/* the P that it took from; NULL: no trial */
	int64_t began_at;
	uint64_t switches;		/* of both Ps, when the trial began */
	uint64_t rate;			/* from's switches a millisecond before the
					 * trial */
};

/* Notes a look at from. True: it is time to steal from it on trial. */
bool trial_is_wanted(struct p *from, bool waits, int64_t now);
/* Owner of pp only. pp has stolen from from on trial. */
void trial_begin(struct p *pp, struct p *from, int64_t now);
/* Owner of pp only. pp looks for work, which ends its trial, if there is one. */
void trial_look(struct p *pp, int64_t now);

/* A goroutine to run; others may come into the queues of the M's P, with which it spins.
 * NULL: nothing is worth taking, or the global queue or a stop of the world comes first.
 * woken: another M has just woken it. */
struct g *steal_work(struct m *mp, bool woken);

/* Takes any goroutine of the waker's P, if this thread is on the waker's CPU. */
struct g *steal_in_place(struct m *mp);

/* Owner of pp only. One look at from: takes for pp what is worth taking. */
struct g *steal_from(struct p *pp, struct p *from, int64_t now);

#endif
