/*
 * ctx_test.c - contexts, by the meaning of Go's context/x_test.go and the tests
 * beside it: docs/go-tests.md says which test here answers to which there.
 */
/* test: procs */
/* test: leaks */
#include <goro.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "limit_memory.h"
#include "test.h"

#define MS   GORO_MILLISECOND
#define HOUR (3600 * GORO_SECOND)

static int runs;

static void count_run(void *arg)
{
	(void)arg;
	fetch_add_seqcst(&runs, 1);
}

static bool is_done(goro_ctx *c)
{
	goro_chan *done = goro_ctx_done(c);
	bool closed = goro_chan_try_recv(done, NULL) == GORO_RECV_CLOSED;

	CHECK_EQ(closed, goro_ctx_err(c) != 0);
	return closed;
}

#define CHECK_DONE(c, e, why)                           \
	do {                                            \
		CHECK(is_done(c));                      \
		CHECK_EQ(goro_ctx_err(c), e);           \
		CHECK_EQ(goro_ctx_cause(c), why);       \
	} while (0)
#define CHECK_NOT_DONE(c)                               \
	do {                                            \
		CHECK(!is_done(c));                     \
		CHECK_EQ(goro_ctx_cause(c), 0);         \
	} while (0)

static goro_ctx *background_child(void)
{
	return goro_ctx_with_cancel(goro_ctx_background());
}

static void wait_done(goro_ctx *c)
{
	CHECK(!goro_chan_recv(goro_ctx_done(c), NULL));
}

/* ------------------------------------------------------------- background */

GO_TEST(background_is_never_done)
{
	goro_ctx *b = goro_ctx_background();
	int key;

	CHECK(b == goro_ctx_background());
	CHECK(!goro_ctx_done(b));
	goro_ctx_cancel(b);
	goro_ctx_cancel_cause(b, -EIO);
	goro_ctx_unref(b);
	goro_ctx_unref(goro_ctx_ref(b));
	CHECK_EQ(goro_ctx_err(b), 0);
	CHECK_EQ(goro_ctx_cause(b), 0);
	CHECK(goro_ctx_deadline(b) == GORO_FOREVER);
	CHECK(!goro_ctx_value(b, &key));
}

TEST(plain_program_can_use_contexts)
{
	goro_ctx *c = goro_ctx_with_timeout(goro_ctx_background(), 5 * MS);

	wait_done(c);
	CHECK_DONE(c, -ETIMEDOUT, -ETIMEDOUT);
	goro_ctx_unref(c);
}

/* ------------------------------------------------------------------ cancel */

GO_TEST(cancel_is_seen_and_is_idempotent)
{
	goro_ctx *c = background_child();

	CHECK_NOT_DONE(c);
	goro_ctx_cancel(c);
	CHECK_DONE(c, -ECANCELED, -ECANCELED);
	goro_ctx_cancel(c);
	goro_ctx_cancel_cause(c, -EIO);
	CHECK_DONE(c, -ECANCELED, -ECANCELED);
	goro_ctx_unref(c);
}

GO_TEST(channel_made_after_the_cancel_is_closed)
{
	goro_ctx *c = background_child();

	goro_ctx_cancel(c);
	CHECK_EQ(goro_ctx_err(c), -ECANCELED);
	wait_done(c);
	CHECK(goro_ctx_done(c) == goro_ctx_done(c));
	goro_ctx_unref(c);
}

static void wait_and_count(goro_ctx *c, goro_waitgroup *wg)
{
	wait_done(c);
	CHECK_EQ(goro_ctx_err(c), -ECANCELED);
	fetch_add_seqcst(&runs, 1);
	goro_waitgroup_done(wg);
}

GO_TEST(cancel_wakes_all_who_wait)
{
	enum { N = 100 };
	goro_ctx *c = background_child();
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, N);
	for (int i = 0; i < N; i++)
		go(wait_and_count, c, &wg);
	AWAIT(goroutines_waiting() >= N);
	CHECK_EQ(load_seqcst(&runs), 0);
	goro_ctx_cancel(c);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(load_seqcst(&runs), N);
	goro_ctx_unref(c);
}

GO_TEST(parent_finishes_children)
{
	goro_ctx *parent = background_child();
	goro_ctx *cancelled = goro_ctx_with_cancel(parent);
	goro_ctx *timed = goro_ctx_with_timeout(parent, HOUR);
	goro_ctx *valued = goro_ctx_with_value(parent, &runs, "v");
	goro_ctx *below = goro_ctx_with_cancel(valued);

	CHECK_NOT_DONE(cancelled);
	CHECK_NOT_DONE(timed);
	CHECK_NOT_DONE(valued);
	CHECK_NOT_DONE(below);
	goro_ctx_cancel_cause(parent, -EIO);
	CHECK_DONE(parent, -ECANCELED, -EIO);
	CHECK_DONE(cancelled, -ECANCELED, -EIO);
	CHECK_DONE(timed, -ECANCELED, -EIO);
	CHECK_DONE(valued, -ECANCELED, -EIO);
	CHECK_DONE(below, -ECANCELED, -EIO);
	goro_ctx_unref(parent);
	goro_ctx_unref(cancelled);
	goro_ctx_unref(timed);
	goro_ctx_unref(valued);
	goro_ctx_unref(below);
}

GO_TEST(child_finishes_without_its_parent)
{
	goro_ctx *parent = background_child(), *child = goro_ctx_with_cancel(parent);
	goro_ctx *valued = goro_ctx_with_value(parent, &runs, NULL);

	goro_ctx_cancel(child);
	goro_ctx_cancel(valued);
	CHECK_DONE(child, -ECANCELED, -ECANCELED);
	CHECK_DONE(valued, -ECANCELED, -ECANCELED);
	CHECK_NOT_DONE(parent);
	goro_ctx_unref(child);
	goro_ctx_unref(valued);
	goro_ctx_unref(parent);
}

GO_TEST(child_of_a_cancelled_parent_is_cancelled)
{
	goro_ctx *parent = background_child(), *child, *timed;

	goro_ctx_cancel_cause(parent, -EIO);
	child = goro_ctx_with_cancel(parent);
	timed = goro_ctx_with_timeout(parent, -1);
	CHECK_DONE(child, -ECANCELED, -EIO);
	CHECK_DONE(timed, -ECANCELED, -EIO);
	goro_ctx_unref(child);
	goro_ctx_unref(timed);
	goro_ctx_unref(parent);
}

/* ------------------------------------------------------------------- causes */

GO_TEST(first_cause_counts)
{
	enum { PARENT = -EIO, CHILD = -EPIPE };
	static const struct {
		int first, second;	/* 0: none given */
		bool child_first;
		int cause;		/* of the child */
	} tests[] = {
		{ PARENT, CHILD, false, PARENT },
		{ CHILD, PARENT, true, CHILD },
		{ PARENT, 0, false, PARENT },
		{ 0, PARENT, true, -ECANCELED },
		{ 0, CHILD, false, -ECANCELED },
		{ CHILD, 0, true, CHILD },
	};

	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		goro_ctx *parent = background_child(), *child = goro_ctx_with_cancel(parent);

		goro_ctx_cancel_cause(tests[i].child_first ? child : parent, tests[i].first);
		goro_ctx_cancel_cause(tests[i].child_first ? parent : child, tests[i].second);
		CHECK_DONE(child, -ECANCELED, tests[i].cause);
		goro_ctx_unref(parent);
		goro_ctx_unref(child);
	}
}

GO_TEST(timeout_is_its_own_cause)
{
	goro_ctx *over = goro_ctx_with_timeout(goro_ctx_background(), 0);
	goro_ctx *stopped = goro_ctx_with_timeout(goro_ctx_background(), HOUR);
	goro_ctx *parent = background_child(), *child = goro_ctx_with_timeout(parent, 0);

	goro_ctx_cancel_cause(over, -EIO);
	CHECK_DONE(over, -ETIMEDOUT, -ETIMEDOUT);
	goro_ctx_cancel(stopped);
	CHECK_DONE(stopped, -ECANCELED, -ECANCELED);
	goro_ctx_cancel_cause(parent, -EIO);
	CHECK_DONE(child, -ETIMEDOUT, -ETIMEDOUT);
	goro_ctx_unref(over);
	goro_ctx_unref(stopped);
	goro_ctx_unref(child);
	goro_ctx_unref(parent);
}

static void cancel_with_cause(goro_ctx *c)
{
	goro_ctx_cancel_cause(c, -EIO);
}

GO_TEST(cause_is_there_as_soon_as_the_error_is)
{
	for (int i = 0; i < SCALED(1000); i++) {
		goro_ctx *c = background_child();

		go(cancel_with_cause, c);
		AWAIT(goro_ctx_cause(c) != 0);
		CHECK_DONE(c, -ECANCELED, -EIO);
		goro_ctx_unref(c);
	}
}

/* --------------------------------------------------------------- deadlines */

GO_TEST(deadline_finishes_and_not_early)
{
	int64_t at = goro_now() + 20 * MS;
	goro_ctx *c = goro_ctx_with_deadline(goro_ctx_background(), at);
	goro_ctx *between = goro_ctx_with_cancel(c);
	goro_ctx *child = goro_ctx_with_value(between, &runs, NULL);

	goro_ctx_unref(between);
	CHECK(goro_ctx_deadline(c) == at);
	CHECK(goro_ctx_deadline(child) == at);
	wait_done(child);
	CHECK(goro_now() >= at);
	CHECK_DONE(c, -ETIMEDOUT, -ETIMEDOUT);
	CHECK_DONE(child, -ETIMEDOUT, -ETIMEDOUT);
	goro_ctx_unref(c);
	goro_ctx_unref(child);
}

GO_TEST(earlier_deadline_counts)
{
	int64_t soon = goro_now() + 10 * MS, late = goro_now() + HOUR;
	goro_ctx *outer = goro_ctx_with_deadline(goro_ctx_background(), late);
	goro_ctx *inner = goro_ctx_with_deadline(outer, soon);
	goro_ctx *innermost = goro_ctx_with_deadline(inner, late);

	CHECK(goro_ctx_deadline(outer) == late);
	CHECK(goro_ctx_deadline(inner) == soon);
	CHECK(goro_ctx_deadline(innermost) == soon);
	wait_done(innermost);
	CHECK(goro_now() >= soon);
	CHECK_DONE(inner, -ETIMEDOUT, -ETIMEDOUT);
	CHECK_NOT_DONE(outer);
	goro_ctx_unref(outer);
	goro_ctx_unref(inner);
	goro_ctx_unref(innermost);
}

static uint64_t timers(void)
{
	struct goro_stats now;

	goro_stats_read(&now);
	return now.timers;
}

GO_TEST(a_context_that_is_cancelled_has_no_timer_any_more)
{
	uint64_t before = timers();
	goro_ctx *c = goro_ctx_with_timeout(goro_ctx_background(), HOUR);

	CHECK_EQ(timers(), before + 1);
	goro_ctx_cancel(c);
	CHECK_EQ(timers(), before);
	goro_ctx_unref(c);
}

GO_TEST(deadline_in_the_past_is_done_at_once)
{
	static const int64_t past[] = { GORO_NOW, 1, -1, INT64_MIN };

	for (int i = 0; i < 4; i++) {
		goro_ctx *c = goro_ctx_with_deadline(goro_ctx_background(), past[i]);

		CHECK_DONE(c, -ETIMEDOUT, -ETIMEDOUT);
		CHECK(goro_ctx_deadline(c) == past[i]);
		goro_ctx_unref(c);
	}
	for (int i = 1; i < 4; i++) {
		goro_ctx *c = goro_ctx_with_timeout(goro_ctx_background(), i == 1 ? 0 : past[i]);

		CHECK_DONE(c, -ETIMEDOUT, -ETIMEDOUT);
		goro_ctx_unref(c);
	}
}

GO_TEST(no_deadline_is_none)
{
	goro_ctx *c = goro_ctx_with_deadline(goro_ctx_background(), GORO_FOREVER);
	goro_ctx *long_one = goro_ctx_with_timeout(c, INT64_MAX);

	CHECK(goro_ctx_deadline(c) == GORO_FOREVER);
	CHECK_NOT_DONE(c);
	CHECK_NOT_DONE(long_one);
	goro_ctx_unref(c);
	goro_ctx_unref(long_one);
}

GO_TEST(cancelled_before_its_deadline_stays_cancelled)
{
	bool in_time;

	do {	/* a busy machine may take the 10 ms */
		goro_ctx *c = goro_ctx_with_timeout(goro_ctx_background(), 10 * MS);

		goro_ctx_cancel(c);
		in_time = goro_now() < goro_ctx_deadline(c);
		goro_sleep(20 * MS);
		if (in_time)
			CHECK_DONE(c, -ECANCELED, -ECANCELED);
		goro_ctx_unref(c);
	} while (!in_time);
}

GO_TEST(cancel_and_last_unref_stop_the_timer)
{
	enum { N = 1000 };
	struct goro_stats s;

	for (int i = 0; i < N; i++) {
		goro_ctx *c = goro_ctx_with_timeout(goro_ctx_background(), HOUR);

		if (i % 2)
			goro_ctx_cancel(c);
		goro_ctx_unref(c);
	}
	goro_stats_read(&s);
	CHECK(s.timers < 10);
}

/* ------------------------------------------------------------------- values */

GO_TEST(values_are_found_from_below_by_their_key)
{
	static int k1, k2, k3;
	goro_ctx *c0 = goro_ctx_background();
	goro_ctx *c1 = goro_ctx_with_value(c0, &k1, "c1k1");
	goro_ctx *c2 = goro_ctx_with_value(c1, &k2, "c2k2");
	goro_ctx *between = goro_ctx_with_cancel(c2);
	goro_ctx *c3 = goro_ctx_with_value(between, &k3, "c3k3");
	goro_ctx *c4 = goro_ctx_with_value(c3, &k1, NULL);

	CHECK(!goro_ctx_value(c0, &k1));
	CHECK_STR(goro_ctx_value(c1, &k1), "c1k1");
	CHECK(!goro_ctx_value(c1, &k2));
	CHECK_STR(goro_ctx_value(c2, &k1), "c1k1");
	CHECK_STR(goro_ctx_value(c2, &k2), "c2k2");
	CHECK_STR(goro_ctx_value(c3, &k1), "c1k1");
	CHECK_STR(goro_ctx_value(c3, &k3), "c3k3");
	CHECK(!goro_ctx_value(c4, &k1));	/* hidden */
	CHECK_STR(goro_ctx_value(c4, &k2), "c2k2");
	goro_ctx_unref(c1);
	goro_ctx_unref(c2);
	goro_ctx_unref(between);
	CHECK_STR(goro_ctx_value(c3, &k1), "c1k1");
	goro_ctx_unref(c3);
	CHECK_STR(goro_ctx_value(c4, &k3), "c3k3");
	goro_ctx_unref(c4);
}

GO_TEST(without_cancel_keeps_the_values_only)
{
	goro_ctx *timed = goro_ctx_with_timeout(goro_ctx_background(), HOUR);
	goro_ctx *valued = goro_ctx_with_value(timed, &runs, "value");
	goro_ctx *free_one = goro_ctx_without_cancel(valued);
	goro_ctx *below = goro_ctx_with_cancel(free_one);

	CHECK(goro_ctx_deadline(free_one) == GORO_FOREVER);
	CHECK(!goro_ctx_done(free_one));
	goro_ctx_cancel_cause(timed, -EIO);
	CHECK_DONE(valued, -ECANCELED, -EIO);
	CHECK_EQ(goro_ctx_err(free_one), 0);
	CHECK_EQ(goro_ctx_cause(free_one), 0);
	goro_ctx_cancel(free_one);
	CHECK_EQ(goro_ctx_err(free_one), 0);
	CHECK_NOT_DONE(below);
	CHECK_STR(goro_ctx_value(below, &runs), "value");
	goro_ctx_cancel(below);
	CHECK_DONE(below, -ECANCELED, -ECANCELED);
	goro_ctx_unref(timed);
	goro_ctx_unref(valued);
	goro_ctx_unref(free_one);
	CHECK_STR(goro_ctx_value(below, &runs), "value");
	goro_ctx_unref(below);
}

/* -------------------------------------------------------------- references */

GO_TEST(last_unref_cancels)
{
	goro_ctx *c = background_child();
	goro_chan *done = goro_chan_ref(goro_ctx_done(c));

	goro_ctx_ref(c);
	goro_ctx_unref(c);
	CHECK_EQ(goro_chan_try_recv(done, NULL), GORO_RECV_EMPTY);
	goro_ctx_unref(c);
	CHECK_EQ(goro_chan_try_recv(done, NULL), GORO_RECV_CLOSED);
	goro_chan_unref(done);
	goro_ctx_unref(NULL);
	CHECK(!goro_ctx_ref(NULL));
}

GO_TEST(child_keeps_its_parent)
{
	goro_ctx *parent = background_child(), *child = goro_ctx_with_cancel(parent);
	goro_chan *done = goro_chan_ref(goro_ctx_done(parent));

	goro_ctx_unref(parent);
	CHECK_EQ(goro_chan_try_recv(done, NULL), GORO_RECV_EMPTY);
	CHECK_NOT_DONE(child);
	goro_ctx_unref(child);
	CHECK_EQ(goro_chan_try_recv(done, NULL), GORO_RECV_CLOSED);
	goro_chan_unref(done);
}

static void wait_and_unref(goro_ctx *c)
{
	wait_done(c);
	goro_ctx_unref(c);
	fetch_add_seqcst(&runs, 1);
}

/* The canceller has no reference of its own: the waiter drops the last one. */
GO_TEST(who_is_woken_may_drop_the_context)
{
	int n = SCALED(5000);

	for (int i = 0; i < n; i++) {
		goro_ctx *c = goro_ctx_with_timeout(goro_ctx_background(), i % 2 ? HOUR : i % 100 * 1000);

		go(wait_and_unref, c);
		if (i % 2) {
			if (i % 3 == 0)
				goro_gosched();
			goro_ctx_cancel(c);
		}
	}
	AWAIT(load_seqcst(&runs) == n);
}

/* ------------------------------------------------------------------- trees */

/* All below top: a chain, a fan, or trees of five. */
static goro_ctx **make_tree(goro_ctx *top, int n, int shape)
{
	goro_ctx **c = malloc((size_t)n * sizeof *c);

	for (int i = 0; i < n; i++) {
		int parent = shape == 0 ? i - 1 : shape == 1 ? -1 : (i - 1) / 5 - (i == 0);

		c[i] = goro_ctx_with_cancel(parent < 0 ? top : c[parent]);
		CHECK(c[i]);
	}
	return c;
}

static void check_large_tree(int shape, bool timed)
{
	int n = SCALED(100000);
	goro_ctx *top = timed ? goro_ctx_with_timeout(goro_ctx_background(), 50 * MS)
	                      : background_child();
	goro_ctx **c = make_tree(top, n, shape);
	int err = timed ? -ETIMEDOUT : -ECANCELED;

	if (timed)
		for (int i = 0; i < n; i++)
			AWAIT(goro_ctx_err(c[i]) == err);
	else
		goro_ctx_cancel(top);
	for (int i = 0; i < n; i++)
		CHECK_EQ(goro_ctx_err(c[i]), err);
	for (int i = 0; i < n; i++)
		goro_ctx_unref(c[i]);
	goro_ctx_unref(top);
	free(c);
}

GO_TEST(chain_of_a_hundred_thousand_is_cancelled)
{
	check_large_tree(0, false);
	check_large_tree(0, true);
}

GO_TEST(fan_of_a_hundred_thousand_is_cancelled)
{
	check_large_tree(1, false);
	check_large_tree(1, true);
}

GO_TEST(tree_of_a_hundred_thousand_is_cancelled)
{
	check_large_tree(2, false);
	check_large_tree(2, true);
}

/* Dropping the end of a long chain drops all of it, without recursion. */
GO_TEST(chain_of_a_hundred_thousand_is_dropped)
{
	goro_ctx *c = background_child(), *child;
	goro_chan *done = goro_chan_ref(goro_ctx_done(c));

	for (int i = 0; i < SCALED(100000); i++) {
		child = goro_ctx_with_cancel(c);
		goro_ctx_unref(c);
		c = child;
	}
	goro_ctx_unref(c);
	CHECK_EQ(goro_chan_try_recv(done, NULL), GORO_RECV_CLOSED);
	goro_chan_unref(done);
}

static void cancel_and_look(goro_ctx *top, goro_ctx **c, int n, int from, goro_waitgroup *wg)
{
	goro_ctx_cancel_cause(from < 0 ? top : c[from], from < 0 ? -EIO : -EPIPE);
	/* Whichever call was first: what is below is done when the call returns. */
	for (int i = from < 0 ? 0 : from; i < n; i++)
		CHECK_EQ(goro_ctx_err(c[i]), -ECANCELED);
	goro_waitgroup_done(wg);
}

GO_TEST(simultaneous_cancels_each_return_when_all_below_is_done)
{
	for (int round = 0; round < SCALED(300); round++) {
		enum { N = 200, BY = 6 };
		goro_ctx *top = background_child();
		goro_ctx **c = make_tree(top, N, 0);
		goro_waitgroup wg = { 0 };

		goro_waitgroup_add(&wg, BY);
		for (int i = 0; i < BY; i++)
			go(cancel_and_look, top, c, N, i % 3 == 0 ? -1 : i * 10, &wg);
		goro_waitgroup_wait(&wg);
		for (int i = 0; i < N; i++) {
			int cause = goro_ctx_cause(c[i]);

			CHECK(cause == -EIO || cause == -EPIPE);
			goro_ctx_unref(c[i]);
		}
		goro_ctx_unref(top);
		free(c);
	}
}

static void cancel_below(goro_ctx *parent)
{
	goro_ctx *child = goro_ctx_with_cancel(parent);

	goro_ctx_cancel(parent);
	CHECK_DONE(child, -ECANCELED, -ECANCELED);
	goro_ctx_unref(child);
	goro_ctx_unref(parent);
}

GO_TEST(parent_and_child_cancel_each_other_at_once)
{
	goro_ctx *parent = background_child(), *child = goro_ctx_with_cancel(parent);

	go(cancel_below, goro_ctx_ref(parent));
	wait_done(parent);
	goro_ctx_cancel(child);
	wait_done(child);
	goro_ctx_unref(parent);
	goro_ctx_unref(child);
}

/* Children come and go by every way there is while their parent is cancelled. */
static void come_and_go(goro_ctx *parent, unsigned seed, goro_waitgroup *wg)
{
	for (int i = 0; i < SCALED(2000); i++) {
		goro_ctx *a, *b;

		seed = seed * 1103515245 + 12345;
		a = seed & 64 ? goro_ctx_with_timeout(parent, seed >> 8 & 0xfff)
		              : goro_ctx_with_cancel(parent);
		b = goro_ctx_with_value(a, &runs, NULL);
		if (seed & 128)
			goro_ctx_done(b);
		if (seed & 256)
			goro_ctx_cancel(seed & 512 ? a : b);
		goro_ctx_unref(seed & 1024 ? a : b);
		if (seed & 2048)
			goro_gosched();
		goro_ctx_unref(seed & 1024 ? b : a);
	}
	goro_ctx_unref(parent);
	goro_waitgroup_done(wg);
}

GO_TEST(children_come_and_go_while_their_parent_is_cancelled)
{
	for (int round = 0; round < 10; round++) {
		goro_ctx *parent = goro_ctx_with_timeout(goro_ctx_background(), (round % 5) * MS);
		goro_waitgroup wg = { 0 };

		goro_waitgroup_add(&wg, 4);
		for (unsigned i = 0; i < 4; i++)
			go(come_and_go, goro_ctx_ref(parent), i + 10 * (unsigned)round, &wg);
		goro_gosched();
		if (round % 2)
			goro_ctx_cancel(parent);
		goro_ctx_unref(parent);
		goro_waitgroup_wait(&wg);
	}
}

/* Layers of every kind, cancelled or timed out at the top, as Go's do. */
static void check_layers(unsigned seed, bool timeout)
{
	enum { N = 30 };
	goro_ctx *c[N], *top = goro_ctx_background();
	static const int keys[N];

	for (int i = 0; i < N; i++) {
		goro_ctx *parent = i ? c[i - 1] : top;

		seed = seed * 1103515245 + 12345;
		switch (seed >> 16 & 3) {
		case 0: c[i] = goro_ctx_with_cancel(parent); break;
		case 1: c[i] = goro_ctx_with_timeout(parent, timeout ? 20 * MS : HOUR); break;
		default: c[i] = goro_ctx_with_value(parent, &keys[i], &c[i]);
		}
	}
	if (timeout && goro_ctx_deadline(c[N - 1]) != GORO_FOREVER)
		wait_done(c[N - 1]);
	for (int i = 0; i < N; i++) {
		void *value = goro_ctx_value(c[N - 1], &keys[i]);

		CHECK(!value || value == &c[i]);
	}
	goro_ctx_cancel(c[0]);
	for (int i = 0; i < N; i++) {
		CHECK(is_done(c[i]));
		if (!timeout)
			CHECK_EQ(goro_ctx_err(c[i]), -ECANCELED);
	}
	for (int i = 0; i < N; i++)
		goro_ctx_unref(c[i]);
}

GO_TEST(layers_are_cancelled_or_time_out)
{
	for (unsigned i = 0; i < 20; i++) {
		check_layers(i, false);
		check_layers(i, true);
	}
}

/* --------------------------------------------------------------- functions */

GO_TEST(function_runs_once_the_context_is_cancelled)
{
	goro_ctx *c = background_child(), *child = goro_ctx_with_cancel(c);
	goro_ctx_func *f = goro_ctx_after_func(child, count_run, NULL);
	goro_ctx_func *g = goro_ctx_after_func(child, count_run, NULL);

	goro_sleep(5 * MS);
	CHECK_EQ(load_seqcst(&runs), 0);
	goro_ctx_cancel(c);
	AWAIT(load_seqcst(&runs) == 2);
	CHECK(!goro_ctx_func_stop(f));
	CHECK(!goro_ctx_func_stop(g));
	CHECK(!goro_ctx_func_stop(NULL));
	goro_ctx_unref(c);
	goro_ctx_unref(child);
}

GO_TEST(function_runs_after_a_timeout)
{
	goro_ctx *c = goro_ctx_with_timeout(goro_ctx_background(), 5 * MS);
	goro_ctx_func *f = goro_ctx_after_func(c, count_run, NULL);

	AWAIT(load_seqcst(&runs) == 1);
	CHECK_EQ(goro_ctx_err(c), -ETIMEDOUT);
	CHECK(!goro_ctx_func_stop(f));
	goro_ctx_unref(c);
}

GO_TEST(function_of_a_done_context_runs_at_once)
{
	goro_ctx *c = background_child();
	goro_ctx_func *f;

	goro_ctx_cancel(c);
	f = goro_ctx_after_func(c, count_run, NULL);
	AWAIT(load_seqcst(&runs) == 1);
	CHECK(!goro_ctx_func_stop(f));
	goro_ctx_unref(c);
}

GO_TEST(stopped_function_does_not_run)
{
	goro_ctx *c = background_child();
	goro_ctx_func *f = goro_ctx_after_func(c, count_run, NULL);
	goro_ctx_func *g = goro_ctx_after_func(goro_ctx_background(), count_run, NULL);

	CHECK(goro_ctx_func_stop(f));
	CHECK(goro_ctx_func_stop(g));
	goro_ctx_cancel(c);
	goro_ctx_unref(c);
	goro_sleep(5 * MS);
	CHECK_EQ(load_seqcst(&runs), 0);
}

GO_TEST(function_runs_when_the_last_user_leaves)
{
	goro_ctx *c = background_child();
	goro_ctx_func *f = goro_ctx_after_func(c, count_run, NULL);

	goro_ctx_unref(c);
	AWAIT(load_seqcst(&runs) == 1);
	CHECK(!goro_ctx_func_stop(f));
}

/* With no memory for their goroutines they run as soon as there is. */
GO_TEST(functions_are_not_lost_for_lack_of_memory)
{
	enum { N = 10 };
	goro_ctx *c = background_child();
	goro_chan *gate = goro_chan_of(int, 0);
	goro_ctx_func *f[N];

	for (int i = 0; i < N; i++)
		f[i] = goro_ctx_after_func(c, count_run, NULL);
	goro_gomaxprocs(1);
	goro_sleep(10 * MS);
	exhaust_memory(gate);
	goro_ctx_cancel(c);
	goro_sleep(10 * MS);
	CHECK_EQ(load_seqcst(&runs), 0);
	goro_chan_close(gate);
	AWAIT(load_seqcst(&runs) == N);
	for (int i = 0; i < N; i++)
		CHECK(!goro_ctx_func_stop(f[i]));
	goro_ctx_unref(c);
}

static void block_on(void *c)
{
	goro_chan_recv(c, NULL);
	fetch_add_seqcst(&runs, 1);
}

GO_TEST(cancel_does_not_wait_for_functions)
{
	goro_ctx *c = background_child();
	goro_chan *gate = goro_chan_of(int, 0);
	goro_ctx_func *f = goro_ctx_after_func(c, block_on, gate);

	goro_ctx_cancel(c);
	CHECK(!goro_ctx_func_stop(f));
	CHECK_EQ(load_seqcst(&runs), 0);
	goro_chan_close(gate);
	AWAIT(load_seqcst(&runs) == 1);
	goro_chan_unref(gate);
	goro_ctx_unref(c);
}

static void cancel_soon(goro_ctx *c)
{
	goro_ctx_cancel(c);
	goro_ctx_unref(c);
}

/* What stop says adds up with what ran; nothing is used after it is freed. */
GO_TEST(stop_of_a_function_tells_whether_it_runs)
{
	int stopped = 0, n = SCALED(10000);

	for (int i = 0; i < n; i++) {
		goro_ctx *c = background_child();
		goro_ctx_func *f = goro_ctx_after_func(c, count_run, NULL);

		go(cancel_soon, c);
		if (i % 2)
			goro_gosched();
		stopped += goro_ctx_func_stop(f);
	}
	AWAIT(load_seqcst(&runs) == n - stopped);
}

/* ------------------------------------------------------------------- misuse */

static void cancel_of_nil(void *unused)
{
	(void)unused;
	goro_ctx_with_cancel(NULL);
}

static void timeout_of_nil(void *unused)
{
	(void)unused;
	goro_ctx_with_timeout(NULL, 1);
}

static void value_of_nil(void *unused)
{
	(void)unused;
	goro_ctx_with_value(NULL, &runs, NULL);
}

static void without_cancel_of_nil(void *unused)
{
	(void)unused;
	goro_ctx_without_cancel(NULL);
}

static void nil_key(void *unused)
{
	(void)unused;
	goro_ctx_with_value(goro_ctx_background(), NULL, NULL);
}

GO_TEST(nil_parents_and_keys_panic)
{
	static const char nil_parent[] = "cannot create context from nil parent";

	CHECK_STR(goro_try(cancel_of_nil, NULL), nil_parent);
	CHECK_STR(goro_try(timeout_of_nil, NULL), nil_parent);
	CHECK_STR(goro_try(value_of_nil, NULL), nil_parent);
	CHECK_STR(goro_try(without_cancel_of_nil, NULL), nil_parent);
	CHECK_STR(goro_try(nil_key, NULL), "nil key");
}

/* ----------------------------------------------------------- plain threads */

static void *cancel_from_thread(void *arg)
{
	goro_ctx_cancel_cause(arg, -EIO);
	return NULL;
}

static void *wait_in_thread(void *arg)
{
	wait_done(arg);
	return NULL;
}

GO_TEST(threads_cancel_and_wait_too)
{
	goro_ctx *c = background_child(), *other = goro_ctx_with_timeout(c, HOUR);
	goro_ctx_func *f = goro_ctx_after_func(other, count_run, NULL);
	pthread_t threads[2];

	CHECK_EQ(pthread_create(&threads[0], NULL, wait_in_thread, other), 0);
	CHECK_EQ(pthread_create(&threads[1], NULL, cancel_from_thread, c), 0);
	wait_done(other);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	AWAIT(load_seqcst(&runs) == 1);
	CHECK_DONE(other, -ECANCELED, -EIO);
	CHECK(!goro_ctx_func_stop(f));
	goro_ctx_unref(c);
	goro_ctx_unref(other);
}
