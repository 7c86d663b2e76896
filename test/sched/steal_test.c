/*
 * steal_test.c - what a thief takes, and what it leaves where it is about to run.
 */
#include <stdlib.h>
#include <string.h>

#include <goro.h>

#include "await.h"
#include "base/debug.h"
#include "platform/os.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/steal.h"
#include "test.h"

#define US 1000LL

static struct p *mine, *from;
static struct g gs[64];

static struct p *make_p(void)
{
	struct p *pp = aligned_alloc(CACHE_LINE, (sizeof *pp + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);

	memset(pp, 0, sizeof *pp);
	pp->fair.in = FAIR_PERIOD_PICKS;
	return pp;
}

static void set_up(void)
{
	sched.gomaxprocs = 2;
	os_many_cpus = true;
	mine = make_p();
	from = make_p();
	for (size_t i = 0; i < sizeof gs / sizeof *gs; i++)
		gs[i].status = G_RUNNABLE;
}

static struct g *look(int64_t at)
{
	return steal_from(mine, from, 1000000 * US + at);
}

static void run_one(void)
{
	bool inherit;

	CHECK(runq_get(from, &inherit));
	count_up(&from->count.switches, 1);
}

TEST(a_started_one_is_left_until_it_has_waited)
{
	set_up();
	CHECK(!look(0));
	runq_put_started(from, &gs[0]);
	CHECK(!look(1 * US));
	CHECK(!look(1 * US + STEAL_AFTER_NS - 1));
	CHECK(look(1 * US + STEAL_AFTER_NS) == &gs[0]);
}

/* The oldest waits although newer ones come and go. */
TEST(a_large_subtree_is_taken_from_under_a_busy_owner)
{
	set_up();
	runq_put_started(from, &gs[0]);
	for (int i = 0; i < 10; i++) {
		CHECK(!look(i * US));
		runq_put_started(from, &gs[1]);
		run_one();
	}
	CHECK(look(STEAL_AFTER_NS) == &gs[0]);
}

TEST(batches_that_come_and_go_are_left)
{
	set_up();
	for (int i = 0; i < 50; i++) {
		for (int k = 0; k < 3; k++)
			runq_put_started(from, &gs[k]);
		CHECK(!look(i * 4 * US));
		for (int k = 0; k < 3; k++)
			run_one();
	}
}

TEST(a_woken_one_is_taken_when_nobody_runs_it)
{
	set_up();
	CHECK(!look(0));
	runq_put_woken(from, &gs[0]);
	CHECK(!look(1 * US));
	CHECK(look(1 * US + STEAL_AFTER_NS) == &gs[0]);
}

/* The thief runs on the CPU of the one that woke it, which therefore does not. */
TEST(who_stands_in_for_its_waker_takes_what_is_there)
{
	static struct m m;

	set_up();
	m.p = mine;
	runq_put_next(from, &gs[0]);
	m.woken.by = from;
	m.woken.cpu = -1;
	CHECK(!steal_in_place(&m));
	for (int left = 1; left;) {	/* until it is not moved in between */
		m.woken.by = from;
		m.woken.cpu = os_cpu();
		left = steal_in_place(&m) != &gs[0];
	}
	runq_put_next(from, &gs[1]);
	CHECK(!steal_in_place(&m));	/* once for each time it is woken */
}

/* Sixteen that take a microsecond each, for ever: half of them move. */
TEST(a_long_queue_of_slow_ones_is_halved)
{
	bool taken = false;

	if (GORO_RUNQ_CAP < 16)
		SKIP("the queue is too short for that");
	set_up();
	for (int i = 0; i < 16; i++)
		runq_put_woken(from, &gs[i]);
	for (int i = 0; i < 30 && !taken; i++) {
		taken = look(i * US) != NULL;
		run_one();
		runq_put_woken(from, &gs[i % 16]);
	}
	CHECK(taken);
	CHECK_EQ(runq_length(mine), 7);
}

TEST(a_short_queue_of_quick_ones_is_left)
{
	set_up();
	for (int i = 0; i < 4; i++)
		runq_put_woken(from, &gs[i]);
	for (int i = 0; i < 900; i++) {
		if (i % 10 == 0)
			CHECK(!look(i * US));
		for (int k = 0; k < 10; k++) {
			run_one();
			runq_put_woken(from, &gs[k % 4]);
		}
	}
}

/* At the end of a watch one P has had too much to do, and gives some away. */
static bool gives_some_away(void)
{
	bool taken = false;

	set_up();
	for (int i = 0; i < 4; i++)
		runq_put_woken(from, &gs[i]);
	for (int i = 0; i < 2200 && !taken; i++) {
		if (i % 10 == 0)
			taken = look(i * US) != NULL;
		for (int k = 0; k < 10; k++) {
			run_one();
			runq_put_woken(from, &gs[k % 4]);
		}
	}
	return taken;
}

TEST(a_p_that_always_has_somebody_waiting_gives_some_away)
{
	CHECK(gives_some_away());
}

TEST(it_does_not_where_trials_are_off)
{
	debug.notrial = 1;
	CHECK(!gives_some_away());
}

TEST(what_has_not_waited_is_taken_where_the_rule_is_off)
{
	set_up();
	debug.nowaited = 1;
	runq_put_started(from, &gs[0]);
	CHECK(look(0) == &gs[0]);
}

/* A P that has two waiting runs them quickly, until some are taken on trial. Then both Ps
 * make `switches` switches in ten microseconds, instead of a hundred, and after `takes`
 * the thief looks for work. Returns the length of the next watch. */
static int64_t try_out(unsigned switches, int64_t takes)
{
	static int64_t at;
	int64_t end;

	while (runq_length(from) < 2)
		runq_put_woken(from, &gs[0]);
	for (; !mine->trial.from; at += 10 * US) {
		CHECK(at < 10000000 * US);
		if (look(at))
			break;
		for (int k = 0; k < 100; k++) {
			run_one();
			runq_put_woken(from, &gs[k % 4]);
		}
	}
	for (end = at + takes; at < end; at += 10 * US)
		count_up(&mine->count.switches, switches);
	trial_look(mine, 1000000 * US + at);
	CHECK(!mine->trial.from);
	while (!runq_empty(mine))
		runq_get(mine, &(bool){ false });
	CHECK_EQ(from->trial.watch_ns, mine->trial.watch_ns);
	return from->trial.watch_ns / US;
}

TEST(after_a_trial_that_failed_the_next_comes_later)
{
	set_up();
	CHECK_EQ(try_out(140, 250 * US), 500);
	CHECK_EQ(try_out(110, 250 * US), 1000);
	CHECK_EQ(try_out(110, 250 * US), 2000);
	for (int i = 0; i < 20; i++)
		try_out(90, 250 * US);
	CHECK_EQ(try_out(90, 250 * US), 64000);
	CHECK_EQ(try_out(200, 250 * US), 32000);
}

TEST(after_one_that_helped_it_comes_sooner)
{
	set_up();
	for (int i = 0; i < 20; i++)
		try_out(200, 250 * US);
	CHECK_EQ(try_out(200, 250 * US), 125);
}

TEST(a_trial_that_was_soon_over_has_failed)
{
	set_up();
	CHECK_EQ(try_out(1000, 50 * US), 500);
	CHECK_EQ(try_out(1000, 40 * US), 1000);
}

TEST(runnext_is_left_while_its_p_switches)
{
	set_up();
	for (int i = 0; i < 100; i++) {
		runq_put_next(from, &gs[0]);
		CHECK(!look(i * 10 * US));
		run_one();
	}
	runq_put_next(from, &gs[0]);
	CHECK(!look(2000 * US));
	CHECK(look(2000 * US + STEAL_AFTER_NS) == &gs[0]);
}

TEST(on_one_cpu_everything_is_taken_at_once)
{
	set_up();
	os_many_cpus = false;
	runq_put_woken(from, &gs[0]);
	runq_put_next(from, &gs[1]);
	CHECK(look(0) == &gs[0]);
	CHECK(look(0) == &gs[1]);
}

/* --------------------------------------------------------------- as a whole */

static void answer(goro_chan *ping, goro_chan *pong)
{
	while (goro_chan_recv(ping, NULL))
		goro_chan_send(pong, NULL);
	goro_chan_close(pong);
}

/* Otherwise a goroutine that has a P to itself would seem to do nothing. */
GO_TEST(a_yield_counts_although_there_is_nobody_else)
{
	struct goro_stats before, after;

	goro_stats_read(&before);
	for (int i = 0; i < 1000; i++)
		goro_gosched();
	goro_stats_read(&after);
	CHECK(after.context_switches - before.context_switches >= 1000);
}

GO_TEST(two_that_talk_stay_together)
{
	goro_chan *ping = goro_chan_make(0, 0), *pong = goro_chan_make(0, 0);
	struct goro_stats before, after;
	int turns = SCALED(200000);

	if (TOOL_TSAN || TOOL_ASAN || test_emulated())
		SKIP("a turn may take longer than a thief waits");
	goro_gomaxprocs(2);
	go(answer, ping, pong);
	goro_stats_read(&before);
	for (int i = 0; i < turns; i++) {
		goro_chan_send(ping, NULL);
		goro_chan_recv(pong, NULL);
	}
	goro_stats_read(&after);
	goro_chan_close(ping);
	goro_chan_recv(pong, NULL);
	/* A CPU that is taken from us for a while makes a goroutine wait, and it
	 * is then rightly stolen; without that there would be one in 50 turns. */
	CHECK((int)(after.stolen - before.stolen) < turns / 100);
}

static bool stop;

static void keep_asking(goro_chan *ping, goro_chan *pong, goro_waitgroup *wg)
{
	while (!load_relaxed(&stop)) {
		goro_chan_send(ping, NULL);
		goro_chan_recv(pong, NULL);
	}
	goro_chan_close(ping);
	goro_chan_recv(pong, NULL);
	goro_waitgroup_done(wg);
}

/* Two pairs, two Ps: they do not all stay where they were started. While others have the
 * CPUs neither gets far, so this goes on until both do. */
GO_TEST(pairs_spread)
{
	goro_waitgroup wg = { 0 };
	uint64_t least = 0;

	goro_gomaxprocs(2);
	goro_waitgroup_add(&wg, 2);
	for (int i = 0; i < 2; i++) {
		goro_chan *ping = goro_chan_make(0, 0), *pong = goro_chan_make(0, 0);

		go(answer, ping, pong);
		go(keep_asking, ping, pong, &wg);
	}
	while (least < SCALED(10000)) {
		uint64_t before[2];

		for (int i = 0; i < 2; i++)
			before[i] = load_relaxed(&p_at(i)->count.switches);
		goro_sleep(20 * GORO_MILLISECOND);
		least = UINT64_MAX;
		for (int i = 0; i < 2; i++) {
			uint64_t n = load_relaxed(&p_at(i)->count.switches) - before[i];

			least = n < least ? n : least;
		}
	}
	store_relaxed(&stop, true);
	goro_waitgroup_wait(&wg);
}
