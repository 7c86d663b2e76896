/*
 * closed_fds_test.c - programs that close all descriptors, the runtime's too, and go on.
 */
/* test: procs */
#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "await.h"
#include "io/fd.h"
#include "platform/own_fd.h"
#include "sched/runtime.h"
#include "test.h"

/* Past all descriptors; close_range would be one step. Not by libc's close: that a
 * program closes what another thread uses is the program's mistake, which ThreadSanitizer
 * would report. */
static void close_all_from(int first)
{
	for (int fd = first; fd < 2048; fd++)
		syscall(SYS_close, fd);
}

/* ------------------------------------------------------------------- traffic */

static void echo(int fd, goro_waitgroup *wg)
{
	char c;

	while (goro_read(fd, &c, 1) == 1)
		if (goro_write(fd, &c, 1) != 1)
			break;
	goro_close(fd);
	goro_waitgroup_done(wg);
}

static void exchange(int fd, int times)
{
	for (int i = 0; i < times; i++) {
		char c = (char)i, back = 0;

		CHECK_EQ(goro_write(fd, &c, 1), 1);
		CHECK_EQ(goro_read(fd, &back, 1), 1);
		CHECK_EQ(back, c);
	}
}

/* Between goroutines that wait for each other through sockets. */
static void talk(int times)
{
	goro_waitgroup wg = { 0 };
	int fd[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	goro_waitgroup_add(&wg, 1);
	go(echo, fd[1], &wg);
	exchange(fd[0], times);
	goro_close(fd[0]);
	goro_waitgroup_wait(&wg);
}

static void *plain_sender(void *c)
{
	for (int i = 0; i < 20; i++)
		goro_chan_send(c, &i);
	return NULL;
}

/* Every way in which goroutines are woken. */
static void live(void)
{
	goro_chan *c = goro_chan_of(int, 0);
	pthread_t t;
	int got;

	talk(20);
	goro_sleep(GORO_MILLISECOND);
	CHECK_EQ(pthread_create(&t, NULL, plain_sender, c), 0);
	for (int i = 0; i < 20; i++) {
		CHECK(goro_chan_recv(c, &got));
		CHECK_EQ(got, i);
	}
	pthread_join(t, NULL);
	goro_chan_unref(c);
	usleep(2000);
	talk(20);
	goro_sleep(GORO_MILLISECOND);
}

GO_TEST(sockets_sleeps_and_threads_go_on)
{
	for (int i = 0; i < 5; i++) {
		live();
		close_all_from(3);
	}
	live();
}

GO_TEST(they_go_on_with_close_range)
{
	live();
	if (syscall(SYS_close_range, 3, ~0u, 0) != 0)
		SKIP("no close_range");
	live();
}

static void close_again_and_again(bool *over)
{
	while (!load_relaxed(over)) {
		close_all_from(500);	/* the runtime's alone */
		goro_sleep(200 * GORO_MICROSECOND);
	}
}

GO_TEST(they_go_on_while_the_runtimes_are_closed)
{
	bool over = false;

	go(close_again_and_again, &over);
	for (int i = 0; i < 10; i++)
		live();
	store_relaxed(&over, true);
}

GO_TEST(what_is_closed_before_it_is_marked_leaves_the_marks)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	close(fd);
	own_fd_take(fd, OWN_FD_POLLER);
	fd = eventfd(0, EFD_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(!own_fd_is(fd, OWN_FD_POLLER));
	close(fd);
}

/* ------------------------------------------------------ what is the program's */

enum { FILES = 60 };
static int mine[FILES];

/* Opens descriptors of all kinds that the runtime has, and plain files. */
static void open_mine(void)
{
	for (int i = 0; i < FILES; i++) {
		switch (i % 3) {
		case 0: mine[i] = memfd_create("mine", MFD_CLOEXEC); break;
		case 1: mine[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); break;
		case 2: mine[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); break;
		}
		CHECK(mine[i] >= 0);
	}
}

static void check_mine(void)
{
	for (int i = 0; i < FILES; i++) {
		struct itimerspec t;
		struct stat st;
		uint64_t n;

		CHECK_EQ(fstat(mine[i], &st), 0);
		switch (i % 3) {
		case 0: CHECK_EQ(st.st_size, 0); break;
		case 1: CHECK(read(mine[i], &n, sizeof n) < 0 && errno == EAGAIN); break;
		case 2:
			CHECK_EQ(timerfd_gettime(mine[i], &t), 0);
			CHECK(t.it_value.tv_sec == 0 && t.it_value.tv_nsec == 0);
			CHECK(t.it_interval.tv_sec == 0);
			break;
		}
	}
}

/* -------------------------------------------------------- what else is there */

static void wait_to_read(int fd, int *result)
{
	char c;

	store_seqcst(result, (int)goro_read(fd, &c, 1));
}

#define WAITS 1000		/* no result of a read */

static void a_moment(void)
{
	goro_sleep(5 * GORO_MILLISECOND);
}

GO_TEST(those_who_wait_for_what_stays_open_are_woken)
{
	int result = WAITS, fd[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	go(wait_to_read, fd[0], &result);
	AWAIT(fd_is_awaited());
	close_all_from(fd[1] + 1);
	a_moment();
	CHECK_EQ(load_seqcst(&result), WAITS);
	CHECK_EQ(write(fd[1], "x", 1), 1);
	AWAIT(load_seqcst(&result) == 1);
}

GO_TEST(those_who_wait_for_what_is_closed_are_told)
{
	int result = WAITS, fd[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	go(wait_to_read, fd[0], &result);
	AWAIT(fd_is_awaited());
	close_all_from(3);
	while (memfd_create("next", MFD_CLOEXEC) < fd[1])
		;		/* a file has the number, and cannot be waited for */
	while (load_seqcst(&result) == WAITS)
		talk(1);	/* the next waiter finds the poller lost */
	CHECK_EQ(load_seqcst(&result), -EBADF);
}

GO_TEST(a_program_whose_only_descriptors_were_ours_sleeps)
{
	talk(1);
	close_all_from(3);
	for (int i = 0; i < 20; i++)
		goro_sleep(GORO_MILLISECOND);
}

GO_TEST(what_the_program_opens_next_is_left_alone)
{
	live();
	close_all_from(3);
	open_mine();
	live();
	check_mine();
}

static int open_next(int argc, char **argv)
{
	(void)argc, (void)argv;
	live();
	close_all_from(3);
	open_mine();
	live();
	check_mine();
	return 0;
}

/* Then the numbers of the program and of the runtime are the same. */
TEST(also_with_few_descriptors)
{
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ FILES + 12, FILES + 12 });
	goro_run(open_next, 0, NULL);
}

static void *sleeps(void *arg)
{
	pause();
	return arg;
}

TEST(also_where_there_are_threads_before)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, sleeps, NULL), 0);
	goro_run(open_next, 0, NULL);
}

static int next_number(void)
{
	int fd = dup(1);

	close(fd);
	return fd;
}

static int next_inside(int argc, char **argv)
{
	(void)argc, (void)argv;
	live();
	return next_number();
}

TEST(the_runtime_leaves_the_low_numbers_to_the_program)
{
	int before = next_number();

	CHECK_EQ(goro_run(next_inside, 0, NULL), before);
}

GO_TEST(a_trace_is_not_written_to_what_is_opened_next)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	CHECK_EQ(goro_trace_start(fd), 0);
	live();
	close_all_from(3);
	open_mine();
	live();
	goro_trace_stop();
	CHECK_EQ(goro_trace_error(), -EBADF);
	check_mine();
}

static int stop_profile(int argc, char **argv)
{
	(void)argc, (void)argv;
	close_all_from(3);
	open_mine();
	goro_profile_cpu_stop();
	check_mine();
	return 0;
}

TEST(a_profile_of_the_whole_run_is_not_written_to_what_is_opened_next)
{
	char path[] = "/tmp/goro-test-XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	setenv("GORO_CPUPROFILE", path, 1);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ FILES + 12, FILES + 12 });
	goro_run(stop_profile, 0, NULL);
	unlink(path);
}
