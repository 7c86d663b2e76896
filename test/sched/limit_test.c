/*
 * limit_test.c - the end of a program whose goroutines block in more calls than
 * there may be threads: the report says how many, and where.
 */
#include <goro.h>
#include <sys/resource.h>
#include <time.h>

#include "await.h"
#include "test.h"

static struct test_output o;

GO_TEST(the_limit_is_gos_unless_set)
{
	CHECK_EQ(goro_set_max_threads(500), 10000);
	CHECK_EQ(goro_set_max_threads(10000), 500);
}

SEEN static void sleep_long(void *arg)
{
	struct timespec t = { 100, 0 };

	(void)arg;
	nanosleep(&t, NULL);
	NO_TAIL_CALL();
}

SEEN static void wait_unannounced(void)
{
	sleep_long(NULL);
	NO_TAIL_CALL();
}

SEEN static void wait_announced(void)
{
	goro_blocking(sleep_long, NULL);
	NO_TAIL_CALL();
}

static int block(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < 40; i++) {
		if (argc == 0)
			go(wait_unannounced);
		go(wait_announced);
	}
	goro_sleep(seconds(100));
	return 0;
}

/* The number before the text, in what the child said. */
static int number_before(const char *text)
{
	const char *at = strstr(o.err, text);

	CHECK(at != NULL);
	while (at > o.err && at[-1] >= '0' && at[-1] <= '9')
		at--;
	return atoi(at);
}

static void report_is_whole(void)
{
	int blocked = number_before(" goroutines are in blocking calls\n");

	CHECK_EQ(o.status, 2);
	CHECK(blocked >= 5 && blocked <= 30);
	CHECK(number_before(" of them here:\n") > 0);
	CHECK_CONTAINS(o.err, "sleep_long(");
	CHECK_CONTAINS(o.err, "wait_announced(");
	CHECK_CONTAINS(o.err, "limit_test.c:");
}

static void child_at_limit(void)
{
	goro_set_max_threads(30);
	exit(goro_run(block, 0, NULL));
}

TEST(at_the_limit_the_report_says_who_blocks_and_where)
{
	test_run_child(child_at_limit, &o);
	report_is_whole();
	CHECK_CONTAINS(o.err, "wait_unannounced(");
	CHECK(strncmp(o.err, "runtime: program exceeds 30-thread limit\n", 41) == 0);
	CHECK_CONTAINS(o.err, "fatal error: thread exhaustion\n");
}

SEEN static void wait_locked(void)
{
	goro_lock_os_thread();
	goro_sleep(seconds(100));
	NO_TAIL_CALL();
}

static int lock_many(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (int i = 0; i < 40; i++)
		go(wait_locked);
	goro_sleep(seconds(100));
	return 0;
}

static void child_of_locked(void)
{
	goro_set_max_threads(30);
	exit(goro_run(lock_many, 0, NULL));
}

TEST(locked_goroutines_that_use_up_the_threads_are_reported)
{
	int locked;

	test_run_child(child_of_locked, &o);
	locked = number_before(" goroutines are locked to their threads\n");
	CHECK_EQ(o.status, 2);
	CHECK(locked >= 5 && locked <= 30);
	CHECK_EQ(number_before(" goroutines are in blocking calls\n"), 0);
	CHECK(number_before(" of them here:\n") > 0);
	CHECK_CONTAINS(o.err, "wait_locked(");
	CHECK_CONTAINS(o.err, "fatal error: thread exhaustion\n");
}

static void hog(void)
{
	for (volatile uint64_t n = 0;; n++)
		;
}

static int compute_in_many(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (int i = 0; i < 40; i++)
		go(hog);
	goro_sleep(seconds(100));
	return 0;
}

static void child_of_hogs(void)
{
	goro_set_max_threads(30);
	exit(goro_run(compute_in_many, 0, NULL));
}

TEST(preempted_goroutines_that_use_up_the_threads_are_reported)
{
	test_run_child(child_of_hogs, &o);
	CHECK_EQ(o.status, 2);
	CHECK(number_before(" goroutines were preempted and wait to go on on their threads\n") >= 5);
	CHECK_CONTAINS(o.err, "hog(");
	CHECK_CONTAINS(o.err, "fatal error: thread exhaustion\n");
}

static void child_of_poor_user(void)
{
	/* whose processes would count, too */
	uid_t nobody_else = 100000 + (uid_t)getpid();

	if (setresuid(nobody_else, nobody_else, nobody_else) != 0)
		_exit(TEST_SKIPPED);
	prctl(PR_SET_DUMPABLE, 1);	/* as before: /proc/self is ours to read */
	setrlimit(RLIMIT_NPROC, &(struct rlimit){ 20, 20 });
	/* For calls that nobody announced there would be a thread if there could be;
	 * without, they hold on to their Ps. */
	exit(goro_run(block, 1, (char *[]){ "announced", NULL }));
}

TEST(at_the_users_limit_the_report_says_the_same)
{
	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("a sanitizer has threads and files of its own");
	test_run_child(child_of_poor_user, &o);
	if (o.status == TEST_SKIPPED)
		SKIP("only root can become a user with few processes");
	report_is_whole();
	CHECK_CONTAINS(o.err, "runtime: failed to create new OS thread (have ");
	CHECK_CONTAINS(o.err, "errno=11)\nruntime: may need to increase max user processes "
	                      "(ulimit -u)\n");
	CHECK_CONTAINS(o.err, "fatal error: newosproc\n");
}

/* Those who waited have ended: threads that are not needed do not count. */
static void wait_a_little(goro_waitgroup *wg)
{
	struct timespec t = { 0, 20000000 };

	nanosleep(&t, NULL);
	goro_waitgroup_done(wg);
}

GO_TEST(threads_are_used_again)
{
	goro_set_max_threads(60);
	for (int round = 0; round < 10; round++) {
		goro_waitgroup wg = { 0 };

		goro_waitgroup_add(&wg, 40);
		for (int i = 0; i < 40; i++)
			go(wait_a_little, &wg);
		goro_waitgroup_wait(&wg);
	}
}
