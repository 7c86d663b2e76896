/*
 * freed_test.c - what is done with a timer, a context, a group or a pool that was freed
 * is found out, with GORO_DEBUG=chan=1. Channels: chan_freed_test.c.
 */
#include <goro.h>

#include "test.h"

static void nothing(void *arg) { (void)arg; }
static int member(goro_ctx *ctx, void *arg) { (void)ctx; (void)arg; return 0; }

static goro_timer *freed_timer(void)
{
	goro_timer *t = goro_timer_make(GORO_SECOND);

	goro_timer_free(t);
	return t;
}

static void timer_stop(void) { goro_timer_stop(freed_timer()); }
static void timer_reset(void) { goro_timer_reset(freed_timer(), 1); }
static void timer_free(void) { goro_timer_free(freed_timer()); }

static void timer_whose_channel_lives(void)
{
	goro_timer *t = goro_timer_make(GORO_SECOND);

	goro_chan_ref(goro_timer_chan(t));
	goro_timer_free(t);
	goro_timer_reset(t, 1);
}

static void after_func_stop(void)
{
	goro_timer *t = goro_after_func(GORO_SECOND, nothing, NULL);

	goro_timer_free(t);
	goro_timer_stop(t);
}

static void ticker_free(void)
{
	goro_ticker *t = goro_ticker_make(GORO_SECOND);

	goro_ticker_free(t);
	goro_ticker_free(t);
}

static goro_ctx *freed_ctx(void)
{
	goro_ctx *c = goro_ctx_with_cancel(goro_ctx_background());

	goro_ctx_unref(c);
	return c;
}

static void ctx_ref(void) { goro_ctx_ref(freed_ctx()); }
static void ctx_unref(void) { goro_ctx_unref(freed_ctx()); }
static void ctx_child(void) { goro_ctx_with_cancel(freed_ctx()); }

static void group_wait(void)
{
	goro_group *g = goro_group_make(NULL, 0);

	goro_group_wait(g);
	goro_group_wait(g);
}

static goro_pool *freed_pool(void)
{
	goro_pool *p = goro_pool_make(1, 1);

	goro_pool_close(p);
	return p;
}

static void pool_submit(void) { goro_pool_submit(freed_pool(), nothing, NULL, GORO_NOW); }
static void pool_close(void) { goro_pool_close(freed_pool()); }

static void (*current)(void);

static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	current();
	return 0;
}

static void run(void)
{
	setenv("GORO_DEBUG", "chan=1", 1);
	goro_run(start, 0, NULL);
}

/* Ends the process with message. */
static void ends(void (*misuse)(void), const char *message)
{
	struct test_output o;

	current = misuse;
	test_run_child(run, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, message);
}

TEST(a_freed_timer)
{
	ends(timer_stop, "fatal error: use of a freed timer");
	ends(timer_reset, "fatal error: use of a freed timer");
	ends(timer_free, "fatal error: use of a freed timer");
	ends(timer_whose_channel_lives, "fatal error: use of a freed timer");
	ends(after_func_stop, "fatal error: use of a freed timer");
	ends(ticker_free, "fatal error: use of a freed timer");
}

TEST(a_freed_context)
{
	ends(ctx_ref, "panic: reference to freed context");
	ends(ctx_unref, "panic: unref of freed context");
	ends(ctx_child, "freed context");
}

TEST(a_freed_group)
{
	ends(group_wait, "freed context");
}

TEST(a_freed_pool)
{
	ends(pool_submit, "fatal error: use of a freed pool");
	ends(pool_close, "fatal error: use of a freed pool");
}

static int makes_and_frees(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (int i = 0; i < 10000; i++) {
		goro_group *g;

		freed_timer();
		freed_ctx();
		g = goro_group_make(NULL, 2);
		goro_group_go(g, member, NULL);
		CHECK_EQ(goro_group_wait(g), 0);
	}
	freed_pool();
	return 0;
}

TEST(right_programs_are_left_alone)
{
	setenv("GORO_DEBUG", "chan=1", 1);
	CHECK_EQ(goro_run(makes_and_frees, 0, NULL), 0);
}
