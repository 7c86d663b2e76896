/*
 * m_end_test.c - threads of ours end one by one, and none while the process ends.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>
#include <time.h>

#include "platform/atomic.h"
#include "await.h"
#include "test.h"
#include "thread_count.h"

enum { ENDS = 20 };

static pthread_key_t key;
static uint32_t destroying, destroyed, exiting;

/* A library's: it takes a while, and is not to run beside the library's exit handler. */
static void destroy(void *arg)
{
	(void)arg;
	fetch_add_seqcst(&destroying, 1);
	for (int i = 0; i < 10; i++) {
		usleep(1000);
		if (load_seqcst(&exiting)) {
			dprintf(2, "a thread ends while exit runs\n");
			_exit(9);
		}
	}
	fetch_add_seqcst(&destroyed, 1);
	fetch_add_seqcst(&destroying, -1);
}

static void clean_up(void)
{
	store_seqcst(&exiting, 1);
	usleep(50000);
}

/* A goroutine that ends locked to its thread takes the thread with it. */
static void end_with_thread(goro_waitgroup *wg)
{
	goro_lock_os_thread();
	CHECK_EQ(pthread_setspecific(key, &key), 0);
	goro_waitgroup_done(wg);
}

static void end_threads(int n)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		go(end_with_thread, &wg);
	goro_waitgroup_wait(&wg);
}

static int end_some(int argc, char **argv)
{
	(void)argc, (void)argv;
	end_threads(ENDS);
	return 0;
}

static int end_some_and_exit(int argc, char **argv)
{
	(void)argc, (void)argv;
	end_threads(ENDS);
	AWAIT(load_seqcst(&destroying) > 0);
	exit(0);
}

/* A library that is initialised when threads have ended already. */
static int late_library(int argc, char **argv)
{
	end_threads(3);
	AWAIT(load_seqcst(&destroyed) == 3);
	CHECK_EQ(atexit(clean_up), 0);
	return end_some_and_exit(argc, argv);
}

static void with_library(void (*main_fn)(void))
{
	CHECK_EQ(pthread_key_create(&key, destroy), 0);
	CHECK_EQ(atexit(clean_up), 0);
	exit(goro_run((int (*)(int, char **))(uintptr_t)main_fn, 0, NULL));
}

static void without_library(void (*main_fn)(void))
{
	CHECK_EQ(pthread_key_create(&key, destroy), 0);
	exit(goro_run((int (*)(int, char **))(uintptr_t)main_fn, 0, NULL));
}

/* An emulator may have none. */
static void need_robust_mutexes(void)
{
	size_t length;
	void *list;

	if (syscall(SYS_get_robust_list, 0, &list, &length) != 0)
		SKIP("no robust mutexes here");
}

static void ends_well(void (*how)(void (*)(void)), int (*main_fn)(int, char **))
{
	struct test_output o;

	need_robust_mutexes();
	for (int i = 0; i < 3; i++) {
		test_run_anew(how, (void (*)(void))(uintptr_t)main_fn, &o);
		CHECK_STR(o.err, "");
		CHECK_EQ(o.status, 0);
	}
}

TEST(no_thread_ends_after_goro_run)
{
	ends_well(with_library, end_some);
}

TEST(no_thread_ends_while_a_goroutine_calls_exit)
{
	ends_well(with_library, end_some_and_exit);
}

TEST(no_thread_ends_beside_the_handler_of_a_library_that_came_late)
{
	ends_well(without_library, late_library);
}

static int exit_at_once(int argc, char **argv)
{
	(void)argc, (void)argv;
	end_threads(1);
	return 0;
}

static void never_done(void *arg)
{
	(void)arg;
	for (;;)
		pause();
}

static void with_endless_destructor(void (*main_fn)(void))
{
	CHECK_EQ(pthread_key_create(&key, never_done), 0);
	exit(goro_run((int (*)(int, char **))(uintptr_t)main_fn, 0, NULL));
}

TEST(a_destructor_without_end_does_not_keep_the_process)
{
	struct test_output o;

	test_run_anew(with_endless_destructor, (void (*)(void))(uintptr_t)exit_at_once, &o);
	CHECK_EQ(o.status, 0);
}

static void exits(void *arg)
{
	(void)arg;
	exit(7);
}

static int wait_for_exit(int argc, char **argv)
{
	(void)argc, (void)argv;
	end_threads(1);
	goro_sleep(10 * GORO_SECOND);
	return 0;
}

static void with_exit_in_destructor(void (*main_fn)(void))
{
	CHECK_EQ(pthread_key_create(&key, exits), 0);
	exit(goro_run((int (*)(int, char **))(uintptr_t)main_fn, 0, NULL));
}

TEST(a_destructor_may_exit)
{
	struct test_output o;

	test_run_anew(with_exit_in_destructor, (void (*)(void))(uintptr_t)wait_for_exit, &o);
	CHECK_EQ(o.status, 7);
}

/* Those that were kept from ending end when there is a goro_run again. */
static int until_all_have_ended(int argc, char **argv)
{
	(void)argc, (void)argv;
	AWAIT(load_seqcst(&destroyed) == ENDS);
	return 0;
}

TEST(threads_end_in_the_next_goro_run)
{
	need_robust_mutexes();
	CHECK_EQ(pthread_key_create(&key, destroy), 0);
	CHECK_EQ(goro_run(end_some, 0, NULL), 0);
	CHECK(load_seqcst(&destroying) == 0);
	CHECK_EQ(goro_run(until_all_have_ended, 0, NULL), 0);
	AWAIT(threads() < ENDS);
}

/* The thread that ends is not in the child, which has not to wait for it. */
static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * GORO_SECOND + t.tv_nsec;
}

GO_TEST(a_forked_child_waits_for_no_thread)
{
	int64_t start;
	int status;
	pid_t pid;

	CHECK_EQ(pthread_key_create(&key, never_done), 0);
	end_threads(1);
	goro_sleep(20 * GORO_MILLISECOND);
	start = now();
	pid = fork();
	if (pid == 0)
		exit(3);
	while (waitpid(pid, &status, 0) < 0)
		;
	CHECK_EQ(WEXITSTATUS(status), 3);
	CHECK(now() - start < GORO_SECOND / 2);
	_exit(0);
}
