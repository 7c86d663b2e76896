/*
 * io_test.c - reading and writing: sockets, pipes and what else there is.
 */
/* test: procs */
#include <goro.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/un.h>

#include "test.h"

/* ------------------------------------------------------------- helpers */

/* A listening socket on the loopback; its address. */
static int listener(struct sockaddr_in *a)
{
	socklen_t len = sizeof *a;
	int fd = goro_socket(AF_INET, SOCK_STREAM, 0);

	*a = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)a, sizeof *a), 0);
	CHECK_EQ(listen(fd, 512), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)a, &len), 0);
	return fd;
}

static int dial(const struct sockaddr_in *a)
{
	int fd = goro_socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	CHECK_EQ(goro_connect(fd, (const struct sockaddr *)a, sizeof *a), 0);
	return fd;
}

/* Two ends of a TCP connection. */
static void tcp_pair(int fd[2])
{
	struct sockaddr_in a;
	int l = listener(&a);

	fd[0] = dial(&a);
	fd[1] = goro_accept(l, NULL, NULL);
	CHECK(fd[1] >= 0);
	CHECK_EQ(goro_close(l), 0);
}

static void echo(int fd, goro_waitgroup *wg)
{
	char buf[256];
	ssize_t n;

	while ((n = goro_read(fd, buf, sizeof buf)) > 0)
		CHECK_EQ(goro_write(fd, buf, (size_t)n), n);
	CHECK_EQ(n, 0);
	CHECK_EQ(goro_close(fd), 0);
	goro_waitgroup_done(wg);
}

/* --------------------------------------------------------------- sockets */

GO_TEST(echo_over_tcp)
{
	goro_waitgroup wg = { 0 };
	char buf[64] = { 0 };
	int fd[2];

	tcp_pair(fd);
	goro_waitgroup_add(&wg, 1);
	go(echo, fd[1], &wg);
	for (int i = 0; i < 2000; i++) {
		memset(buf, i, sizeof buf);
		CHECK_EQ(goro_write(fd[0], buf, sizeof buf), sizeof buf);
		memset(buf, 0, sizeof buf);
		CHECK_EQ(goro_read_full(fd[0], buf, sizeof buf), sizeof buf);
		CHECK_EQ((unsigned char)buf[63], i & 255);
	}
	CHECK_EQ(goro_close(fd[0]), 0);
	goro_waitgroup_wait(&wg);
}

static void accept_and_echo(int l, int n, goro_waitgroup *wg)
{
	for (int i = 0; i < n; i++) {
		int fd = goro_accept(l, NULL, NULL);

		CHECK(fd >= 0);
		go(echo, fd, wg);
	}
}

static void talk(struct sockaddr_in *a, int rounds, goro_waitgroup *wg)
{
	int fd = dial(a);
	char buf[64];

	for (int i = 0; i < rounds; i++) {
		memset(buf, i, sizeof buf);
		CHECK_EQ(goro_write(fd, buf, sizeof buf), sizeof buf);
		CHECK_EQ(goro_read_full(fd, buf, sizeof buf), sizeof buf);
		CHECK_EQ((unsigned char)buf[0], i & 255);
	}
	CHECK_EQ(goro_close(fd), 0);
	goro_waitgroup_done(wg);
}

GO_TEST(many_connections)
{
	enum { CONNS = 200, ROUNDS = 50 };
	goro_waitgroup wg = { 0 };
	struct sockaddr_in a;
	int l = listener(&a);

	goro_waitgroup_add(&wg, 2 * CONNS);
	go(accept_and_echo, l, CONNS, &wg);
	for (int i = 0; i < CONNS; i++)
		go(talk, &a, ROUNDS, &wg);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(goro_close(l), 0);
}

/* ----------------------------------------------------------------- pipes */

static void slow_writer(int fd, int n)
{
	for (int i = 0; i < n; i++) {
		char c = (char)i;

		goro_sleep(GORO_MILLISECOND / 10);
		CHECK_EQ(goro_write(fd, &c, 1), 1);
	}
	CHECK_EQ(goro_close(fd), 0);
}

GO_TEST(pipe_of_the_programs_own)
{
	char buf[100];
	int fd[2];

	CHECK_EQ(pipe(fd), 0);
	go(slow_writer, fd[1], 100);
	CHECK_EQ(goro_read_full(fd[0], buf, sizeof buf), sizeof buf);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(buf[i], i);
	CHECK_EQ(goro_read(fd[0], buf, 1), 0);
	CHECK_EQ(fcntl(fd[0], F_GETFL) & O_NONBLOCK, 0);
	CHECK_EQ(goro_close(fd[0]), 0);
}

static void *plain_reader(void *arg)
{
	char buf[100];

	CHECK_EQ(goro_read_full(*(int *)arg, buf, sizeof buf), sizeof buf);
	return NULL;
}

GO_TEST(plain_thread_reads)
{
	pthread_t t;
	int fd[2];

	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(pthread_create(&t, NULL, plain_reader, &fd[0]), 0);
	slow_writer(fd[1], 100);
	pthread_join(t, NULL);
}

/* ------------------------------------------------------------------ close */

static void read_canceled(int fd, goro_waitgroup *wg)
{
	char c;

	CHECK_EQ(goro_read(fd, &c, 1), -ECANCELED);
	goro_waitgroup_done(wg);
}

static size_t waiting(void)
{
	struct goro_stats s;

	goro_stats_read(&s);
	return s.waiting;
}

GO_TEST(close_wakes_everyone)
{
	goro_waitgroup wg = { 0 };
	int fd[2];
	size_t before;

	tcp_pair(fd);
	before = waiting();
	goro_waitgroup_add(&wg, 20);
	for (int i = 0; i < 20; i++)
		go(read_canceled, fd[0], &wg);
	while (waiting() < before + 20)
		goro_sleep(GORO_MILLISECOND);
	CHECK_EQ(goro_close(fd[0]), 0);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(fcntl(fd[0], F_GETFL), -1);
	CHECK_EQ(goro_read(fd[0], &wg, 1), -EBADF);
	CHECK_EQ(goro_close(fd[0]), -EBADF);
	CHECK_EQ(goro_close(fd[1]), 0);
}

GO_TEST(deadline_passes)
{
	int64_t start;
	char c;
	int fd[2];

	tcp_pair(fd);
	start = goro_now();
	CHECK_EQ(goro_set_deadline(fd[0], start + 20 * GORO_MILLISECOND, GORO_FOREVER), 0);
	CHECK_EQ(goro_read(fd[0], &c, 1), -ETIMEDOUT);
	CHECK(goro_now() - start >= 20 * GORO_MILLISECOND);
	CHECK_EQ(goro_read(fd[0], &c, 1), -ETIMEDOUT);
	CHECK_EQ(goro_write(fd[1], "x", 1), 1);
	CHECK_EQ(goro_read(fd[0], &c, 1), -ETIMEDOUT);
	CHECK_EQ(goro_set_deadline(fd[0], GORO_FOREVER, GORO_FOREVER), 0);
	CHECK_EQ(goro_read(fd[0], &c, 1), 1);
}
