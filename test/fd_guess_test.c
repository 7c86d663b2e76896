/*
 * fd_guess_test.c - reads that are not even tried, and that there is something to read.
 */
/* test: procs */
#include <goro.h>

#include <sys/socket.h>

#include "fd.h"
#include "runtime.h"
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

static bool is_untried(int fd)
{
	struct m *mp = rt_enter();
	struct fd *f = fd_at(fd);
	bool untried;

	lock_acquire(&f->lock);
	untried = f->untried;
	lock_release(&f->lock);
	rt_exit(mp);
	return untried;
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

static int read_now;

static void read_guessing(int fd)
{
	char c;

	store_relaxed(&fd_at(fd)->quiet, FD_GUESS_AFTER);
	CHECK_EQ(goro_read(fd, &c, 1), 1);
	__atomic_add_fetch(&read_now, 1, __ATOMIC_RELAXED);
}

static void look_for_late(void)
{
	struct m *mp = rt_enter();

	fd_guess_late(mp);
	rt_exit(mp);
}

/* Who waits for an answer is not made to try before it has waited for a while .. */
GO_TEST(who_just_came_is_not_late)
{
	bool left = false;
	int fd[2];

	goro_gomaxprocs(1);
	net_pair(fd);
	for (int i = 0; i < 1000 && !left; i++) {
		go(read_guessing, fd[0]);
		goro_gosched();
		look_for_late();
		left = is_untried(fd[0]);
		CHECK_EQ(goro_write(fd[1], "x", 1), 1);
		while (__atomic_load_n(&read_now, __ATOMIC_RELAXED) <= i)
			goro_gosched();
	}
	CHECK(left);
	net_close(fd);
}

/* .. but then it is, and not only once. */
GO_TEST(who_has_waited_is_late)
{
	int fd[2];

	goro_gomaxprocs(1);
	net_pair(fd);
	for (int i = 0; i < 20; i++) {
		go(read_guessing, fd[0]);
		goro_gosched();
		while (is_untried(fd[0]))
			goro_gosched();
		CHECK_EQ(goro_write(fd[1], "x", 1), 1);
		while (__atomic_load_n(&read_now, __ATOMIC_RELAXED) <= i)
			goro_gosched();
	}
	net_close(fd);
}

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

/* ------------------------------------------------------------- trying first */

/* Two ends where what one writes is there for the other at once. */
static void near_pair(int fd[2])
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	fd_made(fd[0], FD_SOCKET);
	fd_made(fd[1], FD_SOCKET);
}

static void trip(int fd)
{
	char c = 'x';

	CHECK_EQ(goro_write(fd, &c, 1), 1);
	CHECK_EQ(goro_read(fd, &c, 1), 1);
}

/* Two reads a trip, and each had to be announced by an event. On a busy machine one is stopped
 * between a read and a write, so that a try is in vain and the poller is asked for a while:
 * then the next trips count. */
GO_TEST(to_and_fro_rarely_asks_the_poller)
{
	struct goro_stats before, after;
	int fd[2];

	goro_gomaxprocs(1);
	near_pair(fd);
	go(echo, fd[1]);
	for (int i = 0; i < 100; i++)
		trip(fd[0]);
	for (int rest = 100; rest > 0; rest--) {
		goro_stats_read(&before);
		for (int i = 0; i < 200; i++)
			trip(fd[0]);
		goro_stats_read(&after);
		if (after.netpoll_wakeups - before.netpoll_wakeups < 200) {
			net_close(fd);
			return;
		}
	}
	FAIL("the poller was asked each time");
}

static int served;

static void reader(int fd)
{
	char c;

	CHECK_EQ(goro_read(fd, &c, 1), 1);
	store_relaxed(&served, 1);
}

/* .. but asks before long, for the others. */
GO_TEST(others_are_served_beside_to_and_fro)
{
	int fd[2], other[2], trips = 0;

	goro_gomaxprocs(1);
	near_pair(fd);
	near_pair(other);
	go(echo, fd[1]);
	for (int i = 0; i < 100; i++)
		trip(fd[0]);
	for (int i = 0; i < 50; i++) {
		store_relaxed(&served, 0);
		go(reader, other[0]);
		trip(fd[0]);
		CHECK_EQ(goro_write(other[1], "x", 1), 1);
		for (; !load_relaxed(&served); trips++)
			trip(fd[0]);
	}
	CHECK(trips < (TOOL_TSAN ? 50 * 100 : 50 * 20));
	net_close(fd);
	net_close(other);
}

/* Looks that are left before there are tries again. There is one P. */
static uint32_t pause_left(void)
{
	struct m *mp = rt_enter();
	uint32_t left = mp->p->try_pause;

	rt_exit(mp);
	return left;
}

/* Tries in vain become rare: they would cost more than asking. */
GO_TEST(tries_in_vain_are_given_up)
{
	int fd[2], in_vain = 0;
	struct p *pp;

	goro_gomaxprocs(1);
	near_pair(fd);
	go(echo, fd[1]);
	for (int i = 0; i < 100; i++)
		trip(fd[0]);
	goro_preempt_disable();		/* pp is ours meanwhile */
	pp = m_self()->p;
	for (int i = 0; i < 10000; i++) {
		if (pp->try_left != 0) {
			fd_guess_in_vain(pp);
			in_vain++;
		}
		fd_guess_asked(pp);
	}
	goro_preempt_enable();
	CHECK(in_vain > 0 && in_vain < 20);
	for (int i = 0; i < 30 * 4096 && pause_left() != 0; i++)
		trip(fd[0]);
	CHECK_EQ(pause_left(), 0);
	net_close(fd);
}
