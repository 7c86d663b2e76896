/*
 * debug_attach_test.c - the debug server for a program that does not serve, attached to
 * as goro dump does. Each test plays both sides.
 */
/* test: procs */
#include "http/debug_attach.h"

#include <errno.h>
#include <goro.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "platform/atomic.h"
#include "await.h"
#include "child.h"
#include "test.h"

#define NOBODY 65534

static uint32_t number;

/* As the command does, with a name that no other test has. */
static int listen_for_answer(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = goro_socket(AF_UNIX, SOCK_STREAM, 0), n;

	number = (uint32_t)getpid();
	n = snprintf(sa.sun_path + 1, sizeof sa.sun_path - 1, DEBUG_ATTACH_NAME, number);
	CHECK_EQ(bind(fd, (struct sockaddr *)&sa, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)), 0);
	CHECK_EQ(listen(fd, 1), 0);
	return fd;
}

static union sigval request(void)
{
	uint64_t value = (uint64_t)DEBUG_ATTACH_MARK << 32 | number;

	return (union sigval){ .sival_ptr = (void *)(uintptr_t)value };
}

/* Repeats the signal, as the command does: of two at the same time one is lost. */
static int request_and_accept(int listener)
{
	int fd;

	do {
		CHECK_EQ(sigqueue(getpid(), DEBUG_ATTACH_SIGNAL, request()), 0);
		goro_set_deadline(listener, goro_now() + 200 * GORO_MILLISECOND, GORO_FOREVER);
		fd = goro_accept(listener, NULL, NULL);
	} while (fd == -ETIMEDOUT);
	CHECK(fd >= 0);
	goro_close(listener);
	return fd;
}

static int attach(void)
{
	return request_and_accept(listen_for_answer());
}

static char answer[1 << 20];

static const char *ask(int fd, const char *path)
{
	char head[256];
	int n = snprintf(head, sizeof head, "GET %s HTTP/1.0\r\n\r\n", path);
	ssize_t r;
	size_t have = 0;

	goro_write_full(fd, head, (size_t)n);
	while ((r = goro_read(fd, answer + have, sizeof answer - 1 - have)) > 0)
		have += (size_t)r;
	answer[have] = '\0';
	goro_close(fd);
	return answer;
}

GO_TEST(a_program_that_does_not_serve_answers)
{
	for (int i = 0; i < 3; i++) {
		CHECK_CONTAINS(ask(attach(), "/debug/pprof/goroutine?debug=2"), "\ngoroutine 1 [");
		CHECK_CONTAINS(answer, "200 OK");
	}
}

static uint32_t over;

static void compute(void)
{
	while (!load_relaxed(&over))
		;
}

GO_TEST(one_that_computes_on_all_processors_answers)
{
	for (int i = 0; i < goro_gomaxprocs(0); i++)
		go(compute);
	CHECK_CONTAINS(ask(attach(), "/debug/pprof/goroutine?debug=2"), "compute");
	store_relaxed(&over, 1);
}

static uint32_t asleep;

static void sleep_in_kernel(goro_chan *done)
{
	int r;

	store_relaxed(&asleep, 1);
	r = poll(NULL, 0, 300);
	goro_chan_send(done, &r);
}

GO_TEST(a_call_that_blocks_is_not_cut_short)
{
	goro_chan *done = goro_chan_of(int, 1);
	int r = -1;

	go(sleep_in_kernel, done);
	AWAIT(load_relaxed(&asleep));
	CHECK_CONTAINS(ask(attach(), "/debug/metrics"), "goro_goroutines");
	goro_chan_recv(done, &r);
	CHECK_EQ(r, 0);
	goro_chan_unref(done);
}

/* The program hangs up without an answer. */
static void is_refused(int fd)
{
	ask(fd, "/debug/metrics");
	CHECK_EQ(strlen(answer), 0);
}

static void change_user(void)
{
	CHECK_EQ(setresuid(NOBODY, NOBODY, NOBODY), 0);
	CHECK_EQ(prctl(PR_GET_DUMPABLE) == 1, 0);
	is_refused(attach());
	CHECK_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
	CHECK_CONTAINS(ask(attach(), "/debug/metrics"), "200 OK");
}

TEST(a_program_that_is_not_dumpable_refuses_its_user)
{
	if (getuid() != 0)
		SKIP("takes root");
	run(change_user);
	CHECK_EQ(o.status, 0);
}

static void listen_as_another(void)
{
	int listener;

	CHECK_EQ(setresuid(-1, NOBODY, 0), 0);
	listener = listen_for_answer();
	CHECK_EQ(setresuid(-1, 0, 0), 0);
	is_refused(request_and_accept(listener));
}

TEST(another_user_is_refused)
{
	if (getuid() != 0)
		SKIP("takes root");
	run(listen_as_another);
	CHECK_EQ(o.status, 0);
}

static uint32_t seen;

static void on_signal(int sig)
{
	(void)sig;
	store_relaxed(&seen, 1);
}

static void refuse_everybody(void)
{
	number = 1;
	signal(DEBUG_ATTACH_SIGNAL, on_signal);
	CHECK_EQ(sigqueue(getpid(), DEBUG_ATTACH_SIGNAL, request()), 0);
	AWAIT(load_relaxed(&seen));
}

TEST(noattach_leaves_the_signal_to_the_program)
{
	setenv("GORO_DEBUG", "noattach=1", 1);
	run_anew(refuse_everybody);
	CHECK_EQ(o.status, 0);
}

static void nobody_listens(void)
{
	number = 7;
	for (int i = 0; i < 100; i++)
		CHECK_EQ(sigqueue(getpid(), DEBUG_ATTACH_SIGNAL, request()), 0);
	CHECK_CONTAINS(ask(attach(), "/debug/metrics"), "200 OK");
}

TEST(requests_that_nobody_waits_for_do_no_harm)
{
	run(nobody_listens);
	CHECK_EQ(o.status, 0);
}

static void all_asleep(void)
{
	CHECK_CONTAINS(ask(attach(), "/debug/metrics"), "200 OK");
	goro_chan_recv(goro_chan_of(int, 0), NULL);
}

TEST(a_deadlock_is_reported_afterwards)
{
	test_needs_deadlocks();
	run_anew(all_asleep);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "all goroutines are asleep");
}
