/*
 * fd_guess_test.c - reads that are not even tried, and that there is something to read.
 */
/* test: procs */
#include <goro.h>

#include "fd.h"
#include "net.h"

static struct sockaddr_in ends[2];

/* Two ends that talk in datagrams. */
static void datagram_pair(int fd[2])
{
	for (int i = 0; i < 2; i++) {
		struct sockaddr_in a = { .sin_family = AF_INET,
		                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		socklen_t len = sizeof a;

		fd[i] = goro_socket(AF_INET, SOCK_DGRAM, 0);
		CHECK_EQ(bind(fd[i], (struct sockaddr *)&a, len), 0);
		CHECK_EQ(getsockname(fd[i], (struct sockaddr *)&ends[i], &len), 0);
	}
	for (int i = 0; i < 2; i++)
		CHECK_EQ(goro_connect(fd[i], (struct sockaddr *)&ends[!i], sizeof ends[0]), 0);
}

static void echo(int fd)
{
	char buf[64];
	ssize_t n;

	while ((n = goro_read(fd, buf, sizeof buf)) > 0)
		CHECK_EQ(goro_write(fd, buf, (size_t)n), n);
}

static bool guesses(int fd)
{
	return load_relaxed(&fd_at(fd)->quiet) >= FD_GUESS_AFTER;
}

/* Until reads on fd[0] are put off. */
static void learn(int fd[2])
{
	char c = 'x';

	go(echo, fd[1]);
	for (int i = 0; i < 1000 && !guesses(fd[0]); i++) {
		CHECK_EQ(goro_write(fd[0], &c, 1), 1);
		CHECK_EQ(goro_read(fd[0], &c, 1), 1);
	}
	if (!guesses(fd[0]))
		SKIP("the answers came too soon");
	CHECK_EQ(goro_set_deadline(fd[1], GORO_NOW, GORO_FOREVER), 0);
}

/* The second of two datagrams that one event has announced: no other comes. */
static void read_pairs(int fd[2], int rounds)
{
	for (int i = 0; i < rounds; i++) {
		char c;

		CHECK_EQ(goro_send(fd[1], "a", 1, 0), 1);
		CHECK_EQ(goro_send(fd[1], "b", 1, 0), 1);
		CHECK_EQ(goro_read(fd[0], &c, 1), 1);
		CHECK_EQ(c, 'a');
		store_relaxed(&fd_at(fd[0])->quiet, FD_GUESS_AFTER);
		CHECK_EQ(goro_read(fd[0], &c, 1), 1);
		CHECK_EQ(c, 'b');
		store_relaxed(&fd_at(fd[0])->quiet, FD_GUESS_AFTER);
	}
}

GO_TEST(what_was_announced_before_is_read)
{
	int fd[2];

	datagram_pair(fd);
	learn(fd);
	read_pairs(fd, 200);
	net_close(fd);
}

static int over;

static void yielder(goro_waitgroup *wg)
{
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
		goro_gosched();
	goro_waitgroup_done(wg);
}

static void hog(goro_waitgroup *wg)
{
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
		;
	goro_waitgroup_done(wg);
}

static void beside(void (*other)(goro_waitgroup *), int rounds)
{
	int fd[2], n = goro_gomaxprocs(0) < 4 ? 2 * goro_gomaxprocs(0) : 8;
	goro_waitgroup wg = { 0 };

	datagram_pair(fd);
	learn(fd);
	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		go(other, &wg);
	read_pairs(fd, rounds);
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	goro_waitgroup_wait(&wg);
	net_close(fd);
}

/* Ps that never run out of work put a read off for a while only. */
GO_TEST(beside_those_who_yield) { beside(yielder, 100); }
GO_TEST(beside_hogs) { beside(hog, 20); }

/* A wrong guess is found out: who streams is not made to wait every time. */
GO_TEST(a_stream_is_not_guessed)
{
	static char buf[1 << 16];
	int fd[2];

	net_pair(fd);
	go(echo, fd[1]);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(goro_write(fd[0], buf, 1), 1);
		CHECK_EQ(goro_read(fd[0], buf, 1), 1);
	}
	CHECK_EQ(goro_set_deadline(fd[1], GORO_NOW, GORO_FOREVER), 0);
	CHECK_EQ(goro_write(fd[1], buf, sizeof buf), sizeof buf);
	for (int i = 0; i < 40; i++)
		CHECK_EQ(goro_read_full(fd[0], buf, 100), 100);
	CHECK(!guesses(fd[0]));
	net_close(fd);
}
