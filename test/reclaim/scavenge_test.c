/*
 * scavenge_test.c - giving memory back delays no goroutine. (That it is given back:
 * g_test.c.)
 */
#define _GNU_SOURCE
#include <goro.h>
#include <sched.h>

#include "await.h"
#include "platform/os.h"
#include "sched/runtime.h"
#include "test.h"
#include "thread_named.h"

static uint64_t cached(void)
{
	struct goro_stats s;

	goro_stats_read(&s);
	return s.stack_bytes_cached;
}

static void wait_until_closed(goro_chan *until, goro_waitgroup *ended)
{
	goro_chan_recv(until, NULL);
	goro_waitgroup_done(ended);
}

static void start_and_end(int n)
{
	goro_chan *until = goro_chan_of(char, 0);
	goro_waitgroup ended = { 0 };

	goro_waitgroup_add(&ended, n);
	for (int i = 0; i < n; i++)
		CHECK_EQ(go(wait_until_closed, until, &ended), 0);
	goro_chan_close(until);
	goro_waitgroup_wait(&ended);
	goro_chan_unref(until);
}

static int own_threads(void)
{
	int n;

	lock_acquire(&sched.lock);
	n = sched.runtime_threads;
	lock_release(&sched.lock);
	return n;
}

/* A goroutine that wakes where others compute depends on sysmon, and sysmon on its
 * priority. */
GO_TEST_TIMEOUT(sysmon_stays_urgent_while_stacks_are_given_back, 60)
{
	int n = SCALED(40000), sysmon;
	uint64_t most;

	AWAIT(own_threads() >= 2);
	if (!(sysmon = urgent_sysmon()))
		SKIP("sysmon may not go before others here");
	start_and_end(n);
	most = cached();
	while (cached() > most - most / 20)
		for (int i = 0; i < 100; i++)
			CHECK_EQ(sched_getscheduler(sysmon), SCHED_RR);
}

/* The scavenger's thread is there when there is something to do, and does it again and
 * again. */
GO_TEST_TIMEOUT(a_thread_of_its_own_gives_them_back, 60)
{
	AWAIT(own_threads() >= 2);
	CHECK_EQ(own_threads(), 2);
	goro_gomaxprocs(2);	/* each P keeps some for itself */
	for (int round = 0; round < 3; round++) {
		start_and_end(2000);
		while (cached() > 2 * (uint64_t)(P_GFREE_MAX + 1) * STACK_DEFAULT_BYTES)
			goro_sleep(50 * GORO_MILLISECOND);	/* all at once */
		CHECK_EQ(own_threads(), 3);
	}
}

/* With this many stacks a tenth of them each second would take several times as much. */
GO_TEST_TIMEOUT(beside_a_program_that_runs_it_takes_a_hundredth_of_a_cpu, 60)
{
	int scavenger;
	int64_t began, took, before;

	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("sanitizers allow too few goroutines");
	start_and_end(300000);
	while (!(scavenger = thread_named("goro-scavenge")))
		goro_gosched();
	began = goro_now();
	before = os_thread_cpu(scavenger);
	while ((took = os_thread_cpu(scavenger) - before) < 5 * GORO_MILLISECOND)
		for (int i = 0; i < 1000; i++)
			goro_gosched();
	CHECK(goro_now() - began > 50 * took);
}
