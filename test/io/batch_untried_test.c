/*
 * batch_untried_test.c - reads that are left untried, and those of them that find
 * something.
 */
/* test: procs */
#include <goro.h>

#include <errno.h>
#include <sys/socket.h>

#include "io/batch.h"
#include "io/fd.h"
#include "sched/runtime.h"
#include "sched/work.h"
#include "platform/os.h"
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
	return load_relaxed(&fd_at(fd)->quiet) >= BATCH_GUESS_AFTER;
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

/* Until reads on fd[0] are left untried. */
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
		store_relaxed(&fd_at(fd[0])->quiet, BATCH_GUESS_AFTER);
		CHECK_EQ(goro_read(fd[0], &c, 1), 1);
		CHECK_EQ(c, 'b');
		store_relaxed(&fd_at(fd[0])->quiet, BATCH_GUESS_AFTER);
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

/* The reader of two datagrams that one event announces. It leaves the second read
 * untried. */
static int pair_turn, pair_read;

static void read_pair(int fd)
{
	char c;

	CHECK_EQ(goro_read(fd, &c, 1), 1);
	CHECK_EQ(c, 'a');
	store_relaxed(&fd_at(fd)->quiet, BATCH_GUESS_AFTER);
	__atomic_store_n(&pair_turn, 1, __ATOMIC_RELEASE);
	CHECK_EQ(goro_read(fd, &c, 1), 1);
	CHECK_EQ(c, 'b');
	__atomic_store_n(&pair_read, 1, __ATOMIC_RELEASE);
}

/* A goroutine that computes and never calls has the only P: it is preempted for the
 * read. */
GO_TEST(beside_a_hog)
{
	int64_t end;
	int fd[2];

	goro_gomaxprocs(1);
	datagram_pair(fd);
	go(read_pair, fd[0]);
	goro_sleep(GORO_MILLISECOND);
	CHECK_EQ(send(fd[1], "a", 1, 0), 1);
	CHECK_EQ(send(fd[1], "b", 1, 0), 1);
	while (!__atomic_load_n(&pair_turn, __ATOMIC_ACQUIRE))
		goro_gosched();
	end = os_now() + 20 * GORO_SECOND;
	while (!__atomic_load_n(&pair_read, __ATOMIC_ACQUIRE))
		CHECK(os_now() < end);
	net_close(fd);
}

static int read_now;

static void read_guessing(int fd)
{
	char c;

	store_relaxed(&fd_at(fd)->quiet, BATCH_GUESS_AFTER);
	CHECK_EQ(goro_read(fd, &c, 1), 1);
	__atomic_add_fetch(&read_now, 1, __ATOMIC_RELAXED);
}

static void look_for_late(void)
{
	struct m *mp = rt_enter();

	if (mp->p->io)
		store_relaxed(&mp->p->io->passed_at, 0);	/* a pass is due */
	work_see_to_due(mp);
	rt_exit(mp);
}

/* A P that is never without work tries it all the same, each time that it waits. There is
 * nothing to read, and it waits on. */
GO_TEST(who_has_waited_is_tried)
{
	int fd[2];

	goro_gomaxprocs(1);
	net_pair(fd);
	for (int i = 0; i < 20; i++) {
		int passes = 0;

		go(read_guessing, fd[0]);
		goro_gosched();
		goro_preempt_disable();	/* sysmon does not make it try */
		for (; is_untried(fd[0]) && passes < 10; passes++)
			look_for_late();
		goro_preempt_enable();
		CHECK(passes < 10);
		CHECK_EQ(load_relaxed(&read_now), i);
		CHECK_EQ(goro_write(fd[1], "x", 1), 1);
		while (__atomic_load_n(&read_now, __ATOMIC_RELAXED) <= i)
			goro_gosched();
	}
	net_close(fd);
}

/* A wrong guess is found out: the reader of a stream does not wait every time. */
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

/* A reader that waits untried when the other end goes: what the P's try says is its
 * result. */
static void read_last(int fd, ssize_t want)
{
	char c;

	store_relaxed(&fd_at(fd)->quiet, BATCH_GUESS_AFTER);
	CHECK_EQ(goro_read(fd, &c, 1), want);
	__atomic_add_fetch(&read_now, 1, __ATOMIC_RELAXED);
}

static void end_beside_reader(struct linger how, ssize_t want)
{
	int fd[2];

	goro_gomaxprocs(1);
	for (int i = 1; i <= 100; i++) {
		net_pair(fd);
		go(read_last, fd[0], want);
		goro_gosched();
		CHECK_EQ(setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &how, sizeof how), 0);
		goro_close(fd[1]);
		while (__atomic_load_n(&read_now, __ATOMIC_RELAXED) < i)
			goro_sleep(GORO_MILLISECOND / 10);
		goro_close(fd[0]);
	}
}

GO_TEST(the_end_is_a_result) { end_beside_reader((struct linger){ 0, 0 }, 0); }
GO_TEST(an_error_is_a_result) { end_beside_reader((struct linger){ 1, 0 }, -ECONNRESET); }

/* ------------------------------------------------------------- trying first */

/* Two ends: what one writes the other can read at once. */
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

/* Without tries each of a trip's two reads would need an event. On a busy machine a
 * goroutine is preempted between a read and a write; then a try is in vain, there are
 * none for a while, and the next trips count. */
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

/* It still looks at the poller before long, for the others. */
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
	uint32_t left = mp->p->io->try_pause;

	rt_exit(mp);
	return left;
}

/* Tries in vain are rare: they cost more than they save. */
GO_TEST(tries_in_vain_are_given_up)
{
	int fd[2], in_vain = 0;
	struct p_io *io;

	goro_gomaxprocs(1);
	near_pair(fd);
	go(echo, fd[1]);
	for (int i = 0; i < 100; i++)
		trip(fd[0]);
	goro_preempt_disable();		/* the P is ours meanwhile */
	io = m_self()->p->io;
	for (int i = 0; i < 10000; i++) {
		if (batch_may_try(io)) {
			batch_try_was(io, false);
			in_vain++;
		}
		batch_polled(m_self()->p);
	}
	goro_preempt_enable();
	CHECK(in_vain > 0 && in_vain <= 10000 / 50);
	for (int i = 0; i < 30 * 64 && pause_left() != 0; i++)
		trip(fd[0]);
	CHECK_EQ(pause_left(), 0);
	net_close(fd);
}
