/*
 * syscall_test.c - announced blocking calls.
 */
/* test: procs */
#include <goro.h>
#include <poll.h>
#include <sys/resource.h>

#include "platform/atomic.h"
#include "await.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "test.h"

/* ------------------------------------------------- calls that return together */

static int in_call;

static void wait_for_end(void *arg)
{
	struct pollfd fd = { .fd = *(int *)arg, .events = POLLIN };

	fetch_add_relaxed(&in_call, 1);
	poll(&fd, 1, -1);
}

static void call_and_be_done(int *fd, goro_waitgroup *wg)
{
	goro_blocking(wait_for_end, fd);
	goro_waitgroup_done(wg);
}

static long switches(void)
{
	struct rusage u;

	CHECK_EQ(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_nvcsw;
}

/* Each thread sleeps when it has no P after its call and when its goroutine has ended;
 * some find a lock held as well. */
GO_TEST(many_calls_that_return_together_take_few_switches_each)
{
	enum { SWITCHES_EACH = 12 };
	int n = SCALED(1000), ends[2];
	goro_waitgroup wg = { 0 };
	long before;

	CHECK_EQ(pipe(ends), 0);
	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		go(call_and_be_done, &ends[0], &wg);
	AWAIT(load_relaxed(&in_call) == n);
	usleep(20000);
	before = switches();
	close(ends[1]);
	goro_waitgroup_wait(&wg);
	printf("%ld switches of %d threads\n", switches() - before, n);
	CHECK(switches() - before <= SWITCHES_EACH * n);
}

/* ------------------------------------------------------------ whose P it was */

static uint64_t handoffs(void)
{
	return load_relaxed(&p_at(0)->count.handoffs);
}

static void read_handoffs(void *n)
{
	*(uint64_t *)n = handoffs();
}

static void nothing(void)
{
}

/* sysmon would take it, too, but later. The goroutine may have run before the call, where
 * this one is preempted. */
GO_TEST(a_call_that_blocks_gives_its_p_away_at_once_if_others_wait)
{
	int given = 0;

	goro_gomaxprocs(1);
	for (int i = 0; i < 50; i++) {
		uint64_t before = handoffs(), within;

		go(nothing);
		goro_blocking(read_handoffs, &within);
		given += within > before;
	}
	CHECK(given >= 25);
}

/* The only P is busy when it comes back. */
GO_TEST(who_is_back_from_a_call_goes_before_those_who_had_a_slice)
{
	goro_waitgroup wg = { 0 };
	size_t fresh;
	int ends[2];

	goro_gomaxprocs(1);
	CHECK_EQ(pipe(ends), 0);
	goro_waitgroup_add(&wg, 1);
	go(call_and_be_done, &ends[0], &wg);
	AWAIT(load_relaxed(&in_call) == 1);
	goro_preempt_disable();
	close(ends[1]);
	SPIN_UNTIL(globq_has_bound());
	fresh = globq_fresh();
	goro_preempt_enable();
	CHECK_EQ(fresh, 1u);
	goro_waitgroup_wait(&wg);
}
