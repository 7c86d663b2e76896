/*
 * runq.h - run queues. Defined in runq.c, which states the protocols.
 */
#ifndef GORO_RUNQ_H
#define GORO_RUNQ_H

#include "os.h"
#include "types.h"

/* Owner of the P only (the M that has it, or who holds a stopped P). */
/* Moves everything to the global queue. sched.lock held. */
void runq_drain(struct p *pp);

/* The caller is about to park, and one of the woken runs next, probably for as long as a few
 * system calls take: what the one after it needs to go on is brought into the cache. */
void runq_prefetch(const struct p *pp);

/* The caller has just come back from a long wait, and those who run next probably have, too:
 * what they need is brought into the cache while it runs. */
void runq_fetch_next(const struct p *pp);

/* Any thread. May say "not empty" of a queue that was just emptied, never the
 * other way about. */
bool runq_empty(const struct p *pp);
size_t runq_length(const struct p *pp);

/* What is in a P's queues, as far as another can see. */
struct runq_look {
	uint32_t started, woken;		/* how many */
	uint32_t started_head, woken_head;	/* the oldest's position: another one's is another */
	uint64_t claim;				/* of a thief to some of the started; 0: none */
	const struct g *next;
	uint64_t switches;
};
struct runq_look runq_look(const struct p *pp);

/* Takes half of from's goroutines for pp (owner of pp only), one of which is
 * returned to run: of those kinds that are asked for, the first that there are. Of the
 * started, if no other thief has a claim to them but this one (0: none), which is void. */
struct g *runq_steal(struct p *pp, struct p *from, bool started, bool woken, bool next,
                     uint64_t stale);

/* The goroutine that ran was stopped: see "Order of spawns". Owner only. */
void runq_stopped(struct p *pp);

/* The global queue. sched.lock held. */
void globq_put(struct g *gp);
void globq_put_fresh(struct g *gp);	/* before those that have had their slice */
/* The first that brings its own M. */
struct g *globq_take_bound(void);
/* The next to run, if that brings its own M. */
struct g *globq_get_bound(void);
/* This one, out of turn, if it is there and brings its own M. */
bool globq_take(struct g *gp);
/* One to run, and a fair share of the rest into pp's queue. started: also those
 * that overflowed from somewhere before they ran. */
struct g *globq_get(struct p *pp, bool started);

static inline size_t globq_fresh(void)
{
	return load_relaxed(&sched.fresh.n) + load_relaxed(&sched.fresh_bound.n);
}

/* There is one that brings its own M. */
static inline bool globq_has_bound(void)
{
	return load_relaxed(&sched.bound.n) + load_relaxed(&sched.fresh_bound.n) != 0;
}

static inline size_t globq_length(void)
{
	return load_relaxed(&sched.queued);
}

/* Fetches what gp comes back to when it runs; or something else, if it is not at rest. */
#define WAKE_LINES 3		/* of its stack, that it needs to get back to its caller */
static inline void g_fetch_stack(const struct g *gp)
{
	const char *sp = (const char *)load_relaxed(&gp->context.sp);

	for (int line = 0; line < WAKE_LINES; line++)
		__builtin_prefetch(sp + line * CACHE_LINE);
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

/* ------------------------------------------- the owner's side, inlined
 *
 * A switch is for the most part this. The protocols are explained in runq.c. */

/* No other P: nobody to race with. */
static inline bool runq_alone(void)
{
	return load_relaxed(&sched.gomaxprocs) == 1;
}

/* The owner's change of the word from *w; false: somebody changed it, *w anew. */
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
/* The one that comes after w: the tag is another. */
static inline uint64_t d_next(uint64_t w, uint16_t claim, uint16_t head)
{
	return ((w >> 32) + 1) << 32 | (uint64_t)claim << 16 | head;
}

/* What there is, as the owner knows it; as others see it, it may be a little more or less
 * than what there ever was. */
static inline uint16_t deque_count(const struct deque *d)
{
	/* acquire: the head first, and a tail that is no older; pairs with cas_acqrel in
	 * deque_take_oldest, deque_steal */
	uint16_t h = d_head(load_acquire(&d->word));
	uint16_t n = (uint16_t)(load_acquire(&d->tail) - h);

	return n > GORO_RUNQ_CAP ? 0 : n;	/* the owner takes the last */
}

/* Owner only. False: full. */
static inline bool deque_push(struct deque *d, struct g *gp)
{
	/* acquire: thieves have copied what we overwrite; pairs with cas_acqrel
	 * in deque_steal */
	uint16_t h = d_head(load_acquire(&d->word)), t = (uint16_t)d->tail;

	if ((uint16_t)(t - h) == GORO_RUNQ_CAP)
		return false;
	store_relaxed(&d->slot[t % GORO_RUNQ_CAP], gp);
	/* release: publishes the slot and the G; pairs with load_acquire in deque_steal */
	store_release(&d->tail, (uint16_t)(t + 1));
	return true;
}

/* The tail is t, one less than it was, and t is in a thief's claim, or gone. */
struct g *deque_pop_contended(struct deque *d, uint16_t t);

/* Owner only. */
static inline __attribute__((always_inline)) struct g *deque_pop_newest(struct deque *d)
{
	uint64_t w = load_relaxed(&d->word);
	uint16_t t = (uint16_t)(d->tail - 1);

	while (d_head(w) == t)	/* the last: taken from that end */
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
	/* Not in a claim, nor gone: that would be a large number. */
	if (__builtin_expect((uint16_t)(t - d_head(w) - d_claim(w)) < GORO_RUNQ_CAP, 1))
		return load_relaxed(&d->slot[t % GORO_RUNQ_CAP]);
	return deque_pop_contended(d, t);
}

/* Owner only. False: full. */
static inline bool ring_push(struct ring *r, struct g *gp)
{
	/* acquire: consumers are done with the slot; pairs with cas_acqrel in
	 * ring_take */
	uint32_t h = load_acquire(&r->head);
	uint32_t t = r->tail;

	if (t - h >= GORO_RUNQ_CAP)
		return false;
	store_relaxed(&r->slot[t % GORO_RUNQ_CAP], gp);
	/* release: publishes the slot and the G; pairs with load_acquire in ring_take */
	store_release(&r->tail, t + 1);
	return true;
}

/* Takes the oldest n (n 0: half, rounded up; n > what is there: all) in order.
 * Anybody. */
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
		if (count > GORO_RUNQ_CAP)	/* head and tail are from different moments */
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

/* The queue is full: half of it goes to the global queue, and gp after it. */
void runq_put_woken_slow(struct p *pp, struct g *gp);
void runq_put_started_slow(struct p *pp, struct g *gp);
/* A pick against the usual order. NULL: nothing there, pick as usual. */
struct g *runq_get_fair(struct p *pp);

static inline void runq_put_started(struct p *pp, struct g *gp)
{
	if (!deque_push(&pp->started, gp))
		runq_put_started_slow(pp, gp);
}

static inline void runq_put_woken(struct p *pp, struct g *gp)
{
	if (!ring_push(&pp->woken, gp))
		runq_put_woken_slow(pp, gp);
}

/* The owner's change of runnext; what was there. */
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

/* gp runs next; the last next is woken. */
static inline void runq_put_next(struct p *pp, struct g *gp)
{
	struct g *old = load_relaxed(&pp->runnext);

	if (!old) {		/* and nobody but the owner fills it */
		/* release: the G; pairs with cas_acqrel in steal_next */
		store_release(&pp->runnext, gp);
		return;
	}
	old = swap_next(pp, gp);
	if (old)
		runq_put_woken(pp, old);
}

/* It is time to look in the other direction first. Once for each pick. */
static inline bool runq_fair_turn(struct p *pp)
{
	return __builtin_expect(--pp->fair_in == 0, 0);
}

/* The next to run; *inherit: it goes on with the slice of the one before. */
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

/* Nothing that would run before the woken. Owner only. */
static inline bool runq_only_woken(const struct p *pp)
{
	return !load_relaxed(&pp->runnext) &&
	       d_head(load_relaxed(&pp->started.word)) == (uint16_t)pp->started.tail;
}

/* Nothing but the next. Owner only. */
static inline bool runq_only_next(const struct p *pp)
{
	return load_relaxed(&pp->runnext) && load_relaxed(&pp->woken.head) == pp->woken.tail &&
	       d_head(load_relaxed(&pp->started.word)) == (uint16_t)pp->started.tail;
}

#if GORO_CHECKS
void runq_check(const struct p *pp);
#else
static inline void runq_check(const struct p *pp) { (void)pp; }
#endif

#endif
