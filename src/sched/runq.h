/*
 * runq.h - run queues. Defined in runq.c, which states the protocols.
 */
#ifndef GORO_RUNQ_H
#define GORO_RUNQ_H

#include "platform/os.h"
#include "sched/types.h"

/* Picks between two turns against the usual order, each of a third of them. 61 as in Go:
 * prime, so that it does not beat with the program's own periods. */
#define FAIR_PERIOD_PICKS 61
/* Each pick of the oldest started opens another subtree (docs/performance-notes.md,
 * skynet), so at most one in this time. */
#define OLDEST_STARTED_NS 5000000

/* Moves all of pp's to the global queue. pp's owner, or the world's stopper; sched.lock
 * held. */
void runq_drain(struct p *pp);

/* Owner only, just woken from a long wait: prefetches for those behind it. */
void runq_fetch_next(const struct p *pp);

/* Any thread. Never says "empty" of a queue that is not, but perhaps the opposite. */
bool runq_empty(const struct p *pp);
size_t runq_length(const struct p *pp);

/* What another thread sees of a P's queues. */
struct runq_look {
	uint32_t started, woken;		/* how many */
	uint32_t started_head, woken_head;	/* of the oldest; running freely */
	uint64_t claim;				/* a thief's claim to some of started; 0:
						 * none */
	const struct g *next;
	uint64_t switches;
};
struct runq_look runq_look(const struct p *pp);

/* Owner of pp only. Takes half of from's goroutines of the first kind that is asked for
 * and not empty, and returns one to run. started are left alone while another thief has a
 * claim to them, unless the claim is stale (0: none). */
struct g *runq_steal(struct p *pp, struct p *from, bool started, bool woken, bool next,
                     uint64_t stale);

/* Owner only. The running goroutine was preempted: see "Order of spawns". */
void runq_stopped(struct p *pp);

/* The global queue. sched.lock held. */
void globq_put(struct g *gp);
void globq_put_fresh(struct g *gp);	/* before the goroutines that have had a slice */
/* Takes the first goroutine that brings its own M, even out of turn. */
struct g *globq_take_bound(void);
/* Takes gp out of turn. False: it is not among the first that bring their own M. */
bool globq_take(struct g *gp);
/* Takes one to run, and moves a fair share into pp's queue. started: also those that
 * overflowed from a P's queue before they ran. */
struct g *globq_get(struct p *pp, bool started);

static inline size_t globq_fresh(void)
{
	return load_relaxed(&globq.fresh.n) + load_relaxed(&globq.fresh_bound.n);
}

/* Whether a goroutine that brings its own M is there. */
static inline bool globq_has_bound(void)
{
	return load_relaxed(&globq.bound.n) + load_relaxed(&globq.fresh_bound.n) != 0;
}

static inline size_t globq_length(void)
{
	return load_relaxed(&globq.queued);
}

/* Prefetches what gp returns to. Of no use, but harmless, if gp is not at rest. */
#define WAKE_LINES 3		/* of stack, to return to its caller */
static inline void g_fetch_stack(const struct g *gp)
{
	const char *sp = (const char *)load_relaxed(&gp->context.sp);

	for (int line = 0; line < WAKE_LINES; line++)
		__builtin_prefetch(sp + line * CACHE_LINE);
}

/* ------------------------------------------- the owner's side, inlined
 *
 * Most of a switch. The protocols are explained in runq.c. */

/* One P: there are no thieves. */
static inline bool runq_alone(void)
{
	return load_relaxed(&sched.gomaxprocs) == 1;
}

/* The owner changes the word from *w. False: a thief changed it; *w is the new word. */
static inline bool deque_change(struct deque *d, uint64_t *w, uint64_t to)
{
	if (runq_alone()) {
		store_release(&d->word, to);
		return true;
	}
	return cas_acqrel(&d->word, w, to);
}

static inline uint16_t d_head(uint64_t w) { return (uint16_t)w; }
static inline uint16_t d_claim(uint64_t w) { return (uint16_t)(w >> 16); }
/* A new word, whose tag differs from that of w. */
static inline uint64_t d_next(uint64_t w, uint16_t claim, uint16_t head)
{
	return ((w >> 32) + 1) << 32 | (uint64_t)claim << 16 | head;
}

/* Exact for the owner; other threads may see a few too many or too few. */
static inline uint16_t deque_count(const struct deque *d)
{
	/* acquire: a tail that is no older; pairs with cas_acqrel in deque_take_oldest,
	 * deque_steal */
	uint16_t h = d_head(load_acquire(&d->word));
	uint16_t n = (uint16_t)(load_acquire(&d->tail) - h);

	return n > GORO_RUNQ_CAP ? 0 : n;	/* the owner takes the last */
}

/* Owner only. False: full. */
static inline bool deque_push(struct deque *d, struct g *gp)
{
	/* acquire: thieves have copied what we overwrite; pairs with deque_steal */
	uint16_t h = d_head(load_acquire(&d->word)), t = (uint16_t)d->tail;

	if ((uint16_t)(t - h) == GORO_RUNQ_CAP)
		return false;
	store_relaxed(&d->slot[t % GORO_RUNQ_CAP], gp);
	/* release: the slot and the G; pairs with load_acquire in deque_steal */
	store_release(&d->tail, (uint16_t)(t + 1));
	return true;
}

/* The owner has lowered the tail to t, and slot t is in a thief's claim, or stolen. */
struct g *deque_pop_contended(struct deque *d, uint16_t t);

/* Owner only. */
static inline __attribute__((always_inline)) struct g *deque_pop_newest(struct deque *d)
{
	uint64_t w = load_relaxed(&d->word);
	uint16_t t = (uint16_t)(d->tail - 1);

	while (d_head(w) == t)	/* the last one is taken at the head */
		if (deque_change(d, &w, d_next(w, 0, (uint16_t)(t + 1))))
			return load_relaxed(&d->slot[t % GORO_RUNQ_CAP]);
	if (d_head(w) == (uint16_t)(t + 1))
		return NULL;
	/* The store, and then the load: see "The deque" in runq.c. */
	store_relaxed(&d->tail, t);
	if (__builtin_expect(os_membarrier_works, 1))
		compiler_barrier();
	else
		fence_seqcst();
	w = load_relaxed(&d->word);
	/* Neither claimed nor stolen, which would wrap to a large number. */
	if (__builtin_expect((uint16_t)(t - d_head(w) - d_claim(w)) < GORO_RUNQ_CAP, 1))
		return load_relaxed(&d->slot[t % GORO_RUNQ_CAP]);
	return deque_pop_contended(d, t);
}

/* Owner only. False: full. */
static inline bool ring_push(struct ring *r, struct g *gp)
{
	/* acquire: the slot is free; pairs with cas_acqrel in ring_take */
	uint32_t h = load_acquire(&r->head);
	uint32_t t = r->tail;

	if (t - h >= GORO_RUNQ_CAP)
		return false;
	store_relaxed(&r->slot[t % GORO_RUNQ_CAP], gp);
	/* release: publishes the slot and the G; pairs with load_acquire in ring_take */
	store_release(&r->tail, t + 1);
	return true;
}

/* Any thread. Takes the oldest n in order; 0: half, rounded up. Returns how many. */
static inline uint32_t ring_take(struct ring *r, struct g **out, uint32_t n)
{
	for (;;) {
		uint32_t h = load_acquire(&r->head);
		/* acquire: the slots; pairs with store_release in ring_push */
		uint32_t t = load_acquire(&r->tail);
		uint32_t count = t - h;
		uint32_t take = n ? n : count - count / 2;

		if (count == 0)
			return 0;
		if (count > GORO_RUNQ_CAP)	/* from different moments */
			continue;
		if (take > count)
			take = count;
		for (uint32_t i = 0; i < take; i++)
			out[i] = load_relaxed(&r->slot[(h + i) % GORO_RUNQ_CAP]);
		/* release: our copies are made; pairs with load_acquire in ring_push */
		if (cas_acqrel(&r->head, &h, h + take))
			return take;
	}
}

/* Owner only. */
static inline struct g *ring_pop(struct ring *r)
{
	struct g *gp;

	if (runq_alone()) {
		if (r->head == r->tail)
			return NULL;
		gp = r->slot[r->head % GORO_RUNQ_CAP];
		store_relaxed(&r->head, r->head + 1);
		return gp;
	}
	return ring_take(r, &gp, 1) ? gp : NULL;
}

/* The queue is full: half of it goes to the global queue; a woken gp goes behind it. */
void runq_put_woken_slow(struct p *pp, struct g *gp);
void runq_put_in_order_slow(struct p *pp, struct g *gp);	/* gp alone does */
void runq_put_started_slow(struct p *pp, struct g *gp);
/* A pick against the usual order. NULL: nothing is there, pick as usual. */
struct g *runq_get_fair(struct p *pp);

static inline void runq_put_started(struct p *pp, struct g *gp)
{
	check(load_relaxed(&gp->status) == G_RUNNABLE);
	if (!deque_push(&pp->started, gp))
		runq_put_started_slow(pp, gp);
}

static inline void runq_put_woken(struct p *pp, struct g *gp)
{
	check(load_relaxed(&gp->status) == G_RUNNABLE);
	if (!ring_push(&pp->woken, gp))
		runq_put_woken_slow(pp, gp);
}

/* gp begins after all that were put so before it. */
static inline void runq_put_in_order(struct p *pp, struct g *gp)
{
	check(load_relaxed(&gp->status) == G_RUNNABLE);
	if (!ring_push(&pp->woken, gp))
		runq_put_in_order_slow(pp, gp);
}

/* The owner sets runnext. Returns the old one. */
static inline __attribute__((always_inline)) struct g *swap_next(struct p *pp, struct g *gp)
{
	if (runq_alone()) {
		struct g *old = load_relaxed(&pp->runnext);

		store_relaxed(&pp->runnext, gp);
		return old;
	}
	/* acqrel: publishes the G to a thief, and takes over what one left;
	 * pairs with itself and with cas_acqrel in steal_next */
	return exchange_acqrel(&pp->runnext, gp);
}

/* gp becomes runnext; the old runnext goes to woken. */
static inline void runq_put_next(struct p *pp, struct g *gp)
{
	struct g *old = load_relaxed(&pp->runnext);

	check(gp != old && load_relaxed(&gp->status) == G_RUNNABLE);
	if (!old) {		/* only the owner fills it */
		/* release: the G; pairs with cas_acqrel in steal_next */
		store_release(&pp->runnext, gp);
		return;
	}
	old = swap_next(pp, gp);
	if (old)
		runq_put_woken(pp, old);
}

/* Whether this pick is the fair one. Called once for each pick. */
static inline bool runq_fair_turn(struct p *pp)
{
	return __builtin_expect(--pp->fair.in == 0, 0);
}

/* The next to run. *inherit: it goes on with the slice of the one before. */
static inline __attribute__((always_inline)) struct g *runq_get_usual(struct p *pp, bool *inherit)
{
	struct g *gp;

	*inherit = false;
	if (load_relaxed(&pp->runnext) && (gp = swap_next(pp, NULL))) {
		*inherit = true;
		return gp;
	}
	gp = deque_pop_newest(&pp->started);
	return gp ? gp : ring_pop(&pp->woken);
}

static inline __attribute__((always_inline)) struct g *runq_get(struct p *pp, bool *inherit)
{
	struct g *gp;

	*inherit = false;
	if (runq_fair_turn(pp) && (gp = runq_get_fair(pp)))
		return gp;
	return runq_get_usual(pp, inherit);
}

/* Owner only. Whether runnext is the only goroutine in the queues. */
static inline bool runq_only_next(const struct p *pp)
{
	return load_relaxed(&pp->runnext) && load_relaxed(&pp->woken.head) == pp->woken.tail &&
	       d_head(load_relaxed(&pp->started.word)) == (uint16_t)pp->started.tail;
}

#endif
