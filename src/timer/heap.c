/*
 * heap.c - the heap of timers and sleeps that each P has.
 *
 * A 4-ary heap of (when, timer), earliest first, under a lock of its own. The timer knows
 * its place, so stopping it is a removal in logarithmic time and leaves nothing behind.
 * The lock is held for the heap only, never while a timer fires.
 *
 * Sleeps
 *
 * A sleep is never stopped, so it needs no timer: its entry is the goroutine itself,
 * which is not touched from when it falls asleep until it wakes. (A timer is told its new
 * place, and a removal moves eight entries: eight cache misses in a large heap.) Sleeps
 * that are due are taken several at a time. The four children of an entry lie in one
 * cache line.
 *
 * Once a heap is large, sleeps that end a millisecond or more after the first are kept
 * elsewhere (timer_far.c). The earliest is then the earlier of the first on the heap and
 * the first that is far away.
 *
 * Stopping against firing
 *
 * A timer that is due is taken off the heap and marked as firing under the heap's lock,
 * and fired after the unlock. A goroutine that stops it then finds it on no heap, and
 * waits until the mark is gone: a fire is short and waits for nothing. Afterwards nothing
 * of the runtime refers to the timer, so it may be freed. A caller that holds a lock that
 * the fire takes cannot wait: timer_try_stop lets the fire go on, and the fire finds out
 * under that lock that it came too late.
 *
 * Rejected: lazy deletion (a stopped timer with a far deadline fills the heap); a timing
 * wheel (rounds, and idles badly); holding the lock while firing (locks of channels would
 * nest in both orders).
 */
#include "timer/timer.h"

#include <string.h>

#include "base/debug.h"
#include "platform/os.h"
#include "base/throw.h"
#include "timer/timer_far.h"

#define FAR_FROM 1024		/* of a larger heap, sleeps are kept elsewhere */

#define ARITY 4
#define FIRST_SLOTS 64
#define FETCH_STEPS 2

void timers_init(struct timers *ts)
{
	ts->lock = (struct lock)LOCK_INIT(RANK_TIMER);
	ts->min_when = TIMER_NEVER;
}

/* -------------------------------------------------------------------- heap */

static inline void entry_set(struct timers *ts, uint32_t i, struct timer_entry e)
{
	ts->entry[i] = e;
	if (!entry_is_sleep(e))
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

/* Without branches where there are four: the earliest cannot be predicted. */
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

/* Entry 0 is the last of its cache line, so that 1 to 4, 5 to 8, ... share one each. */
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
	if (!entry_is_sleep(e))
		store_relaxed(&entry_timer(e)->heap, ts);
	sift_up(ts, ts->n - 1, e);
}

/* ts->lock held. Puts e in place of entry i and sifts it to where it belongs. */
static void heap_replace(struct timers *ts, uint32_t i, struct timer_entry e)
{
	check(lock_is_held(&ts->lock) && i < ts->n);
	if (i > 0 && e.when < ts->entry[(i - 1) / ARITY].when)
		sift_up(ts, i, e);
	else
		sift_down(ts, i, e);
}

/* ---------------------------------------------------------------- far away */

/* Whether e is a sleep that ends a unit or more after the first of a large heap. */
static inline bool goes_far(const struct timers *ts, struct timer_entry e)
{
	return (ts->far_n > 0 || ts->n >= FAR_FROM) && entry_is_sleep(e) &&
	       far_unit(e.when) > far_unit(ts->min_when);
}

static bool put_far(struct timers *ts, struct timer_entry e)
{
	if (debug.nofar || (!ts->far && !(ts->far = far_make())) || !far_put(ts->far, e))
		return false;
	store_relaxed(&ts->far_n, ts->far_n + 1);
	return true;
}

/* Takes up to max far sleeps that are due and end before the first on the heap; how
 * many. */
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

/* Between a removal and this call min_when may be too early, which does no harm. */
static void min_update(struct timers *ts)
{
	int64_t first = ts->n ? ts->entry[0].when : TIMER_NEVER;

	check(lock_is_held(&ts->lock));
	store_seqcst(&ts->min_when, ts->far_n ? soonest(first, far_first(ts->far)) : first);
}

/* ts->lock held. Removes entry i from the heap; the caller calls min_update. */
static void take_off(struct timers *ts, uint32_t i)
{
	struct timer_entry e = ts->entry[i], last = ts->entry[ts->n - 1];

	check(lock_is_held(&ts->lock) && i < ts->n);
	store_relaxed(&ts->n, ts->n - 1);
	if (!entry_is_sleep(e))
		/* release: it is firing now; pairs with timer_try_stop */
		store_release(&entry_timer(e)->heap, NULL);
	if (i != ts->n)
		heap_replace(ts, i, last);
}

/* ts->lock held. As timers_put. */
static bool put(struct timers *ts, struct timer_entry e)
{
	check(lock_is_held(&ts->lock));
	check(entry_is_sleep(e) || !load_relaxed(&entry_timer(e)->heap));
	if (goes_far(ts, e) && put_far(ts, e))
		return false;
	heap_put(ts, e);
	if (e.when >= ts->min_when)
		return false;
	min_update(ts);
	return true;
}

/* ts->lock held. The indices of up to max entries that are due by then, in no order: the
 * parent of an entry that is due is due, too. */
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

/* --------------------------------------------------------- change and stop */

bool timers_put(struct timers *ts, struct timer_entry e)
{
	bool first;

	lock_acquire(&ts->lock);
	first = put(ts, e);
	lock_release(&ts->lock);
	return first;
}

/* Whether t waits on ts: with ts->lock held then. */
static bool lock_with(struct timers *ts, const struct timer *t)
{
	lock_acquire(&ts->lock);
	if (load_relaxed(&t->heap) == ts)
		return true;
	lock_release(&ts->lock);
	return false;
}

bool timers_change(struct timers *ts, struct timer *t, int64_t when, bool *first)
{
	uint32_t i;

	*first = false;
	if (load_relaxed(&t->heap) != ts || !lock_with(ts, t))
		return false;
	i = t->index;
	t->when = when;
	*first = when < ts->min_when;
	heap_replace(ts, i, entry_of_timer(t));
	if (i == 0 || *first)
		min_update(ts);
	lock_release(&ts->lock);
	return true;
}

bool timer_try_stop(struct timer *t)
{
	struct timers *ts;
	uint32_t i;

	do {
		ts = load_acquire(&t->heap);
		if (!ts)
			return false;
	} while (!lock_with(ts, t));
	i = t->index;
	check(entry_timer(ts->entry[i]) == t);
	take_off(ts, i);
	if (i == 0)
		min_update(ts);
	lock_release(&ts->lock);
	return true;
}

/* Lets the thread that fires run, which the kernel may have stopped. */
void timer_wait_fired(const struct timer *t)
{
	for (int i = 0; timer_is_firing(t); i++)
		os_relax(i);
}

/* A timer may start itself again, or change its heap, so t->heap is read again. */
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

/* One timer at a time: its fire may stop others, and would wait for those marked. */
uint32_t timers_take_due(struct timers *ts, int64_t now, struct timer_entry *due)
{
	uint32_t n = 0;

	lock_acquire(&ts->lock);
	for (;;) {
		n += take_far(ts, now, due + n, TIMERS_TOGETHER - n);
		if (n == TIMERS_TOGETHER || ts->n == 0 || ts->entry[0].when > now)
			break;
		if (!entry_is_sleep(ts->entry[0]) && n > 0)
			break;
		due[n++] = ts->entry[0];
		if (!entry_is_sleep(ts->entry[0]))
			store_relaxed(&entry_timer(ts->entry[0])->firing, 1);
		take_off(ts, 0);
		if (!entry_is_sleep(due[0]))
			break;
	}
	min_update(ts);
	lock_release(&ts->lock);
	return n;
}

/* The timers among the entries that are due, in no order. */
static uint32_t look_ahead(const struct timers *ts, int64_t now, const struct timer **ahead)
{
	uint32_t due[TIMERS_TOGETHER], n = due_first(ts, now, due, TIMERS_TOGETHER), timers = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!entry_is_sleep(ts->entry[due[i]]))
			ahead[timers++] = entry_timer(ts->entry[due[i]]);
	return timers;
}

/* Timers fire one by one, but what several will read is prefetched together. */
uint32_t timers_fetch_due(struct timers *ts, int64_t now)
{
	const struct timer *ahead[TIMERS_TOGETHER];
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

uint32_t timers_count_due(struct timers *ts, int64_t by, uint32_t max)
{
	uint32_t due[TIMERS_TOGETHER], n;

	lock_acquire(&ts->lock);
	n = due_first(ts, by, due, max);
	if (ts->far_n > 0)
		n += far_count(ts->far, by, max);
	lock_release(&ts->lock);
	return n;
}

/* On its way a timer counts as firing, so that a plain thread that stops it waits. */
void timers_move(struct timers *from, struct timers *to)
{
	struct timer_entry due[TIMERS_TOGETHER];
	uint32_t n;

	while ((n = timers_take_due(from, TIMER_LAST, due))) {
		lock_acquire(&to->lock);
		for (uint32_t i = 0; i < n; i++)
			put(to, due[i]);
		lock_release(&to->lock);
		if (!entry_is_sleep(due[0]))
			timer_fired(entry_timer(due[0]));
	}
}

#if GORO_CHECKS
size_t timers_check(struct timers *ts)
{
	size_t n;

	lock_acquire(&ts->lock);
	for (uint32_t i = 0; i < ts->n; i++) {
		struct timer_entry e = ts->entry[i];

		check(i == 0 || ts->entry[(i - 1) / ARITY].when <= e.when);
		check(ts->min_when <= e.when);
		check(entry_is_sleep(e) || entry_timer(e)->index == i);
		check(entry_is_sleep(e) || entry_timer(e)->heap == ts);
		check(entry_is_sleep(e) || entry_timer(e)->when == e.when);
	}
	check(ts->far_n == 0 || ts->min_when <= far_first(ts->far));
	n = ts->n + (ts->far_n > 0 ? far_check(ts->far, ts->far_n) : 0);
	check(ts->n + ts->far_n != 0 || ts->min_when == TIMER_NEVER);
	lock_release(&ts->lock);
	return n;
}
#endif
