/*
 * group_test.c - groups of goroutines, by the meaning of the tests of
 * golang.org/x/sync/errgroup.
 */
/* test: procs */
/* test: leaks */
#include <goro.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "limit_memory.h"
#include "test.h"

static int runs, at_once, most;

static int count(goro_ctx *ctx, void *arg)
{
	(void)ctx, (void)arg;
	fetch_add_seqcst(&runs, 1);
	return 0;
}

static int return_arg(goro_ctx *ctx, void *arg)
{
	(void)ctx;
	return (int)(intptr_t)arg;
}

static void *error(int err)
{
	return (void *)(intptr_t)err;
}

/* -------------------------------------------------------------------- wait */

GO_TEST(wait_waits_for_all)
{
	goro_group *g = goro_group_make(goro_ctx_background(), 0);

	for (int i = 0; i < 1000; i++)
		CHECK_EQ(goro_group_go(g, count, NULL), 0);
	CHECK_EQ(goro_group_wait(g), 0);
	CHECK_EQ(runs, 1000);
}

GO_TEST(empty_group_ends_at_once)
{
	CHECK_EQ(goro_group_wait(goro_group_make(goro_ctx_background(), 0)), 0);
	CHECK_EQ(goro_group_wait(goro_group_make(NULL, 3)), 0);
}

static int add_one(goro_ctx *ctx, void *arg)
{
	(void)ctx;
	return goro_group_go(arg, count, NULL);
}

GO_TEST(members_may_add_members)
{
	for (int i = 0; i < SCALED(1000); i++) {
		goro_group *g = goro_group_make(NULL, 0);

		goro_group_go(g, add_one, g);
		CHECK_EQ(goro_group_wait(g), 0);
		CHECK_EQ(runs, i + 1);
	}
}

/* ------------------------------------------------------------------- errors */

GO_TEST(first_error_is_returned)
{
	static const int tests[][3] = {
		{ 0, 0, 0 }, { -EIO, 0, 0 }, { 0, -EIO, 0 }, { 0, 0, -EIO }, { 0, 7, 0 },
	};

	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		goro_group *g = goro_group_make(NULL, 0);
		int want = 0;

		for (int k = 0; k < 3; k++) {
			goro_group_go(g, return_arg, error(tests[i][k]));
			want = want ? want : tests[i][k];
		}
		CHECK_EQ(goro_group_wait(g), want);
	}
}

static int fail_after(goro_ctx *ctx, void *arg)
{
	goro_chan_recv(goro_ctx_done(ctx), NULL);
	return (int)(intptr_t)arg;
}

GO_TEST(error_cancels_the_context_and_later_ones_do_not_count)
{
	goro_group *g = goro_group_make(NULL, 0);
	goro_ctx *ctx = goro_ctx_ref(goro_group_ctx(g));

	CHECK_EQ(goro_ctx_err(ctx), 0);
	for (int i = 0; i < 10; i++)
		goro_group_go(g, fail_after, error(-EPIPE));
	goro_group_go(g, return_arg, error(-EIO));
	goro_chan_recv(goro_ctx_done(ctx), NULL);
	CHECK_EQ(goro_ctx_err(ctx), -ECANCELED);
	CHECK_EQ(goro_ctx_cause(ctx), -EIO);
	CHECK_EQ(goro_group_wait(g), -EIO);
	goro_ctx_unref(ctx);
}

GO_TEST(wait_cancels_the_context_without_an_error_too)
{
	goro_group *g = goro_group_make(NULL, 0);
	goro_ctx *ctx = goro_ctx_ref(goro_group_ctx(g));

	goro_group_go(g, count, NULL);
	CHECK_EQ(goro_group_wait(g), 0);
	CHECK_EQ(goro_ctx_err(ctx), -ECANCELED);
	CHECK_EQ(goro_ctx_cause(ctx), -ECANCELED);
	goro_ctx_unref(ctx);
}

static int wait_done(goro_ctx *ctx, void *arg)
{
	(void)arg;
	goro_chan_recv(goro_ctx_done(ctx), NULL);
	return goro_ctx_cause(ctx);
}

GO_TEST(parent_cancels_the_group)
{
	goro_ctx *parent = goro_ctx_with_cancel(goro_ctx_background());
	goro_group *g = goro_group_make(parent, 0);

	for (int i = 0; i < 10; i++)
		goro_group_go(g, wait_done, NULL);
	goro_ctx_cancel_cause(parent, -EIO);
	CHECK_EQ(goro_group_wait(g), -EIO);
	goro_ctx_unref(parent);
}

static int leave_by_goexit(goro_ctx *ctx, void *arg)
{
	(void)ctx, (void)arg;
	goro_goexit();
}

GO_TEST(goexit_ends_a_member)
{
	goro_group *g = goro_group_make(NULL, 1);

	for (int i = 0; i < 10; i++)
		goro_group_go(g, leave_by_goexit, NULL);
	CHECK_EQ(goro_group_wait(g), 0);
}

/* -------------------------------------------------------------------- limit */

static int count_at_once(goro_ctx *ctx, void *arg)
{
	int n = fetch_add_seqcst(&at_once, 1) + 1, seen = load_seqcst(&most);

	(void)ctx, (void)arg;
	while (seen < n && !cas_seqcst(&most, &seen, n))
		;
	goro_gosched();
	if (n % 3 == 0)
		goro_sleep(10 * GORO_MICROSECOND);
	fetch_add_seqcst(&at_once, -1);
	fetch_add_seqcst(&runs, 1);
	return 0;
}

GO_TEST(no_more_run_at_once_than_the_limit)
{
	enum { LIMIT = 10, N = 5000 };
	goro_group *g = goro_group_make(NULL, LIMIT);
	int n = SCALED(N);

	for (int i = 0; i < n; i++)
		CHECK_EQ(goro_group_go(g, count_at_once, NULL), 0);
	CHECK_EQ(goro_group_wait(g), 0);
	CHECK_EQ(runs, n);
	CHECK(most <= LIMIT);
	if (goro_gomaxprocs(0) > 1)
		CHECK(most > 1);
}

static int wait_for_gate(goro_ctx *ctx, void *gate)
{
	(void)ctx;
	goro_chan_recv(gate, NULL);
	return 0;
}

GO_TEST(try_go_starts_only_below_the_limit)
{
	goro_chan *gate = goro_chan_of(int, 0);
	goro_group *g = goro_group_make(NULL, 2);

	CHECK(goro_group_try_go(g, wait_for_gate, gate));
	CHECK(goro_group_try_go(g, wait_for_gate, gate));
	CHECK(!goro_group_try_go(g, wait_for_gate, gate));
	CHECK(!goro_group_try_go(g, wait_for_gate, gate));
	goro_chan_close(gate);
	AWAIT(goro_group_try_go(g, count, NULL));
	CHECK_EQ(goro_group_wait(g), 0);
	CHECK_EQ(runs, 1);
	goro_chan_unref(gate);

	g = goro_group_make(NULL, 0);
	for (int i = 0; i < 100; i++)
		CHECK(goro_group_try_go(g, count, NULL));
	CHECK_EQ(goro_group_wait(g), 0);
	CHECK_EQ(runs, 101);
}

static void go_then_count(goro_group *g, goro_waitgroup *wg)
{
	goro_group_go(g, count, NULL);
	goro_waitgroup_done(wg);
}

GO_TEST(go_waits_while_the_limit_is_reached)
{
	goro_chan *gate = goro_chan_of(int, 0);
	goro_group *g = goro_group_make(NULL, 1);
	goro_waitgroup wg = { 0 };

	goro_group_go(g, wait_for_gate, gate);
	goro_waitgroup_add(&wg, 1);
	go(go_then_count, g, &wg);
	AWAIT(goroutines_waiting() >= 2);
	CHECK_EQ(load_seqcst(&runs), 0);
	goro_chan_close(gate);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(goro_group_wait(g), 0);
	CHECK_EQ(runs, 1);
	goro_chan_unref(gate);
}

/* With no memory for its goroutine a function takes no place. */
GO_TEST(what_could_not_be_started_does_not_count)
{
	goro_chan *gate = goro_chan_of(int, 0);
	goro_group *g = goro_group_make(NULL, 1);

	goro_gomaxprocs(1);
	exhaust_memory(gate);
	CHECK(goro_group_go(g, count, NULL) < 0);
	CHECK(!goro_group_try_go(g, count, NULL));
	goro_chan_close(gate);
	AWAIT(goro_num_goroutine() == 1);
	CHECK_EQ(goro_group_go(g, count, NULL), 0);
	CHECK_EQ(goro_group_wait(g), 0);
	CHECK_EQ(runs, 1);
	goro_chan_unref(gate);
}

/* ----------------------------------------------------------- plain threads */

static void *group_in_thread(void *arg)
{
	goro_group *g = goro_group_make(NULL, 4);

	(void)arg;
	for (int i = 0; i < 100; i++)
		CHECK_EQ(goro_group_go(g, count_at_once, NULL), 0);
	goro_group_go(g, return_arg, error(-EIO));
	CHECK_EQ(goro_group_wait(g), -EIO);
	return NULL;
}

TEST(plain_threads_use_groups_too)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, group_in_thread, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(load_seqcst(&runs), 400);
}
