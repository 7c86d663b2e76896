/*
 * park_test.c - a goroutine that is made ready while a P is idle: a thread is woken for
 * it.
 *
 * Looked at right after the call that made it ready. sysmon, and thieves, would find the
 * goroutine before long, so that a wake that is missing only makes a program slow.
 */
#include <goro.h>
#include <pthread.h>

#include "await.h"
#include "platform/cpus.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "test.h"

enum { ROUNDS = 50 };

static struct g *waiting;	/* the goroutine that waits; atomic */
static int back;		/* times that it went on; atomic */
static void (*when_back)(void);	/* what it does then, before it leaves the runtime */

static void commit(struct m *mp, struct g *gp)
{
	(void)mp;
	store_release(&waiting, gp);
}

static void wait_here(void)
{
	struct m *mp = rt_enter_free();

	mp = park(mp, commit, NULL, WAIT_IO);
	if (when_back)
		when_back();
	rt_exit_free(mp);
	fetch_add_seqcst(&back, 1);
}

static uint64_t wakes(void)
{
	uint64_t n = 0;

	for (int i = 0; i < sched.all_p_n; i++)
		n += load_relaxed(&p_at(i)->count.thread_wakeups);
	return n;
}

typedef void make_ready(struct m *mp, struct g *gp);

/* Makes the waiting goroutine ready. False: another thread looks for work already, so
 * that none need be woken. */
static bool wakes_for_it(make_ready *ready)
{
	struct m *mp = rt_enter();
	uint64_t before = wakes();
	bool can_tell = wake_wanted();

	ready(mp, load_acquire(&waiting));
	CHECK(!can_tell || wakes() > before || !wake_wanted());
	rt_exit(mp);
	return can_tell;
}

/* Two Ps, of which one is idle, and a CPU for each: else no thread is woken. */
static void begin(void)
{
	if (cpus_affinity() < 2)
		SKIP("no CPU for another thread");
	goro_gomaxprocs(2);
	AWAIT(runtime_is_whole());
}

static void start_waiter(void)
{
	store_relaxed(&waiting, NULL);
	go(wait_here);
	AWAIT(load_acquire(&waiting));
	AWAIT(wake_wanted());
}

static void check_wakes(make_ready *ready)
{
	begin();
	for (int told = 0, i = 1; told < ROUNDS; i++) {
		start_waiter();
		told += wakes_for_it(ready);
		AWAIT(load_seqcst(&back) == i);
	}
}

GO_TEST(who_is_next_here_has_a_thread_woken)
{
	check_wakes(g_ready);
}

GO_TEST(who_is_queued_in_order_has_a_thread_woken)
{
	check_wakes(g_ready_in_order);
}

static void all_quietly_then_wake(struct m *mp, struct g *gp)
{
	g_ready_quietly(mp, gp);
	wake();
}

GO_TEST(who_is_queued_quietly_has_one_by_the_wake_that_follows)
{
	check_wakes(all_quietly_then_wake);
}

static void quietly_before_the_world_starts(struct m *mp, struct g *gp)
{
	g_ready_quietly(mp, gp);
	mp = world_stop(mp);
	world_start(mp, 2);
}

GO_TEST(who_is_queued_when_the_world_starts_has_a_thread_woken)
{
	check_wakes(quietly_before_the_world_starts);
}

/* ------------------------------------------------------------ by a yield */

static struct {
	uint64_t wakes;
	bool can_tell;
} before_yield;

/* The goroutine that yielded is in the global queue, and this P goes on with another. */
static void check_woken(void)
{
	CHECK(!before_yield.can_tell || wakes() > before_yield.wakes || !wake_wanted());
}

GO_TEST(who_yields_to_all_has_a_thread_woken)
{
	begin();
	when_back = check_woken;
	for (int told = 0, i = 1; told < ROUNDS; i++) {
		struct m *mp;

		start_waiter();
		mp = rt_enter_free();
		before_yield.can_tell = wake_wanted();
		before_yield.wakes = wakes();
		told += before_yield.can_tell;
		g_ready_quietly(mp, load_acquire(&waiting));
		mp = sched_yield_global(mp);
		rt_exit_free(mp);
		AWAIT(load_seqcst(&back) == i);
	}
}

/* ------------------------------------------------------------- without a P */

static int told, over;

static void *ready_in_thread(void *arg)
{
	(void)arg;
	if (wakes_for_it(g_ready_in_order))
		fetch_add_seqcst(&told, 1);
	store_release(&over, 1);
	return NULL;
}

/* The caller of a plain thread has no P to queue it on. */
GO_TEST(who_is_made_ready_by_a_plain_thread_has_a_thread_woken)
{
	begin();
	for (int i = 1; load_seqcst(&told) < ROUNDS; i++) {
		pthread_t t;

		start_waiter();
		store_relaxed(&over, 0);
		CHECK_EQ(pthread_create(&t, NULL, ready_in_thread, NULL), 0);
		SPIN_UNTIL(load_acquire(&over));
		pthread_join(t, NULL);
		AWAIT(load_seqcst(&back) == i);
	}
}
