/*
 * m_test.c - the runtime's threads have room for the program's thread-local
 * variables, and come in no greater number than needed.
 */
/* test: procs */
#include <dirent.h>
#include <goro.h>
#include <sched.h>
#include <stdlib.h>

#include "await.h"
#include "sched/runtime.h"
#include "test.h"
#include "thread_count.h"

/* Much more than a thread's stack: it is taken from the same mapping. */
static __thread char large[3 << 20];

__attribute__((noinline)) static char *my_large(void)
{
	char *p = large;

	__asm__ volatile("" : "+r"(p));
	return p;
}

static void use_large(goro_waitgroup *wg)
{
	char *p = my_large();

	for (size_t i = 0; i < sizeof large; i += 4096)
		p[i] = 1;
	goro_waitgroup_done(wg);
}

GO_TEST(threads_have_room_for_large_thread_local_variables)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 20);
	for (int i = 0; i < 20; i++)
		go(use_large, &wg);
	goro_waitgroup_wait(&wg);
}

static void yield_some(goro_waitgroup *wg)
{
	for (int i = 0; i < 10; i++)
		goro_gosched();
	goro_waitgroup_done(wg);
}

GO_TEST(no_more_threads_are_made_than_there_are_ps_and_a_few)
{
	for (int round = 0; round < 20; round++) {
		goro_waitgroup wg = { 0 };

		goro_waitgroup_add(&wg, 200);
		for (int i = 0; i < 200; i++)
			go(yield_some, &wg);
		goro_waitgroup_wait(&wg);
	}
	CHECK(threads() <= goro_gomaxprocs(0) + 4);
}

/* ------------------------------------------------------------------ urgency */

static int urgent_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int n = 0;

	CHECK(d);
	while ((e = readdir(d)))
		n += sched_getscheduler(atoi(e->d_name)) == SCHED_RR && atoi(e->d_name) != 0;
	closedir(d);
	return n;
}

static int expected;

static int count_urgent(int argc, char **argv)
{
	(void)argc, (void)argv;
	AWAIT(urgent_threads() == expected);
	goro_sleep(20 * GORO_MILLISECOND);	/* it stays like that */
	CHECK_EQ(urgent_threads(), expected);
	return 0;
}

static bool may_be_urgent(void)
{
	struct sched_param one = { .sched_priority = 1 }, none = { 0 };

	return sched_setscheduler(0, SCHED_RR, &one) == 0 &&
	       sched_setscheduler(0, SCHED_OTHER, &none) == 0;
}

TEST(one_thread_goes_before_all_others_if_it_may)
{
	expected = may_be_urgent();
	CHECK_EQ(goro_run(count_urgent, 0, NULL), 0);
}

TEST(none_does_if_it_is_not_to)
{
	setenv("GORO_DEBUG", "nourgent=1", 1);
	expected = 0;
	CHECK_EQ(goro_run(count_urgent, 0, NULL), 0);
}
