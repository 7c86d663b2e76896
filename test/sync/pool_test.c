/*
 * pool_test.c - worker pools: every task once, backpressure, deadlines, resizing,
 * closing, and numbers that add up.
 */
/* test: procs */
/* test: leaks */
#include <fcntl.h>
#include <goro.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "sched/runtime.h"
#include "test.h"

#define MS GORO_MILLISECOND

static int runs, at_once, most;
static goro_chan *gate;		/* closed: tasks that wait for it go on */

static void count(void *arg)
{
	(void)arg;
	fetch_add_seqcst(&runs, 1);
}

static void wait_for(void *c)
{
	fetch_add_seqcst(&at_once, 1);
	goro_chan_recv(c, NULL);
	fetch_add_seqcst(&at_once, -1);
	fetch_add_seqcst(&runs, 1);
}

static struct goro_pool_stats stats(goro_pool *p)
{
	struct goro_pool_stats s;

	goro_pool_stats(p, &s);
	CHECK_EQ(s.submitted, s.completed + s.queued + (uint64_t)s.busy);
	return s;
}

/* Workers that are all in a task, behind a gate. */
static goro_pool *busy_pool(int workers, size_t queue)
{
	goro_pool *p = goro_pool_make(workers, queue);

	gate = goro_chan_of(int, 0);
	for (int i = 0; i < workers; i++)
		CHECK_EQ(goro_pool_submit(p, wait_for, gate, GORO_FOREVER), 0);
	AWAIT(load_seqcst(&at_once) == workers);
	return p;
}

static void open_gate(void)
{
	goro_chan_close(gate);
}

/* -------------------------------------------------------------------- tasks */

GO_TEST(every_task_is_done_once)
{
	static int done[10000];
	int n = SCALED(10000);
	goro_pool *p = goro_pool_make(4, 16);

	for (int i = 0; i < n; i++)
		CHECK_EQ(goro_pool_submit(p, count, &done[i], GORO_FOREVER), 0);
	goro_pool_close(p);
	CHECK_EQ(runs, n);
}

GO_TEST(queue_of_none_hands_over_directly)
{
	goro_pool *p = goro_pool_make(2, 0);

	for (int i = 0; i < 1000; i++)
		CHECK_EQ(goro_pool_submit(p, count, NULL, GORO_FOREVER), 0);
	goro_pool_close(p);
	CHECK_EQ(runs, 1000);
}

static int order[1000];

static void note_order(void *arg)
{
	order[fetch_add_seqcst(&runs, 1)] = (int)(intptr_t)arg;
}

GO_TEST(one_worker_takes_tasks_in_order)
{
	goro_pool *p = goro_pool_make(1, 7);

	for (intptr_t i = 0; i < 1000; i++)
		CHECK_EQ(goro_pool_submit(p, note_order, (void *)i, GORO_FOREVER), 0);
	goro_pool_close(p);
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(order[i], i);
}

static void count_at_once(void *arg)
{
	int n = fetch_add_seqcst(&at_once, 1) + 1, seen = load_seqcst(&most);

	(void)arg;
	while (seen < n && !cas_seqcst(&most, &seen, n))
		;
	goro_gosched();
	fetch_add_seqcst(&at_once, -1);
	fetch_add_seqcst(&runs, 1);
}

static void submit_many(goro_pool *p, int n, goro_waitgroup *wg)
{
	for (int i = 0; i < n; i++)
		CHECK_EQ(goro_pool_submit(p, count_at_once, NULL, GORO_FOREVER), 0);
	goro_waitgroup_done(wg);
}

GO_TEST(many_submit_to_few_workers)
{
	enum { BY = 20, WORKERS = 3 };
	goro_pool *p = goro_pool_make(WORKERS, 5);
	goro_waitgroup wg = { 0 };
	int each = SCALED(1000);

	goro_waitgroup_add(&wg, BY);
	for (int i = 0; i < BY; i++)
		go(submit_many, p, each, &wg);
	while (stats(p).submitted < (uint64_t)BY * (uint64_t)each)
		goro_gosched();
	goro_waitgroup_wait(&wg);
	goro_pool_close(p);
	CHECK_EQ(runs, BY * each);
	CHECK(most <= WORKERS);
}

static void submit_more(void *p)
{
	if (fetch_add_seqcst(&runs, 1) < 100)
		CHECK_EQ(goro_pool_submit(p, submit_more, p, GORO_FOREVER), 0);
}

GO_TEST(task_may_submit_tasks)
{
	goro_pool *p = goro_pool_make(2, 4);

	CHECK_EQ(goro_pool_submit(p, submit_more, p, GORO_FOREVER), 0);
	AWAIT(load_seqcst(&runs) == 101);
	goro_pool_close(p);
}

/* ------------------------------------------------------------- backpressure */

GO_TEST(full_queue_refuses_who_does_not_wait)
{
	goro_pool *p = busy_pool(2, 3);

	for (int i = 0; i < 3; i++)
		CHECK_EQ(goro_pool_submit(p, count, NULL, GORO_NOW), 0);
	CHECK_EQ(goro_pool_submit(p, count, NULL, GORO_NOW), -ETIMEDOUT);
	CHECK_EQ(goro_pool_submit(p, count, NULL, goro_now() - 1), -ETIMEDOUT);
	CHECK_EQ(stats(p).queued, 3);
	CHECK_EQ(stats(p).busy, 2);
	CHECK_EQ(stats(p).submitted, 5);
	CHECK_EQ(stats(p).rejected, 2);
	open_gate();
	goro_pool_close(p);
	CHECK_EQ(runs, 5);
}

GO_TEST(submit_waits_until_its_deadline)
{
	goro_pool *p = busy_pool(1, 0);
	int64_t at = goro_now() + 10 * MS;

	CHECK_EQ(goro_pool_submit(p, count, NULL, at), -ETIMEDOUT);
	CHECK(goro_now() >= at);
	CHECK_EQ(stats(p).rejected, 1);
	CHECK_EQ(stats(p).submitted, 1);
	open_gate();
	goro_pool_close(p);
	CHECK_EQ(runs, 1);
}

static void submit_one(goro_pool *p, int64_t deadline, int want, goro_waitgroup *wg)
{
	CHECK_EQ(goro_pool_submit(p, count, NULL, deadline), want);
	goro_waitgroup_done(wg);
}

GO_TEST(submit_waits_for_room)
{
	goro_pool *p = busy_pool(1, 1);
	goro_waitgroup wg = { 0 };

	CHECK_EQ(goro_pool_submit(p, count, NULL, GORO_FOREVER), 0);
	goro_waitgroup_add(&wg, 4);
	for (int i = 0; i < 4; i++)
		go(submit_one, p, i % 2 ? GORO_FOREVER : goro_now() + seconds(1000), 0, &wg);
	AWAIT(stats(p).waiting == 4);
	CHECK_EQ(stats(p).submitted, 2);
	open_gate();
	goro_waitgroup_wait(&wg);
	goro_pool_close(p);
	CHECK_EQ(runs, 6);
}

static int accepted;

static void submit_hastily(goro_pool *p, unsigned seed, goro_waitgroup *wg)
{
	for (int i = 0; i < SCALED(2000); i++) {
		int err;

		seed = seed * 1103515245 + 12345;
		err = goro_pool_submit(p, count_at_once, NULL, goro_now() + (seed >> 16 & 0x3fff));
		CHECK(err == 0 || err == -ETIMEDOUT);
		if (err == 0)
			fetch_add_seqcst(&accepted, 1);
	}
	goro_waitgroup_done(wg);
}

/* Deadlines meet workers that take: every accepted task is done, no other. */
GO_TEST(deadlines_racing_with_workers_add_up)
{
	enum { BY = 10 };
	goro_pool *p = goro_pool_make(2, 1);
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, BY);
	for (unsigned i = 0; i < BY; i++)
		go(submit_hastily, p, i, &wg);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(stats(p).submitted, accepted);
	CHECK_EQ(stats(p).rejected, BY * SCALED(2000) - accepted);
	goro_pool_close(p);
	CHECK_EQ(runs, accepted);
}

/* ----------------------------------------------------------------- resizing */

GO_TEST(more_workers_take_what_is_queued)
{
	goro_pool *p = busy_pool(1, 10);

	for (int i = 0; i < 4; i++)
		CHECK_EQ(goro_pool_submit(p, wait_for, gate, GORO_FOREVER), 0);
	CHECK_EQ(stats(p).queued, 4);
	CHECK_EQ(goro_pool_resize(p, 5), 0);
	AWAIT(load_seqcst(&at_once) == 5);
	CHECK_EQ(stats(p).queued, 0);
	CHECK_EQ(stats(p).workers, 5);
	CHECK_EQ(stats(p).busy, 5);
	open_gate();
	goro_pool_close(p);
	CHECK_EQ(runs, 5);
}

GO_TEST(fewer_workers_finish_their_tasks_first)
{
	goro_pool *p = busy_pool(4, 100);
	goro_chan *first = gate;

	CHECK_EQ(goro_pool_resize(p, 1), 0);
	CHECK_EQ(stats(p).workers, 1);
	CHECK_EQ(stats(p).busy, 4);
	gate = goro_chan_of(int, 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(goro_pool_submit(p, wait_for, gate, GORO_FOREVER), 0);
	goro_chan_close(first);
	AWAIT(stats(p).completed == 4);
	AWAIT(stats(p).busy == 1);
	goro_sleep(5 * MS);
	CHECK_EQ(stats(p).queued, 2);
	open_gate();
	goro_pool_close(p);
	CHECK_EQ(runs, 7);
	goro_chan_unref(first);
}

GO_TEST(idle_workers_in_excess_end)
{
	size_t before = goro_num_goroutine() + 8;
	goro_pool *p = goro_pool_make(8, 0);

	AWAIT(goroutines_waiting() >= 8);
	CHECK_EQ(goro_pool_resize(p, 2), 0);
	AWAIT(goro_num_goroutine() == before - 6);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(goro_pool_submit(p, count_at_once, NULL, GORO_FOREVER), 0);
	goro_pool_close(p);
	CHECK_EQ(runs, 100);
	CHECK(most <= 2);
}

GO_TEST(resize_to_nothing_is_refused)
{
	goro_pool *p = goro_pool_make(2, 0);

	CHECK_EQ(goro_pool_resize(p, 0), -EINVAL);
	CHECK_EQ(goro_pool_resize(p, -1), -EINVAL);
	CHECK_EQ(stats(p).workers, 2);
	CHECK(!goro_pool_make(0, 1));
	CHECK(!goro_pool_make(-1, 1));
	CHECK(!goro_pool_make(1, SIZE_MAX / 2));
	goro_pool_close(p);
}

static void resize_about(goro_pool *p, goro_waitgroup *wg)
{
	for (int i = 0; i < SCALED(1000); i++) {
		CHECK_EQ(goro_pool_resize(p, 1 + i * 7 % 13), 0);
		if (i % 10 == 0)
			goro_gosched();
	}
	goro_waitgroup_done(wg);
}

GO_TEST(resizing_loses_no_task)
{
	goro_pool *p = goro_pool_make(4, 8);
	goro_waitgroup wg = { 0 };
	int each = SCALED(3000);

	goro_waitgroup_add(&wg, 5);
	go(resize_about, p, &wg);
	for (int i = 0; i < 4; i++)
		go(submit_many, p, each, &wg);
	goro_waitgroup_wait(&wg);
	goro_pool_close(p);
	CHECK_EQ(runs, 4 * each);
	CHECK(most <= 13);
}

/* ------------------------------------------------------------------ closing */

GO_TEST(close_waits_for_what_is_queued)
{
	goro_pool *p = goro_pool_make(2, 1000);

	for (int i = 0; i < 1000; i++)
		CHECK_EQ(goro_pool_submit(p, count, NULL, GORO_FOREVER), 0);
	goro_pool_close(p);
	CHECK_EQ(runs, 1000);
	goro_pool_close(goro_pool_make(3, 3));
}

static void close_pool(goro_pool *p, int *closed)
{
	goro_pool_close(p);
	store_seqcst(closed, 1);
}

GO_TEST(close_refuses_those_who_wait_and_those_who_come)
{
	goro_pool *p = busy_pool(1, 0);
	goro_waitgroup wg = { 0 };
	int closed = 0;

	goro_waitgroup_add(&wg, 2);
	go(submit_one, p, GORO_FOREVER, -ESHUTDOWN, &wg);
	go(submit_one, p, goro_now() + seconds(1000), -ESHUTDOWN, &wg);
	AWAIT(stats(p).waiting == 2);
	go(close_pool, p, &closed);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(goro_pool_submit(p, count, NULL, GORO_FOREVER), -ESHUTDOWN);
	CHECK_EQ(goro_pool_resize(p, 3), -ESHUTDOWN);
	CHECK_EQ(stats(p).rejected, 3);
	CHECK_EQ(load_seqcst(&closed), 0);
	open_gate();
	AWAIT(load_seqcst(&closed));
	CHECK_EQ(runs, 1);
}

static void submit_until(goro_pool *p, int64_t deadline, goro_waitgroup *wg)
{
	int err = goro_pool_submit(p, count, NULL, deadline);

	CHECK(err == 0 || err == -ETIMEDOUT || err == -ESHUTDOWN);
	goro_waitgroup_done(wg);
}

/* The pool is gone when close returns, also if the deadlines of refused submitters come
 * at just that time. */
GO_TEST(close_meets_deadlines_that_come)
{
	enum { BY = 4 };

	for (int i = 0; i < SCALED(200); i++) {
		goro_pool *p = busy_pool(1, 0);
		goro_waitgroup wg = { 0 };
		int64_t at = goro_now() + 2 * MS;

		goro_waitgroup_add(&wg, BY);
		for (int k = 0; k < BY; k++)
			go(submit_until, p, at + k * 1000, &wg);
		AWAIT(stats(p).waiting == BY || goro_now() >= at);
		if (stats(p).waiting == BY)
			SPIN_UNTIL(goro_now() >= at);
		else
			goro_waitgroup_wait(&wg);
		open_gate();
		goro_pool_close(p);
		goro_waitgroup_wait(&wg);
		goro_chan_unref(gate);
	}
}

/* ------------------------------------------------- what tasks leave behind */

static void defer_count(void *arg)
{
	goro_defer(count, arg);
	CHECK_EQ(load_seqcst(&runs) % 2, 0);
}

GO_TEST(defers_of_a_task_run_at_its_end)
{
	goro_pool *p = goro_pool_make(1, 0);

	for (int i = 0; i < 10; i++) {
		CHECK_EQ(goro_pool_submit(p, defer_count, NULL, GORO_FOREVER), 0);
		CHECK_EQ(goro_pool_submit(p, count, NULL, GORO_FOREVER), 0);
	}
	goro_pool_close(p);
	CHECK_EQ(runs, 20);
}

static void leave_by_goexit(void *arg)
{
	goro_defer(count, arg);
	goro_goexit();
}

GO_TEST(goexit_ends_the_task_not_the_pool)
{
	goro_pool *p = goro_pool_make(2, 4);

	for (int i = 0; i < 100; i++)
		CHECK_EQ(goro_pool_submit(p, leave_by_goexit, NULL, GORO_FOREVER), 0);
	CHECK_EQ(goro_pool_submit(p, count, NULL, GORO_FOREVER), 0);
	AWAIT(stats(p).completed == 101);
	CHECK_EQ(stats(p).workers, 2);
	goro_pool_close(p);
	CHECK_EQ(runs, 101);
}

static void panic_in_task(void *arg)
{
	(void)arg;
	goro_panic("in a task");
}

static int panicking_main(int argc, char **argv)
{
	goro_pool *p = goro_pool_make(1, 0);

	(void)argc, (void)argv;
	goro_pool_submit(p, panic_in_task, NULL, GORO_FOREVER);
	goro_pool_close(p);
	goro_sleep(seconds(10));
	return 0;
}

static void run_panicking(void)
{
	exit(goro_run(panicking_main, 0, NULL));
}

TEST(panic_in_a_task_ends_the_process)
{
	struct test_output o;

	test_run_child(run_panicking, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "panic: in a task");
}

/* ------------------------------------------------- what a task leaves behind */

/* A task begins as a goroutine does: preemptible, not locked to a thread, without a name
 * or regions of an execution trace. */
static void be_clean_and_leave_state(void *arg)
{
	struct g *gp = m_self()->curg;
	int left = *(int *)arg;

	CHECK_EQ(gp->preempt_off, 0);
	CHECK_EQ(gp->lock_depth, 0);
	CHECK_STR(gp->name, "");
	CHECK(gp->trace.regions == NULL);
	if (left == 0)
		goro_set_name("a task");
	else if (left == 1)
		goro_preempt_disable();
	else if (left == 2)
		goro_lock_os_thread();
	else
		goro_trace_region_begin(0, "a region");
}

GO_TEST(a_task_leaves_nothing_to_the_next_one_of_its_worker)
{
	goro_pool *p = goro_pool_make(1, 4);
	int left[] = { 0, 1, 2, 3 }, fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	CHECK_EQ(goro_trace_start(fd), 0);
	for (int i = 0; i < 40; i++)
		CHECK_EQ(goro_pool_submit(p, be_clean_and_leave_state, &left[i % 4], GORO_FOREVER), 0);
	goro_pool_close(p);
	goro_trace_stop();
	close(fd);
}

/* ----------------------------------------------------------- plain threads */

static void *submit_in_thread(void *p)
{
	for (int i = 0; i < 200; i++)
		CHECK_EQ(goro_pool_submit(p, count_at_once, NULL, GORO_FOREVER), 0);
	return NULL;
}

TEST(plain_threads_use_pools_too)
{
	goro_pool *p = goro_pool_make(2, 1);
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, submit_in_thread, p), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(goro_pool_resize(p, 1), 0);
	goro_pool_close(p);
	CHECK_EQ(load_seqcst(&runs), 800);
}
