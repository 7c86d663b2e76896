/*
 * timers_test.c - the runtime's timers: sleeping, the heaps of the Ps, starting and
 * stopping against firing.
 */
/* test: procs */
/* test: leaks */
#include <goro.h>
#include <pthread.h>

#include "await.h"
#include "sync/deadline.h"
#include "base/debug.h"
#include "platform/os.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "test.h"

#define MS   GORO_MILLISECOND
#define HOUR (3600 * GORO_SECOND)

static int fired;

/* ------------------------------------------------------------------ sleeping */

GO_TEST(sleep_is_not_short)
{
	static const int64_t ns[] = { 1, 1000, 50000, MS, 20 * MS };

	for (int i = 0; i < 5; i++) {
		int64_t start = goro_now();

		goro_sleep(ns[i]);
		CHECK(goro_now() - start >= ns[i]);
	}
}

GO_TEST(sleep_of_nothing_returns_at_once)
{
	for (int i = 0; i < 10000; i++) {
		goro_sleep(0);
		goro_sleep(-1);
		goro_sleep(INT64_MIN);
	}
}

static void sleep_then_count(int64_t ns, goro_waitgroup *wg)
{
	int64_t start = goro_now();

	goro_sleep(ns);
	CHECK(goro_now() - start >= ns);
	goro_waitgroup_done(wg);
}

GO_TEST(many_sleep_at_once)
{
	goro_waitgroup wg = { 0 };
	int n = SCALED(20000);

	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		go(sleep_then_count, (int64_t)(i * 7919 % 1000) * 20000, &wg);
	goro_waitgroup_wait(&wg);
}

static void sleep_forever(void)
{
	goro_sleep(INT64_MAX);
	FAIL("woke up");
}

GO_TEST(longest_sleep_does_not_wrap_around)
{
	for (int i = 0; i < 10; i++)
		go(sleep_forever);
	goro_sleep(20 * MS);
}

static void *sleep_in_thread(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		int64_t start = goro_now();

		goro_sleep(MS / 2);
		CHECK(goro_now() - start >= MS / 2);
	}
	return NULL;
}

TEST(plain_threads_sleep)
{
	pthread_t threads[8];

	for (int i = 0; i < 8; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, sleep_in_thread, NULL), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

/* Sleepers so close to each other that the thread that wakes them wakes no other for
 * them (see "Many timers" in timers.c). One of them does not give way: the others are
 * taken over, before it is stopped. */
enum { DENSE = 2000, HOG_AT = 1000 };

static struct {
	int64_t start;
	int64_t late[DENSE];
	int hogs_ms;
	goro_waitgroup ended;
} dense;

static void sleep_among_many(int i)
{
	int64_t end = dense.start + i * 20000;

	goro_sleep(end - goro_now());
	dense.late[i] = goro_now() - end;
	if (i == HOG_AT) {
		goro_preempt_disable();
		for (int64_t until = goro_now() + dense.hogs_ms * MS; goro_now() < until;)
			;
		goro_preempt_enable();
	}
	goro_waitgroup_done(&dense.ended);
}

/* How late the latest of the sleepers behind the hog was. */
static int64_t dense_round(int hogs_ms)
{
	int64_t latest = 0;

	dense.hogs_ms = hogs_ms;
	dense.start = goro_now() + 20 * MS;
	goro_waitgroup_add(&dense.ended, DENSE);
	for (int i = 0; i < DENSE; i++)
		go(sleep_among_many, i);
	goro_waitgroup_wait(&dense.ended);
	for (int i = HOG_AT + 1; i < DENSE; i++)
		if (dense.late[i] > latest)
			latest = dense.late[i];
	return latest;
}

GO_TEST(one_of_many_sleepers_that_computes_holds_up_nobody)
{
	int64_t least = INT64_MAX;

	if (goro_gomaxprocs(0) < 2)
		SKIP("one P");
	if (!os_many_cpus)
		SKIP("one CPU");
	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("too slow for what is measured");
	/* the CPUs may be others' for a while */
	for (int try = 0; try < 40 && least >= 5 * MS; try++) {
		int64_t latest = dense_round(30);

		if (latest < least)
			least = latest;
	}
	if (least >= 5 * MS)
		FAIL("held up for %.1f ms", (double)least / MS);
}

/* -------------------------------------------------------------- the heaps */

static void count_fire(struct m *mp, struct timer *t, int64_t now)
{
	(void)mp;
	CHECK(now >= t->when);
	fetch_add_seqcst(&fired, 1);
	timer_fired(t);
}

static void start(struct timer *t, int64_t when)
{
	struct m *mp = rt_enter();

	t->fire = count_fire;
	timer_start(mp, t, when);
	rt_exit(mp);
}

static bool stop(struct timer *t)
{
	struct m *mp = rt_enter();
	bool in_time = timer_stop(t);

	rt_exit(mp);
	return in_time;
}

GO_TEST(stop_says_whether_it_was_in_time)
{
	struct timer t = { 0 };

	CHECK(!stop(&t));
	start(&t, goro_now() + HOUR);
	CHECK(stop(&t));
	CHECK(!stop(&t));
	start(&t, goro_now());
	AWAIT(load_seqcst(&fired) == 1);
	CHECK(!stop(&t));
	start(&t, INT64_MAX);
	CHECK(stop(&t));
}

/* Anywhere in a large heap, in any order: what is left fires, nothing else. */
GO_TEST(stops_anywhere_in_the_heap)
{
	enum { N = 10000 };
	static struct timer t[N];
	int64_t at = goro_now() + 300 * MS;
	int left = 0;

	for (int i = 0; i < N; i++)
		start(&t[i], at + i * 7919 % N * 1000);
	for (int i = 0; i < N; i++) {
		int k = i * 4999 % N;

		if (k % 3)
			CHECK_EQ(stop(&t[k]), true);
		else
			left++;
	}
	AWAIT(load_seqcst(&fired) == left);
}

static int64_t slack(int64_t next)
{
	struct m *mp = rt_enter();
	int64_t ns = timers_slack(next);

	rt_exit(mp);
	return ns;
}

/* It matters how many are due soon after the first, not how many there are. */
GO_TEST(only_dense_timers_are_gathered)
{
	static struct timer many[TIMERS_MANY], soon[TIMERS_DENSE];
	struct timer *last = &soon[TIMERS_DENSE - 1];
	int64_t at = goro_now() + HOUR;

	for (int i = 0; i < TIMERS_DENSE; i++)
		start(&soon[i], at + i * 1000);
	CHECK_EQ(slack(at), 0);
	for (int i = 0; i < TIMERS_MANY; i++)
		start(&many[i], at + HOUR + i * 7919 % TIMERS_MANY * MS);
	CHECK_EQ(slack(at), TIMER_SLACK_NS);
	store_relaxed(&debug.noslack, 1);
	CHECK_EQ(slack(at), 0);
	store_relaxed(&debug.noslack, 0);
	stop(last);
	CHECK_EQ(slack(at), 0);
	start(last, at + TIMER_SLACK_NS + 1);
	CHECK_EQ(slack(at), 0);
	stop(last);
	start(last, at + TIMER_SLACK_NS);
	CHECK_EQ(slack(at), TIMER_SLACK_NS);
	for (int i = 0; i < TIMERS_DENSE; i++)
		stop(&soon[i]);
	for (int i = 0; i < TIMERS_MANY; i++)
		stop(&many[i]);
}

static void start_and_stop(unsigned seed, goro_waitgroup *wg)
{
	int n = 0, in_time = 0;
	struct timer t[64] = { 0 };

	for (int i = 0; i < SCALED(20000); i++) {
		struct timer *one = &t[i % 64];

		seed = seed * 1103515245 + 12345;
		in_time += stop(one);
		start(one, goro_now() + (seed >> 16 & 0x7fff));
		n++;
		if (seed & 0x100)
			goro_gosched();
	}
	for (int i = 0; i < 64; i++)
		in_time += stop(&t[i]);
	fetch_add_seqcst(&fired, in_time - n);
	goro_waitgroup_done(wg);
}

/* Every start ends in a fire or in a stop that was in time; the timers are on the
 * goroutine's stack, which is gone right after the last stop. */
GO_TEST(starts_add_up_to_fires_and_stops)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 8);
	for (unsigned i = 0; i < 8; i++)
		go(start_and_stop, i, &wg);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(load_seqcst(&fired), 0);
}

/* Timers of Ps that go out of use are not lost. */
GO_TEST(timers_move_when_there_are_fewer_ps)
{
	goro_waitgroup wg = { 0 };

	goro_gomaxprocs(8);
	goro_waitgroup_add(&wg, 2000);
	for (int i = 0; i < 2000; i++) {
		go(sleep_then_count, (i % 50) * MS, &wg);
		if (i % 100 == 0)
			goro_sleep(MS);
	}
	for (int n = 7; n > 0; n--) {
		goro_gomaxprocs(n);
		goro_sleep(MS);
	}
	goro_waitgroup_wait(&wg);
}

/* ------------------------------------------------ beside goroutines that run

 * A P that only switches goroutines looks at its timers after FAIR_PERIOD_PICKS picks at
 * most. By the count: sysmon, too, would have an overdue timer looked at, but later. */
enum { FIRES = 100 };

static int stop_now;

/* How often step is called until a timer that is due fires. */
static int steps_until_fired(void (*step)(void))
{
	struct timer t = { 0 };
	int before = load_seqcst(&fired), steps = 0;

	start(&t, goro_now());
	for (; load_seqcst(&fired) == before; steps++)
		step();
	AWAIT(!timer_is_firing(&t));
	return steps;
}

static void check_fires_by_picks(void (*step)(void))
{
	for (int i = 0; i < FIRES; i++)
		CHECK(steps_until_fired(step) <= FAIR_PERIOD_PICKS);
}

static void yield_on(void)
{
	while (!load_relaxed(&stop_now))
		goro_gosched();
}

GO_TEST(timers_fire_beside_goroutines_that_yield)
{
	goro_gomaxprocs(1);
	go(yield_on);
	check_fires_by_picks(goro_gosched);
	store_relaxed(&stop_now, 1);
}

static goro_chan *to, *fro;

static void give_back(void)
{
	int x;

	while (goro_chan_recv(to, &x))
		goro_chan_send(fro, &x);
}

static void trip(void)
{
	int x = 1;

	goro_chan_send(to, &x);
	goro_chan_recv(fro, &x);
}

GO_TEST(timers_fire_beside_goroutines_that_wait_for_each_other)
{
	goro_gomaxprocs(1);
	to = goro_chan_of(int, 0);
	fro = goro_chan_of(int, 0);
	go(give_back);
	check_fires_by_picks(trip);
	goro_chan_close(to);
}

static int links;

/* Starts the next and ends, until a timer has fired. */
static void link_of_chain(int before, goro_chan *end)
{
	if (load_seqcst(&fired) != before) {
		goro_chan_close(end);
		return;
	}
	links++;
	go(link_of_chain, before, end);
}

GO_TEST(timers_fire_beside_goroutines_that_end)
{
	goro_gomaxprocs(1);
	for (int i = 0; i < FIRES; i++) {
		goro_chan *end = goro_chan_make(0, 0);
		struct timer t = { 0 };

		links = 0;
		go(link_of_chain, load_seqcst(&fired), end);
		start(&t, goro_now());
		goro_chan_recv(end, NULL);
		CHECK(links <= FAIR_PERIOD_PICKS);
		AWAIT(!timer_is_firing(&t));
		goro_chan_unref(end);
	}
}

/* ------------------------------------------------- sleeps that end far away */

#define MANY 1500	/* more than stay on the heap */

static goro_waitgroup many_ready, many_gate, many_ended;

static void sleep_with_many(int64_t ns)
{
	goro_waitgroup_done(&many_ready);
	goro_waitgroup_wait(&many_gate);
	sleep_then_count(ns, &many_ended);
}

/* MANY sleep for ns and up to spread more, all of them at once. */
static void start_many(int64_t ns, int64_t spread)
{
	goro_waitgroup_add(&many_ready, MANY);
	goro_waitgroup_add(&many_gate, 1);
	goro_waitgroup_add(&many_ended, MANY);
	for (int i = 0; i < MANY; i++)
		go(sleep_with_many, ns + i * INT64_C(7919) % MANY * (spread / MANY));
	goro_waitgroup_wait(&many_ready);
}

static void open_gate(void)
{
	goro_waitgroup_done(&many_gate);
	/* all are asleep, if the machine is not too slow */
	goro_sleep(100 * MS);
}

/* One timer comes first, and many come later than all sleeps, so that no sleep is on the
 * heap. What happens to the first must not make the sleeps wait for the later timers. */
static void check_first_goes(void (*go_away)(goro_timer *))
{
	static goro_timer *later[MANY];
	goro_timer *first;

	goro_gomaxprocs(1);
	for (int i = 0; i < MANY; i++)
		later[i] = goro_timer_make(HOUR);
	start_many(400 * MS, 50 * MS);
	first = goro_timer_make(250 * MS);
	open_gate();
	go_away(first);
	goro_waitgroup_wait(&many_ended);
	goro_timer_free(first);
	for (int i = 0; i < MANY; i++)
		goro_timer_free(later[i]);
}

static void put_off(goro_timer *t)
{
	goro_timer_reset(t, HOUR);
}

static void stop_timer(goro_timer *t)
{
	goro_timer_stop(t);
}

GO_TEST(sleeps_far_away_do_not_wait_for_a_timer_that_is_put_off)
{
	check_first_goes(put_off);
}

GO_TEST(sleeps_far_away_do_not_wait_for_a_timer_that_is_stopped)
{
	check_first_goes(stop_timer);
}

GO_TEST(sleeps_far_away_move_when_there_are_fewer_ps)
{
	int n = goro_gomaxprocs(4);

	start_many(300 * MS, 50 * MS);
	open_gate();
	goro_gomaxprocs(1);
	goro_waitgroup_wait(&many_ended);
	goro_gomaxprocs(n);
}

/* A sleep that begins later and ends sooner is not held up by far ones. */
static size_t timers_now(void)
{
	struct goro_stats now;

	goro_stats_read(&now);
	return now.timers;
}

GO_TEST(a_short_sleep_beside_those_far_away)
{
	start_many(HOUR, 50 * MS);
	open_gate();
	AWAIT(timers_now() >= MANY);
	goro_sleep(MS);		/* and not for an hour */
}

/* ---------------------------------------------------- threads and other Ps */

static int threads_go_on = 1;

static void *start_and_stop_in_thread(void *arg)
{
	struct timer t = { 0 };

	(void)arg;
	while (load_relaxed(&threads_go_on)) {
		start(&t, goro_now() + HOUR);
		sched_yield();
		CHECK(stop(&t));
	}
	return NULL;
}

static void sleep_in_turn(goro_waitgroup *wg)
{
	while (load_relaxed(&threads_go_on))
		goro_sleep(10 * GORO_MICROSECOND);
	goro_waitgroup_done(wg);
}

/* Threads that no stop of the world stops stop their timers meanwhile. */
GO_TEST(plain_threads_stop_timers_while_ps_change)
{
	goro_waitgroup wg = { 0 };
	pthread_t threads[2];

	goro_waitgroup_add(&wg, 4);
	for (int i = 0; i < 4; i++)
		go(sleep_in_turn, &wg);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, start_and_stop_in_thread, NULL), 0);
	for (int i = 0; i < SCALED(300); i++)
		goro_gomaxprocs(1 + i % 4);
	store_relaxed(&threads_go_on, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	goro_waitgroup_wait(&wg);
}

static bool keeper_alone_watches(void)
{
	bool watches;

	lock_acquire(&sched.lock);
	watches = monitor.asleep && sched.keeper;
	lock_release(&sched.lock);
	return watches;
}

static void *sleep_when_all_is_idle(void *woken)
{
	SPIN_UNTIL(keeper_alone_watches());
	goro_sleep(MS);
	goro_chan_close(woken);
	return NULL;
}

/* The keeper sleeps until a timer that is far away, and sysmon for good. */
GO_TEST(a_short_sleep_of_a_plain_thread_wakes_the_keeper)
{
	struct timer far = { 0 };
	pthread_t thread;

	start(&far, goro_now() + HOUR);
	for (int i = 0; i < 5; i++) {
		goro_chan *woken = goro_chan_make(0, 0);

		CHECK_EQ(pthread_create(&thread, NULL, sleep_when_all_is_idle, woken), 0);
		goro_chan_recv(woken, NULL);
		pthread_join(thread, NULL);
		goro_chan_unref(woken);
	}
	stop(&far);
}

/* ---------------------------------------------------------------- deadlines */

GO_TEST(sums_of_times_do_not_overflow)
{
	CHECK_EQ(deadline_after(100, 5), 105);
	CHECK_EQ(deadline_after(100, 0), 100);
	CHECK_EQ(deadline_after(100, INT64_MIN), 100);
	CHECK_EQ(deadline_after(100, INT64_MAX), TIMER_LAST);
	CHECK_EQ(deadline_after(TIMER_LAST, INT64_MAX), TIMER_LAST);
}
