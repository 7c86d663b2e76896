/*
 * retake_blind_test.c - the runtime takes no descriptors of the program's to see which
 * threads sleep, and where it cannot see that in /proc, calls that sleep take the time
 * they were given, lose their P, and goroutines that compute are still stopped.
 */
#include <goro.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "platform/atomic.h"
#include "await.h"
#include "test.h"

enum { FD_LIMIT = 64, SLEEPERS = 100, NOBODY = 65534 };
enum { RUNTIME_FDS = 3 };	/* that it opens late, whatever the threads do */

static uint64_t counted[2];
/* goroutines that are in, or about to enter, a long sleep */
static int asleep;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * GORO_SECOND + t.tv_nsec;
}

static void hog(int i)
{
	for (;;)
		store_relaxed(&counted[i], counted[i] + 1);
}

static void start_hogs(void)
{
	goro_gomaxprocs(1);
	for (int i = 0; i < 2; i++)
		go(hog, i);
	for (int i = 0; i < 2; i++)
		AWAIT(load_relaxed(&counted[i]) > 0);
}

/* ------------------------------------------------ ways of not seeing anything */

static bool can_see(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)syscall(SYS_gettid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* As a set-uid program after it has given its rights up. */
static void not_dumpable(void)
{
	if (getuid() == 0)
		CHECK_EQ(setresuid(NOBODY, NOBODY, NOBODY), 0);
	CHECK_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
	if (can_see())
		SKIP("this process can see its threads in /proc all the same");
}

static int taken[FD_LIMIT];
static int taken_n;

static bool take_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		taken[taken_n++] = fd;
	return fd >= 0;
}

/* LeakSanitizer needs some at the end. */
static void give_descriptors_back(void)
{
	while (taken_n > 0)
		close(taken[--taken_n]);
}

static void no_descriptors_left(void)
{
	struct rlimit few = { FD_LIMIT, FD_LIMIT };

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (take_descriptor())
		;
	CHECK_EQ(errno, EMFILE);
}

static void (*body)(void);

static int run_body(int argc, char **argv)
{
	(void)argc, (void)argv;
	body();
	return 0;
}

static void blind(void (*fn)(void), void (*blindfold)(void))
{
	body = fn;
	if (blindfold == not_dumpable)
		not_dumpable();
	else
		/* the runtime's own descriptors are there first */
		goro_gomaxprocs(1);
	if (blindfold == no_descriptors_left)
		no_descriptors_left();
	CHECK_EQ(goro_run(run_body, 0, NULL), 0);
	give_descriptors_back();
}

/* ---------------------------------------------------------------- the sleeps */

static void sleep_beside_hogs(void)
{
	int64_t start;
	uint64_t before[2];

	start_hogs();
	before[0] = load_relaxed(&counted[0]);
	before[1] = load_relaxed(&counted[1]);
	start = now();
	CHECK_EQ(usleep(100000), 0);
	if (now() - start > GORO_SECOND)
		FAIL("a sleep of 100 ms took %lld ms", (long long)(now() - start) / 1000000);
	for (int i = 0; i < 2; i++)	/* they take turns */
		AWAIT(load_relaxed(&counted[i]) > before[i]);
}

TEST(a_sleep_takes_its_time_where_the_process_is_not_dumpable)
{
	blind(sleep_beside_hogs, not_dumpable);
}

TEST(a_sleep_takes_its_time_where_no_descriptor_is_left)
{
	blind(sleep_beside_hogs, no_descriptors_left);
}

/* A call that no handler can make again: its number is not in the code. */
static long raw_sleep(int64_t ns)
{
	struct timespec t = { ns / GORO_SECOND, ns % GORO_SECOND };
#if defined(__x86_64__)
	volatile long number = SYS_nanosleep;
	long result = number;

	__asm__ volatile("syscall" : "+a"(result) : "D"(&t), "S"(NULL) : "rcx", "r11", "memory");
	return result;
#else
	return nanosleep(&t, NULL) == 0 ? 0 : -errno;
#endif
}

static void sleeps_beside_hogs(void)
{
	int interrupted = 0;

	start_hogs();
	for (int i = 0; i < 20; i++)
		interrupted += raw_sleep(15 * GORO_MILLISECOND) != 0;
	CHECK(interrupted <= 1);	/* the signal may have crossed with a call */
}

TEST(sleepers_get_no_signal_where_the_process_is_not_dumpable)
{
	blind(sleeps_beside_hogs, not_dumpable);
}

static void hogs_are_stopped(void)
{
	struct goro_stats s;

	start_hogs();
	do {
		goro_sleep(GORO_MILLISECOND);
		goro_stats_read(&s);
	} while (s.preemptions == 0);
}

TEST(sleepers_get_no_signal_where_no_descriptor_is_left)
{
	blind(sleeps_beside_hogs, no_descriptors_left);
}

TEST(who_computes_is_stopped_where_the_process_is_not_dumpable)
{
	blind(hogs_are_stopped, not_dumpable);
}

TEST(who_computes_is_stopped_where_no_descriptor_is_left)
{
	blind(hogs_are_stopped, no_descriptors_left);
}

/* ----------------------------------------------------------- the descriptors */

static void sleep_long(void)
{
	fetch_add_relaxed(&asleep, 1);
	for (;;)
		usleep(50000);
}

/* The descriptors that are open, a bit each. */
static uint64_t open_now(void)
{
	uint64_t set = 0;

	for (int fd = 0; fd < FD_LIMIT; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			set |= UINT64_C(1) << fd;
	return set;
}

static void descriptors_beside_sleepers(void)
{
	uint64_t before = open_now(), held = ~UINT64_C(0);

	for (int i = 0; i < SLEEPERS; i++)
		go(sleep_long);
	AWAIT(load_relaxed(&asleep) == SLEEPERS);
	for (int i = 0; i < 10; i++) {
		usleep(5000);
		held &= open_now();
	}
	CHECK(__builtin_popcountll(held & ~before) <= RUNTIME_FDS);
	while (__builtin_popcountll(open_now()) < FD_LIMIT) {
		if (!take_descriptor() && __builtin_popcountll(open_now()) < FD_LIMIT)
			FAIL("open: errno %d, with %d taken", errno, taken_n);
		usleep(100);
	}
	CHECK(taken_n + __builtin_popcountll(held) >= FD_LIMIT - RUNTIME_FDS);
	give_descriptors_back();
}

static int run_with_few(int argc, char **argv)
{
	struct rlimit few = { FD_LIMIT, FD_LIMIT };

	(void)argc, (void)argv;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	goro_gomaxprocs(1);
	descriptors_beside_sleepers();
	return 0;
}

TEST(threads_that_sleep_cost_the_program_no_descriptors)
{
	CHECK_EQ(goro_run(run_with_few, 0, NULL), 0);
}
