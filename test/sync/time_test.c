/*
 * time_test.c - timers, tickers and functions run later, by the meaning of Go's
 * time/sleep_test.go and time/tick_test.go: docs/go-tests.md says which
 * test here answers to which there.
 *
 * The machine may be slow at any moment: what is asserted is that nothing comes
 * early, nothing is lost and nothing stale is received, not how late things are.
 */
/* test: procs */
/* test: leaks */
#include <goro.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "limit_memory.h"
#include "sched/timers.h"
#include "sync/chan.h"
#include "test.h"

#define MS   GORO_MILLISECOND
#define HOUR (3600 * GORO_SECOND)

static int runs;

static void count_run(void *arg)
{
	(void)arg;
	fetch_add_seqcst(&runs, 1);
}

static bool has_value(goro_chan *c)
{
	return goro_chan_try_recv(c, NULL) == GORO_RECV_OK;
}

/* A value has come and nobody has received it. (To users the channel seems empty.) */
#define AWAIT_VALUE(c)  AWAIT(load_acquire(&(c)->count) == 1)
#define AWAIT_WAITER(c) AWAIT(!waitq_empty(&(c)->recvq))

static int64_t recv_time(goro_chan *c)
{
	int64_t t = -1;

	CHECK(goro_chan_recv(c, &t));
	return t;
}

/* ------------------------------------------------------------------ timers */

GO_TEST(a_deadline_is_so_far_from_now)
{
	int64_t before = goro_now(), in = goro_deadline_in(5 * GORO_SECOND);

	CHECK(in >= before + 5 * GORO_SECOND && in <= goro_now() + 5 * GORO_SECOND);
	CHECK(goro_deadline_in(-GORO_SECOND) < goro_now());
	CHECK(goro_deadline_in(0) <= goro_now());
	CHECK_EQ(goro_deadline_in(GORO_FOREVER), GORO_FOREVER);
	CHECK_EQ(goro_deadline_in(GORO_FOREVER - 1), GORO_FOREVER);
}

TEST(timer_sends_the_time_and_not_early)
{
	int64_t start = goro_now();
	goro_timer *t = goro_timer_make(20 * MS);
	int64_t at = recv_time(goro_timer_chan(t));

	CHECK(goro_now() - start >= 20 * MS);
	CHECK(at - start >= 20 * MS);
	CHECK(at <= goro_now());
	CHECK(!has_value(goro_timer_chan(t)));
	goro_timer_free(t);
}

GO_TEST(value_is_of_when_it_fired_not_of_when_it_was_received)
{
	goro_timer *t = goro_timer_make(MS);
	int64_t seen;

	AWAIT_VALUE(goro_timer_chan(t));
	seen = goro_now();
	goro_sleep(MS);
	CHECK(recv_time(goro_timer_chan(t)) <= seen);
	goro_timer_free(t);
}

GO_TEST(timer_not_in_the_future_fires_at_once)
{
	static const int64_t at_once[] = { 0, -1, INT64_MIN };

	for (int i = 0; i < 3; i++) {
		goro_timer *t = goro_timer_make(at_once[i]);

		recv_time(goro_timer_chan(t));
		goro_timer_free(t);
	}
}

/* A time beyond the end of the clock is as good as never, not the past. */
GO_TEST(timer_of_the_longest_time_does_not_fire)
{
	goro_timer *t = goro_timer_make(INT64_MAX), *sooner = goro_timer_make(20 * MS);

	CHECK_EQ(goro_select(GORO_RECV(goro_timer_chan(t), NULL),
	                     GORO_RECV(goro_timer_chan(sooner), NULL)), 1);
	CHECK(goro_timer_stop(t));
	goro_timer_free(t);
	goro_timer_free(sooner);
}

GO_TEST(timer_channel_seems_unbuffered)
{
	goro_timer *t = goro_timer_make(0);
	goro_ticker *k = goro_ticker_make(MS);

	for (int i = 0; i < 20; i++) {
		CHECK_EQ(goro_chan_len(goro_timer_chan(t)), 0);
		CHECK_EQ(goro_chan_cap(goro_timer_chan(t)), 0);
		CHECK_EQ(goro_chan_len(goro_ticker_chan(k)), 0);
		CHECK_EQ(goro_chan_cap(goro_ticker_chan(k)), 0);
		goro_sleep(MS);
	}
	CHECK(has_value(goro_timer_chan(t)));
	goro_timer_free(t);
	goro_ticker_free(k);
}

GO_TEST(stopped_timer_sends_nothing)
{
	goro_timer *t = goro_timer_make(20 * MS);

	CHECK(goro_timer_stop(t));
	CHECK(!goro_timer_stop(t));
	goro_sleep(50 * MS);
	CHECK(!has_value(goro_timer_chan(t)));
	goro_timer_free(t);
}

GO_TEST(stop_takes_back_a_value_not_received)
{
	goro_timer *t = goro_timer_make(0);

	AWAIT_VALUE(goro_timer_chan(t));
	CHECK(goro_timer_stop(t));
	CHECK(!has_value(goro_timer_chan(t)));
	CHECK(!goro_timer_stop(t));
	goro_timer_free(t);
}

GO_TEST(stop_after_receipt_says_false)
{
	goro_timer *t = goro_timer_make(0);

	recv_time(goro_timer_chan(t));
	CHECK(!goro_timer_stop(t));
	CHECK(!goro_timer_reset(t, HOUR));
	CHECK(goro_timer_reset(t, HOUR));
	CHECK(goro_timer_stop(t));
	goro_timer_free(t);
}

GO_TEST(reset_takes_back_a_value_not_received)
{
	goro_timer *t = goro_timer_make(0);

	AWAIT_VALUE(goro_timer_chan(t));
	CHECK(goro_timer_reset(t, HOUR));
	CHECK(!has_value(goro_timer_chan(t)));
	CHECK(goro_timer_stop(t));
	goro_timer_free(t);
}

GO_TEST(reset_to_later_is_not_early)
{
	goro_timer *t = goro_timer_make(50 * MS);
	int64_t start;

	goro_sleep(25 * MS);
	start = goro_now();
	goro_timer_reset(t, 100 * MS);
	recv_time(goro_timer_chan(t));
	CHECK(goro_now() - start >= 100 * MS);
	goro_timer_free(t);
}

GO_TEST(reset_to_earlier_is_not_late)
{
	goro_timer *past = goro_timer_make(HOUR), *t = goro_timer_make(HOUR);

	for (int i = 0; i < 100; i++) {
		CHECK_EQ(goro_timer_reset(t, MS), i == 0);
		recv_time(goro_timer_chan(t));
	}
	goro_timer_free(past);
	goro_timer_free(t);
}

static void receive_then_count(goro_chan *c)
{
	recv_time(c);
	fetch_add_seqcst(&runs, 1);
}

GO_TEST(reset_reaches_who_already_waits)
{
	goro_timer *t = goro_timer_make(HOUR);

	go(receive_then_count, goro_timer_chan(t));
	AWAIT_WAITER(goro_timer_chan(t));
	CHECK(goro_timer_reset(t, 2 * HOUR));
	goro_sleep(MS);
	CHECK_EQ(load_seqcst(&runs), 0);
	CHECK(goro_timer_reset(t, 1));
	AWAIT(load_seqcst(&runs) == 1);
	CHECK(!goro_timer_stop(t));
	goro_timer_free(t);
}

static void select_timer_or(goro_chan *c, goro_chan *stop, int *got, goro_waitgroup *wg)
{
	if (goro_select(GORO_RECV(c, NULL), GORO_RECV(stop, NULL)) == 0)
		fetch_add_seqcst(got, 1);
	goro_waitgroup_done(wg);
}

GO_TEST(one_of_two_that_select_gets_the_value)
{
	goro_timer *t = goro_timer_make(HOUR);
	goro_chan *stop = goro_chan_of(int, 0);
	goro_waitgroup wg = { 0 };
	int got = 0;

	goro_waitgroup_add(&wg, 2);
	go(select_timer_or, goro_timer_chan(t), stop, &got, &wg);
	go(select_timer_or, goro_timer_chan(t), stop, &got, &wg);
	AWAIT(load_relaxed(&goro_timer_chan(t)->selects) == 2);
	CHECK_EQ(load_seqcst(&got), 0);
	goro_timer_reset(t, MS);
	AWAIT(load_seqcst(&got) == 1);
	CHECK(!goro_timer_stop(t));
	goro_chan_close(stop);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(load_seqcst(&got), 1);
	goro_timer_free(t);
	goro_chan_unref(stop);
}

/* Whichever way a stop or a reset meets a fire: either the value was received,
 * or it says true and there is none. */
static void race_stop_with_fire(bool reset, goro_waitgroup *wg)
{
	for (int i = 0; i < SCALED(200); i++) {
		goro_timer *a = goro_timer_make(MS), *b = goro_timer_make(MS);
		bool first = goro_select(GORO_RECV(goro_timer_chan(a), NULL),
		                         GORO_RECV(goro_timer_chan(b), NULL)) == 0;
		goro_timer *other = first ? b : a;

		CHECK(reset ? goro_timer_reset(other, HOUR) : goro_timer_stop(other));
		CHECK(!has_value(goro_timer_chan(other)));
		goro_timer_free(a);
		goro_timer_free(b);
	}
	goro_waitgroup_done(wg);
}

static void race_stops(bool reset)
{
	enum { N = 100 };
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, N);
	for (int i = 0; i < N; i++)
		go(race_stop_with_fire, reset, &wg);
	goro_waitgroup_wait(&wg);
}

GO_TEST(stop_racing_with_a_fire_is_in_time_or_was_received)
{
	race_stops(false);
}

GO_TEST(reset_racing_with_a_fire_is_in_time_or_was_received)
{
	race_stops(true);
}

static void poll_and_reset(goro_timer *t, goro_waitgroup *wg)
{
	for (int i = 0; i < SCALED(10000); i++) {
		has_value(goro_timer_chan(t));
		goro_timer_reset(t, i % 3);
		if (i % 7 == 0)
			goro_timer_stop(t);
	}
	goro_waitgroup_done(wg);
}

GO_TEST(many_may_stop_and_reset_one_timer_at_once)
{
	goro_timer *t = goro_timer_make(1);
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 8);
	for (int i = 0; i < 8; i++)
		go(poll_and_reset, t, &wg);
	goro_waitgroup_wait(&wg);
	goro_timer_reset(t, 1);
	recv_time(goro_timer_chan(t));
	goro_timer_free(t);
}

/* A value that was received is of the last start: resets keep older ones away. */
GO_TEST(no_value_of_before_a_reset_is_received)
{
	goro_timer *t = goro_timer_make(1);

	for (int i = 0; i < SCALED(20000); i++) {
		int64_t start;

		if (i % 2)
			goro_gosched();
		start = goro_now();
		goro_timer_reset(t, i % 5000);
		CHECK(recv_time(goro_timer_chan(t)) >= start + i % 5000);
	}
	goro_timer_free(t);
}

/* ----------------------------------------------------------------- freeing */

GO_TEST(timer_may_be_freed_in_any_state)
{
	for (int i = 0; i < SCALED(20000); i++) {
		goro_timer *t = goro_timer_make(i % 4 == 0 ? HOUR : i % 3000);

		switch (i % 4) {
		case 1: goro_gosched(); break;
		case 2: recv_time(goro_timer_chan(t)); break;
		case 3: goro_timer_stop(t); break;
		}
		goro_timer_free(t);
	}
	goro_timer_free(NULL);
	goro_ticker_free(NULL);
}

GO_TEST(who_waits_on_the_channel_of_a_freed_timer_waits_on)
{
	goro_timer *t = goro_timer_make(HOUR);
	goro_chan *stop = goro_chan_of(int, 0);
	goro_waitgroup wg = { 0 };
	int got = 0;

	go(receive_then_count, goro_timer_chan(t));	/* for good */
	goro_waitgroup_add(&wg, 1);
	go(select_timer_or, goro_timer_chan(t), stop, &got, &wg);
	AWAIT(load_relaxed(&goro_timer_chan(t)->selects) == 1);
	AWAIT_WAITER(goro_timer_chan(t));
	goro_timer_free(t);
	goro_sleep(10 * MS);
	CHECK_EQ(load_seqcst(&runs), 0);
	goro_chan_close(stop);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(got, 0);
	goro_chan_unref(stop);
}

GO_TEST(channel_can_be_kept_beyond_the_timer)
{
	goro_timer *t = goro_timer_make(0);
	goro_chan *c = goro_chan_ref(goro_timer_chan(t));

	AWAIT_VALUE(c);
	goro_timer_free(t);
	CHECK(!has_value(c));
	goro_chan_unref(c);
}

/* --------------------------------------------------------------- functions */

GO_TEST(function_runs_once_in_its_own_goroutine)
{
	goro_timer *t = goro_after_func(5 * MS, count_run, NULL);

	CHECK(!goro_timer_chan(t));
	AWAIT(load_seqcst(&runs) == 1);
	CHECK(!goro_timer_stop(t));
	goro_sleep(20 * MS);
	CHECK_EQ(load_seqcst(&runs), 1);
	goro_timer_free(t);
}

struct chain {
	int left;
	goro_timer *next;
	goro_chan *over;
};

static void chain_on(void *arg)
{
	struct chain *c = arg;
	goro_timer *me = load_seqcst(&c->next);

	CHECK(goro_id() != 1);
	if (--c->left > 0) {
		goro_timer_reset(me, 0);
		return;
	}
	goro_chan_close(c->over);
}

GO_TEST(function_may_reset_its_own_timer)
{
	struct chain c = { .left = 10, .over = goro_chan_of(int, 0) };
	goro_timer *t = goro_after_func(HOUR, chain_on, &c);

	store_seqcst(&c.next, t);
	goro_timer_reset(t, 0);
	goro_chan_recv(c.over, NULL);
	CHECK_EQ(c.left, 0);
	goro_timer_free(t);
	goro_chan_unref(c.over);
}

GO_TEST(stopped_function_does_not_run)
{
	goro_timer *t = goro_after_func(20 * MS, count_run, NULL);

	CHECK(goro_timer_stop(t));
	CHECK(!goro_timer_stop(t));
	goro_sleep(50 * MS);
	CHECK_EQ(load_seqcst(&runs), 0);
	CHECK(!goro_timer_reset(t, 0));
	AWAIT(load_seqcst(&runs) == 1);
	goro_timer_free(t);
}

GO_TEST(freed_function_does_not_run)
{
	goro_timer_free(goro_after_func(10 * MS, count_run, NULL));
	goro_sleep(30 * MS);
	CHECK_EQ(load_seqcst(&runs), 0);
}

/* What stop says adds up with what ran. */
GO_TEST(stop_of_a_function_tells_whether_it_runs)
{
	enum { N = 20000 };
	int n = SCALED(N), stopped = 0;

	for (int i = 0; i < n; i++) {
		goro_timer *t = goro_after_func(i % 50 * 100, count_run, NULL);

		if (i % 3)
			goro_gosched();
		stopped += goro_timer_stop(t);
		goro_timer_free(t);
	}
	AWAIT(load_seqcst(&runs) == n - stopped);
}

static void free_me(void *arg)
{
	goro_timer **t = arg;

	goro_timer_free(load_seqcst(t));
	fetch_add_seqcst(&runs, 1);
}

GO_TEST(function_may_free_its_own_timer)
{
	static goro_timer *t[1000];

	for (int i = 0; i < 1000; i++) {
		store_seqcst(&t[i], goro_after_func(HOUR, free_me, &t[i]));
		goro_timer_reset(t[i], i);
	}
	AWAIT(load_seqcst(&runs) == 1000);
}

/* With no memory for its goroutine it runs as soon as there is. */
GO_TEST(function_is_not_lost_for_lack_of_memory)
{
	goro_timer *t = goro_after_func(HOUR, count_run, NULL);
	goro_chan *gate = goro_chan_of(int, 0);

	goro_gomaxprocs(1);
	goro_sleep(10 * MS);
	exhaust_memory(gate);
	goro_timer_reset(t, 0);
	goro_sleep(20 * MS);
	CHECK_EQ(load_seqcst(&runs), 0);
	CHECK(goro_timer_stop(t));
	goro_timer_reset(t, 0);
	goro_sleep(5 * MS);
	goro_chan_close(gate);
	AWAIT(load_seqcst(&runs) == 1);
	goro_timer_free(t);
}

static int keep_going = 1;

static void reset_forever(void *arg)
{
	goro_timer **t = arg;

	fetch_add_seqcst(&runs, 1);
	if (load_seqcst(&keep_going))
		goro_timer_reset(load_seqcst(t), 0);
	else
		store_seqcst(t, NULL);
}

/* Functions that start themselves again at once leave time for others. */
GO_TEST(functions_do_not_starve_goroutines)
{
	goro_timer *t = goro_after_func(HOUR, reset_forever, &t), *own = t;

	goro_gomaxprocs(1);
	goro_timer_reset(t, 0);
	AWAIT(load_seqcst(&runs) >= 100);
	goro_sleep(10 * MS);
	store_seqcst(&keep_going, 0);
	AWAIT(!load_seqcst(&t));
	goro_timer_free(own);
}

/* ---------------------------------------------------------------- ordering */

struct slot {
	goro_chan *out;
	int i;
};

static void wait_and_tell(goro_timer *t, struct slot *s)
{
	recv_time(goro_timer_chan(t));
	goro_chan_send(s->out, &s->i);
}

/* Each a good while after the one before; tried again with a longer one if the machine
 * was slow. */
GO_TEST(timers_fire_in_order_of_time)
{
	static const int delay[] = { 5, 3, 6, 6, 6, 1, 1, 2, 7, 9, 4, 8, 0 };
	enum { N = sizeof delay / sizeof *delay };

	for (int attempt = 0; attempt < 12; attempt++) {
		int64_t apart = (20 * MS) << attempt / 2;
		goro_chan *out = goro_chan_of(int, N);
		struct slot slots[N];
		goro_timer *ts[N];
		int last = -1, i;
		bool in_order = true;

		for (i = 0; i < N; i++) {
			slots[i] = (struct slot){ out, i };
			ts[i] = goro_timer_make(delay[i] * apart);
			go(wait_and_tell, ts[i], &slots[i]);
		}
		for (int k = 0; k < N; k++) {
			goro_chan_recv(out, &i);
			in_order &= delay[i] >= last;
			last = delay[i];
		}
		for (i = 0; i < N; i++)
			goro_timer_free(ts[i]);
		goro_chan_unref(out);
		if (in_order)
			return;
	}
	FAIL("never in order");
}

static void churn(goro_waitgroup *wg, unsigned seed)
{
	enum { N = 100 };
	goro_timer *ts[N];

	for (int i = 0; i < N; i++)
		ts[i] = goro_timer_make(HOUR);
	for (int i = 0; i < SCALED(20000); i++) {
		seed = seed * 1103515245 + 12345;
		goro_timer *t = ts[seed / 65536 % N];

		if (seed & 64)
			goro_timer_stop(t);
		else
			goro_timer_reset(t, seed & 128 ? HOUR : (int64_t)(seed >> 12));
		if (i % 64 == 0)
			goro_gosched();
	}
	for (int i = 0; i < N; i++) {
		goro_timer_reset(ts[i], 1);
		recv_time(goro_timer_chan(ts[i]));
		goro_timer_free(ts[i]);
	}
	goro_waitgroup_done(wg);
}

GO_TEST(timers_survive_many_changes_on_all_ps)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 8);
	for (unsigned i = 0; i < 8; i++)
		go(churn, &wg, i);
	goro_waitgroup_wait(&wg);
}

/* Quadratic behaviour would take minutes. */
GO_TEST(a_hundred_thousand_timers_are_changed_and_stopped)
{
	enum { N = 100000 };
	static goro_timer *ts[N];
	int n = SCALED(N);

	for (int i = 0; i < n; i++)
		ts[i] = goro_timer_make(HOUR + (i * INT64_C(7919) % n) * MS);
	for (int i = 0; i < n; i++)
		CHECK(goro_timer_reset(ts[i], HOUR + (i * INT64_C(104729) % n) * MS));
	for (int i = 0; i < n; i += 2)
		CHECK(goro_timer_stop(ts[i]));
	for (int i = 0; i < n; i++)
		CHECK_EQ(goro_timer_stop(ts[i]), i % 2 == 1);
	for (int i = 0; i < n; i++)
		goro_timer_free(ts[i]);
}

/* ----------------------------------------------------------------- tickers */

GO_TEST(ticker_ticks_and_not_early)
{
	int64_t start = goro_now(), last = start;
	goro_ticker *k = goro_ticker_make(5 * MS);

	for (int i = 1; i <= 10; i++) {
		int64_t at = recv_time(goro_ticker_chan(k));

		CHECK(at >= start + i * 5 * MS);
		CHECK(at > last && at <= goro_now());
		last = at;
	}
	goro_ticker_free(k);
}

/* However late a tick is, the next comes a whole number of periods after the first. */
GO_TEST(ticks_do_not_drift)
{
	goro_ticker *k = goro_ticker_make(MS);
	int64_t first, next;

	AWAIT((first = timers_earliest()) != TIMER_NEVER);
	for (int i = 0; i < 50; i++) {
		recv_time(goro_ticker_chan(k));
		/* else it fires */
		AWAIT((next = timers_earliest()) != TIMER_NEVER);
		CHECK_EQ((next - first) % MS, 0);
	}
	goro_ticker_free(k);
}

GO_TEST(ticks_are_dropped_not_queued)
{
	goro_ticker *k = goro_ticker_make(5 * MS);
	int64_t first, second, now;

	goro_sleep(100 * MS);
	first = recv_time(goro_ticker_chan(k));
	now = goro_now();
	second = recv_time(goro_ticker_chan(k));
	CHECK(first < now);		/* the first of all, kept */
	CHECK(second > first + 5 * MS);	/* those between were dropped */
	goro_ticker_free(k);
}

GO_TEST(tick_is_of_when_it_came_not_of_when_it_was_received)
{
	goro_ticker *k = goro_ticker_make(MS);
	int64_t seen;

	AWAIT_VALUE(goro_ticker_chan(k));
	seen = goro_now();
	goro_sleep(5 * MS);
	CHECK(recv_time(goro_ticker_chan(k)) <= seen);
	goro_ticker_free(k);
}

GO_TEST(ticker_reset_changes_the_period_and_drops_the_old_tick)
{
	goro_ticker *k = goro_ticker_make(MS);
	int64_t start;

	AWAIT_VALUE(goro_ticker_chan(k));
	start = goro_now();
	goro_ticker_reset(k, 30 * MS);
	CHECK(recv_time(goro_ticker_chan(k)) >= start + 30 * MS);
	CHECK(recv_time(goro_ticker_chan(k)) >= start + 60 * MS);
	goro_ticker_reset(k, HOUR);
	goro_sleep(5 * MS);
	CHECK(!has_value(goro_ticker_chan(k)));
	goro_ticker_reset(k, 1);
	recv_time(goro_ticker_chan(k));
	recv_time(goro_ticker_chan(k));
	goro_ticker_free(k);
}

GO_TEST(freed_ticker_ticks_no_more)
{
	for (int i = 0; i < 3; i++) {
		goro_ticker *k = goro_ticker_make(MS);
		goro_chan *c = goro_chan_ref(goro_ticker_chan(k));

		recv_time(c);
		goro_ticker_free(k);
		goro_sleep(5 * MS);
		CHECK(!has_value(c));
		goro_chan_unref(c);
	}
}

static void ticker_life(goro_waitgroup *wg)
{
	for (int i = 0; i < SCALED(1000); i++) {
		goro_ticker *k = goro_ticker_make(1 + i % 3);

		if (i % 2)
			recv_time(goro_ticker_chan(k));
		if (i % 5 == 0)
			goro_ticker_reset(k, 1 + i % 7);
		goro_ticker_free(k);
	}
	goro_waitgroup_done(wg);
}

GO_TEST(tickers_come_and_go_on_all_ps)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 10);
	for (int i = 0; i < 10; i++)
		go(ticker_life, &wg);
	goro_waitgroup_wait(&wg);
}

static void tick_or_timer(goro_ticker *k, goro_waitgroup *wg)
{
	for (int i = 0; i < SCALED(5000); i++) {
		goro_timer *t = goro_timer_make(MS);

		goro_select(GORO_RECV(goro_ticker_chan(k), NULL),
		            GORO_RECV(goro_timer_chan(t), NULL));
		goro_timer_free(t);
	}
	goro_waitgroup_done(wg);
}

GO_TEST(many_share_a_fast_ticker)
{
	goro_ticker *k = goro_ticker_make(GORO_MICROSECOND);
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 4);
	for (int i = 0; i < 4; i++)
		go(tick_or_timer, k, &wg);
	goro_waitgroup_wait(&wg);
	goro_ticker_free(k);
}

/* A period as long as can be does not wrap around. */
GO_TEST(ticker_of_the_longest_period_does_not_tick)
{
	goro_ticker *k = goro_ticker_make(INT64_MAX);

	goro_sleep(20 * MS);
	CHECK(!has_value(goro_ticker_chan(k)));
	goro_ticker_free(k);
}

/* ------------------------------------------------------------------ misuse */

static void make_ticker(void *period)
{
	goro_ticker_make(*(int64_t *)period);
}

static void reset_ticker(void *period)
{
	goro_ticker *k = goro_ticker_make(1);

	goro_ticker_reset(k, *(int64_t *)period);
}

GO_TEST(ticker_of_no_period_panics)
{
	int64_t zero = 0, negative = -1;

	CHECK_STR(goro_try(make_ticker, &zero), "non-positive interval for NewTicker");
	CHECK_STR(goro_try(make_ticker, &negative), "non-positive interval for NewTicker");
	CHECK_STR(goro_try(reset_ticker, &zero), "non-positive interval for Ticker.Reset");
	CHECK_STR(goro_try(reset_ticker, &negative), "non-positive interval for Ticker.Reset");
}

/* ----------------------------------------------------------- plain threads */

static void *thread_uses_timers(void *arg)
{
	goro_timer *t = goro_timer_make(5 * MS), *f = goro_after_func(0, count_run, NULL);
	goro_ticker *k = goro_ticker_make(MS);

	(void)arg;
	for (int i = 0; i < 10; i++) {
		int64_t start = goro_now();

		goro_timer_reset(t, MS);
		CHECK(recv_time(goro_timer_chan(t)) - start >= MS);
		recv_time(goro_ticker_chan(k));
		CHECK(!goro_timer_stop(t));
	}
	while (load_seqcst(&runs) == 0)
		usleep(100);
	goro_timer_free(t);
	goro_timer_free(f);
	goro_ticker_free(k);
	return NULL;
}

TEST(plain_threads_use_timers_too)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, thread_uses_timers, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}
