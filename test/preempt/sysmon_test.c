/*
 * sysmon_test.c - the thread that watches stays out of the way of those it watches.
 */
#include <goro.h>
#include <pthread.h>
#include <sched.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "await.h"
#include "os.h"
#include "test.h"
#include "thread_named.h"

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
	int tid;

	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	goro_gomaxprocs(1);
	CHECK_EQ(goro_go(yield_on), 0);
	if (CPU_COUNT(&all) < 2)
		SKIP("one CPU");
	if (!(tid = urgent_sysmon()))
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

/* ---------------------------------------------------------------- its alarm */

static const struct itimerspec hourly = { { 3600, 0 }, { 3600, 0 } };

static int timer_of_ours(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(timerfd_settime(fd, 0, &hourly, NULL), 0);
	return fd;
}

static void is_as_it_was(int fd)
{
	struct itimerspec now;

	CHECK_EQ(timerfd_gettime(fd, &now), 0);
	CHECK_EQ(now.it_interval.tv_sec, 3600);
	CHECK(now.it_value.tv_sec > 1800);
}

TEST(an_alarm_is_told_from_a_timer_of_the_programs)
{
	int ours = timer_of_ours(), alarm = os_alarm_make();

	CHECK(os_alarm_set(ours, os_now()) < 0);
	is_as_it_was(ours);
	CHECK(alarm >= 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(os_alarm_set(alarm, INT64_MAX), 0);
		CHECK_EQ(os_alarm_set(alarm, 0), 0);
		os_alarm_sleep(alarm);
	}
}

/* The number of the alarm's descriptor, or another's that is one; -1: there is none. */
static int find_timer(int but, int nor)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	int found = -1;

	while ((e = readdir(dir))) {
		char text[64] = "";
		int fd = atoi(e->d_name);

		if (readlinkat(dirfd(dir), e->d_name, text, sizeof text - 1) > 0 &&
		    strcmp(text, "anon_inode:[timerfd]") == 0 && fd != but && fd != nor)
			found = fd;
	}
	closedir(dir);
	return found;
}

/* Sleeps now and then, so that sysmon has use for an alarm. */
static int await_timer(int but, int nor)
{
	int fd;

	while ((fd = find_timer(but, nor)) < 0)
		goro_sleep(40 * GORO_MILLISECOND);
	return fd;
}

GO_TEST(a_program_may_take_the_number_of_the_alarm)
{
	int ours = timer_of_ours(), alarm;

	goro_gomaxprocs(2);
	alarm = await_timer(ours, -1);
	CHECK_EQ(dup2(ours, alarm), alarm);
	await_timer(ours, alarm);	/* it has got another */
	is_as_it_was(ours);
}

/* ------------------------------------------------------------------ its share */

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
