/*
 * timer_far_test.c - the place of sleeps that end long from now, against a plain array.
 */
#include <goro.h>
#include <stdbool.h>
#include <string.h>

#include "platform/os.h"
#include "random.h"
#include "test.h"
#include "timer/timer.h"
#include "timer/timer_far.h"

#define UNIT ((int64_t)1 << FAR_UNIT_BITS)
#define MAX  20000

/* What was put in and not taken out, by number; when[i] < 0: not there. */
static int64_t when[MAX];
static int there;
static int64_t seen_unit;	/* the last of which something was taken */

static struct timer_far *make(void)
{
	os_init();
	memset(when, -1, sizeof when);
	seen_unit = -1;
	return far_make();
}

static bool try_add(struct timer_far *f, int i, int64_t at)
{
	if (!far_put(f, (struct timer_entry){ at, (uintptr_t)i << 1 | 1 }))
		return false;
	when[i] = at;
	there++;
	return true;
}

static void add(struct timer_far *f, int i, int64_t at)
{
	CHECK(try_add(f, i, at));
}

static int64_t first_there(int n)
{
	int64_t first = TIMER_NEVER;

	for (int i = 0; i < n; i++)
		if (when[i] >= 0 && when[i] < first)
			first = when[i];
	return first;
}

static uint32_t count_there(int n, int64_t by)
{
	uint32_t count = 0;

	for (int i = 0; i < n; i++)
		count += when[i] >= 0 && when[i] <= by;
	return count;
}

static void saw(int64_t at)
{
	if (far_unit(at) > seen_unit)
		seen_unit = far_unit(at);
}

/* Takes all that end by then, a few at a time: in order, and nothing else. */
static void take(struct timer_far *f, int n, int64_t by)
{
	struct timer_entry out[64];
	int64_t last = first_there(n);
	uint32_t left = count_there(n, by), got;

	CHECK_EQ(far_first(f), last);
	while ((got = far_take(f, by, out, 64)) > 0) {
		CHECK(got == 64 || got == left);
		left -= got;
		for (uint32_t i = 0; i < got; i++) {
			int k = (int)(out[i].what >> 1);

			CHECK_EQ(when[k], out[i].when);
			CHECK(out[i].when >= last && out[i].when <= by);
			last = out[i].when;
			when[k] = -1;
			there--;
		}
		saw(last);
	}
#if GORO_CHECKS
	far_check(f, (uint32_t)there);
#endif
	CHECK_EQ(left, 0);
	CHECK_EQ(far_first(f), first_there(n));
}

TEST(an_empty_one_has_no_first)
{
	struct timer_far *f = make();

	CHECK_EQ(far_first(f), TIMER_NEVER);
	add(f, 0, 5 * UNIT);
	take(f, 1, 5 * UNIT);
	CHECK_EQ(far_first(f), TIMER_NEVER);
	add(f, 0, 4 * UNIT);	/* earlier than what was there once */
	take(f, 1, TIMER_LAST);
}

TEST(those_a_round_apart_are_taken_one_after_the_other)
{
	struct timer_far *f = make();

	for (int i = 0; i < 500; i++)
		add(f, i, 7 * UNIT + (499 - i) * FAR_PLACES * UNIT + i);
	for (int i = 0; i < 500; i++)
		take(f, 500, 8 * UNIT + i * FAR_PLACES * UNIT);
	CHECK_EQ(there, 0);
}

TEST(the_last_time_there_is_has_a_place)
{
	struct timer_far *f = make();

	add(f, 0, TIMER_LAST);
	add(f, 1, 1);
	take(f, 2, 1);
	CHECK_EQ(far_first(f), TIMER_LAST);
	take(f, 2, TIMER_LAST);
}

/* While a unit is partly taken, no sleep is put to it or to a unit before it. */
TEST(what_ends_too_soon_is_refused)
{
	struct timer_far *f = make();

	add(f, 0, 5 * UNIT + 1);
	add(f, 1, 5 * UNIT + 3);
	take(f, 2, 5 * UNIT + 1);
	CHECK(!try_add(f, 2, 5 * UNIT + 2));
	CHECK(!try_add(f, 2, 4 * UNIT));
	add(f, 2, 6 * UNIT);
	take(f, 3, 5 * UNIT + 3);
	add(f, 0, 5 * UNIT + 4);
	take(f, 3, 6 * UNIT);
	CHECK_EQ(there, 0);
}

/* The keeper counts what ends with the first, and may be woken for something earlier. */
TEST(to_count_takes_nothing_out)
{
	struct timer_far *f = make();

	add(f, 0, 5000 * UNIT);
	CHECK_EQ(far_count(f, 5000 * UNIT, 8), 1);
	add(f, 1, 4000 * UNIT);
	add(f, 2, 5000 * UNIT - 1);
	CHECK_EQ(far_count(f, 5000 * UNIT, 8), 3);	/* of two units */
	CHECK_EQ(far_count(f, 5000 * UNIT, 2), 2);
	take(f, 3, 5000 * UNIT);
}

/* More than a unit's parts could be told apart by, at one time or within 4 us of each
 * other. */
TEST(many_at_once_are_in_order)
{
	for (int spread = 1; spread < 5000; spread += 4998) {
		struct timer_far *f = make();
		uint64_t rng = 42;

		for (int i = 0; i < MAX; i++)
			add(f, i, 9 * UNIT + (int64_t)(random_next(&rng) % (uint64_t)spread));
		take(f, MAX, 10 * UNIT);
		CHECK_EQ(there, 0);
	}
}

/* From within a unit to hours; some are put in between the takes, also earlier ones. */
TEST(none_is_lost_or_out_of_order)
{
	static const int64_t spread[] = { UNIT / 2, 20 * UNIT, 2000 * UNIT, 1000000 * UNIT };

	for (int k = 0; k < 4; k++) {
		struct timer_far *f = make();
		uint64_t rng = 42 + (uint64_t)k;
		int n = 0, all = k < 2 ? MAX : MAX / 20, refused = 0;

		while (n < all || there > 0) {
			int64_t by;

			for (int i = 0; i < 100 && n < all; i++, n++) {
				int64_t at = (int64_t)(random_next(&rng) % (uint64_t)spread[k]);

				if (!try_add(f, n, at)) {
					CHECK(far_unit(at) <= seen_unit && first_there(n) >> FAR_UNIT_BITS <= seen_unit);
					refused++;
				}
			}
			by = first_there(n) + (int64_t)(random_next(&rng) % (2 * UNIT));
			for (uint32_t max = 1; max < 100; max *= 4) {
				uint32_t count = count_there(n, by);

				CHECK_EQ(far_count(f, by, max), count < max ? count : max);
			}
			take(f, n, by);
		}
		CHECK_EQ(far_first(f), TIMER_NEVER);
		CHECK(refused < all / 2);
	}
}
