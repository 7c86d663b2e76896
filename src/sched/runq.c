/*
 * runq.c - where runnable goroutines wait: each P's queues, and the global one.
 *
 * Order of spawns
 *
 * A P keeps the newly started apart from the newly woken. Started goroutines
 * run newest first on the P that started them, and thieves take the oldest: a
 * tree of goroutines is then walked depth first, with few alive and their
 * stacks hot, and a thief gets a large subtree. Woken goroutines run in order.
 * Go keeps both in one queue in order, and walks a tree breadth first, with all
 * its leaves alive at once. docs/performance-notes.md has the comparison.
 *
 * A function that the runtime starts for an event, a timer or the end of a context, is
 * kept with the woken: such functions begin in the order of their events.
 *
 * A P picks: runnext, the newest started, the oldest woken. Newest first alone
 * would starve the old, so three times in FAIR_PERIOD_PICKS a pick looks in the
 * other direction: the global queue, the oldest woken, the oldest started, in
 * turn. An entry thus waits for at most FAIR_PERIOD_PICKS picks for each entry
 * before it in its own queue, or, among the started, OLDEST_STARTED_NS.
 *
 * The global queue loses its turn in two cases. Most of its goroutines have had their slice, and
 * each pick of one gives it another slice of up to SLICE_NS.
 *
 *	- The P has taken one from the global queue since its last turn.
 *	- runnext is set, and a goroutine was stopped on this P less than a slice ago. The pair
 *	  that hands over by runnext has followed that goroutine, and its slice goes on. (Else
 *	  two goroutines that switch every microsecond would have 61 of them, and then a
 *	  goroutine that computes has ten thousand.) sysmon ends the pair's slice in time.
 *	  A goroutine that just came is not held up by this.
 *
 * That is long where a pick is a slice: who wakes beside many that have not begun, and compute when
 * they do, was late by 0.12 seconds. So where a goroutine was stopped, for those who came meanwhile, the
 * next pick is the oldest woken, every other time (runq_stopped).
 *
 * runnext is the goroutine that the running one just made ready. It runs next
 * and inherits the rest of the time slice, so that a pair that hands work to
 * and fro counts as one goroutine and does not starve the queue.
 *
 * The ring (woken): head and tail run freely, slot i lies at i % CAP.
 *	- tail is written by the owner only; slots [head, tail) are full.
 *	- head moves up by CAS: the owner's by one, a thief's by half.
 *	- A thief copies before its CAS; the owner never writes to a slot below
 *	  head + CAP, so what was copied is right if the CAS succeeds.
 *
 * The deque
 *
 * Of those that were started: the owner pushes and takes at the tail, by plain stores; thieves take
 * from the head, and half of what there is. A CAS on an unshared line costs 2 ns, and who starts a
 * goroutine and takes it up again would pay it twice; thieves come every 10 us at most.
 * So it is thieves who pay. One first lays claim to the oldest k (a CAS on the word, which has
 * the head and the claim). Then it has all threads pass a barrier, and only then looks how far the
 * owner has come down meanwhile, and copies what is left of its claim. It is the thief's
 * if a second CAS finds the word as it was.
 *
 *	owner, taking slot t            thief
 *	tail = t                        word: claim to [head, head + k)
 *	(nothing but program order)     membarrier
 *	read word                       read tail
 *	 t not in a claim: it is ours    copy [head, min(head + k, tail))
 *	 else the claim is voided        word: head moves up, no claim
 *	   by CAS, first                   by CAS
 *
 *	- The owner reads the word before the claim is there: then its store of tail came before
 *	  the barrier that its CPU passed, and the thief reads it, and leaves t alone.
 *	- It reads it after: it sees the claim. Who is first to change the word has t, and
 *	  both know who that is. The owner waits for nobody.
 *	- tail is written by the owner only; slots [head, tail) are full, but for t while
 *	  the owner takes it.
 *	- A thief copies before its CAS; the owner never writes to a slot below
 *	  head + CAP, and takes none that is claimed, so what was copied is right if the CAS
 *	  succeeds. Each change of the word changes its 32-bit tag: one that was voided and laid anew
 *	  is another claim. (A thief would have to sleep through exactly 2^32 of them.)
 *	- A thief that finds another's claim leaves that alone, unless it has been there for as
 *	  long as only one would leave it who was stopped (steal.c).
 *
 * The last one is taken from the head, by CAS, so that while the head stands still
 * and there is something it is the same oldest one, but for rare races (steal.c). Without membarrier the owner has a fence
 * where it says "program order".
 *
 * Rejected: both ends in one word that everybody changes by CAS (see
 * docs/performance-notes.md). The usual work-stealing deque, where thieves take one at a time and need no claim:
 * each would be a barrier of its own.
 *
 * With one P there are no thieves (an M that looks for work has a P), so the
 * owner's changes need no locked instruction at all. GOMAXPROCS changes only while the
 * world is stopped, and whoever owns a P afterwards got it under sched.lock, so
 * owner and thieves always agree on it.
 *
 * The global queue is a list under sched.lock; or rather three and two: of those that run
 * anywhere; of those that bring their own M (preempt.c), which must be found at
 * once when no other M is to be had; and of started ones, the old half of a P's
 * that was full. Turns keep them in one order. Started ones are taken when a P has
 * nothing else, or by the clock as from its own: were they taken in turn with the
 * woken, each would open another subtree, whose started ones fill the P's queue
 * again, and a tree that once overflowed would be walked breadth first from then
 * on (skynet: 40,000 stacks in use instead of 500). And two more lists, of both
 * kinds, for those for whom there is no P's queue although they just came: a plain
 * thread started or woke them, an M without a P found them in the poller, or they
 * are back from a blocking call. They go before the others, who have had their
 * slice, as a P's own queues do.
 *
 * What comes from a full queue comes together and stays so: an array of pointers (struct
 * gbatch) with one turn for all. Where goroutines overflow there are many, and each one's G
 * is in no cache, nor is the way to it in the TLB. To go from one to the next by a link is a
 * chain of such misses, 0.4 to 0.8 us each, with sched.lock held; of an array many can be
 * fetched at once. (If there is no memory for one, they are linked.)
 */
#include "runq.h"

#include <string.h>

#include "debug.h"
#include "linger.h"
#include "mem.h"
#include "os.h"
#include "steal.h"
#include "throw.h"

#define CAP GORO_RUNQ_CAP
_Static_assert(FAIR_PERIOD_PICKS <= UINT8_MAX, "runq: fair_rest");
_Static_assert((CAP & (CAP - 1)) == 0 && CAP >= 2 && CAP <= 32768, "runq: a power of two");

/* ------------------------------------------------------------------ deque */

static void deque_copy(const struct deque *d, uint16_t from, struct g **out, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = load_relaxed(&d->slot[(uint16_t)(from + i) % CAP]);
}

static uint32_t half_of(uint32_t n)
{
	return n - n / 2;
}

/* Takes the oldest n (n 0: half, rounded up; n > what is there: all) in order.
 * Owner only: it knows its tail. */
static uint32_t deque_take_oldest(struct deque *d, struct g **out, uint32_t n)
{
	uint64_t w = load_acquire(&d->word);

	for (;;) {
		uint32_t count = (uint16_t)(d->tail - d_head(w));
		uint32_t take = n ? n : half_of(count);

		if (take > count)
			take = count;
		if (take == 0)
			return 0;
		deque_copy(d, d_head(w), out, take);
		if (deque_change(d, &w, d_next(w, 0, (uint16_t)(d_head(w) + take))))
			return take;
	}
}

__attribute__((noinline)) struct g *deque_pop_contended(struct deque *d, uint16_t t)
{
	uint64_t w = load_relaxed(&d->word);

	for (;;) {
		uint16_t h = d_head(w);

		if ((uint16_t)(t + 1) == h) {	/* thieves were faster */
			store_relaxed(&d->tail, h);
			return NULL;
		}
		/* acqrel: before a thief that comes later looks at the tail */
		if ((uint16_t)(t - h) >= d_claim(w) || deque_change(d, &w, d_next(w, 0, h)))
			return load_relaxed(&d->slot[t % CAP]);
	}
}

/* Takes the older half, rounded up, in order. Thieves. */
static uint32_t deque_steal(struct deque *d, struct g **out, uint64_t stale)
{
	uint64_t w = load_acquire(&d->word), mine;
	uint32_t k = half_of(deque_count(d)), n;

	if (k == 0 || (d_claim(w) != 0 && w != stale))
		return 0;
	mine = d_next(w, (uint16_t)k, d_head(w));
	if (!cas_acqrel(&d->word, &w, mine))
		return 0;
	linger();
	os_membarrier();
	/* acquire: the slots; pairs with store_release in deque_push */
	n = (uint16_t)(load_acquire(&d->tail) - d_head(mine));
	n = n > CAP ? 0 : n < k ? n : k;
	deque_copy(d, d_head(mine), out, n);
	linger();
	/* release: our copies are made; pairs with load_acquire in deque_push */
	if (!cas_acqrel(&d->word, &mine, d_next(mine, 0, (uint16_t)(d_head(mine) + n))))
		return 0;
	return n;
}

/* Owner only: at least so many fit. */
static inline uint32_t deque_room(const struct deque *d)
{
	return CAP - deque_count(d);
}

/* (What out holds when nothing was taken is a failed try's: not to be used.) */
static inline struct g *deque_pop_oldest(struct deque *d)
{
	struct g *gp;

	return deque_take_oldest(d, &gp, 1) ? gp : NULL;
}

/* ------------------------------------------------------------------- ring */

/* Owner only: at least so many fit. */
static inline uint32_t ring_room(const struct ring *r)
{
	return CAP - (r->tail - load_acquire(&r->head));
}

/* ----------------------------------------------------------- global queue */

/* What a full queue gives away, and the one for whom there was no room. */
#define BATCH_MAX (CAP / 2 + 1)

struct gbatch {
	struct gbatch *next;
	uint64_t seq;
	uint32_t at, n;		/* those before at are gone */
	struct g *g[BATCH_MAX];
};

static void count_queued(struct gqueue *q, size_t n)
{
	store_relaxed(&q->n, q->n + n);
	store_relaxed(&sched.queued, sched.queued + (uint32_t)n);
}

static void list_put(struct gqueue *q, struct g *gp, uint64_t seq)
{
	gp->queue_seq = seq;
	gp->link = NULL;
	if (q->tail)
		q->tail->link = gp;
	else
		q->head = gp;
	q->tail = gp;
	count_queued(q, 1);
}

/* The one after before; NULL: the first. */
static struct g *list_take_after(struct gqueue *q, struct g *before)
{
	struct g **at = before ? &before->link : &q->head, *gp = *at;

	*at = gp->link;
	if (!gp->link)
		q->tail = before;
	count_queued(q, (size_t)-1);
	gp->link = NULL;
	return gp;
}

/* The turn of the first; UINT64_MAX: there is none. */
static uint64_t list_turn(const struct gqueue *q)
{
	return q->head ? q->head->queue_seq : UINT64_MAX;
}

static uint64_t batch_turn(const struct gqueue *q)
{
	return q->batch ? q->batch->seq : UINT64_MAX;
}

static uint64_t turn_of(const struct gqueue *q)
{
	return list_turn(q) < batch_turn(q) ? list_turn(q) : batch_turn(q);
}

static struct g *batch_pop(struct gqueue *q)
{
	struct gbatch *b = q->batch;
	struct g *gp = b->g[b->at++];

	count_queued(q, (size_t)-1);
	if (b->at == b->n) {
		q->batch = b->next;
		if (!b->next)
			q->last_batch = NULL;
		b->next = sched.free_batches;
		sched.free_batches = b;
	}
	return gp;
}

static struct g *pop(struct gqueue *q)
{
	return batch_turn(q) < list_turn(q) ? batch_pop(q) : list_take_after(q, NULL);
}

void globq_put(struct g *gp)
{
	check(lock_is_held(&sched.lock));
	list_put(gp->locked_m ? &sched.bound : &sched.runq, gp, ++sched.queue_seq);
}

static struct gbatch *batch_make(void)
{
	struct gbatch *b = sched.free_batches;

	if (!b)
		return mem_alloc(sizeof *b);
	sched.free_batches = b->next;
	return b;
}

/* One turn for all: they came together. At most BATCH_MAX. */
static void globq_put_all(struct gqueue *q, struct g **gs, uint32_t n)
{
	uint64_t seq = ++sched.queue_seq;
	struct gbatch *b = batch_make();

	check(lock_is_held(&sched.lock) && n > 0 && n <= BATCH_MAX);
	if (!b) {
		for (uint32_t i = 0; i < n; i++)
			list_put(q, gs[i], seq);
		return;
	}
	b->next = NULL;
	b->seq = seq;
	b->at = 0;
	b->n = n;
	memcpy(b->g, gs, n * sizeof *gs);
	if (q->last_batch)
		q->last_batch->next = b;
	else
		q->batch = b;
	q->last_batch = b;
	count_queued(q, n);
}

void globq_put_fresh(struct g *gp)
{
	check(lock_is_held(&sched.lock));
	list_put(gp->locked_m ? &sched.fresh_bound : &sched.fresh, gp, ++sched.queue_seq);
}

/* The first, or one among the first, as many as there are Ps, whose M is near (idle.c):
 * those would run at the same time. Nobody is passed over twice in a row. */
static struct g *bound_pop(struct gqueue *q)
{
	struct g *before = NULL, *gp = q->head;
	int cpu = os_cpu();

	if (q != &sched.bound || sched.passed_over || sched.gomaxprocs == 1) {
		sched.passed_over = false;
		return pop(q);
	}
	for (int i = 0; gp && i < sched.gomaxprocs && i < NEAR_MAX; i++) {
		if (load_relaxed(&gp->locked_m->cpu) == cpu) {
			sched.passed_over = before;
			return list_take_after(q, before);
		}
		before = gp;
		gp = gp->link;
	}
	return pop(q);
}

struct g *globq_take_bound(void)
{
	check(lock_is_held(&sched.lock));
	if (sched.fresh_bound.head)
		return pop(&sched.fresh_bound);
	return sched.bound.head ? bound_pop(&sched.bound) : NULL;
}

bool globq_take(struct g *gp)
{
	struct gqueue *q = &sched.bound;
	struct g *before = NULL, *at = q->head;

	check(lock_is_held(&sched.lock));
	for (int i = 0; at && at != gp && i < GLOBQ_SEARCH_MAX; i++) {
		before = at;
		at = at->link;
	}
	if (!at || at != gp)
		return false;
	list_take_after(q, before);
	return true;
}

/* The one of n lists whose first has waited longest, or NULL. */
static struct gqueue *longest_waiting(struct gqueue *const *all, int n)
{
	struct gqueue *first = NULL;

	for (int i = 0; i < n; i++)
		if (all[i]->n > 0 && (!first || turn_of(all[i]) < turn_of(first)))
			first = all[i];
	return first;
}

static struct gqueue *whose_turn(bool started)
{
	struct gqueue *const fresh[] = { &sched.fresh_bound, &sched.fresh };
	struct gqueue *const others[] = { &sched.bound, &sched.runq, &sched.started };
	struct gqueue *next = longest_waiting(others, 2 + started);

	if (globq_fresh() != 0 && (sched.fresh_row < FRESH_ROW || !next)) {
		sched.fresh_row++;
		return longest_waiting(fresh, 2);
	}
	sched.fresh_row = 0;
	return next;
}

struct g *globq_get_bound(void)
{
	uint32_t row = sched.fresh_row;
	struct gqueue *q = whose_turn(true);

	check(lock_is_held(&sched.lock));
	if (q == &sched.bound || q == &sched.fresh_bound)
		return bound_pop(q);
	sched.fresh_row = row;
	return NULL;
}

/* Off the list first: once pushed it may run, end and be reused. All of their Gs are on
 * their way before the first is looked at (with nothing in between: see wake_sleepers),
 * and then what they come back to. */
static void pop_many(struct gqueue *q, struct g **gs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		gs[i] = pop(q);
	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(gs[i], 1);
	for (uint32_t i = 0; i < n; i++)
		g_fetch_stack(gs[i]);
}

/* Among whom the global queue is shared: Ps that there are no CPUs for come only if they are in
 * use. (With 64 of them on 2 CPUs who comes would get 8 of 500, and be back at once.) */
static size_t sharers(void)
{
	int idle = load_relaxed(&sched.idle_p_n), unneeded = load_relaxed(&sched.unneeded_p);

	return (size_t)(sched.gomaxprocs - (idle < unneeded ? idle : unneeded));
}

/* The rest of a share goes where its kind waits, which is no longer than that of
 * the P that was full. */
struct g *globq_get(struct p *pp, bool started)
{
	struct gqueue *q = whose_turn(started);
	struct g *gp = !q ? NULL : q == &sched.bound ? bound_pop(q) : pop(q), *gs[CAP];
	uint32_t n = q ? (uint32_t)(q->n / sharers()) : 0, room = 0;

	check(lock_is_held(&sched.lock));
	if (q == &sched.runq || q == &sched.fresh)
		room = ring_room(&pp->woken) / 2;
	else if (q == &sched.started)
		room = deque_room(&pp->started) / 2;
	if (n > room)
		n = room;
	pop_many(q, gs, n);
	for (uint32_t i = 0; i < n; i++) {
		if (q != &sched.started)
			ring_push(&pp->woken, gs[i]);
		else			/* the oldest is to run first */
			deque_push(&pp->started, gs[n - 1 - i]);
	}
	return gp;
}

/* ------------------------------------------------------------ a P's queues */

static void put_global(struct gqueue *q, struct g **gs, uint32_t n)
{
	lock_acquire(&sched.lock);
	globq_put_all(q, gs, n);
	lock_release(&sched.lock);
}

/* The old half of a full queue goes to the global queue. */
void runq_put_started_slow(struct p *pp, struct g *gp)
{
	do {
		struct g *gs[CAP];
		uint32_t n = deque_take_oldest(&pp->started, gs, 0);

		if (n > 0)
			put_global(&sched.started, gs, n);
	} while (!deque_push(&pp->started, gp));
}

/* .. and gp after it, where order matters. */
void runq_put_woken_slow(struct p *pp, struct g *gp)
{
	struct g *gs[CAP + 1];
	uint32_t n = ring_take(&pp->woken, gs, 0);

	gs[n++] = gp;
	put_global(&sched.runq, gs, n);
}

/* The frames from who called one of ours down to the switch, about. */
#define PREFETCH_BYTES 512

/* A thief may have taken it: what is read of it then is of no use, and does no harm. */
TOOL_UNORDERED static const char *stack_of(const struct g *gp)
{
	return load_relaxed(&gp->context.sp);
}

/* Somewhat ahead, since each is a miss of the TLB as well: first the G of one, for its switch,
 * its next wait and its end, and when that has come, its frames, and those it will make. (To
 * fetch all of many at once does not do: what is too much for a CPU it forgets.) */
#define NEXT_G       4
#define NEXT_FRAMES  2
#define FRAMES_BELOW (2 * CACHE_LINE)
#define FRAMES_ABOVE (4 * CACHE_LINE)

void runq_fetch_next(const struct p *pp)
{
	uint32_t h = load_relaxed(&pp->woken.head), n = load_relaxed(&pp->woken.tail) - h;

	if (n > NEXT_G) {
		const struct g *gp = load_relaxed(&pp->woken.slot[(h + NEXT_G) % CAP]);

		__builtin_prefetch(&gp->context, 1);
		__builtin_prefetch(&gp->defers, 1);
		__builtin_prefetch(&gp->wait_reason, 1);
	}
	if (n > NEXT_FRAMES) {
		const char *sp = stack_of(load_relaxed(&pp->woken.slot[(h + NEXT_FRAMES) % CAP]));

		for (int i = -FRAMES_BELOW; i < FRAMES_ABOVE; i += CACHE_LINE)
			__builtin_prefetch(sp + i, 1);
	}
}

void runq_prefetch(const struct p *pp)
{
	uint32_t h = load_relaxed(&pp->woken.head), n = load_relaxed(&pp->woken.tail) - h;
	const char *sp;

	if (n > 2)
		__builtin_prefetch(load_relaxed(&pp->woken.slot[(h + 2) % CAP]), 1);
	if (n < 2)
		return;
	sp = stack_of(load_relaxed(&pp->woken.slot[(h + 1) % CAP]));
	for (int i = 0; i < PREFETCH_BYTES; i += CACHE_LINE)
		__builtin_prefetch(sp + i, 1);
}

/* Running the oldest started goroutine opens another subtree beside the one that
 * is being walked, so that is done by the clock and not by the count. */
static bool old_enough(int64_t *last)
{
	int64_t now = load_relaxed(&sched.coarse_now);

	if (now - *last < OLDEST_STARTED_NS)
		return false;
	*last = now;
	return true;
}

/* What was stolen goes back: to the global queue, from where the others take it while
 * this P's M pauses. */
static void fold(struct p *pp)
{
	pp->fair_in = FAIR_PERIOD_PICKS;
	pp->folds = true;
	lock_acquire(&sched.lock);
	runq_drain(pp);
	lock_release(&sched.lock);
}

void runq_stopped(struct p *pp)
{
	pp->stopped_at = load_relaxed(&sched.coarse_now);
	if (pp->stops++ % 2 != 0 || pp->fair_in == 1)
		return;
	pp->fair_rest = (uint8_t)(pp->fair_in - 1);
	pp->fair_in = 1;
}

/* Those who wait in the global queue were stopped, and the next here would go on with the
 * slice of those who followed them. */
static bool slice_goes_on(const struct p *pp)
{
	return load_relaxed(&pp->runnext) && globq_fresh() == 0 &&
	       load_relaxed(&sched.coarse_now) - pp->stopped_at < slice_ns();
}

struct g *runq_get_fair(struct p *pp)
{
	struct g *gp = NULL;
	bool served;

	if (pp->fair_rest != 0) {
		pp->fair_in = pp->fair_rest;
		pp->fair_rest = 0;
		return ring_pop(&pp->woken);
	}
	if (pp->trial.from && steal_failed(pp, os_now())) {
		fold(pp);
		return NULL;
	}
	pp->fair_in = FAIR_PERIOD_PICKS / 3 + (pp->fair_turn % 3 == 0);
	switch (pp->fair_turn++ % 3) {
	case 0:
		served = pp->global_served;
		pp->global_served = false;
		if (served || globq_length() == 0 || slice_goes_on(pp))
			break;
		lock_acquire(&sched.lock);
		gp = globq_get(pp, old_enough(&pp->global_at));
		lock_release(&sched.lock);
		break;
	case 1:
		gp = ring_pop(&pp->woken);
		break;
	case 2:
		gp = old_enough(&pp->oldest_at) ? deque_pop_oldest(&pp->started) : NULL;
		break;
	}
	return gp;
}

void runq_drain(struct p *pp)
{
	struct g *gs[CAP];
	struct g *next = exchange_acqrel(&pp->runnext, NULL);
	uint32_t n;

	if (next)
		globq_put(next);
	while ((n = ring_take(&pp->woken, gs, BATCH_MAX)))
		globq_put_all(&sched.runq, gs, n);
	while ((n = deque_take_oldest(&pp->started, gs, BATCH_MAX)))
		globq_put_all(&sched.started, gs, n);
}

/*
 * A goroutine moves from one of these places to another only within its P: from
 * runnext to woken, by the owner. If we read woken first and runnext second, a
 * goroutine that is kicked from runnext in between could be missed in both. So
 * runnext is read again after: if nothing was there then either, and the tail
 * has not moved, there was a moment at which all were empty.
 */
bool runq_empty(const struct p *pp)
{
	for (;;) {
		uint32_t h = load_acquire(&pp->woken.head);
		uint32_t t = load_acquire(&pp->woken.tail);
		bool started = deque_count(&pp->started) != 0;
		struct g *next = load_acquire(&pp->runnext);

		if (t == load_acquire(&pp->woken.tail))
			return h == t && !started && !next;
	}
}

struct runq_look runq_look(const struct p *pp)
{
	/* acquire: the head first, which a tail read later is never below; pairs
	 * with cas_acqrel in ring_take */
	uint32_t head = load_acquire(&pp->woken.head);
	uint32_t woken = load_relaxed(&pp->woken.tail) - head;
	uint64_t w = load_relaxed(&pp->started.word);

	return (struct runq_look){
		.started = deque_count(&pp->started),
		.started_head = d_head(w),
		.claim = d_claim(w) != 0 ? w : 0,
		.woken = woken > CAP ? CAP : woken,	/* from different moments */
		.woken_head = head,
		.next = load_relaxed(&pp->runnext),
		.switches = load_relaxed(&pp->count.switches),
	};
}

size_t runq_length(const struct p *pp)
{
	struct runq_look look = runq_look(pp);

	return look.started + look.woken + (look.next != NULL);
}

/* ---------------------------------------------------------------- stealing */

static struct g *steal_next(struct p *from)
{
	struct g *gp = load_relaxed(&from->runnext);

	/* acqrel: pairs with exchange_acqrel in runq_put_next */
	return gp && cas_acqrel(&from->runnext, &gp, NULL) ? gp : NULL;
}

/* The first is run; the rest go to our own queue of the same kind, which has
 * room: we steal only when it is empty, and at most half of a full one. */
struct g *runq_steal(struct p *pp, struct p *from, bool started, bool woken, bool next,
                     uint64_t stale)
{
	struct g *gs[CAP];
	uint32_t n = started ? deque_steal(&from->started, gs, stale) : 0;

	if (n > 0) {
		for (uint32_t i = 1; i < n; i++)
			runq_put_started(pp, gs[i]);
	} else if (woken) {
		n = ring_take(&from->woken, gs, 0);
		for (uint32_t i = 1; i < n; i++)
			runq_put_woken(pp, gs[i]);
	}
	if (n == 0 && next && (gs[0] = steal_next(from)))
		n = 1;
	if (n == 0)
		return NULL;
	count_up(&pp->count.steals, 1);
	count_up(&pp->count.stolen, n);
	return gs[0];
}

static unsigned gcd(unsigned a, unsigned b)
{
	while (b) {
		unsigned t = a % b;

		a = b;
		b = t;
	}
	return a;
}

struct steal_order steal_order_start(unsigned n, uint64_t random)
{
	unsigned at = (unsigned)(random >> 32) % n;
	unsigned stride = (unsigned)random % n + 1;

	/* 1 has no divisor in common with any n, so this ends. */
	while (gcd(stride, n) != 1)
		stride = stride % n + 1;
	return (struct steal_order){ .left = n, .at = at, .stride = stride % n, .n = n };
}

#if GORO_CHECKS
void runq_check(const struct p *pp)
{
	uint16_t h = d_head(load_acquire(&pp->started.word));
	uint32_t woken = load_acquire(&pp->woken.head);

	check((uint16_t)(pp->started.tail - h) <= CAP);
	check(load_acquire(&pp->woken.tail) - woken <= CAP);
	for (; h != (uint16_t)pp->started.tail; h++)
		check(pp->started.slot[h % CAP] != NULL);
}
#endif
