/*
 * semaphore_test.c - weighted semaphores: order, deadlines, misuse, and when they
 * may be freed.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "sched/linger.h"
#include "race.h"
#include "test.h"

_Static_assert(sizeof(goro_sema) == 32, "as promised");

static goro_sema sema_of(int64_t units)
{
	goro_sema s;

	goro_sema_init(&s, units);
	return s;
}

static void acquire(goro_sema *s, int64_t units)
{
	CHECK_EQ(goro_sema_acquire(s, units, GORO_FOREVER), 0);
}

/* True once a goroutine waits in line: then even 0 units cannot be had at once. */
static bool has_line(goro_sema *s)
{
	return !goro_sema_try_acquire(s, 0);
}

/* -------------------------------------------------------------------- the basics */

GO_TEST(try_acquire_says_whether_it_acquired)
{
	goro_sema s = sema_of(2);

	acquire(&s, 1);
	CHECK(goro_sema_try_acquire(&s, 1));
	CHECK(!goro_sema_try_acquire(&s, 1));
	goro_sema_release(&s, 2);
	CHECK(goro_sema_try_acquire(&s, 1));
	acquire(&s, 1);
	CHECK(!goro_sema_try_acquire(&s, 1));
}

GO_TEST(a_zeroed_one_has_no_units)
{
	goro_sema s = { { 0 } };

	CHECK(!goro_sema_try_acquire(&s, 1));
	CHECK(goro_sema_try_acquire(&s, 0));
}

static void release_one(void *s)
{
	goro_sema_release(s, 1);
}

GO_TEST(releasing_more_than_held_panics)
{
	goro_sema s = sema_of(1);

	CHECK_STR(goro_try(release_one, &s), "semaphore: released more than held");
	CHECK(goro_sema_try_acquire(&s, 1));
	CHECK(!goro_sema_try_acquire(&s, 1));
}

GO_TEST(past_a_deadline_nothing_is_acquired)
{
	goro_sema s = sema_of(2);

	CHECK_EQ(goro_sema_acquire(&s, 3, GORO_NOW), -ETIMEDOUT);
	CHECK_EQ(goro_sema_acquire(&s, 1, GORO_NOW), -ETIMEDOUT);
	CHECK_EQ(goro_sema_acquire(&s, 1, goro_now() - 1), -ETIMEDOUT);
	CHECK(goro_sema_try_acquire(&s, 2));
	CHECK_EQ(goro_sema_acquire(&s, 1, GORO_NOW), -ETIMEDOUT);
}

static int acquire_for(goro_sema *s, int64_t units, int64_t ns)
{
	return goro_sema_acquire(s, units, goro_now() + ns);
}

GO_TEST(a_deadline_ends_the_wait)
{
	goro_sema s = sema_of(2);
	int64_t start = goro_now();

	acquire(&s, 1);
	CHECK_EQ(acquire_for(&s, 1, 10 * GORO_MILLISECOND), 0);
	CHECK_EQ(acquire_for(&s, 1, 10 * GORO_MILLISECOND), -ETIMEDOUT);
	CHECK(goro_now() - start >= 10 * GORO_MILLISECOND);
	goro_sema_release(&s, 2);
	CHECK_EQ(acquire_for(&s, 1, 10 * GORO_MILLISECOND), 0);
	acquire(&s, 1);
	CHECK_EQ(acquire_for(&s, 1, 10 * GORO_MILLISECOND), -ETIMEDOUT);
	CHECK_EQ(acquire_for(&s, 3, GORO_MILLISECOND), -ETIMEDOUT);
	goro_sema_release(&s, 2);
	CHECK(goro_sema_try_acquire(&s, 2));
}

static bool timed_out;

static void *wait_as_thread(void *s)
{
	CHECK_EQ(acquire_for(s, 1, 5 * GORO_MILLISECOND), -ETIMEDOUT);
	store_seqcst(&timed_out, true);
	CHECK_EQ(acquire_for(s, 1, seconds(50)), 0);
	return NULL;
}

GO_TEST(threads_have_deadlines_too)
{
	goro_sema s = sema_of(1);
	pthread_t t;

	acquire(&s, 1);
	pthread_create(&t, NULL, wait_as_thread, &s);
	AWAIT(load_seqcst(&timed_out));
	goro_sleep(5 * GORO_MILLISECOND);	/* for it to wait again */
	goro_sema_release(&s, 1);
	pthread_join(t, NULL);
	CHECK(!goro_sema_try_acquire(&s, 1));
}

static void want_all_for_a_moment(goro_sema *s, goro_waitgroup *wg)
{
	CHECK_EQ(acquire_for(s, 10, 10 * GORO_MILLISECOND), -ETIMEDOUT);
	goro_waitgroup_done(wg);
}

/* There was enough for this one, behind one that wanted more and gave up. */
GO_TEST(who_gives_up_lets_those_behind_go_on)
{
	goro_sema s = sema_of(10);
	goro_waitgroup wg = { { 0 } };

	goro_waitgroup_add(&wg, 1);
	acquire(&s, 1);
	go(want_all_for_a_moment, &s, &wg);
	AWAIT(has_line(&s));
	acquire(&s, 1);
	goro_waitgroup_wait(&wg);
	goro_sema_release(&s, 2);
	CHECK(goro_sema_try_acquire(&s, 10));
}

/* ------------------------------------------------------------------------ exclusion */

struct hammer {
	goro_sema s;
	int64_t total, in_use;
	int loops;
	goro_waitgroup wg;
};

static void use(struct hammer *h, int64_t units)
{
	for (int i = 0; i < h->loops; i++) {
		acquire(&h->s, units);
		CHECK(fetch_add_seqcst(&h->in_use, units) + units <= h->total);
		if (i % 3 == 0)
			goro_gosched();
		fetch_add_seqcst(&h->in_use, -units);
		goro_sema_release(&h->s, units);
	}
	goro_waitgroup_done(&h->wg);
}

GO_TEST(never_more_than_there_are)
{
	struct hammer h = { .s = sema_of(8), .total = 8, .loops = SCALED(2000) };

	goro_waitgroup_add(&h.wg, 9);
	for (int i = 0; i <= 8; i++)
		go(use, &h, (int64_t)i);
	goro_waitgroup_wait(&h.wg);
	CHECK(goro_sema_try_acquire(&h.s, 8));
}

static void *use_thread(void *h)
{
	use(h, 2);
	return NULL;
}

GO_TEST(threads_and_goroutines_together)
{
	struct hammer h = { .s = sema_of(4), .total = 4, .loops = SCALED(1000) };
	pthread_t t[3];

	goro_waitgroup_add(&h.wg, 7);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, use_thread, &h);
	for (int i = 0; i < 4; i++)
		go(use, &h, (int64_t)i + 1);
	goro_waitgroup_wait(&h.wg);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	CHECK(goro_sema_try_acquire(&h.s, 4));
}

/* ---------------------------------------------------------------------------- order */

struct line {
	goro_sema s;
	int order[16], taken, n;
	goro_waitgroup wg;
};

static void note_turn(struct line *l, int64_t units, int id)
{
	acquire(&l->s, units);
	l->order[fetch_add_seqcst(&l->taken, 1)] = id;
	fetch_add_seqcst(&l->n, 1);
	goro_waitgroup_done(&l->wg);
}

GO_TEST(few_do_not_go_before_many)
{
	struct line l = { .s = sema_of(4) };

	goro_waitgroup_add(&l.wg, 2);
	acquire(&l.s, 3);
	go(note_turn, &l, INT64_C(2), 1);
	AWAIT(has_line(&l.s));
	CHECK(!goro_sema_try_acquire(&l.s, 1));	/* there is one, but not for us */
	go(note_turn, &l, INT64_C(1), 2);
	for (int i = 0; i < 100; i++)
		goro_gosched();
	CHECK_EQ(load_seqcst(&l.n), 0);
	goro_sema_release(&l.s, 1);
	AWAIT(load_seqcst(&l.n) == 1);
	CHECK_EQ(l.order[0], 1);
	goro_sema_release(&l.s, 1);
	goro_waitgroup_wait(&l.wg);
	CHECK(!has_line(&l.s));
}

GO_TEST(first_come_first_served)
{
	struct line l = { .s = sema_of(1) };

	goro_waitgroup_add(&l.wg, 10);
	acquire(&l.s, 1);
	goro_gomaxprocs(1);		/* so that they come in order */
	for (int i = 0; i < 10; i++) {
		go(note_turn, &l, INT64_C(1), i);
		goro_gosched();
	}
	for (int i = 0; i < 10; i++) {
		goro_sema_release(&l.s, 1);
		AWAIT(load_seqcst(&l.n) == i + 1);
		CHECK_EQ(l.order[i], i);
	}
	goro_waitgroup_wait(&l.wg);
}

GO_TEST(one_release_serves_several)
{
	struct line l = { .s = sema_of(6) };

	goro_waitgroup_add(&l.wg, 3);
	acquire(&l.s, 6);
	for (int i = 0; i < 3; i++)
		go(note_turn, &l, INT64_C(2), i);
	AWAIT(has_line(&l.s));
	goro_sema_release(&l.s, 6);
	goro_waitgroup_wait(&l.wg);
	CHECK(!goro_sema_try_acquire(&l.s, 1));
}

static void want_too_much(goro_sema *s)
{
	goro_sema_acquire(s, 3, GORO_FOREVER);
	FAIL("got three of two");
}

static void acquire_and_release(goro_sema *s, goro_waitgroup *wg)
{
	acquire(s, 1);
	goro_gosched();
	goro_sema_release(s, 1);
	goro_waitgroup_done(wg);
}

GO_TEST(who_wants_too_much_is_in_nobodys_way)
{
	/* outlives the test: a goroutine waits for ever */
	static goro_sema s;
	goro_waitgroup wg = { { 0 } };

	goro_sema_init(&s, 2);
	goro_waitgroup_add(&wg, 6);
	go(want_too_much, &s);
	goro_gosched();
	for (int i = 0; i < 6; i++)
		go(acquire_and_release, &s, &wg);
	goro_waitgroup_wait(&wg);
	CHECK(goro_sema_try_acquire(&s, 2));
}

struct crowd {
	goro_sema s;
	int running;
	goro_waitgroup wg;
};

static void come_and_go(struct crowd *c)
{
	while (load_acquire(&c->running)) {
		goro_gosched();
		goro_sema_release(&c->s, 1);
		acquire(&c->s, 1);
	}
	goro_sema_release(&c->s, 1);
	goro_waitgroup_done(&c->wg);
}

GO_TEST(who_wants_all_is_not_starved)
{
	enum { N = 8 };
	struct crowd c = { .s = sema_of(N), .running = 1 };

	goro_waitgroup_add(&c.wg, N);
	for (int i = 0; i < N; i++) {
		acquire(&c.s, 1);
		go(come_and_go, &c);
	}
	acquire(&c.s, N);
	store_release(&c.running, 0);
	goro_sema_release(&c.s, N);
	goro_waitgroup_wait(&c.wg);
}

/* --------------------------------------------------------------------------- the end */

static void release_it(goro_sema *s)
{
	goro_sema_release(s, 1);
}

GO_TEST_TIMEOUT(freed_by_who_got_the_units, 120)
{
	for (int i = 0; i < SCALED(20000); i++) {
		goro_sema *s = malloc(sizeof *s);

		linger_round(i);
		goro_sema_init(s, 1);
		acquire(s, 1);
		go(release_it, s);
		if (i % 2)
			goro_gosched();
		acquire(s, 1);
		memset(s, 0xa5, sizeof *s);
		free(s);
	}
}

static void acquire_briefly(struct hammer *h, unsigned seed)
{
	for (int i = 0; i < h->loops; i++) {
		int64_t ns;

		seed = seed * 1664525 + 1013904223;
		ns = (seed >> 12) % (50 * GORO_MICROSECOND);
		if (acquire_for(&h->s, 1 + (seed >> 8) % 3, ns) == 0) {
			goro_gosched();
			goro_sema_release(&h->s, 1 + (seed >> 8) % 3);
		}
	}
	goro_waitgroup_done(&h->wg);
}

/* Deadlines that come just when the units do: neither is lost. */
GO_TEST_TIMEOUT(deadlines_and_units_race, 120)
{
	struct hammer h = { .s = sema_of(3), .loops = SCALED(2000) };

	goro_waitgroup_add(&h.wg, 8);
	for (unsigned i = 0; i < 8; i++)
		go(acquire_briefly, &h, i);
	goro_waitgroup_wait(&h.wg);
	CHECK(goro_sema_try_acquire(&h.s, 3));
}

/* The goroutine that gets the units may free the semaphore. */
GO_TEST_TIMEOUT(freed_when_the_deadline_comes_with_the_units, 120)
{
	for (int i = 0; i < SCALED(3000); i++) {
		goro_sema *s = malloc(sizeof *s);
		int got;

		linger_round(i);
		goro_sema_init(s, 1);
		acquire(s, 1);
		go(release_it, s);
		got = acquire_for(s, 1, i % 100 * 100);
		if (got != 0)
			acquire(s, 1);		/* it is still to come */
		memset(s, 0xa5, sizeof *s);
		free(s);
	}
}

static void release_in_thread(void *s, int who, int round)
{
	(void)who, (void)round;
	goro_sema_release(s, 1);
}

TEST_TIMEOUT(freed_by_the_thread_that_got_the_units, 120)
{
	race_begin(1, release_in_thread);
	for (int i = 0; i < race.rounds; i++) {
		goro_sema *s = malloc(sizeof *s);

		linger_round(i);
		goro_sema_init(s, 1);
		acquire(s, 1);
		race_start(s);
		acquire(s, 1);
		memset(s, 0xa5, sizeof *s);
		free(s);
		race_finish();
	}
	race_end();
}
