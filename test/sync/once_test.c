/*
 * once_test.c - once: runs once, is waited for, and is over however it ends.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "deadlock.h"
#include "sched/linger.h"
#include "test.h"

_Static_assert(sizeof(goro_once) == 16, "as promised");

static void increment(void *n)
{
	++*(int *)n;
}

static void run(goro_once *once, int *n, goro_waitgroup *wg)
{
	goro_once_do(once, increment, n);
	CHECK_EQ(*n, 1);
	goro_waitgroup_done(wg);
}

GO_TEST(the_function_runs_once)
{
	goro_once once = { { 0 } };
	goro_waitgroup wg = { { 0 } };
	int n = 0;

	goro_waitgroup_add(&wg, 10);
	for (int i = 0; i < 10; i++)
		go(run, &once, &n, &wg);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(n, 1);
}

/* ------------------------------------------------------------------- waiting for it */

struct slow {
	goro_once once;
	int started, may_end, ended, left;
};

static void slow_function(void *arg)
{
	struct slow *s = arg;

	store_release(&s->started, 1);
	AWAIT(load_acquire(&s->may_end));
	s->ended = 1;			/* no atomic: once orders it */
}

static void do_slow(struct slow *s)
{
	goro_once_do(&s->once, slow_function, s);
	CHECK_EQ(s->ended, 1);
	fetch_add_seqcst(&s->left, 1);
}

static void *do_slow_thread(void *s)
{
	do_slow(s);
	return NULL;
}

static uint32_t waiters_of(goro_once *o)
{
	return load_relaxed((uint32_t *)o) / 4;
}

GO_TEST(others_wait_until_it_is_over_threads_too)
{
	struct slow s = { .started = 0 };
	pthread_t t[2];

	go(do_slow, &s);
	AWAIT(load_acquire(&s.started));
	for (int i = 0; i < 5; i++)
		go(do_slow, &s);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, do_slow_thread, &s);
	AWAIT(waiters_of(&s.once) == 7);
	CHECK_EQ(load_seqcst(&s.left), 0);
	store_release(&s.may_end, 1);
	AWAIT(load_seqcst(&s.left) == 8);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	do_slow(&s);
}

static void empty(void *arg)
{
	(void)arg;
}

static void do_empty(goro_once *once, int *refs)
{
	goro_once_do(once, empty, NULL);
	fetch_add_seqcst(refs, -1);
}

/* The goroutine that calls last finds it done and frees it, while the one that ran the
 * function may not have returned yet. */
GO_TEST_TIMEOUT(freed_by_who_finds_it_done, 120)
{
	for (int i = 0; i < SCALED(20000); i++) {
		goro_once *once = calloc(1, sizeof *once);
		int calls = 1;

		linger_round(i);
		go(do_empty, once, &calls);
		if (i % 2)
			goro_gosched();
		while (load_acquire((uint32_t *)once) == 0)
			goro_gosched();		/* until the other one runs it */
		goro_once_do(once, empty, NULL);
		memset(once, 0xa5, sizeof *once);
		free(once);
		AWAIT(load_seqcst(&calls) == 0);
	}
}

/* ------------------------------------------------------------------------ other ends */

static int calls;

static void fail(void *arg)
{
	(void)arg;
	calls++;
	goro_panic("failed");
}

static void do_fail(void *once)
{
	goro_once_do(once, fail, NULL);
}

GO_TEST(a_panic_passes_through_and_counts_as_done)
{
	goro_once once = { { 0 } };

	CHECK_STR(goro_try(do_fail, &once), "failed");
	CHECK(goro_try(do_fail, &once) == NULL);
	CHECK_EQ(calls, 1);
}

static void exit_goroutine(void *arg)
{
	(void)arg;
	calls++;
	goro_goexit();
}

static void done(void *wg)
{
	goro_waitgroup_done(wg);
}

static void do_exit(goro_once *once, goro_waitgroup *wg)
{
	goro_defer(done, wg);
	goro_once_do(once, exit_goroutine, NULL);
}

GO_TEST(goexit_counts_as_done)
{
	goro_once once = { { 0 } };

	for (int i = 0; i < 2; i++) {
		goro_waitgroup wg = { { 0 } };

		goro_waitgroup_add(&wg, 1);
		go(do_exit, &once, &wg);
		goro_waitgroup_wait(&wg);
	}
	CHECK_EQ(calls, 1);
}

static int log_at;
static char log_text[8];

static void log_char(void *c)
{
	log_text[log_at++] = (char)(uintptr_t)c;
}

static void defer_inside(void *arg)
{
	(void)arg;
	goro_defer(log_char, (void *)'b');
	goro_defer(log_char, (void *)'a');
}

static void do_defer_inside(void *once)
{
	goro_defer(log_char, (void *)'c');
	goro_once_do(once, defer_inside, NULL);
	goro_once_do(once, defer_inside, NULL);
	CHECK_EQ(log_at, 0);
}

/* What the function defers stays deferred, and once leaves nothing of its own. */
GO_TEST(defers_made_inside_are_kept)
{
	goro_once once = { { 0 } };

	CHECK(goro_try(do_defer_inside, &once) == NULL);
	CHECK_STR(log_text, "abc");
}

static int panic_unrecovered(int argc, char **argv)
{
	goro_once once = { { 0 } };

	(void)argc; (void)argv;
	goro_once_do(&once, fail, NULL);
	return 0;
}

static void run_panic_unrecovered(void) { exit(goro_run(panic_unrecovered, 0, NULL)); }

TEST(the_trace_of_a_panic_shows_where)
{
	struct test_output o;

	test_run_child(run_panic_unrecovered, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "panic: failed\n");
	CHECK_CONTAINS(o.err, "\nfail(...)\n");
	CHECK_CONTAINS(o.err, "\ngoro_once_do(...)\n");
	CHECK_CONTAINS(o.err, "\npanic_unrecovered(...)\n");
}

static goro_once recursive;

static void do_again(void *arg)
{
	goro_once_do(&recursive, do_again, arg);
}

static int recurse(int argc, char **argv)
{
	(void)argc; (void)argv;
	do_again(NULL);
	return 0;
}

TEST(doing_it_inside_itself_is_a_deadlock)
{
	struct test_output o;

	check_deadlock(recurse, &o);
	CHECK_CONTAINS(o.err, "[sync.Mutex.Lock]:\ngoro_once_do");
}
