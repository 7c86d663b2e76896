/*
 * sysmon_test.c - the thread that watches stays out of the way of those it watches.
 */
#include <goro.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "await.h"
#include "platform/os.h"
#include "test.h"
#include "thread_named.h"

static int stop;

enum { PS = 1024, HOGS = PS + 100 };

static int64_t used, passed;	/* by sysmon, of the time */

static void compute(void)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		;
}

/* A plain thread: goroutines have to wait for long here. */
static void *watch_sysmon(void *arg)
{
	int tid = *(int *)arg;
	int64_t cpu, began;

	usleep(500000);
	cpu = os_thread_cpu(tid);
	began = os_now();
	while (used < 150 * GORO_MILLISECOND && passed < 5 * GORO_SECOND) {
		usleep(10000);
		used = os_thread_cpu(tid) - cpu;
		passed = os_now() - began;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* With so many Ps a look takes long, and it goes before all who compute. */
GO_TEST_TIMEOUT(leaves_most_of_the_time_to_others, 120)
{
	pthread_t thread;
	int tid;

	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("so many threads take long");
	AWAIT((tid = thread_named("goro-sysmon")));
	CHECK(goro_gomaxprocs(PS) >= 1);
	for (int i = 0; i < HOGS; i++)
		CHECK_EQ(goro_go(compute), 0);
	CHECK_EQ(pthread_create(&thread, NULL, watch_sysmon, &tid), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK(used * 5 < passed * 3);
}
