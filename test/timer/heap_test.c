/*
 * heap_test.c - the heap of timers and sleeps beside a model of it, without a scheduler.
 */
#include <unistd.h>

#include "base/debug.h"
#include "platform/os.h"
#include "random.h"
#include "test.h"
#include "timer/timer.h"

enum { TIMERS = 300, STEPS = 20000, UNIT = 1 << 20 };

struct model {
	struct timers ts;
	struct timer timer[TIMERS];
	int64_t sleep[TIMERS];		/* when sleeper i ends; 0: it is not there */
};

static struct g *sleeper(size_t i)
{
	return (struct g *)(uintptr_t)(64 * (i + 1));
}

static int64_t earliest(const struct model *m)
{
	int64_t min = TIMER_NEVER;

	for (int i = 0; i < TIMERS; i++) {
		if (m->timer[i].heap)
			min = soonest(min, m->timer[i].when);
		if (m->sleep[i])
			min = soonest(min, m->sleep[i]);
	}
	return min;
}

static uint32_t waiting(const struct model *m)
{
	uint32_t n = 0;

	for (int i = 0; i < TIMERS; i++)
		n += (m->timer[i].heap != NULL) + (m->sleep[i] != 0);
	return n;
}

/* Times within some ten units of now, so that many are equal or near. */
static int64_t some_time(uint64_t *r, int64_t now)
{
	return now + 1 + (int64_t)(random_next(r) % (10 * UNIT));
}

static void put_one(struct model *m, uint64_t *r, int64_t now)
{
	size_t i = random_next(r) % TIMERS;
	int64_t before = earliest(m), when = some_time(r, now);
	bool first;

	if (random_next(r) % 2) {
		if (m->timer[i].heap)
			return;
		m->timer[i].when = when;
		first = timers_put(&m->ts, entry_of_timer(&m->timer[i]));
	} else {
		if (m->sleep[i])
			return;
		m->sleep[i] = when;
		first = timers_put(&m->ts, entry_of_sleep(sleeper(i), when));
	}
	CHECK_EQ(first, when < before);
}

static void change_one(struct model *m, uint64_t *r, int64_t now)
{
	struct timer *t = &m->timer[random_next(r) % TIMERS];
	int64_t before = earliest(m), when = some_time(r, now);
	bool there = t->heap != NULL, first;

	CHECK_EQ(timers_change(&m->ts, t, when, &first), there);
	CHECK(!first || when < before);
}

static void stop_one(struct model *m, uint64_t *r)
{
	struct timer *t = &m->timer[random_next(r) % TIMERS];
	bool there = t->heap != NULL;

	CHECK_EQ(timer_try_stop(t), there);
	CHECK(!t->heap);
}

static void take_all_due(struct model *m, int64_t now)
{
	struct timer_entry due[TIMERS_TOGETHER];
	uint32_t n;

	while ((n = timers_take_due(&m->ts, now, due))) {
		for (uint32_t i = 0; i < n; i++) {
			CHECK(due[i].when <= now);
			if (!entry_is_sleep(due[i])) {
				CHECK_EQ(n, 1u);
				CHECK(timer_is_firing(entry_timer(due[i])));
				timer_fired(entry_timer(due[i]));
				continue;
			}
			CHECK_EQ(m->sleep[(uintptr_t)entry_g(due[i]) / 64 - 1], due[i].when);
			m->sleep[(uintptr_t)entry_g(due[i]) / 64 - 1] = 0;
		}
	}
	CHECK(earliest(m) > now);
}

TEST(it_holds_what_a_model_holds)
{
	static struct model m;
	uint64_t r = 1;
	int64_t now = UNIT;

	timers_init(&m.ts);
	for (int step = 0; step < STEPS; step++) {
		switch (random_next(&r) % 8) {
		case 0: change_one(&m, &r, now); break;
		case 1: stop_one(&m, &r); break;
		case 2: now += (int64_t)(random_next(&r) % UNIT); take_all_due(&m, now); break;
		default: put_one(&m, &r, now);
		}
		CHECK_EQ(m.ts.min_when, earliest(&m));
		CHECK_EQ(timers_count(&m.ts), waiting(&m));
#if GORO_CHECKS
		timers_check(&m.ts);
#endif
	}
	take_all_due(&m, now + 20 * UNIT);
	CHECK_EQ(timers_count(&m.ts), 0u);
	CHECK_EQ(m.ts.min_when, TIMER_NEVER);
}

static void take_many_in_order(bool far)
{
	enum { MANY = 5000 };
	static struct timers ts;
	struct timer_entry due[TIMERS_TOGETHER];
	uint64_t r = 2;
	int64_t last = 0;
	uint32_t n, all = 0;

	os_init();		/* far sleeps take memory */
	timers_init(&ts);
	for (size_t i = 0; i < MANY; i++)
		timers_put(&ts, entry_of_sleep(sleeper(i), 1 + (int64_t)(random_next(&r) % (100LL * UNIT))));
	CHECK_EQ(timers_count(&ts), MANY);
	CHECK_EQ(ts.far_n > 0, far);
	for (int64_t now = 0; now <= 100LL * UNIT; now += UNIT / 4) {
		while ((n = timers_take_due(&ts, now, due))) {
			for (uint32_t i = 0; i < n; i++) {
				CHECK(due[i].when >= last && due[i].when <= now);
				last = due[i].when;
			}
			all += n;
		}
	}
	CHECK_EQ(all, MANY);
}

TEST(sleeps_are_taken_in_order_from_a_large_heap_too)
{
	take_many_in_order(true);
}

TEST(all_are_on_the_heap_where_far_sleeps_are_off)
{
	debug.nofar = 1;
	take_many_in_order(false);
}

/* Takes what is due until none is on the heap itself. Returns when that was. */
static int64_t empty_the_heap(struct timers *ts)
{
	struct timer_entry due[TIMERS_TOGETHER];
	int64_t now = 0;

	while (ts->n > 0) {
		now += UNIT / 4;
		while (timers_take_due(ts, now, due))
			;
	}
	return now;
}

TEST(sleeps_far_away_count_as_due)
{
	enum { MANY = 5000 };
	static struct timers ts;
	int64_t now;

	os_init();
	timers_init(&ts);
	for (size_t i = 0; i < MANY; i++)
		timers_put(&ts, entry_of_sleep(sleeper(i), 1 + (int64_t)i * UNIT / 50));
	now = empty_the_heap(&ts);
	CHECK(ts.far_n > 8);
	CHECK_EQ(timers_count_due(&ts, now + 10 * UNIT, 8), 8u);
	CHECK_EQ(timers_count_due(&ts, ts.min_when - 1, 8), 0u);
	CHECK_EQ(timers_count_due(&ts, ts.min_when, 8), 1u);
}

TEST(what_is_moved_is_taken_from_its_new_place)
{
	static struct timers a, b;
	struct timer t[100] = { { 0 } };
	struct timer_entry due[TIMERS_TOGETHER];
	uint32_t n, all = 0;

	timers_init(&a);
	timers_init(&b);
	for (int i = 0; i < 100; i++) {
		t[i].when = 1000 - i;
		timers_put(&a, entry_of_timer(&t[i]));
		timers_put(&a, entry_of_sleep(sleeper((size_t)i), 500 + i));
	}
	timers_move(&a, &b);
	CHECK_EQ(timers_count(&a), 0u);
	CHECK_EQ(a.min_when, TIMER_NEVER);
	CHECK(timer_try_stop(&t[0]) && !timer_is_firing(&t[0]));
	CHECK_EQ(timers_count_due(&b, 499, 8), 0u);
	CHECK(timers_count_due(&b, 500, 8) >= 1);
	while ((n = timers_take_due(&b, 2000, due)))
		all += n;
	CHECK_EQ(all, 199u);
}

#if GORO_CHECKS

/* Timers 0 to 9, and sleepers enough for some to be far away, in a heap that is then
 * spoilt. */
static struct timers spoilt;
static struct timer ten[10];
static void (*spoil)(void);

static void look(void)
{
	enum { SLEEPERS = 3000 };

	os_init();
	timers_init(&spoilt);
	for (size_t i = 0; i < 10; i++) {
		ten[i].when = UNIT + (int64_t)i;
		timers_put(&spoilt, entry_of_timer(&ten[i]));
	}
	for (size_t i = 0; i < SLEEPERS; i++)
		timers_put(&spoilt, entry_of_sleep(sleeper(i), 2 * UNIT + 10000 * (int64_t)i));
	CHECK(spoilt.far_n > 0);
	spoil();
	timers_check(&spoilt);
	_exit(0);
}

static void finds(void (*how)(void), const char *message)
{
	struct test_output o;

	spoil = how;
	test_run_child(look, &o);
	CHECK_EQ(o.status, message ? 2 : 0);
	if (message)
		CHECK_CONTAINS(o.err, message);
}

static void nothing(void) {}
static void out_of_order(void) { spoilt.entry[1].when = UNIT - 1; }
static void min_too_late(void) { spoilt.min_when = UNIT + 1; }
static void at_another_place(void) { ten[3].index++; }
static void on_another_heap(void) { ten[3].heap = NULL; }
static void copy_differs(void) { ten[3].when--; }
static void far_not_counted(void) { spoilt.far_n++; }

TEST(a_heap_that_is_not_in_order_is_found)
{
	finds(nothing, NULL);
	finds(out_of_order, "timers_check: i == 0 || ");
	finds(min_too_late, "timers_check: ts->min_when <= e.when");
	finds(at_another_place, "->index == i");
	finds(on_another_heap, "->heap == ts");
	finds(copy_differs, "->when == e.when");
	finds(far_not_counted, "far_check: found == n");
}

#endif
