/*
 * sysmon_test.c - the thread that watches stays out of the way of those it watches.
 */
#include <dirent.h>
#include <goro.h>
#include <sched.h>

#include "test.h"

/* The thread of ours with a real-time policy; 0: there is none. */
static int urgent_thread(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	int found = 0;

	while ((e = readdir(dir))) {
		int id = atoi(e->d_name);

		if (id != 0 && sched_getscheduler(id) == SCHED_RR)
			found = id;
	}
	closedir(dir);
	return found;
}

/* The CPU that a thread is on, or was on when it went to sleep. */
static int cpu_of(int tid)
{
	char path[64], text[1024] = "", *at;
	FILE *f;
	int cpu;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	CHECK(f && fgets(text, sizeof text, f));
	fclose(f);
	at = strrchr(text, ')');	/* field 2; the CPU is field 39 */
	for (int field = 2; at && field < 39; field++)
		at = strchr(at + 1, ' ');
	CHECK(at && sscanf(at, "%d", &cpu) == 1);
	return cpu;
}

static int stop;

static void yield_on(void)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		goro_gosched();
}

static void put_on(int tid, const cpu_set_t *set)
{
	CHECK_EQ(sched_setaffinity(tid, sizeof *set, set), 0);
}

GO_TEST(leaves_the_cpu_of_a_p)
{
	cpu_set_t all, here, after;
	int tid = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	goro_gomaxprocs(1);
	CHECK_EQ(goro_go(yield_on), 0);
	if (CPU_COUNT(&all) < 2)
		SKIP("one CPU");
	for (int64_t end = goro_now() + GORO_SECOND; !tid && goro_now() < end; tid = urgent_thread())
		goro_gosched();
	if (!tid)
		SKIP("sysmon may not go before others");
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	put_on(0, &here);		/* this thread, which has the P */
	put_on(tid, &here);
	put_on(tid, &all);
	while (CPU_ISSET(cpu_of(tid), &here))
		goro_gosched();
	do {				/* nor is it bound to where it is now */
		goro_gosched();
		CHECK_EQ(sched_getaffinity(tid, sizeof after, &after), 0);
	} while (!CPU_EQUAL(&after, &all));
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	put_on(0, &all);
}
