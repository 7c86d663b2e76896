/*
 * timer_far_test.c - the place of sleeps that end long from now, against a plain array.
 */
#include <goro.h>
#include <string.h>

#include "os.h"
#include "random.h"
#include "test.h"
#include "timer.h"
#include "timer_far.h"

#define UNIT ((int64_t)1 << FAR_UNIT_BITS)
#define MAX  20000

/* What was put in and not taken out, by number; when[i] < 0: not there. */
static int64_t when[MAX];
static int there;
static int64_t unit_taken;

static struct timer_far *make(void)
{
	os_init();
	return far_make();
}

static void add(struct timer_far *f, int i, int64_t at)
{
	when[i] = at;
	there++;
	CHECK(far_put(f, (struct timer_entry){ at, (uintptr_t)i << 1 | 1 }));
}

static int64_t first_there(int n)
{
	int64_t first = TIMER_NEVER;

	for (int i = 0; i < n; i++)
		if (when[i] >= 0 && when[i] < first)
			first = when[i];
	return first;
}

static void taken(struct timers *ts, struct timer_entry e)
{
	int i = (int)(e.what >> 1);

	CHECK(!ts);
	CHECK_EQ(when[i], e.when);
	CHECK_EQ(far_unit(e.when), unit_taken);
	when[i] = -1;
	there--;
}

/* Takes the first unit: all of it and nothing else. */
static void take(struct timer_far *f, int n)
{
	int before = there;

	CHECK_EQ(far_first(f), first_there(n));
	unit_taken = far_unit(far_first(f));
	CHECK_EQ(far_take(f, taken, NULL), before - there);
	CHECK(before > there);
	CHECK(there == 0 || far_unit(first_there(n)) > unit_taken);
}

TEST(an_empty_one_has_no_first)
{
	struct timer_far *f = make();

	CHECK_EQ(far_first(f), TIMER_NEVER);
	add(f, 0, 5 * UNIT);
	take(f, 1);
	CHECK_EQ(far_first(f), TIMER_NEVER);
}

TEST(those_a_round_apart_are_taken_one_after_the_other)
{
	struct timer_far *f = make();

	for (int i = 0; i < 500; i++)
		add(f, i, 7 * UNIT + (499 - i) * FAR_PLACES * UNIT + i);
	for (int i = 0; i < 500; i++)
		take(f, 500);
	CHECK_EQ(there, 0);
}

TEST(the_last_time_there_is_has_a_place)
{
	struct timer_far *f = make();

	add(f, 0, TIMER_LAST);
	add(f, 1, 1);
	take(f, 2);
	CHECK_EQ(far_first(f), TIMER_LAST);
	take(f, 2);
}

/* From within a unit to hours; some are put in between the takes, also earlier ones. */
TEST(none_is_lost_or_out_of_order)
{
	static const int64_t spread[] = { UNIT / 2, 20 * UNIT, 2000 * UNIT, 1000000 * UNIT };

	for (int k = 0; k < 4; k++) {
		struct timer_far *f = make();
		uint64_t rng = 42 + (uint64_t)k;
		int n = 0, all = k < 2 ? MAX : MAX / 20;

		memset(when, -1, sizeof when);
		while (n < all || there > 0) {
			for (int i = 0; i < 100 && n < all; i++, n++)
				add(f, n, (int64_t)(random_next(&rng) % (uint64_t)spread[k]));
			take(f, n);
		}
		CHECK_EQ(far_first(f), TIMER_NEVER);
	}
}
