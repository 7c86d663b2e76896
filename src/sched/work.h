/*
 * work.h - work sources: what a P has to do besides its run queues. Defined in work.c.
 *
 * A module may put work off and leave it with a P: reads that were not tried, writes that
 * were not sent. Such a module is a work source. It registers once, at the start, and
 * gets a bit in the word `deferred` of every P:
 *
 *	- The owner of the P sets the bit when the module leaves something with the P
 *	  (work_defer), and clears it when nothing is left (work_done).
 *	- While a bit is set the P has work, as with a goroutine in a run queue: it does
 *	  not become idle, and it goes to another M when its own blocks.
 *	- Other threads may take the work away. The bit is set until the owner sees that.
 *
 * The scheduler calls the sources in the order in which they registered, and each only if
 * its bit is set. A source leaves out (NULL) what does not concern it.
 *
 * Rejected: a function that says whether a source has work. Every M that is about to
 * sleep and every handoff would call all of them.
 */
#ifndef GORO_WORK_H
#define GORO_WORK_H

#include "sched/runq.h"

/* A goroutine may run for this long beside work that is late. */
#define WORK_SLICE_NS 200000

struct work_source {
	/* Whether something on pp cannot wait for empty queues. Any thread. */
	bool (*due)(const struct p *pp);
	/* Whether something on pp is so late that sysmon preempts its goroutine. Any
	 * thread. */
	bool (*late)(const struct p *pp);

	/* From here on: by the owner of mp->p, in state RUNTIME, without locks. */

	/* Does what is due. */
	void (*see_to_due)(struct m *mp);
	/* The P's queues are empty: a goroutine to run; others may come with it. */
	struct g *(*take)(struct m *mp);
	/* The poller had nothing either: queues all goroutines that wait for the
	 * source. */
	void (*flush)(struct m *mp);
	/* The M is about to block with its P left behind: does what cannot wait for
	 * sysmon. */
	void (*before_call)(struct m *mp);
	/* World stopped, from goes out of use: moves all to `to`, or makes it ready. */
	void (*drain)(struct m *mp, struct p *from, struct p *to);

	/* sysmon's look at all Ps, whatever their bits. ns until the next; TIMER_NEVER:
	 * none. */
	int64_t (*watch)(int64_t now);

	/* Set by work_register. */
	uint32_t bit;
	struct work_source *next;
};

/* While the runtime starts. */
void work_register(struct work_source *s);
/* The bits of all sources. */
uint32_t work_bits(void);

/* Owner of pp only. */
static inline void work_defer(struct p *pp, const struct work_source *s)
{
	check(s->bit & work_bits());
	store_relaxed(&pp->deferred, pp->deferred | s->bit);
}

static inline void work_done(struct p *pp, const struct work_source *s)
{
	store_relaxed(&pp->deferred, pp->deferred & ~s->bit);
}

static inline bool work_deferred(const struct p *pp)
{
	return unlikely(load_relaxed(&pp->deferred) != 0);
}

/* Any thread. Never denies that a P has work, but may say so when it is just done. */
static inline bool p_has_work(const struct p *pp)
{
	return !runq_empty(pp) || work_deferred(pp);
}

/* Each calls the member of that name of the sources that have something on the P. */
bool work_due(const struct p *pp);
bool work_late(const struct p *pp);
void work_see_to_due(struct m *mp);
struct g *work_take(struct m *mp);
struct g *work_flush(struct m *mp);	/* and takes the first from the P's queues */
void work_before_call_slow(struct m *mp);
void work_drain(struct m *mp, struct p *from, struct p *to);
int64_t work_watch(int64_t now);

static inline void work_before_call(struct m *mp)
{
	if (work_deferred(mp->p))
		work_before_call_slow(mp);
}

#endif
