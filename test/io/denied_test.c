/*
 * denied_test.c - programs run without the system calls that only newer kernels have, or
 * that containers and emulators deny: missing (ENOSYS) or denied (EPERM), from the start
 * or from the middle of the run on.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <goro.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "platform/atomic.h"
#include "await.h"
#include "syscall_filter.h"
#include "temporary.h"
#include "test.h"

/* Older headers do not know all of them; the numbers are the same everywhere. */
static const struct call {
	const char *name;
	int number;
} calls[] = {
	{ "epoll_pwait2", 441 },
	{ "membarrier", SYS_membarrier },
	{ "userfaultfd", SYS_userfaultfd },
	{ "process_madvise", 440 },
	{ "pidfd_open", 434 },
	{ "pidfd_getfd", 438 },
	{ "close_range", 436 },
	{ "io_uring_setup", 425 },
	{ "io_uring_enter", 426 },
	{ "preadv2", SYS_preadv2 },
	{ "pwritev2", SYS_pwritev2 },
	{ "sched_getattr", SYS_sched_getattr },
	{ "sched_setattr", SYS_sched_setattr },
	{ "rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo },
	{ "process_vm_readv", SYS_process_vm_readv },
	{ "mincore", SYS_mincore },
	{ "timer_create", SYS_timer_create },
	{ "getpeername", SYS_getpeername },
	{ "clock_gettime", SYS_clock_gettime },		/* of CPU time */
	{ "prctl", SYS_prctl },		/* last: filters need it */
};
#define CALLS (sizeof calls / sizeof *calls)

/* ------------------------------------------------------ what any program does */

static void echo(int fd)
{
	char c;

	while (goro_read(fd, &c, 1) == 1)
		CHECK_EQ(goro_write(fd, &c, 1), 1);
	goro_close(fd);
}

static void over_socket(void)
{
	int fd[2];
	char c;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	go(echo, fd[1]);
	for (int i = 0; i < 20; i++) {
		c = (char)i;
		CHECK_EQ(goro_write(fd[0], &c, 1), 1);
		CHECK_EQ(goro_read(fd[0], &c, 1), 1);
		CHECK_EQ(c, i);
	}
	goro_close(fd[0]);
}

static void write_later(int fd)
{
	goro_sleep(GORO_MILLISECOND);
	CHECK_EQ(goro_write(fd, "x", 1), 1);
	goro_close(fd);
}

/* A connection, which takes a wait. */
static void over_tcp(void)
{
	struct sockaddr_in a;
	socklen_t len = sizeof a;
	int listener = goro_listen("tcp4", "127.0.0.1:0"), fd;
	char address[40];

	CHECK(listener >= 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(a.sin_port));
	fd = goro_dial("tcp4", address, goro_deadline_in(10 * GORO_SECOND));
	CHECK(fd >= 0);
	goro_close(fd);
	goro_close(listener);
}

static void over_pipe(void)
{
	int fd[2];
	char c;

	CHECK_EQ(pipe(fd), 0);
	go(write_later, fd[1]);
	CHECK_EQ(goro_read(fd[0], &c, 1), 1);
	CHECK_EQ(goro_read(fd[0], &c, 1), 0);
	goro_close(fd[0]);
}

static void to_file(void)
{
	int fd = temporary_in("/tmp");
	char c;

	CHECK(fd >= 0);
	CHECK_EQ(goro_write(fd, "ab", 2), 2);
	CHECK_EQ(goro_pread(fd, &c, 1, 1), 1);
	CHECK_EQ(c, 'b');
	CHECK_EQ(goro_fsync(fd), 0);
	CHECK_EQ(goro_close(fd), 0);
}

static void hog(bool *over, goro_waitgroup *wg)
{
	while (!load_relaxed(over))
		;
	goro_waitgroup_done(wg);
}

/* One hog for each P, which must be preempted. */
static void beside_hogs(void)
{
	goro_waitgroup wg = { 0 };
	bool over = false;
	int n = goro_gomaxprocs(0);

	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		go(hog, &over, &wg);
	goro_sleep(2 * GORO_MILLISECOND);
	store_relaxed(&over, true);
	goro_waitgroup_wait(&wg);
}

static void block(goro_waitgroup *wg)
{
	usleep(1000);
	goro_waitgroup_done(wg);
}

static void many(void)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 20);
	for (int i = 0; i < 20; i++)
		go(block, &wg);
	goro_waitgroup_wait(&wg);
}

/* In ns. Not by clock_gettime, which may be denied. */
static int64_t cpu_used(void)
{
	struct rusage r;

	CHECK_EQ(getrusage(RUSAGE_SELF, &r), 0);
	return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * INT64_C(1000000000) +
	       (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * INT64_C(1000);
}

/* A program that waits for a descriptor and a timer uses no CPU, but for a thread or two
 * that it starts. */
static void idle(void)
{
	int64_t used;
	int fd[2];

	CHECK_EQ(pipe(fd), 0);
	go(echo, fd[0]);
	goro_sleep(GORO_MILLISECOND);
	used = -cpu_used();
	goro_sleep(20 * GORO_MILLISECOND);
	used += cpu_used();
	if (used > 10 * GORO_MILLISECOND)
		FAIL("%lld us of CPU while idle", (long long)used / 1000);
	goro_close(fd[1]);
}

static void everyday(void)
{
	over_socket();
	over_tcp();
	over_pipe();
	to_file();
	beside_hogs();
	many();
	idle();
}

/* -------------------------------------------------------------- in a child */

static int error;		/* what the denied calls say */
static size_t first, end;	/* which ones */
static bool in_mid_run;

static void deny(void)
{
	for (size_t i = first; i < end; i++)
		filter_call(calls[i].number, SECCOMP_RET_ERRNO | (unsigned)error,
		            in_mid_run ? SECCOMP_FILTER_FLAG_TSYNC : 0, NULL);
}

static int child_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	if (in_mid_run) {
		everyday();
		deny();
	}
	everyday();
	return 0;
}

static void child(void)
{
	if (!in_mid_run)
		deny();
	exit(goro_run(child_main, 0, NULL));
}

static void run_without(size_t from, size_t to)
{
	struct test_output o;

	first = from;
	end = to;
	test_run_child(child, &o);
	if (o.status == TEST_SKIPPED)
		SKIP("no seccomp here");
	if (o.status != 0 || o.timed_out)
		FAIL("without %s%s: %s", calls[from].name, to - from > 1 ? " and more" : "", o.err);
}

static void run_without_each(int with)
{
	error = with;
	for (size_t i = 0; i < CALLS; i++)
		run_without(i, i + 1);
	run_without(0, CALLS);
}

TEST(calls_that_are_missing) { run_without_each(ENOSYS); }
TEST(calls_that_are_denied) { run_without_each(EPERM); }

TEST(calls_that_are_denied_in_mid_run)
{
	in_mid_run = true;
	run_without_each(EPERM);
}

/* ------------------------------------- the marks of the runtime's descriptors */

static void deny_marks(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETSIG, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_GETSIG, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	if (filter_install(code, sizeof code / sizeof *code, SECCOMP_FILTER_FLAG_TSYNC) < 0)
		SKIP("no seccomp here");
}

static void ask_server(const char *name)
{
	static const char request[] = "GET /debug/metrics HTTP/1.0\r\n\r\n";
	int fd = goro_dial("unix", name, goro_deadline_in(10 * GORO_SECOND));
	char answer[12];

	CHECK(fd >= 0);
	CHECK_EQ(goro_set_deadline(fd, goro_deadline_in(10 * GORO_SECOND), GORO_FOREVER), 0);
	CHECK(goro_write_full(fd, request, sizeof request - 1) > 0);
	CHECK_EQ(goro_read_full(fd, answer, sizeof answer), (ssize_t)sizeof answer);
	CHECK(memcmp(answer + 8, " 200", 4) == 0);
	goro_close(fd);
}

/* A descriptor whose mark cannot be read is not taken for the program's. */
GO_TEST(marks_that_are_denied_in_mid_run)
{
	char name[60] = "unix:";

	snprintf(name + 5, sizeof name - 5, "@goro-denied-%d", getpid());
	CHECK_EQ(goro_debug_serve(name), 0);
	ask_server(name + 5);
	deny_marks();
	for (int i = 0; i < 3; i++)
		ask_server(name + 5);
	everyday();
}
