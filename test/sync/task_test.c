/*
 * task_test.c - tasks are joined with their results; goroutines that a wait group starts.
 */
/* test: procs */
/* test: leaks */
#include <goro.h>
#include <pthread.h>

#include "test.h"

static void *twice(void *arg)
{
	goro_gosched();
	return (void *)((uintptr_t)arg * 2);
}

GO_TEST(join_has_the_result)
{
	goro_task *t[100];
	uintptr_t sum = 0;
	void *result;

	for (uintptr_t i = 0; i < 100; i++)
		CHECK(t[i] = goro_task_go(twice, (void *)i));
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(goro_task_join(t[i], GORO_FOREVER, &result), 0);
		sum += (uintptr_t)result;
	}
	CHECK_EQ(sum, 9900);
	CHECK_EQ(goro_task_join(goro_task_go(twice, NULL), GORO_FOREVER, NULL), 0);
}

static void *receive(void *c)
{
	int n = 0;

	goro_chan_recv(c, &n);
	return (void *)(uintptr_t)n;
}

GO_TEST(a_join_whose_deadline_passes_may_be_tried_again)
{
	goro_chan *c = goro_chan_of(int, 0);
	goro_task *t = goro_task_go(receive, c);
	void *result = c;

	CHECK_EQ(goro_task_join(t, GORO_NOW, &result), -ETIMEDOUT);
	CHECK_EQ(goro_task_join(t, goro_deadline_in(GORO_MILLISECOND), &result), -ETIMEDOUT);
	CHECK(result == c);
	goro_chan_send(c, &(int){ 5 });
	CHECK_EQ(goro_task_join(t, GORO_FOREVER, &result), 0);
	CHECK_EQ((uintptr_t)result, 5);
	goro_chan_unref(c);
}

GO_TEST(select_waits_for_a_task)
{
	goro_chan *c = goro_chan_of(int, 0);
	goro_task *t = goro_task_go(receive, c);

	goro_chan_send(c, &(int){ 1 });
	CHECK_EQ(goro_select(GORO_RECV(c, NULL), GORO_RECV(goro_task_done(t), NULL)), 1);
	CHECK_EQ(goro_task_join(t, GORO_NOW, NULL), 0);
	goro_chan_unref(c);
}

static void *leave_by_goexit(void *arg)
{
	(void)arg;
	goro_goexit();
}

GO_TEST(a_task_that_exits_has_no_result)
{
	void *result = &result;

	CHECK_EQ(goro_task_join(goro_task_go(leave_by_goexit, NULL), GORO_FOREVER, &result), 0);
	CHECK(result == NULL);
}

GO_TEST(a_detached_task_frees_itself)
{
	goro_chan *c = goro_chan_of(int, 0);
	size_t before = goro_num_goroutine();

	goro_task_detach(goro_task_go(receive, c));
	goro_task_detach(goro_task_go(twice, NULL));
	goro_chan_send(c, &(int){ 1 });
	while (goro_num_goroutine() > before)
		goro_gosched();
	goro_chan_unref(c);
}

static void *join_here(void *result)
{
	void *got = NULL;

	CHECK_EQ(goro_task_join(goro_task_go(twice, (void *)(uintptr_t)21), GORO_FOREVER, &got), 0);
	*(uintptr_t *)result = (uintptr_t)got;
	return NULL;
}

TEST(a_plain_thread_joins_as_well)
{
	pthread_t thread;
	uintptr_t result = 0;

	CHECK_EQ(pthread_create(&thread, NULL, join_here, &result), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(result, 42);
}

/* -------------------------------------------------------------- wait groups */

static void count(void *n)
{
	goro_gosched();
	__atomic_fetch_add((int *)n, 1, __ATOMIC_RELAXED);
}

static void count_and_exit(void *n)
{
	count(n);
	goro_goexit();
}

GO_TEST(a_wait_group_waits_for_what_it_starts)
{
	goro_waitgroup wg = { 0 };
	int n = 0;

	for (int i = 0; i < 100; i++)
		CHECK_EQ(goro_waitgroup_go(&wg, i % 2 ? count : count_and_exit, &n), 0);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(n, 100);
}

static void start_another(void *arg)
{
	struct {
		goro_waitgroup wg;
		int n;
	} *both = arg;

	goro_waitgroup_go(&both->wg, count, &both->n);
}

GO_TEST(what_a_wait_group_starts_may_start_more)
{
	struct {
		goro_waitgroup wg;
		int n;
	} both = { 0 };

	goro_waitgroup_go(&both.wg, start_another, &both);
	goro_waitgroup_wait(&both.wg);
	CHECK_EQ(both.n, 1);
}

static void start_nil(void)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_go(&wg, NULL, NULL);
}

TEST(a_nil_function_ends_the_program)
{
	struct test_output o;

	test_run_child(start_nil, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "go of nil func value");
}
