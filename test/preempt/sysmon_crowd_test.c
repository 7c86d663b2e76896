/*
 * sysmon_crowd_test.c - where CPUs are short, the threads that watch leave them to those
 * they watch, though they may go before all.
 */
/* test: serial */
#include <dlfcn.h>
#include <goro.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "platform/os.h"
#include "test.h"
#include "thread_named.h"

enum { PROGRAMS = 32, HOGS = 4 };

struct use {
	int64_t sysmon, all;	/* CPU time */
};

static struct use *use;		/* shared; of this program */

static void compute(void)
{
	for (;;)
		__asm__ volatile("");
}

/* For whom those are to be stopped. */
static void sleep_on(void)
{
	for (;;)
		goro_sleep(10 * GORO_MILLISECOND);
}

/* A plain thread: goroutines have to wait for long here. It takes sysmon a while to find
 * out. */
static void *watch_sysmon(void *arg)
{
	int tid = *(int *)arg;
	struct use before;

	sleep(1);
	before = (struct use){ os_thread_cpu(tid), os_process_cpu() };
	sleep(2);
	*use = (struct use){ os_thread_cpu(tid) - before.sysmon, os_process_cpu() - before.all };
	_exit(0);
}

static int program(int argc, char **argv)
{
	pthread_t thread;
	int tid;

	(void)argc;
	(void)argv;
	AWAIT((tid = thread_named("goro-sysmon")));
	goro_gomaxprocs(2);
	CHECK_EQ(pthread_create(&thread, NULL, watch_sysmon, &tid), 0);
	CHECK_EQ(goro_go(sleep_on), 0);
	for (int i = 0; i < HOGS; i++)
		CHECK_EQ(goro_go(compute), 0);
	return pthread_join(thread, NULL);
}

/* It is an eighth, and where each looks as often as it would alone it is half. */
TEST(take_a_small_part_together)
{
	struct use *each, sum = { 0, 0 };
	int status;

	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("so many processes take long");
	each = mmap(NULL, PROGRAMS * sizeof *each, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(each != MAP_FAILED);
	for (int i = 0; i < PROGRAMS; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		use = &each[i];
		if (pid == 0)
			_exit(goro_run(program, 0, NULL));
	}
	for (int i = 0; i < PROGRAMS; i++)
		CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (int i = 0; i < PROGRAMS; i++) {
		sum.sysmon += each[i].sysmon;
		sum.all += each[i].all;
	}
	dprintf(1, "%lld of %lld ms\n", (long long)sum.sysmon / 1000000, (long long)sum.all / 1000000);
	CHECK(sum.sysmon * 4 < sum.all);
}

static bool libc_was_asked;

#if !TOOL_TSAN		/* which asks before it is ready to be asked */
/* In libc's place, which opens a file to answer that, and closes it. */
long sysconf(int name)
{
	long (*libc)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");

	libc_was_asked |= name == _SC_NPROCESSORS_ONLN;
	return libc(name);
}
#endif

/* To find out takes no descriptor from a program that counts on having none left, nor for
 * a moment. */
TEST(a_look_at_all_programs_takes_no_descriptor)
{
	struct rlimit r;
	int next;

	libc_was_asked = false;
	CHECK(os_cpus_crowded(0));	/* the caller runs */
	CHECK(!libc_was_asked);
	CHECK((next = dup(0)) >= 0);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = (rlim_t)next + 1;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
	CHECK(os_cpus_crowded(0));
}
