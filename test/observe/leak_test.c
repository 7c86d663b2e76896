/*
 * leak_test.c - goroutines left behind: goro_leak_mark, goro_leak_check.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "child.h"
#include "test.h"

SEEN static void waits(goro_chan *c)
{
	goro_chan_recv(c, NULL);
	NO_TAIL_CALL();
}

static void ends(void)
{
}

static goro_chan *chan(void)
{
	return goro_chan_make(0, 0);
}

/* What a check prints. */
static char *printed;
static size_t printed_n;

static size_t check_printing(uint64_t mark, int64_t grace)
{
	FILE *f = open_memstream(&printed, &printed_n);
	size_t n = goro_leak_check(mark, grace, f);

	fclose(f);
	return n;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

GO_TEST(nothing_left_is_zero_and_silent)
{
	uint64_t mark = goro_leak_mark();

	for (int i = 0; i < 100; i++)
		go(ends);
	CHECK_EQ(check_printing(mark, seconds(50)), 0);
	CHECK_EQ(printed_n, 0);
}

GO_TEST(those_left_are_counted_and_printed)
{
	uint64_t mark = goro_leak_mark();
	goro_chan *c = chan();

	for (int i = 0; i < 10; i++)
		go(waits, c);
	CHECK_EQ(check_printing(mark, 20 * GORO_MILLISECOND), 10);
	CHECK_EQ(count(printed, "goroutine "), 20);	/* each names its creator, too */
	CHECK_EQ(count(printed, " [chan receive]:\n"), 10);
	CHECK_EQ(count(printed, "waits(...)"), 10);
	CHECK_EQ(count(printed, "created by "), 10);
	CHECK_CONTAINS(printed, " in goroutine 1\n");
	goro_chan_close(c);
	CHECK_EQ(goro_leak_check(mark, seconds(50), NULL), 0);
}

/* After the mark no P gives out an id from before it. */
GO_TEST(only_those_since_the_mark_count)
{
	goro_chan *c = chan();

	for (int round = 1; round <= 50; round++) {
		uint64_t mark;

		for (int i = 0; i < round; i++)
			go(waits, c);
		mark = goro_leak_mark();
		CHECK_EQ(goro_leak_check(mark, 0, NULL), 0);
		go(waits, c);
		CHECK_EQ(goro_leak_check(mark, 0, NULL), 1);
	}
}

static void start_and_mark(goro_chan *c, goro_chan *done)
{
	uint64_t mark = goro_leak_mark();

	for (int i = 0; i < 5; i++)
		go(waits, c);
	CHECK(goro_leak_check(mark, 0, NULL) >= 5);
	goro_chan_send(done, NULL);
}

GO_TEST(marks_on_all_ps)
{
	goro_chan *c = chan(), *done = chan();
	uint64_t mark;

	for (int i = 0; i < 40; i++)
		go(start_and_mark, c, done);
	for (int i = 0; i < 40; i++)
		goro_chan_recv(done, NULL);
	mark = goro_leak_mark();
	CHECK_EQ(goro_leak_check(mark, 0, NULL), 0);
	/* not the caller */
	CHECK_EQ(goro_leak_check(0, seconds(1) / 10, NULL), 200);
}

static void checks_itself(uint64_t mark, goro_chan *done)
{
	size_t n = goro_leak_check(mark, 0, NULL);

	goro_chan_send(done, &n);
}

GO_TEST(the_caller_does_not_count)
{
	goro_chan *done = goro_chan_of(size_t, 0);
	uint64_t mark = goro_leak_mark();
	size_t n;

	go(checks_itself, mark, done);
	goro_chan_recv(done, &n);
	CHECK_EQ(n, 0);
}

/* ------------------------------------------------------------------ waiting */

static void sleeps(int64_t ns)
{
	goro_sleep(ns);
}

GO_TEST(the_check_returns_when_the_last_ends)
{
	uint64_t mark = goro_leak_mark();
	int64_t start = goro_now();

	for (int i = 1; i <= 20; i++)
		go(sleeps, i * GORO_MILLISECOND);
	CHECK_EQ(goro_leak_check(mark, seconds(55), stderr), 0);
	CHECK(goro_now() - start >= 20 * GORO_MILLISECOND);
	CHECK(goro_now() - start < seconds(30));
}

static void starts_another(int more)
{
	goro_sleep(GORO_MILLISECOND / 2);
	if (more > 0)
		go(starts_another, more - 1);
}

GO_TEST(those_started_meanwhile_count)
{
	uint64_t mark = goro_leak_mark();

	go(starts_another, 50);
	CHECK_EQ(goro_leak_check(mark, seconds(55), stderr), 0);
	CHECK_EQ(goro_num_goroutine(), 1);
}

GO_TEST(the_grace_is_kept)
{
	uint64_t mark = goro_leak_mark();
	int64_t start = goro_now();

	go(waits, chan());
	CHECK_EQ(goro_leak_check(mark, 50 * GORO_MILLISECOND, NULL), 1);
	CHECK(goro_now() - start >= 50 * GORO_MILLISECOND);
}

GO_TEST(each_mark_has_its_own)
{
	enum { N = 20 };
	goro_chan *c[N];
	uint64_t mark[N];

	for (int i = 0; i < N; i++) {
		c[i] = chan();
		mark[i] = goro_leak_mark();
		go(waits, c[i]);
	}
	for (int i = N - 1; i >= 0; i--) {
		CHECK_EQ(goro_leak_check(mark[i], 0, NULL), 1);
		goro_chan_close(c[i]);
		CHECK_EQ(goro_leak_check(mark[i], seconds(55), stderr), 0);
		CHECK_EQ(goro_leak_check(0, 0, NULL), (size_t)i);
	}
}

struct plain_check {
	uint64_t mark;
	size_t left;
};

static void *check_in_thread(void *arg)
{
	struct plain_check *p = arg;

	p->left = goro_leak_check(p->mark, seconds(55), stderr);
	return NULL;
}

/* Four plain threads wait for overlapping sets of goroutines that end in random order. */
GO_TEST(plain_threads_check_at_once)
{
	enum { N = 4, EACH = 25 };
	struct plain_check p[N];
	pthread_t t[N];
	goro_chan *c = chan();

	for (int i = 0; i < N; i++) {
		p[i] = (struct plain_check){ .mark = goro_leak_mark(), .left = 99 };
		for (int k = 0; k < EACH; k++)
			k % 2 ? go(sleeps, k * GORO_MILLISECOND / 4) : go(waits, c);
		CHECK_EQ(pthread_create(&t[i], NULL, check_in_thread, &p[i]), 0);
	}
	goro_sleep(5 * GORO_MILLISECOND);
	goro_chan_close(c);
	for (int i = 0; i < N; i++) {
		pthread_join(t[i], NULL);
		CHECK_EQ(p[i].left, 0);
	}
}

/* ------------------------------------------------------------ plain threads */

static goro_chan *left_on;

static int leaves_one(int argc, char **argv)
{
	(void)argc, (void)argv;
	left_on = chan();
	go(waits, left_on);
	return 7;
}

TEST(around_goro_run)
{
	uint64_t mark = goro_leak_mark();

	CHECK_EQ(goro_run(leaves_one, 0, NULL), 7);
	CHECK_EQ(check_printing(mark, 50 * GORO_MILLISECOND), 1);
	CHECK_CONTAINS(printed, "waits(...)");
	goro_chan_close(left_on);
	CHECK_EQ(goro_leak_check(mark, seconds(55), NULL), 0);
}

/* ---------------------------------------------------------- how they end up */

static void spins(uint32_t *stop)
{
	while (!load_relaxed(stop))
		;
}

GO_TEST(one_that_runs_counts_until_it_ends)
{
	uint32_t stop = 0;
	uint64_t mark = goro_leak_mark();

	go(spins, &stop);
	CHECK_EQ(goro_leak_check(mark, 5 * GORO_MILLISECOND, NULL), 1);
	store_relaxed(&stop, 1);
	CHECK_EQ(goro_leak_check(mark, seconds(55), stderr), 0);
}

static void destroys(void *value)
{
	(void)value;
	goro_sleep(GORO_MILLISECOND);	/* at its end a goroutine may wait here */
}

static void ends_untidily(goro_key *key, int how)
{
	goro_set_name("untidy");
	goro_local_set(key, key);
	if (how == 1)
		goro_goexit();
	if (how == 2)
		goro_lock_os_thread();
	goro_gosched();
}

GO_TEST(ends_of_all_kinds_are_seen)
{
	goro_key *key = goro_key_make(destroys);

	for (int round = 0; round < SCALED(100); round++) {
		uint64_t mark = goro_leak_mark();

		for (int i = 0; i < 9; i++)
			go(ends_untidily, key, i % 3);
		CHECK_EQ(goro_leak_check(mark, seconds(50), stderr), 0);
	}
}

static void starts_many(int depth)
{
	if (depth > 0)
		for (int i = 0; i < 10; i++)
			go(starts_many, depth - 1);
}

GO_TEST(many_are_waited_for)
{
	uint64_t mark = goro_leak_mark();

	go(starts_many, TOOL_TSAN ? 3 : 4);
	CHECK_EQ(goro_leak_check(mark, seconds(50), stderr), 0);
	CHECK_EQ(goro_num_goroutine(), 1);
}

/* While a check with a grace waits, it is no deadlock that no other goroutine can run. */
static void waits_forever_for_a_leak(void)
{
	uint64_t mark = goro_leak_mark();

	go(waits, chan());
	goro_leak_check(mark, 30 * GORO_MILLISECOND, stderr);
}

TEST(a_check_with_a_grace_is_no_deadlock)
{
	run(waits_forever_for_a_leak);
	CHECK_EQ(o.status, 0);
	CHECK_CONTAINS(o.err, "[chan receive]:\n");
}
