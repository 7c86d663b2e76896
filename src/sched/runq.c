/*
 * runq.c - where runnable goroutines wait: each P's queues, and the global one.
 *
 * Order of spawns
 *
 * A P keeps the newly started apart from the newly woken. Started goroutines run newest
 * first on the P that started them, and thieves take the oldest: a tree of goroutines is
 * walked depth first, with few alive and their stacks hot, and a thief gets a large
 * subtree. Woken goroutines run in order. (Go has one queue in order, and walks a tree
 * breadth first, with all its leaves alive at once: docs/performance-notes.md.) A
 * function that the runtime starts for an event goes to the woken, so such functions
 * begin in the order of their events.
 *
 * A P picks: runnext, the newest started, the oldest woken. Newest first alone would
 * starve the old ones, so three times in FAIR_PERIOD_PICKS a pick looks in the other
 * direction: at the global queue, the oldest woken, the oldest started, in turn. A
 * goroutine waits for at most FAIR_PERIOD_PICKS picks for each one before it in its own
 * queue, or, among the started, OLDEST_STARTED_NS.
 *
 * Most goroutines of the global queue have had a slice, and each pick of one gives it
 * another slice of up to SLICE_NS. So the global queue loses its turn in two cases:
 *
 *	- The P has taken one from it since its last turn.
 *	- runnext is set, and a goroutine was preempted on this P less than a slice
 *	  ago: the pair that hands over by runnext goes on with its slice, which sysmon
 *	  ends. (Two goroutines that switch every microsecond would have 61 switches,
 *	  and then one that computes ten thousand times as long.) A fresh goroutine in
 *	  the global queue has its turn all the same.
 *
 * A period is long where each pick runs for a slice. So after every second preemption the
 * next pick is the oldest woken (runq_stopped).
 *
 * runnext is the goroutine that the running one just made ready. It runs next and
 * inherits the rest of the slice: a pair that hands work to and fro counts as one
 * goroutine, and does not starve the queue.
 *
 * Goroutines that are woken together, by a close, a broadcast or timers, begin in order,
 * however many there are (runq_put_in_order). Those for which the ring has no room go to
 * the global queue, in an ordered batch. The P does not pick from that batch before the
 * goroutines that were in its ring at that time have gone. The same holds for each share
 * that the P moves from the batch to its ring. (A full ring that gives away its old half,
 * as for a yield, would put the first behind the last.)
 *
 * The ring (woken): head and tail run freely, slot i lies at i % CAP.
 *	- tail is written by the owner only; slots [head, tail) are full.
 *	- head moves up by CAS: the owner's by one, a thief's by half.
 *	- A thief copies before its CAS; the owner never writes to a slot below head +
 *	  CAP, so what was copied is right if the CAS succeeds.
 *
 * The deque
 *
 * It holds the started. The owner pushes and takes at the tail, by plain stores; thieves
 * take half of it from the head. The owner picks much more often than a thief steals, so
 * the thief pays for the order between the two. It lays claim to the oldest k, by a CAS
 * on the word, which holds the head and the claim. A membarrier makes all threads pass a
 * barrier. Only then does the thief read how far the owner has lowered the tail
 * meanwhile, and copies what is left of its claim. That is the thief's if a second CAS
 * finds the word unchanged.
 *
 *	owner, taking slot t            thief
 *	tail = t                        word: claim to [head, head + k)
 *	(nothing but program order)     membarrier
 *	read word                       read tail
 *	 t not in a claim: it is ours    copy [head, min(head + k, tail))
 *	 else the claim is voided        word: head moves up, no claim
 *	   by CAS, first                   by CAS
 *
 *	- The owner reads the word before the claim is there: then its store of tail
 *	  came before the barrier that its CPU passed. The thief reads that tail, and
 *	  leaves t alone.
 *	- The owner reads the word after: it sees the claim. The first of the two to
 *	  change the word has t, and the other's CAS fails. The owner waits for no
 *	  thief.
 *	- Slots [head, tail) are full, but for t while the owner takes it.
 *	- As in the ring, what a thief copied is right if its CAS succeeds. Each change
 *	  of the word changes its 32-bit tag, so a claim that was voided and laid anew
 *	  is another claim.
 *	- A thief that finds another's claim leaves that alone, unless it is so old
 *	  that its thief must have been stopped (steal.c).
 *
 * The last goroutine is taken at the head, by CAS. So while the head stands still and the
 * deque is not empty, its oldest goroutine is the same one, but for rare races (steal.c).
 * Without membarrier the owner has a fence where it says "program order".
 *
 * Rejected: both ends in one word that all change by CAS (docs/performance-notes.md); the
 * usual work-stealing deque, where thieves take one at a time, each for a barrier.
 *
 * With one P there are no thieves (an M that looks for work has a P), so the owner's
 * changes need no locked instruction. GOMAXPROCS changes only while the world is stopped,
 * and an M gets a P afterwards under sched.lock, so owner and thieves agree on it.
 *
 * The global queue
 *
 * Five lists under sched.lock, kept in one order by turns:
 *
 *	usual		goroutines that run anywhere
 *	bound		goroutines that bring their own M (preempt.c), which must be found
 *			at once when no other M is free
 *	started		the old half of a P's started when they were full
 *	fresh		as usual and bound, but they just came and there was no P's queue
 *	fresh_bound	for them: a plain thread started or woke them, an M without a P
 *			found them in the poller, or they are back from a blocking call
 *
 * Fresh ones go before the others, which have had a slice, as in a P's own queues.
 * Started ones are taken when a P has nothing else, or by the clock as from its own.
 * Rejected: taking them in turn with the woken. Each would open another subtree, and a
 * tree that once overflowed would be walked breadth first.
 *
 * Goroutines that leave a full queue stay together: an array of pointers (struct gbatch)
 * with one turn for all. Walked by links they would be a chain of cache and TLB misses
 * with sched.lock held (a context with a thousand waiters that is cancelled takes 1.13
 * times as long); those of an array can be fetched at once. Without memory for an array
 * they are linked.
 */
#include "sched/runq.h"
#include "base/probe.h"

#include <string.h>

#include "base/debug.h"
#include "sched/check.h"
#include "sched/linger.h"
#include "base/mem.h"
#include "platform/os.h"
#include "base/throw.h"

#define CAP GORO_RUNQ_CAP

/* How many fresh ones may be picked in a row while others wait there. See whose_turn. */
#define FRESH_ROW 16

/* How far globq_take looks for a goroutine, since it holds sched.lock meanwhile. */
#define GLOBQ_SEARCH_MAX 64
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

/* Owner only. Takes the oldest n in order; 0: half, rounded up. Returns how many. */
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

/* A thief takes the older half, rounded up, in order. Returns how many. */
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

/* Owner only. At least this many fit. */
static inline uint32_t deque_room(const struct deque *d)
{
	return CAP - deque_count(d);
}

/* Owner only. */
static inline struct g *deque_pop_oldest(struct deque *d)
{
	struct g *gp;

	return deque_take_oldest(d, &gp, 1) ? gp : NULL;
}

/* ------------------------------------------------------------------- ring */

/* Owner only. At least this many fit. */
static inline uint32_t ring_room(const struct ring *r)
{
	return CAP - (r->tail - load_acquire(&r->head));
}

/* ----------------------------------------------------------- global queue */

/* Half of a full queue, and the goroutine that did not fit. */
#define BATCH_MAX (CAP / 2 + 1)

struct gbatch {
	struct gbatch *next;
	uint64_t seq;
	uint32_t at, n;		/* g[at .. n) are left */
	bool ordered;		/* follows the ring of the P that it came from */
	struct g *g[BATCH_MAX];
};

static void count_queued(struct gqueue *q, size_t n)
{
	store_relaxed(&q->n, q->n + n);
	store_relaxed(&globq.queued, globq.queued + (uint32_t)n);
}

static void list_put(struct gqueue *q, struct g *gp, uint64_t seq)
{
	check(load_relaxed(&gp->status) == G_RUNNABLE);
	gp->queue_seq = seq;
	gp->link = NULL;
	if (q->tail)
		q->tail->link = gp;
	else
		q->head = gp;
	q->tail = gp;
	count_queued(q, 1);
}

/* Takes the goroutine behind before; NULL: the first. */
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

/* The turn of the first; UINT64_MAX: the list is empty. */
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
		b->next = globq.free_batches;
		globq.free_batches = b;
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
	list_put(gp->locked_m ? &globq.bound : &globq.usual, gp, ++globq.queue_seq);
}

static struct gbatch *batch_make(void)
{
	struct gbatch *b = globq.free_batches;

	if (!b)
		return mem_alloc(sizeof *b);
	globq.free_batches = b->next;
	return b;
}

/* One turn for all. At most BATCH_MAX. */
static void globq_put_all(struct gqueue *q, struct g **gs, uint32_t n, bool ordered)
{
	uint64_t seq = ++globq.queue_seq;
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
	b->ordered = ordered;
	memcpy(b->g, gs, n * sizeof *gs);
	if (q->last_batch)
		q->last_batch->next = b;
	else
		q->batch = b;
	q->last_batch = b;
	count_queued(q, n);
}

/* In the same batch as the last one, if nothing else has come since. */
static void globq_put_in_order(struct g *gp)
{
	struct gbatch *b = globq.usual.last_batch;

	check(lock_is_held(&sched.lock));
	if (b && b->ordered && b->seq == globq.queue_seq && b->n < BATCH_MAX) {
		b->g[b->n++] = gp;
		count_queued(&globq.usual, 1);
	} else {
		globq_put_all(&globq.usual, &gp, 1, true);
	}
}

void globq_put_fresh(struct g *gp)
{
	check(lock_is_held(&sched.lock));
	list_put(gp->locked_m ? &globq.fresh_bound : &globq.fresh, gp, ++globq.queue_seq);
}

struct g *globq_take_bound(void)
{
	check(lock_is_held(&sched.lock));
	if (globq.fresh_bound.head)
		return pop(&globq.fresh_bound);
	return globq.bound.head ? pop(&globq.bound) : NULL;
}

bool globq_take(struct g *gp)
{
	struct gqueue *q = &globq.bound;
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

/* The list among n whose first has waited longest; NULL: all are empty. */
static struct gqueue *longest_waiting(struct gqueue *const *all, int n)
{
	struct gqueue *first = NULL;

	for (int i = 0; i < n; i++)
		if (all[i]->n > 0 && (!first || turn_of(all[i]) < turn_of(first)))
			first = all[i];
	return first;
}

static struct gqueue *whose_turn(bool usual, bool started)
{
	struct gqueue *all[5] = { &globq.fresh_bound, &globq.fresh, &globq.bound };
	struct gqueue *next;
	int n = 3;

	if (usual)
		all[n++] = &globq.usual;
	if (started)
		all[n++] = &globq.started;
	next = longest_waiting(all + 2, n - 2);

	if (debug.nofresh)
		return longest_waiting(all, n);
	if (globq_fresh() != 0 && (globq.fresh_row < FRESH_ROW || !next)) {
		globq.fresh_row++;
		return longest_waiting(all, 2);
	}
	globq.fresh_row = 0;
	return next;
}

/* Takes all before the caller pushes any: a pushed one may run, end and be reused. */
static void pop_many(struct gqueue *q, struct g **gs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		gs[i] = pop(q);
	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(gs[i], 1);
	for (uint32_t i = 0; i < n; i++)
		g_fetch_stack(gs[i]);
}

/* Ps that share the global queue. One that there is no CPU for counts while it is in
 * use. */
static size_t sharers(void)
{
	int idle = load_relaxed(&sched.idle_p_n), unneeded = load_relaxed(&sched.unneeded_p);

	return (size_t)(sched.gomaxprocs - (idle < unneeded ? idle : unneeded));
}

static bool next_is_ordered(const struct gqueue *q)
{
	return q->batch && q->batch->ordered && batch_turn(q) < list_turn(q);
}

/* sched.lock held. The next of globq.usual follows some that pp has in its ring. (Beyond
 * CAP: the ring has passed ring_end long ago, and the positions have wrapped.) */
static bool ring_comes_first(const struct p *pp)
{
	uint32_t left = pp->fair.ring_end - load_relaxed(&pp->woken.head);

	return next_is_ordered(&globq.usual) && left != 0 && left <= CAP;
}

/* The rest of a share goes to pp's queue of the same kind. */
struct g *globq_get(struct p *pp, bool started)
{
	struct gqueue *q = whose_turn(!ring_comes_first(pp), started);
	struct g *gp = q ? pop(q) : NULL, *gs[CAP];
	uint32_t n = q ? (uint32_t)(q->n / sharers()) : 0, room = 0;

	check(lock_is_held(&sched.lock));
	if (q == &globq.usual || q == &globq.fresh)
		room = ring_room(&pp->woken) / 2;
	else if (q == &globq.started)
		room = deque_room(&pp->started) / 2;
	if (n > room)
		n = room;
	pop_many(q, gs, n);
	for (uint32_t i = 0; i < n; i++) {
		if (q != &globq.started)
			ring_push(&pp->woken, gs[i]);
		else			/* the oldest is to run first */
			deque_push(&pp->started, gs[n - 1 - i]);
	}
	if (n > 0 && q == &globq.usual)
		pp->fair.ring_end = pp->woken.tail;
	return gp;
}

/* ------------------------------------------------------------ a P's queues */

/* The old half of a full queue goes to the global queue. */
void runq_put_started_slow(struct p *pp, struct g *gp)
{
	do {
		struct g *gs[CAP];
		uint32_t n = deque_take_oldest(&pp->started, gs, 0);

		if (n == 0)
			continue;
		lock_acquire(&sched.lock);
		globq_put_all(&globq.started, gs, n, false);
		lock_release(&sched.lock);
	} while (!deque_push(&pp->started, gp));
}

/* gp follows the old half, or goes alone where the half comes before what waits there. */
void runq_put_woken_slow(struct p *pp, struct g *gp)
{
	lock_acquire(&sched.lock);
	if (ring_comes_first(pp)) {
		globq_put_in_order(gp);
	} else {
		struct g *gs[CAP + 1];
		uint32_t n = ring_take(&pp->woken, gs, 0);

		gs[n++] = gp;
		globq_put_all(&globq.usual, gs, n, false);
	}
	lock_release(&sched.lock);
}

/* What waits there keeps its turn: a P whose ring is full would put it off for ever. */
void runq_put_in_order_slow(struct p *pp, struct g *gp)
{
	lock_acquire(&sched.lock);
	if (globq.usual.n == 0)
		pp->fair.ring_end = pp->woken.tail;
	globq_put_in_order(gp);
	lock_release(&sched.lock);
}

/* A thief may have taken gp: what is read then is of no use, and does no harm. */
TOOL_UNORDERED static const char *stack_of(const struct g *gp)
{
	return load_relaxed(&gp->context.sp);
}

/* How far ahead to fetch: first the G; when that is there, its frames, and those that it
 * will make. (A CPU drops prefetches that are too many at once.) */
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

/* It opens another subtree beside the one that is walked: so the clock decides when. */
static bool old_enough(int64_t *last)
{
	int64_t now = load_relaxed(&sched.coarse_now);

	if (now - *last < OLDEST_STARTED_NS)
		return false;
	*last = now;
	return true;
}

void runq_stopped(struct p *pp)
{
	pp->stopped_at = load_relaxed(&sched.coarse_now);
	if (pp->fair.stops++ % 2 != 0 || pp->fair.in == 1)
		return;
	pp->fair.rest = (uint8_t)(pp->fair.in - 1);
	pp->fair.in = 1;
}

/* Whether the pair that hands over by runnext is in its slice: "Order of spawns". */
static bool slice_goes_on(const struct p *pp)
{
	return load_relaxed(&pp->runnext) && globq_fresh() == 0 &&
	       load_relaxed(&sched.coarse_now) - pp->stopped_at < slice_ns();
}

struct g *runq_get_fair(struct p *pp)
{
	struct g *gp = NULL;
	bool served;

	if (pp->fair.rest != 0) {
		pp->fair.in = pp->fair.rest;
		pp->fair.rest = 0;
		return ring_pop(&pp->woken);
	}
	pp->fair.in = FAIR_PERIOD_PICKS / 3 + (pp->fair.turn % 3 == 0);
	switch (pp->fair.turn++ % 3) {
	case 0:
		served = pp->fair.global_served;
		pp->fair.global_served = false;
		if (served || globq_length() == 0 || slice_goes_on(pp))
			break;
		lock_acquire(&sched.lock);
		gp = globq_get(pp, old_enough(&pp->fair.global_at));
		lock_release(&sched.lock);
		break;
	case 1:
		gp = ring_pop(&pp->woken);
		break;
	case 2:
		gp = old_enough(&pp->fair.oldest_at) ? deque_pop_oldest(&pp->started) : NULL;
		break;
	}
	return gp;
}

void runq_drain(struct p *pp)
{
	struct g *gs[CAP];
	struct g *next = exchange_acqrel(&pp->runnext, NULL);
	uint32_t n;

	check(lock_is_held(&sched.lock));
	if (next)
		globq_put(next);
	while ((n = ring_take(&pp->woken, gs, BATCH_MAX)))
		globq_put_all(&globq.usual, gs, n, false);
	while ((n = deque_take_oldest(&pp->started, gs, BATCH_MAX)))
		globq_put_all(&globq.started, gs, n, false);
	check(runq_empty(pp));
}

/*
 * A goroutine moves between these places in one way only: the owner moves it from runnext
 * to woken. A look at woken and then at runnext could miss it in both. So the tail of
 * woken is read again at the end: if it has not moved, there was a moment at which all
 * were empty.
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
	/* acquire: a tail read later is never below it; pairs with cas_acqrel in
	 * ring_take */
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

/* The first is run. pp has room for the rest: a thief's queues are empty, and it takes at
 * most half of a full one. */
struct g *runq_steal(struct p *pp, struct p *from, bool started, bool woken, bool next,
                     uint64_t stale)
{
	struct g *gs[CAP];
	uint32_t n = started ? deque_steal(&from->started, gs, stale) : 0;

	check(pp != from);
	check(n <= 1 + deque_room(&pp->started));
	if (n > 0) {
		for (uint32_t i = 1; i < n; i++)
			runq_put_started(pp, gs[i]);
	} else if (woken) {
		n = ring_take(&from->woken, gs, 0);
		check(n <= 1 + ring_room(&pp->woken));
		for (uint32_t i = 1; i < n; i++)
			runq_put_woken(pp, gs[i]);
	}
	if (n == 0 && next && (gs[0] = steal_next(from)))
		n = 1;
	if (n == 0)
		return NULL;
	count_up(&pp->count.steals, 1);
	count_up(&pp->count.stolen, n);
	PROBE_INTS(steal, pp->id, from->id);
	return gs[0];
}

/* ------------------------------------------------------------------ checks */

#if GORO_CHECKS

/* A queue's goroutine is runnable, unless a thief has it by now (stolen). */
#define CHECK_QUEUED(gp, stolen)                                                     \
	do {                                                                         \
		/* acquire: read before stolen is evaluated */                       \
		bool runnable = (gp) && load_acquire(&(gp)->status) == G_RUNNABLE;   \
		check(runnable || (stolen));                                         \
	} while (0)

static uint32_t deque_check(const struct deque *d)
{
	uint64_t w = load_acquire(&d->word);
	uint16_t n = (uint16_t)(d->tail - d_head(w));

	check(n <= CAP && d->tail <= UINT16_MAX);
	check(d_claim(w) <= half_of(CAP));
	for (uint16_t i = d_head(w); i != (uint16_t)d->tail; i++) {
		const struct g *gp = load_relaxed(&d->slot[i % CAP]);

		CHECK_QUEUED(gp, (int16_t)(d_head(load_acquire(&d->word)) - i) > 0);
	}
	return n;
}

static uint32_t ring_check(const struct ring *r)
{
	uint32_t head = load_acquire(&r->head);

	check(r->tail - head <= CAP);
	for (uint32_t i = head; i != r->tail; i++) {
		const struct g *gp = load_relaxed(&r->slot[i % CAP]);

		CHECK_QUEUED(gp, (int32_t)(load_acquire(&r->head) - i) > 0);
	}
	return r->tail - head;
}

size_t runq_check(const struct p *pp)
{
	const struct g *next = load_acquire(&pp->runnext);

	if (next)	/* only the owner sets it */
		CHECK_QUEUED(next, load_acquire(&pp->runnext) != next);
	check(pp->fair.in >= 1 && pp->fair.in <= FAIR_PERIOD_PICKS);
	check(pp->fair.rest < FAIR_PERIOD_PICKS);
	return 1 + deque_check(&pp->started) + ring_check(&pp->woken);
}

/* Of a long list the beginning is looked at. */
#define CHECK_LIST_MAX 1000

/* Goroutines that came one by one; *whole: all were looked at. */
static size_t list_check(const struct gqueue *q, bool bound, bool *whole)
{
	const struct g *last = NULL, *gp = q->head;
	size_t n = 0;

	for (; gp && n < CHECK_LIST_MAX; last = gp, gp = gp->link, n++) {
		check(load_relaxed(&gp->status) == G_RUNNABLE);
		check(!bound || gp->locked_m);
		check(!last || last->queue_seq <= gp->queue_seq);
		check(gp->queue_seq <= globq.queue_seq);
	}
	*whole = !gp;
	check(gp || q->tail == last);
	return n;
}

/* Goroutines that came together. */
static size_t batches_check(const struct gqueue *q, bool *whole)
{
	const struct gbatch *last = NULL, *b = q->batch;
	size_t n = 0;

	for (; b && n < CHECK_LIST_MAX; last = b, b = b->next) {
		check(b->at < b->n && b->n <= BATCH_MAX);
		check(!last || last->seq < b->seq);
		for (uint32_t i = b->at; i < b->n; i++, n++)
			check(load_relaxed(&b->g[i]->status) == G_RUNNABLE);
	}
	*whole = !b;
	check(b || q->last_batch == last);
	return n;
}

static size_t gqueue_check(const struct gqueue *q, bool bound)
{
	bool list, batches;
	size_t n = list_check(q, bound, &list) + batches_check(q, &batches);

	check(list && batches ? n == q->n : n < q->n);
	check(!bound || !q->batch);
	return n;
}

size_t globq_check(void)
{
	size_t sum = globq.usual.n + globq.bound.n + globq.started.n + globq.fresh.n +
	             globq.fresh_bound.n;

	check(lock_is_held(&sched.lock));
	check(sum == globq.queued);
	return gqueue_check(&globq.usual, false) + gqueue_check(&globq.bound, true) +
	       gqueue_check(&globq.started, false) + gqueue_check(&globq.fresh, false) +
	       gqueue_check(&globq.fresh_bound, true);
}

#endif
