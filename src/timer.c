/*
 * timer.c - timers: a heap on each P, fired by whoever finds them due.
 *
 * A timer is put on the heap of the P that starts it, a 4-ary heap of (when,
 * timer) under a lock of its own; the timer knows its place, so stopping it is
 * a removal in logarithmic time and leaves nothing behind. The lock is held for
 * the heap only, never while a timer fires.
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
#include "runtime.h"

struct timer_entry {
	int64_t when;		/* a copy, so that sifting stays in the array */
	struct timer *t;
};

#define ARITY 4
#define FIRST_ROOM 64
#define FIRE_SPINS 100		/* a fire takes less, if its thread runs */

void timers_init(struct timers *ts)
{
	ts->lock = (struct lock)LOCK_INIT(RANK_TIMER);
	ts->min_when = TIMER_NEVER;
}

/* -------------------------------------------------------------------- heap */

static inline void entry_set(struct timers *ts, uint32_t i, struct timer_entry e)
{
	ts->entry[i] = e;
	e.t->index = i;
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

static uint32_t earliest_child(const struct timers *ts, uint32_t i)
{
	uint32_t first = i * ARITY + 1, best = first;

	for (uint32_t c = first + 1; c < first + ARITY && c < ts->n; c++)
		if (ts->entry[c].when < ts->entry[best].when)
			best = c;
	return best;
}

static void sift_down(struct timers *ts, uint32_t i, struct timer_entry e)
{
	while (i * ARITY + 1 < ts->n) {
		uint32_t c = earliest_child(ts, i);

		if (ts->entry[c].when >= e.when)
			break;
		entry_set(ts, i, ts->entry[c]);
		i = c;
	}
	entry_set(ts, i, e);
}

static void min_update(struct timers *ts)
{
	store_seqcst(&ts->min_when, ts->n ? ts->entry[0].when : TIMER_NEVER);
}

/* Mapped, not malloced: this may run in state RUNTIME. */
static void make_room(struct timers *ts)
{
	uint32_t room = ts->room ? 2 * ts->room : FIRST_ROOM;
	struct timer_entry *e = os_map(room * sizeof *e);

	if (!e)
		throw("out of memory for timers");
	tool_mapped(e, room * sizeof *e);
	if (ts->n)
		memcpy(e, ts->entry, ts->n * sizeof *e);
	if (ts->entry) {
		tool_unmapped(ts->entry, ts->room * sizeof *e);
		os_unmap(ts->entry, ts->room * sizeof *e);
	}
	ts->entry = e;
	ts->room = room;
}

/* ts->lock held. */
static void heap_put(struct timers *ts, struct timer *t)
{
	if (ts->n == ts->room)
		make_room(ts);
	store_relaxed(&ts->n, ts->n + 1);
	store_relaxed(&t->heap, ts);
	sift_up(ts, ts->n - 1, (struct timer_entry){ t->when, t });
	if (ts->entry[0].t == t)
		min_update(ts);
}

/* ts->lock held. */
static void heap_remove(struct timers *ts, struct timer *t)
{
	uint32_t i = t->index;
	struct timer_entry last = ts->entry[ts->n - 1];

	check(ts->entry[i].t == t);
	store_relaxed(&ts->n, ts->n - 1);
	/* release: that it is firing now; pairs with load_acquire in timer_try_stop */
	store_release(&t->heap, NULL);
	if (last.t != t) {
		if (i > 0 && last.when < ts->entry[(i - 1) / ARITY].when)
			sift_up(ts, i, last);
		else
			sift_down(ts, i, last);
	}
	if (i == 0)
		min_update(ts);
}

/* ----------------------------------------------------------- start and stop */

/* A timer is the earliest that anybody waits for: whoever sleeps until a later
 * time is to look again. */
static void timers_poke(int64_t when)
{
	/* seqcst: after min_update; pairs with keeper_limit and sysmon's sleep,
	 * which store when they will look and then read the earliest timer. */
	if (when < load_seqcst(&sched.keeper_until) && when < load_seqcst(&sched.sysmon_until))
		m_poke_keeper(when);
}

void timer_start(struct m *mp, struct timer *t, int64_t when)
{
	struct p *pp = mp->p ? mp->p : p_at(0);	/* which is never out of use */
	struct timers *ts = &pp->timers;
	bool first;

	check(!t->heap && !t->firing);
	if (when > TIMER_LAST)
		when = TIMER_LAST;
	t->when = when;
	lock_acquire(&ts->lock);
	heap_put(ts, t);
	first = t->index == 0;
	lock_release(&ts->lock);
	if (first)
		timers_poke(when);
}

bool timer_try_stop(struct timer *t)
{
	struct timers *ts;

	while ((ts = load_acquire(&t->heap)) != NULL) {
		bool here;

		lock_acquire(&ts->lock);
		here = load_relaxed(&t->heap) == ts;
		if (here)
			heap_remove(ts, t);
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
		if (i < FIRE_SPINS)
			cpu_relax();
		else
			os_yield();
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

/* The earliest timer of ts, if it is due, marked as firing. */
static struct timer *take_due(struct timers *ts, int64_t now)
{
	struct timer *t = NULL;

	lock_acquire(&ts->lock);
	if (ts->n > 0 && ts->entry[0].when <= now) {
		t = ts->entry[0].t;
		store_relaxed(&t->firing, 1);
		heap_remove(ts, t);
	}
	lock_release(&ts->lock);
	return t;
}

bool timers_are_due(const struct p *pp)
{
	int64_t min = load_relaxed(&pp->timers.min_when);

	return min != TIMER_NEVER && min <= os_now();
}

bool timers_run(struct m *mp, struct p *pp, int64_t now)
{
	struct timers *ts = &pp->timers;
	struct timer *t;
	bool any = false;

	if (load_relaxed(&ts->min_when) == TIMER_NEVER)
		return false;
	if (now == 0)
		now = os_now();
	while (load_relaxed(&ts->min_when) <= now && (t = take_due(ts, now))) {
		void (*fire)(struct m *, struct timer *, int64_t) = t->fire;

		fire(mp, t, now);	/* which clears firing, as its last use of t */
		any = true;
	}
	return any;
}

size_t timers_count(void)
{
	size_t sum = 0;

	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++)
		sum += load_relaxed(&p_at(i)->timers.n);
	return sum;
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
	struct timer *t;

	while ((t = take_due(a, TIMER_NEVER))) {
		lock_acquire(&b->lock);
		heap_put(b, t);
		lock_release(&b->lock);
		timer_fired(t);
	}
}

/* ------------------------------------------------------------------- sleep */

/* The timer is the sleeping goroutine's own; its last use is to say that its
 * fire is over, before the goroutine can run and use it again. */
static void fire_sleep(struct m *mp, struct timer *t, int64_t now)
{
	struct g *gp = (struct g *)((char *)t - offsetof(struct g, timer));

	(void)now;
	timer_fired(t);
	g_ready_in_order(mp, gp);
}

static void commit_sleep(struct m *mp, struct g *gp)
{
	timer_start(mp, &gp->timer, gp->timer.when);
}

void goro_sleep(int64_t ns)
{
	struct m *mp = rt_enter_free();
	struct timer *t = &mp->curg->timer;

	if (ns > 0) {
		int64_t now = os_now();

		t->when = ns < TIMER_LAST - now ? now + ns : TIMER_LAST;
		t->fire = fire_sleep;
		mp = park(mp, commit_sleep, NULL, WAIT_SLEEP);
	}
	rt_exit_free(mp);
}
