/*
 * timer.c - timers: a heap on each P, fired by whoever finds them due.
 *
 * A timer is put on the heap of the P that starts it, a 4-ary heap of (when,
 * timer) under a lock of its own; the timer knows its place, so stopping it is
 * a removal in logarithmic time and leaves nothing behind. The lock is held for
 * the heap only, never while a timer fires.
 *
 * Sleeps
 *
 * A sleep is never stopped, so it needs no timer: its entry is the goroutine itself,
 * which is not touched from when it falls asleep until it wakes. (To tell a timer its
 * new place is a write to memory that is nowhere near: of a hundred thousand each is in
 * no cache, and one that fires moves eight others.) Those that are due are taken several
 * at a time, and fetched together. The four children of an entry lie in one cache line.
 * Timers are fired one at a time, but what the next will need is fetched ahead (fetch_due).
 *
 * Many timers
 *
 * Where there are many, and they come so close to each other that each would cost
 * a sleep and a wake of a thread, several times what it costs to run it, they are taken
 * together: if TIMERS_DENSE of them are due within TIMER_SLACK_NS of the next, whoever
 * sleeps until the next (idle.c, sysmon.c) sleeps up to that much longer, and no timer is late by
 * more because of it. (The clock is set ahead for such sleeps: beat.c.) That is looked up in the heaps, not guessed from what was: a few
 * short sleeps beside many long ones are as precise as if they were alone. And those whom
 * they make ready are run by the thread that did it, which wakes no other for them: if they
 * take long, the next timers will be due and not be run, and sysmon sees that.
 *
 * Far away
 *
 * Once a heap is large, sleeps that end later than the first, by a millisecond or more,
 * lie elsewhere (timer_far.c), and are taken from there. What is due is the earlier of the first
 * on the heap and the first that is far away.
 *
 * Who looks, and when:
 *	- an M that looks for work: at its own P's, then at the others';
 *	- an M that switches goroutines: at its own P's, every so many picks;
 *	- one idle M, the keeper, sleeps until the earliest of all (m.c);
 *	- sysmon, as long as any P runs, sleeps no longer than to the earliest,
 *	  and sees to it that a P looks (sysmon.c).
 * A timer that becomes the earliest of all wakes whichever of the last two
 * would have slept too long (timers_poke).
 *
 * Stopping against firing. A timer that is due is taken off the heap and marked
 * as firing under the heap's lock, and fired after it. Who stops it finds it on
 * no heap and waits for the mark to go away: a fire is short and waits for
 * nobody. Afterwards nothing of the runtime refers to the timer, so that it may
 * be freed, and a fire that came too late finds a goroutine that knows. Who holds
 * a lock that the fire takes cannot wait so: timer_try_stop leaves the fire be,
 * which has to find out under that lock that it came too late.
 *
 * Rejected: lazy deletion (a stopped timer with a far deadline fills the heap);
 * a timing wheel (rounds, and idles badly); holding the lock while firing (locks
 * of channels would nest in both orders).
 */
#include "timer.h"

#include <goro.h>
#include <string.h>

#include "os.h"
#include "runq.h"
#include "runtime.h"
#include "timer_far.h"

#define SLEEP 1

#define SLEEPS_TOGETHER 64	/* those of a beat: their misses wait together */
#define TIMERS_AHEAD    64
#define FETCH_STEPS     2
#define NEAR_ENTRIES    4096	/* of a heap, that stay in a near cache */
#define FAR_FROM        1024	/* on the heap, before sleeps are kept elsewhere */

#define ARITY 4
#define FIRST_SLOTS 64
#define HUSHED_MAX  (GORO_RUNQ_CAP / 2)

void timers_init(struct timers *ts)
{
	ts->lock = (struct lock)LOCK_INIT(RANK_TIMER);
	ts->min_when = TIMER_NEVER;
}

/* -------------------------------------------------------------------- heap */

static inline bool is_sleep(struct timer_entry e)
{
	return e.what & SLEEP;
}

static inline struct timer *entry_timer(struct timer_entry e)
{
	return (struct timer *)e.what;
}

static inline struct g *entry_g(struct timer_entry e)
{
	return (struct g *)(e.what - SLEEP);
}

static inline void entry_set(struct timers *ts, uint32_t i, struct timer_entry e)
{
	ts->entry[i] = e;
	if (!is_sleep(e))
		entry_timer(e)->index = i;
}

static void sift_up(struct timers *ts, uint32_t i, struct timer_entry e)
{
	while (i > 0) {
		uint32_t parent = (i - 1) / ARITY;

		if (ts->entry[parent].when <= e.when)
			break;
		entry_set(ts, i, ts->entry[parent]);
		i = parent;
	}
	entry_set(ts, i, e);
}

/* Of four, without branches: which one it is cannot be foretold. */
static inline uint32_t earliest_child(const struct timers *ts, uint32_t i)
{
	const struct timer_entry *e = ts->entry;
	uint32_t first = i * ARITY + 1, best = first;

	_Static_assert(ARITY == 4, "timer: two pairs");
	if (first + ARITY <= ts->n) {
		uint32_t a = first + (e[first + 1].when < e[first].when);
		uint32_t b = first + 2 + (e[first + 3].when < e[first + 2].when);

		return e[b].when < e[a].when ? b : a;
	}
	for (uint32_t c = first + 1; c < ts->n; c++)
		if (e[c].when < e[best].when)
			best = c;
	return best;
}

/* Those who will be looked at next are children of four, one of whom it will be. */
static inline void fetch_grandchildren(const struct timers *ts, uint32_t i)
{
	uint32_t first = (i * ARITY + 1) * ARITY + 1;

	for (uint32_t c = first; c < first + ARITY * ARITY; c += ARITY)
		__builtin_prefetch(&ts->entry[c], 1);
}

static void sift_down(struct timers *ts, uint32_t i, struct timer_entry e)
{
	bool large = ts->n > NEAR_ENTRIES;

	while (i * ARITY + 1 < ts->n) {
		uint32_t c;

		if (large)
			fetch_grandchildren(ts, i);
		c = earliest_child(ts, i);
		if (ts->entry[c].when >= e.when)
			break;
		entry_set(ts, i, ts->entry[c]);
		i = c;
	}
	entry_set(ts, i, e);
}

/* The first entry is the last of its line, so that 1 to 4, 5 to 8 and so on share
 * one each. */
#define UNUSED_ENTRIES (ARITY - 1)

static void make_room(struct timers *ts)
{
	uint32_t slots = ts->entry ? 2 * (ts->room + UNUSED_ENTRIES) : FIRST_SLOTS;
	struct timer_entry *e = entries_map(slots) + UNUSED_ENTRIES;

	if (ts->entry) {
		memcpy(e, ts->entry, ts->n * sizeof *e);
		entries_unmap(ts->entry - UNUSED_ENTRIES, slots / 2);
	}
	ts->entry = e;
	ts->room = slots - UNUSED_ENTRIES;
}

static void heap_put(struct timers *ts, struct timer_entry e)
{
	if (ts->n == ts->room)
		make_room(ts);
	store_relaxed(&ts->n, ts->n + 1);
	if (!is_sleep(e))
		store_relaxed(&entry_timer(e)->heap, ts);
	sift_up(ts, ts->n - 1, e);
}

/* ts->lock held. e comes to where i is, or to where it belongs from there. */
static void heap_replace(struct timers *ts, uint32_t i, struct timer_entry e)
{
	if (i > 0 && e.when < ts->entry[(i - 1) / ARITY].when)
		sift_up(ts, i, e);
	else
		sift_down(ts, i, e);
}

/* ---------------------------------------------------------------- far away */

/* A sleep that ends long after the first, where there are many. */
static inline bool goes_far(const struct timers *ts, struct timer_entry e)
{
	return (ts->far_n > 0 || ts->n >= FAR_FROM) && is_sleep(e) &&
	       far_unit(e.when) > far_unit(ts->min_when);
}

static bool put_far(struct timers *ts, struct timer_entry e)
{
	if ((!ts->far && !(ts->far = far_make())) || !far_put(ts->far, e))
		return false;
	store_relaxed(&ts->far_n, ts->far_n + 1);
	return true;
}

/* Those that are due by then, and before the first on the heap; how many. */
static uint32_t take_far(struct timers *ts, int64_t by, struct timer_entry *due, uint32_t max)
{
	uint32_t n;

	if (likely(ts->far_n == 0))
		return 0;
	n = far_take(ts->far, ts->n ? soonest(by, ts->entry[0].when) : by, due, max);
	store_relaxed(&ts->far_n, ts->far_n - n);
	return n;
}

/* --------------------------------------------------------- adding, removing */

/* Until this, it may be too early, which does no harm. */
static void min_update(struct timers *ts)
{
	int64_t first = ts->n ? ts->entry[0].when : TIMER_NEVER;

	store_seqcst(&ts->min_when, ts->far_n ? soonest(first, far_first(ts->far)) : first);
}

/* ts->lock held. From the heap; min_update is left to the caller. */
static void take_off(struct timers *ts, uint32_t i)
{
	struct timer_entry e = ts->entry[i], last = ts->entry[ts->n - 1];

	store_relaxed(&ts->n, ts->n - 1);
	if (!is_sleep(e))
		/* release: that it is firing now; pairs with load_acquire in timer_try_stop */
		store_release(&entry_timer(e)->heap, NULL);
	if (i != ts->n)
		heap_replace(ts, i, last);
}

/* ts->lock held. True: it is the first to come. */
static bool put(struct timers *ts, struct timer_entry e)
{
	if (goes_far(ts, e) && put_far(ts, e))
		return false;
	heap_put(ts, e);
	if (e.when >= ts->min_when)
		return false;
	min_update(ts);
	return true;
}

/* ts->lock held. Places of those who are due by then, as far as max, in no order: whoever
 * is has a parent who is, too. */
static uint32_t due_first(const struct timers *ts, int64_t by, uint32_t *due, uint32_t max)
{
	uint32_t n = ts->n > 0 && ts->entry[0].when <= by;

	due[0] = 0;
	for (uint32_t i = 0; i < n && n < max; i++) {
		uint32_t first = due[i] * ARITY + 1;

		for (uint32_t c = first; c < first + ARITY && c < ts->n && n < max; c++)
			if (ts->entry[c].when <= by)
				due[n++] = c;
	}
	return n;
}

/* ----------------------------------------------------------- start and stop */

void timers_tell(struct m *mp)
{
	int64_t when = timers_earliest();

	mp->owes_poke = false;
	/* seqcst: after min_update; pairs with keeper_limit and sysmon's sleep,
	 * which store when they will look and then read the earliest timer. */
	if (when < load_seqcst(&sched.keeper_until) && when < load_seqcst(&sched.sysmon_until))
		m_poke_keeper();
}

/* A timer is the earliest of its P: whoever sleeps until a later time is to look again.
 * An M in its scheduler context is about to look at the timers itself, or to sleep, and
 * then it is the keeper or tells it; if it finds something to run, it tells others
 * then. */
static void timers_poke(struct m *mp)
{
	if (mp->p && !mp->curg)
		mp->owes_poke = true;
	else
		timers_tell(mp);
}

static void entry_start(struct m *mp, struct timer_entry e)
{
	struct p *pp = mp->p ? mp->p : p_at(0);	/* which is never out of use */
	struct timers *ts = &pp->timers;
	bool first;

	lock_acquire(&ts->lock);
	first = put(ts, e);
	lock_release(&ts->lock);
	if (first)
		timers_poke(mp);
}

void timer_start(struct m *mp, struct timer *t, int64_t when)
{
	check(!t->heap && !t->firing);
	t->when = when < TIMER_LAST ? when : TIMER_LAST;
	entry_start(mp, (struct timer_entry){ t->when, (uintptr_t)t });
}

bool timer_change(struct m *mp, struct timer *t, int64_t when)
{
	struct timers *ts = mp->p ? &mp->p->timers : NULL;
	bool here, first = false;

	if (!ts || load_relaxed(&t->heap) != ts)
		return false;
	lock_acquire(&ts->lock);
	here = load_relaxed(&t->heap) == ts;
	if (here) {
		uint32_t i = t->index;

		t->when = when < TIMER_LAST ? when : TIMER_LAST;
		first = t->when < ts->min_when;
		heap_replace(ts, i, (struct timer_entry){ t->when, (uintptr_t)t });
		if (i == 0 || first)
			min_update(ts);
	}
	lock_release(&ts->lock);
	if (first)
		timers_poke(mp);
	return here;
}

bool timer_try_stop(struct timer *t)
{
	struct timers *ts;

	while ((ts = load_acquire(&t->heap)) != NULL) {
		bool here;

		lock_acquire(&ts->lock);
		here = load_relaxed(&t->heap) == ts;
		if (here) {
			uint32_t i = t->index;

			check(entry_timer(ts->entry[i]) == t);
			take_off(ts, i);
			if (i == 0)
				min_update(ts);
		}
		lock_release(&ts->lock);
		if (here)
			return true;
	}
	return false;
}

/* The thread that fires may have been stopped by the kernel: let it run. */
void timer_wait_fired(const struct timer *t)
{
	for (int i = 0; timer_is_firing(t); i++)
		os_relax(i);
}

/* What fires may start itself again, or be on its way from heap to heap, so the
 * place to look for it is looked at again when that is over. */
bool timer_stop(struct timer *t)
{
	do {
		if (timer_try_stop(t))
			return true;
		timer_wait_fired(t);
	} while (load_acquire(&t->heap));
	return false;
}

/* ------------------------------------------------------------------ firing */

/* Takes what is due at ts: some sleeps, or one timer, marked as firing. One only: its fire
 * may stop others, which has to wait for them if they are firing. How many. */
static uint32_t take_due(struct timers *ts, int64_t now, struct timer_entry *due)
{
	uint32_t n = 0;

	lock_acquire(&ts->lock);
	for (;;) {
		n += take_far(ts, now, due + n, SLEEPS_TOGETHER - n);
		if (n == SLEEPS_TOGETHER || ts->n == 0 || ts->entry[0].when > now)
			break;
		if (!is_sleep(ts->entry[0]) && n > 0)
			break;
		due[n++] = ts->entry[0];
		if (!is_sleep(ts->entry[0]))
			store_relaxed(&entry_timer(ts->entry[0])->firing, 1);
		take_off(ts, 0);
		if (!is_sleep(due[0]))
			break;
	}
	min_update(ts);
	lock_release(&ts->lock);
	return n;
}

bool timers_are_due(const struct p *pp)
{
	int64_t min = load_relaxed(&pp->timers.min_when);

	return min != TIMER_NEVER && min <= os_now();
}

/* Those who slept go to the end of the queue. They are fetched without anything in
 * between: a prefetch waits for its translation, but a few beside each other wait together. The
 * rest of what they need each fetches for those after it when it runs (runq_fetch_next). */
static void wake_sleepers(struct m *mp, const struct timer_entry *due, uint32_t n)
{
	bool queued = false;

	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(entry_g(due[i]), 1);
	for (uint32_t i = 0; i < n; i++) {
		struct g *gp = entry_g(due[i]);

		if (!g_make_runnable(mp, gp))
			continue;
		runq_put_woken(mp->p, gp);
		queued = true;
	}
	if (queued)
		wake();
}

/* The timers among those who are due, as far as there is room: these are not in order. */
static uint32_t look_ahead(const struct timers *ts, int64_t now, const struct timer **ahead)
{
	uint32_t due[TIMERS_AHEAD], n = due_first(ts, now, due, TIMERS_AHEAD), timers = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!is_sleep(ts->entry[due[i]]))
			ahead[timers++] = entry_timer(ts->entry[due[i]]);
	return timers;
}

/* Timers are taken and fired one by one; but if several are due, what they will look at is
 * fetched together, step by step. How many. */
static uint32_t fetch_due(struct timers *ts, int64_t now)
{
	const struct timer *ahead[TIMERS_AHEAD];
	uint32_t n;

	lock_acquire(&ts->lock);
	n = look_ahead(ts, now, ahead);
	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(ahead[i], 1);
	for (int step = 0; step < FETCH_STEPS; step++)
		for (uint32_t i = 0; i < n; i++)
			if (ahead[i]->fetch)
				ahead[i]->fetch(ahead[i], step);
	lock_release(&ts->lock);
	return n;
}

static uint32_t fire_due(struct m *mp, struct timers *ts, int64_t now)
{
	struct timer_entry due[SLEEPS_TOGETHER];
	uint32_t n, all = 0, ahead = 0;

	while (load_relaxed(&ts->min_when) <= now && (n = take_due(ts, now, due))) {
		all += n;
		if (is_sleep(due[0])) {
			wake_sleepers(mp, due, n);
		} else {
			struct timer *t = entry_timer(due[0]);

			if (ahead-- == 0)
				ahead = fetch_due(ts, now);
			t->fire(mp, t, now);	/* which clears firing, as its last use of t */
		}
	}
	return all;
}

bool timers_run(struct m *mp, struct p *pp, int64_t now)
{
	struct timers *ts = &pp->timers;
	bool dense = load_relaxed(&sched.timer_slack) != 0, alone;
	uint32_t all;

	check(mp->p);
	if (load_relaxed(&ts->min_when) == TIMER_NEVER)
		return false;
	if (now == 0)
		now = os_now();
	if (load_relaxed(&ts->min_when) > now)
		return false;
	alone = dense && !mp->spinning && spinning_begin_alone(mp);
	if (alone || !mp->spinning)
		mp->fired = 0;
	all = fire_due(mp, ts, now);
	mp->fired += all;
	if (alone)
		spinning_end(mp);
	return all > 0;
}

bool timers_are_hushed(const struct m *mp)
{
	return load_relaxed(&sched.timer_slack) != 0 && mp->fired > 0 && mp->fired <= HUSHED_MAX;
}

void timers_run_all(struct m *mp)
{
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++)
		timers_run(mp, p_at(i), 0);
}

static bool are_many(void)
{
	size_t sum = 0;

	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n && sum < TIMERS_MANY; i++)
		sum += timers_count(&p_at(i)->timers);
	return sum >= TIMERS_MANY;
}

static uint32_t count_due(struct timers *ts, int64_t by)
{
	uint32_t due[TIMERS_DENSE], n;

	lock_acquire(&ts->lock);
	n = due_first(ts, by, due, TIMERS_DENSE);
	if (ts->far_n > 0)
		n += far_count(ts->far, by, TIMERS_DENSE);
	lock_release(&ts->lock);
	return n;
}

static bool are_dense(int64_t by)
{
	uint32_t sum = 0;

	if (!are_many())
		return false;
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n && sum < TIMERS_DENSE; i++)
		if (load_relaxed(&p_at(i)->timers.min_when) <= by)
			sum += count_due(&p_at(i)->timers, by);
	return sum >= TIMERS_DENSE;
}

int64_t timers_slack(int64_t next)
{
	int64_t slack = next < TIMER_LAST && are_dense(next + TIMER_SLACK_NS) ? TIMER_SLACK_NS : 0;

	store_relaxed(&sched.timer_slack, slack);
	return slack;
}

int64_t timers_earliest(void)
{
	return timers_earliest_after(INT64_MIN);
}

int64_t timers_earliest_after(int64_t after)
{
	int64_t min = TIMER_NEVER;

	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++) {
		int64_t when = load_seqcst(&p_at(i)->timers.min_when);

		if (when > after && when < min)
			min = when;
	}
	return min;
}

/* A plain thread may be stopping one of them meanwhile. On its way a timer
 * counts as firing, so that it is not thought to be nowhere. */
void timers_move(struct p *from, struct p *to)
{
	struct timers *a = &from->timers, *b = &to->timers;
	struct timer_entry due[SLEEPS_TOGETHER];
	uint32_t n;

	while ((n = take_due(a, TIMER_LAST, due))) {
		lock_acquire(&b->lock);
		for (uint32_t i = 0; i < n; i++)
			put(b, due[i]);
		lock_release(&b->lock);
		if (!is_sleep(due[0]))
			timer_fired(entry_timer(due[0]));
	}
}

/* ------------------------------------------------------------------- sleep */

static void commit_sleep(struct m *mp, struct g *gp)
{
	entry_start(mp, (struct timer_entry){ (int64_t)(uintptr_t)mp->after_arg, (uintptr_t)gp | SLEEP });
}

void goro_sleep(int64_t ns)
{
	struct m *mp = rt_enter_free();

	if (ns > 0) {
		int64_t now = os_now();
		int64_t when = ns < TIMER_LAST - now ? now + ns : TIMER_LAST;

		mp = park(mp, commit_sleep, (void *)(uintptr_t)when, WAIT_SLEEP);
		if (likely(mp->p))
			runq_fetch_next(mp->p);
	}
	rt_exit_free(mp);
}
