/*
 * goro_stats_read: the numbers follow what goroutines do.
 */
#include <goro.h>
#include <pthread.h>

#include "await.h"
#include "test.h"

static struct goro_stats stats(void)
{
	struct goro_stats s;

	goro_stats_read(&s);
	return s;
}

static void finish(goro_waitgroup *wg)
{
	goro_waitgroup_done(wg);
}

static void receive(goro_chan *c)
{
	goro_chan_recv(c, NULL);
}

static void spawn_and_wait(int n)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		CHECK_EQ(go(finish, &wg), 0);
	goro_waitgroup_wait(&wg);
}

GO_TEST(spawns_are_counted)
{
	struct goro_stats before = stats();

	CHECK_EQ(before.goroutines_live, 1);
	spawn_and_wait(1000);
	CHECK_EQ(stats().goroutines_created, before.goroutines_created + 1000);
	AWAIT(stats().goroutines_live == 1);
}

static void *spawn_from_thread(void *wg)
{
	CHECK_EQ(go(finish, (goro_waitgroup *)wg), 0);
	return NULL;
}

GO_TEST(spawns_of_plain_threads_are_counted)
{
	struct goro_stats before = stats();
	goro_waitgroup wg = { 0 };
	pthread_t t;

	goro_waitgroup_add(&wg, 1);
	CHECK_EQ(pthread_create(&t, NULL, spawn_from_thread, &wg), 0);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(stats().goroutines_created, before.goroutines_created + 1);
	AWAIT(stats().goroutines_live == 1);
	pthread_join(t, NULL);
}

/* The numbers of goroutines in each state add up to the number alive. */
GO_TEST(states_add_up)
{
	goro_chan *c = goro_chan_make(0, 0);
	struct goro_stats before, s;

	goro_gomaxprocs(1);
	before = stats();
	for (int i = 0; i < 100; i++)
		go(receive, c);
	s = stats();
	CHECK_EQ(s.running, 1);
	CHECK_EQ(s.in_syscall, 0);
	CHECK_EQ(s.runnable + s.waiting, 100);
	if (s.preemptions == before.preemptions)
		CHECK_EQ(s.waiting, 0);
	CHECK_EQ(s.goroutines_live, 101);

	AWAIT(stats().waiting == 100);
	s = stats();
	CHECK_EQ(s.running, 1);
	CHECK_EQ(s.runnable, 0);

	goro_chan_close(c);
	AWAIT(stats().goroutines_live == 1);
	CHECK_EQ(stats().waiting, 0);
}

static void yield(int n, goro_waitgroup *wg)
{
	while (n-- > 0)
		goro_gosched();
	goro_waitgroup_done(wg);
}

GO_TEST(yields_are_switches)
{
	goro_waitgroup wg = { 0 };
	struct goro_stats before, after;
	uint64_t switches;

	goro_gomaxprocs(1);
	before = stats();
	goro_waitgroup_add(&wg, 2);
	go(yield, 1000, &wg);
	go(yield, 1000, &wg);
	goro_waitgroup_wait(&wg);
	after = stats();
	switches = after.context_switches - before.context_switches;
	CHECK(switches >= 2000);
	CHECK(switches <= 2010 + 2 * (after.preemptions - before.preemptions));
	CHECK(after.parks - before.parks <= 1);	/* main's */
}

static void echo(goro_chan *in, goro_chan *out, int n)
{
	int v;

	while (n-- > 0) {
		goro_chan_recv(in, &v);
		goro_chan_send(out, &v);
	}
}

GO_TEST(waits_are_parks)
{
	goro_chan *there = goro_chan_of(int, 0), *back = goro_chan_of(int, 0);
	struct goro_stats before, after;

	goro_gomaxprocs(1);
	before = stats();
	go(echo, there, back, 1000);
	for (int i = 0, v; i < 1000; i++) {
		goro_chan_send(there, &i);
		goro_chan_recv(back, &v);
	}
	after = stats();
	CHECK(after.parks - before.parks >= 1000);
	CHECK(after.parks - before.parks <= 4000);
}

static void set_flag(bool *flag)
{
	__atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

/* Main does not yield, so another P has stolen what ran. */
GO_TEST(steals_and_wakeups_are_counted)
{
	static bool ran;
	struct goro_stats before, after;

	goro_gomaxprocs(2);
	AWAIT(stats().idle_procs == 1 && stats().spinning_threads == 0);
	before = stats();
	goro_preempt_disable();
	go(set_flag, &ran);
	SPIN_UNTIL(__atomic_load_n(&ran, __ATOMIC_ACQUIRE));
	goro_preempt_enable();
	after = stats();
	CHECK(after.steals - before.steals >= 1);
	CHECK(after.stolen - before.stolen >= after.steals - before.steals);
	CHECK(after.thread_wakeups > before.thread_wakeups);
}

/* Runs on until another goroutine has run. */
static void hog(bool *other_ran)
{
	while (!__atomic_load_n(other_ran, __ATOMIC_ACQUIRE))
		goro_gomaxprocs(0);
}

GO_TEST(preemptions_are_counted)
{
	static bool ran;
	struct goro_stats before;

	goro_gomaxprocs(1);
	before = stats();
	go(set_flag, &ran);
	hog(&ran);
	CHECK(stats().preemptions > before.preemptions);
}

static bool may_return;

static void block(void *arg)
{
	(void)arg;
	SPIN_UNTIL(__atomic_load_n(&may_return, __ATOMIC_ACQUIRE));
}

static void call_blocking(void)
{
	goro_blocking(block, NULL);
}

/* Main has the only P again while the call goes on. */
GO_TEST(blocking_calls_are_seen)
{
	struct goro_stats before, s;

	goro_gomaxprocs(1);
	before = stats();
	go(call_blocking);
	AWAIT(stats().in_syscall == 1);
	s = stats();
	CHECK_EQ(s.running, 1);
	CHECK_EQ(s.waiting, 0);
	CHECK(s.syscall_handoffs > before.syscall_handoffs);
	__atomic_store_n(&may_return, true, __ATOMIC_RELEASE);
	AWAIT(stats().goroutines_live == 1);
	CHECK_EQ(stats().in_syscall, 0);
}

GO_TEST(processors_and_threads)
{
	struct goro_stats s;

	goro_gomaxprocs(3);
	AWAIT(runtime_is_whole());
	AWAIT(stats().idle_procs == 2);
	s = stats();
	CHECK_EQ(s.gomaxprocs, 3);
	CHECK(s.threads >= 3);
	CHECK(s.idle_threads < s.threads);
	CHECK(s.spinning_threads < s.threads);
	CHECK_EQ(s.running, 1);
}

/* What a P has counted is not lost with the P. */
GO_TEST(totals_outlive_processors)
{
	struct goro_stats before, after;

	goro_gomaxprocs(4);
	spawn_and_wait(1000);
	before = stats();
	goro_gomaxprocs(1);
	after = stats();
	CHECK_EQ(after.goroutines_created, before.goroutines_created);
	CHECK(after.context_switches >= before.context_switches);
	CHECK(after.steals >= before.steals);
}

GO_TEST(stacks_of_ended_goroutines_are_cached)
{
	goro_chan *c = goro_chan_make(0, 0);
	struct goro_stats s;
	int n = 100;

	for (int i = 0; i < n; i++)
		go(receive, c);
	AWAIT(stats().waiting == (uint64_t)n);
	goro_chan_close(c);
	AWAIT(stats().goroutines_live == 1);
	AWAIT(stats().stack_bytes_cached >= (uint64_t)n * (16 << 10));
	s = stats();
	CHECK(s.stack_bytes_reserved > s.stack_bytes_cached);
}

/* A plain thread may be the first to call. */
TEST(reading_starts_the_runtime)
{
	struct goro_stats s = stats();

	CHECK(s.gomaxprocs >= 1);
	CHECK_EQ(s.idle_procs, s.gomaxprocs);
	CHECK_EQ(s.goroutines_live, 0);
	CHECK_EQ(s.running, 0);
	CHECK_EQ(s.timers, 0);
}

static bool done;

/* Totals only grow, and nothing is ever absurd. */
static void *watch(void *arg)
{
	struct goro_stats last = stats();

	(void)arg;
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		struct goro_stats s = stats();

		CHECK(s.goroutines_created >= last.goroutines_created);
		CHECK(s.context_switches >= last.context_switches);
		CHECK(s.parks >= last.parks);
		CHECK(s.stolen >= last.stolen);
		CHECK(s.goroutines_live <= s.goroutines_created);
		CHECK(s.runnable <= s.goroutines_created + 10000);
		CHECK(s.running <= 64);
		CHECK(s.stack_bytes_cached <= s.stack_bytes_reserved);
		last = s;
	}
	return NULL;
}

GO_TEST(reading_needs_no_stop)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, watch, NULL), 0);
	for (int i = 0; i < SCALED(300); i++) {
		goro_gomaxprocs(i % 4 + 1);
		spawn_and_wait(100);
	}
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
}
