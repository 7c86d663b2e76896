/*
 * runq_test.c - the run queues: nothing lost, nothing doubled, half is taken.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "await.h"
#include "base/debug.h"
#include "platform/os.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "test.h"

#define CAP GORO_RUNQ_CAP

static struct p *make_p(int id)
{
	struct p *pp = aligned_alloc(CACHE_LINE, (sizeof *pp + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);

	memset(pp, 0, sizeof *pp);
	pp->id = id;
	pp->fair.in = FAIR_PERIOD_PICKS;
	sched.gomaxprocs = 4;	/* so that the queues are shared */
	return pp;
}

static struct g *make_gs(size_t n)
{
	struct g *gs = calloc(n, sizeof *gs);

	for (size_t i = 0; i < n; i++)
		gs[i] = (struct g){ .id = i + 1, .status = G_RUNNABLE };
	return gs;
}

static struct g *get(struct p *pp)
{
	bool inherit;

	return runq_get(pp, &inherit);
}

TEST(started_run_newest_first)
{
	struct p *pp = make_p(0);
	struct g *gs = make_gs(3);

	for (int i = 0; i < 3; i++)
		runq_put_started(pp, &gs[i]);
	for (int i = 2; i >= 0; i--)
		CHECK(get(pp) == &gs[i]);
	CHECK(get(pp) == NULL);
}

TEST(woken_run_in_order)
{
	struct p *pp = make_p(0);
	struct g *gs = make_gs(3);

	for (int i = 0; i < 3; i++)
		runq_put_woken(pp, &gs[i]);
	for (int i = 0; i < 3; i++)
		CHECK(get(pp) == &gs[i]);
	CHECK(get(pp) == NULL);
}

TEST(next_runs_first_and_inherits)
{
	struct p *pp = make_p(0);
	struct g *gs = make_gs(3);
	bool inherit;

	runq_put_woken(pp, &gs[0]);
	runq_put_next(pp, &gs[1]);
	runq_put_next(pp, &gs[2]);	/* kicks the other one to the queue */
	CHECK(runq_get(pp, &inherit) == &gs[2]);
	CHECK(inherit);
	CHECK(runq_get(pp, &inherit) == &gs[0]);
	CHECK(!inherit);
	CHECK(get(pp) == &gs[1]);
}

TEST(overflow_moves_the_older_half)
{
	struct p *pp = make_p(0);
	struct g *gs = make_gs(CAP + 1);

	for (int i = 0; i <= CAP; i++)
		runq_put_started(pp, &gs[i]);
	CHECK_EQ(globq_length(), CAP / 2);
	CHECK_EQ(globq.started.n, CAP / 2);
	CHECK_EQ(runq_length(pp), CAP / 2 + 1);
}

/* In the global queue the newcomer stands behind those that were woken before it. */
TEST(overflow_keeps_the_order_of_the_woken)
{
	struct p *pp = make_p(0), *other = make_p(1);
	struct g *gs = make_gs(CAP + 1);

	for (int i = 0; i <= CAP; i++)
		runq_put_woken(pp, &gs[i]);
	sched.gomaxprocs = 1000;	/* each takes one, for itself */
	lock_acquire(&sched.lock);
	for (int i = 0; i < CAP / 2; i++)
		CHECK(globq_get(other, false) == &gs[i]);
	CHECK(globq_get(other, false) == &gs[CAP]);
	CHECK(globq_get(other, false) == NULL);
	lock_release(&sched.lock);
}

/* By the clock, or when there is nothing else; in their turn then, and in order. */
TEST(overflowed_ones_wait_for_an_idle_p)
{
	struct p *pp = make_p(0), *other = make_p(1);
	struct g *gs = make_gs(CAP + 2);

	for (int i = 0; i <= CAP; i++)
		runq_put_started(pp, &gs[i]);
	lock_acquire(&sched.lock);
	CHECK(globq_get(other, false) == NULL);
	globq_put(&gs[CAP + 1]);
	CHECK(globq_get(other, false) == &gs[CAP + 1]);
	globq_put(&gs[CAP + 1]);
	CHECK(globq_get(other, true) == &gs[0]);
	lock_release(&sched.lock);
	for (size_t i = 1, n = runq_length(other); i <= n; i++)
		CHECK(get(other) == &gs[i]);
}

/* What the P picks next, from its own queues or the global one. */
static struct g *get_any(struct p *pp)
{
	struct g *gp = get(pp);

	if (gp)
		return gp;
	lock_acquire(&sched.lock);
	gp = globq_get(pp, true);
	lock_release(&sched.lock);
	return gp;
}

TEST(many_that_are_woken_together_run_in_order)
{
	struct p *pp = make_p(0);
	struct g *gs = make_gs(5 * CAP + 1);

	for (int i = 0; i < 5 * CAP; i++)
		runq_put_in_order(pp, &gs[i]);
	/* a yield: no rotation of the full queue */
	runq_put_woken(pp, &gs[5 * CAP]);
	for (int i = 0; i <= 5 * CAP; i++)
		CHECK(get_any(pp) == &gs[i]);
	CHECK(get_any(pp) == NULL);
}

/* Others go on in a queue that is always full: those for whom there was no room have
 * their turn. */
TEST(who_comes_after_a_full_queue_is_not_left_there)
{
	struct p *pp = make_p(0);
	struct g *gs = make_gs(CAP + 3);
	int came = 0;

	for (int i = 0; i < CAP + 3; i++)
		runq_put_in_order(pp, &gs[i]);
	for (int i = 0; came < 3; i++) {
		struct g *gp = get_any(pp);

		CHECK(i < 2 * CAP + 4 * FAIR_PERIOD_PICKS);
		if (gp == &gs[CAP + came])
			came++;
		else
			runq_put_in_order(pp, gp);
	}
}

TEST(steal_takes_half)
{
	struct p *pp = make_p(0), *thief = make_p(1);
	struct g *gs = make_gs(CAP);

	for (int i = 0; i < CAP; i++)
		runq_put_started(pp, &gs[i]);
	CHECK(runq_steal(thief, pp, true, true, false, 0) == &gs[0]);
	CHECK_EQ(runq_length(pp), CAP / 2);
	CHECK_EQ(runq_length(thief), CAP / 2 - 1);
	CHECK_EQ(thief->count.stolen, CAP / 2);
}

TEST(next_is_stolen_last)
{
	struct p *pp = make_p(0), *thief = make_p(1);
	struct g *gs = make_gs(2);

	runq_put_next(pp, &gs[0]);
	CHECK(runq_steal(thief, pp, true, true, false, 0) == NULL);
	runq_put_woken(pp, &gs[1]);
	CHECK(runq_steal(thief, pp, true, true, true, 0) == &gs[1]);
	CHECK(runq_steal(thief, pp, true, true, true, 0) == &gs[0]);
	CHECK(runq_empty(pp));
}

TEST(fair_pick_reaches_the_oldest)
{
	struct p *pp = make_p(0);
	struct g *gs = make_gs(1000);
	int picks = 0;

	runq_put_started(pp, &gs[0]);
	runq_put_woken(pp, &gs[1]);
	for (int i = 2;; i++) {		/* newest first would run gs[i] for ever */
		struct g *gp;

		sched.coarse_now += OLDEST_STARTED_NS;

		runq_put_started(pp, &gs[i % 998 + 2]);
		gp = get(pp);
		picks += gp == &gs[0] || gp == &gs[1];
		if (picks == 2)
			break;
		CHECK(i < 4 * FAIR_PERIOD_PICKS);
	}
}

/* After every second preemption a woken goroutine runs before the started ones; the other
 * turns come when they would have. */
TEST(who_is_woken_comes_after_one_that_was_stopped)
{
	struct p *pp = make_p(0);
	struct g *started = make_gs(3), *woken = make_gs(2);	/* fewer than CAP */

	for (int i = 0; i < 3; i++)
		runq_put_started(pp, &started[i]);
	for (int i = 0; i < 2; i++)
		runq_put_woken(pp, &woken[i]);
	pp->fair.in = 10;
	runq_stopped(pp);
	CHECK(get(pp) == &woken[0]);
	CHECK_EQ(pp->fair.in, 9);
	runq_stopped(pp);
	CHECK(get(pp) == &started[2]);
	CHECK_EQ(pp->fair.in, 8);
	CHECK(get(pp) == &started[1]);
	runq_stopped(pp);
	CHECK(get(pp) == &woken[1]);
	CHECK_EQ(pp->fair.in, 6);
	CHECK(get(pp) == &started[0]);
	CHECK_EQ(pp->fair.turn, 0);
}

/* One that never stops making itself ready, for a period: how many came from
 * elsewhere? */
static int picked_from_global(struct p *pp, struct g *busy)
{
	int others = 0;

	for (int i = 0; i < FAIR_PERIOD_PICKS; i++) {
		runq_put_woken(pp, busy);
		while (get(pp) != busy)
			others++;
	}
	return others;
}

TEST(the_global_queue_has_its_turn_unless_it_was_served)
{
	struct p *pp = make_p(0);
	struct g *gs = make_gs(10);

	lock_acquire(&sched.lock);
	for (int i = 1; i < 10; i++)
		globq_put(&gs[i]);
	lock_release(&sched.lock);
	pp->fair.global_served = true;
	CHECK_EQ(picked_from_global(pp, &gs[0]), 0);
	CHECK(picked_from_global(pp, &gs[0]) > 0);
}

/* Picks from the global queue until the first of others comes, all of which are fresh. */
static int fresh_before(struct p *pp, const struct g *other)
{
	int n = 0;

	while (globq_get(pp, true) != other)
		n++;
	return n;
}

/* Those that just came go before those that had a slice, but not for ever: not the first
 * time, and not later. */
TEST(the_fresh_go_first_and_keep_the_others_waiting_for_a_while_only)
{
	enum { OTHERS = 4, FRESH = 200 };
	struct p *pp = make_p(0);
	struct g *others = make_gs(OTHERS), *fresh = make_gs(FRESH);

	sched.gomaxprocs = 1000;	/* one at a time */
	lock_acquire(&sched.lock);
	for (int i = 0; i < OTHERS; i++)
		globq_put(&others[i]);
	for (int i = 0; i < FRESH; i++)
		globq_put_fresh(&fresh[i]);
	for (int i = 0; i < OTHERS; i++) {
		int n = fresh_before(pp, &others[i]);

		CHECK(n >= 2 && n < FRESH / OTHERS);
	}
	lock_release(&sched.lock);
}

/* Picks until one comes from the global queue, of a pair that always has the other next;
 * 0: none did in three periods. */
static int picks_of_pair(struct p *pp, struct g *pair)
{
	for (int i = 1; i <= 3 * FAIR_PERIOD_PICKS; i++) {
		runq_put_next(pp, pair);
		if (get(pp) != pair)
			return i;
	}
	return 0;
}

TEST(who_had_a_slice_does_not_interrupt_one_that_goes_on)
{
	struct p *pp = make_p(0);
	struct g *gs = make_gs(3);

	sched.coarse_now = seconds(1);
	lock_acquire(&sched.lock);
	globq_put(&gs[1]);
	lock_release(&sched.lock);
	runq_stopped(pp);
	CHECK_EQ(picks_of_pair(pp, &gs[0]), 0);
	sched.coarse_now += SLICE_NS;
	CHECK(picks_of_pair(pp, &gs[0]) > 0);
}

/* A fresh one does interrupt it. */
TEST(who_just_came_is_not_kept_waiting_by_a_slice_that_goes_on)
{
	struct p *pp = make_p(0);
	struct g *gs = make_gs(2);

	sched.coarse_now = seconds(1);
	lock_acquire(&sched.lock);
	globq_put_fresh(&gs[1]);
	lock_release(&sched.lock);
	runq_stopped(pp);
	CHECK(picks_of_pair(pp, &gs[0]) > 0);
}

static struct g *get_global(struct p *pp)
{
	struct g *gp;

	lock_acquire(&sched.lock);
	gp = globq_get(pp, true);
	lock_release(&sched.lock);
	return gp;
}

static struct g *fresh_or_older(struct p *pp, struct g *gs)
{
	struct m mp = { 0 };

	gs[0].locked_m = &mp;
	lock_acquire(&sched.lock);
	globq_put(&gs[0]);
	globq_put_fresh(&gs[1]);
	lock_release(&sched.lock);
	return get_global(pp);
}

TEST(who_just_came_goes_before_others)
{
	struct g *gs = make_gs(2);

	CHECK(fresh_or_older(make_p(0), gs) == &gs[1]);
}

TEST(they_go_in_order_where_that_is_off)
{
	struct g *gs = make_gs(2);

	debug.nofresh = 1;
	CHECK(fresh_or_older(make_p(0), gs) == &gs[0]);
}

/* One owner, several thieves: every goroutine comes out exactly once. */
enum { THIEVES = 3 };
static struct p *victim;
static struct g *all;
static uint8_t *times_seen;
static int finished;

static void saw(struct g *gp)
{
	fetch_add_relaxed(&times_seen[gp->id - 1], 1);
}

static void drain(struct p *pp)
{
	struct g *gp;

	while ((gp = get(pp)))
		saw(gp);
}

static void *thief_thread(void *arg)
{
	struct p *mine = arg;

	while (!load_acquire(&finished)) {
		struct g *gp = runq_steal(mine, victim, true, true, true, 0);

		if (gp)
			saw(gp);
		drain(mine);
	}
	return NULL;
}

static void owner_puts(unsigned kind, struct g *gp)
{
	switch (kind % 4) {
	case 0: case 1: runq_put_started(victim, gp); break;
	case 2: runq_put_woken(victim, gp); break;
	case 3: runq_put_next(victim, gp); break;
	}
}

static void steal_and_count(void)
{
	struct p *thief[THIEVES];
	pthread_t t[THIEVES];
	unsigned rnd = 12345;
	size_t n = SCALED(2000000);

	victim = make_p(0);
	all = make_gs(n);
	times_seen = calloc(n, 1);
	for (int i = 0; i < THIEVES; i++)
		thief[i] = make_p(i + 1);
	for (int i = 0; i < THIEVES; i++)
		pthread_create(&t[i], NULL, thief_thread, thief[i]);
	for (size_t i = 0; i < n;) {
		struct g *gp;

		rnd = rnd * 1103515245 + 12345;
		for (unsigned k = 0; k <= (rnd >> 16) % 8 && i < n; k++)
			owner_puts(rnd >> (20 + k % 4), &all[i++]);
		for (unsigned k = 0; k < (rnd >> 24) % 8; k++)
			if ((gp = get(victim)))
				saw(gp);
	}
	drain(victim);
	while (!runq_empty(victim))
		drain(victim);
	store_release(&finished, 1);
	for (int i = 0; i < THIEVES; i++)
		pthread_join(t[i], NULL);
	lock_acquire(&sched.lock);
	while (globq_length() > 0)
		saw(globq_get(victim, true));
	lock_release(&sched.lock);
	drain(victim);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(times_seen[i], 1);
}

/* With membarrier thieves make the owner pass a barrier. */
TEST_TIMEOUT(no_goroutine_lost_or_doubled_under_stealing, 120)
{
	os_init();
	if (!os_membarrier_works)
		SKIP("no membarrier");
	steal_and_count();
}

/* Without, the owner has a fence at each take. */
TEST_TIMEOUT(nor_without_membarrier, 120)
{
	os_membarrier_works = false;
	steal_and_count();
}

/* A claim that nobody follows up: the owner takes what is claimed all the same. */
TEST(the_owner_takes_what_is_claimed)
{
	struct p *pp = make_p(0), *thief = make_p(1);
	struct g *gs = make_gs(4);

	for (int i = 0; i < 4; i++)
		runq_put_started(pp, &gs[i]);
	pp->started.word = d_next(pp->started.word, 2, d_head(pp->started.word));
	CHECK(runq_steal(thief, pp, true, true, true, 0) == NULL);	/* another's */
	for (int i = 3; i >= 0; i--)
		CHECK(get(pp) == &gs[i]);
	CHECK(get(pp) == NULL);
	CHECK(runq_empty(pp));
}

TEST(a_claim_that_is_stale_is_void)
{
	struct p *pp = make_p(0), *thief = make_p(1);
	struct g *gs = make_gs(4);

	for (int i = 0; i < 4; i++)
		runq_put_started(pp, &gs[i]);
	pp->started.word = d_next(pp->started.word, 1, d_head(pp->started.word));
	CHECK(runq_look(pp).claim == pp->started.word);
	CHECK(runq_steal(thief, pp, true, false, false, pp->started.word) == &gs[0]);
	CHECK(get(thief) == &gs[1]);
	CHECK_EQ(runq_look(pp).claim, 0);
	CHECK_EQ(runq_length(pp), 2);
}
