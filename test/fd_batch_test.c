/*
 * fd_batch_test.c - reads that are done for those who wait, together.
 */
/* test: procs */
#include <goro.h>

#include <sys/socket.h>

#include "await.h"
#include "fd.h"
#include "net.h"
#include "runtime.h"

#define CONNS 48

static int near[CONNS], far[CONNS];	/* TCP; far ends are read from */
static int waiting, failed;

static void connect_all(void)
{
	struct sockaddr_in a;
	int l = net_listen(&a);

	for (int i = 0; i < CONNS; i++) {
		near[i] = net_dial(&a);
		far[i] = goro_accept(l, NULL, NULL);
		CHECK(far[i] >= 0);
		CHECK_EQ(setsockopt(far[i], IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), 0);
	}
	goro_close(l);
}

static bool somebody_waits(int fd)
{
	return !fd_queue_empty(&fd_at(fd)->waiters[FD_READ]);
}

/* All who read have nothing to read, and wait. */
static void await_all(void)
{
	for (int i = 0; i < CONNS; i++)
		AWAIT(somebody_waits(far[i]));
}

static uint64_t reads(void)
{
	return load_relaxed(&fd_batch_reads);
}

static bool has_ring(void)
{
	return !getenv("GORO_DEBUG") || !strstr(getenv("GORO_DEBUG"), "nouring=1");
}

struct message {
	int conn, turn;
	char rest[56];
};

/* Answers with what it got, one more. */
static void serve(int i)
{
	struct message m;
	ssize_t n;

	while ((n = goro_read_full(far[i], &m, sizeof m)) == sizeof m) {
		CHECK_EQ(m.conn, i);
		m.turn++;
		CHECK_EQ(goro_write(far[i], &m, sizeof m), (ssize_t)sizeof m);
	}
	CHECK_EQ(n, 0);
	__atomic_fetch_add(&waiting, -1, __ATOMIC_RELAXED);
}

static void serve_all(void)
{
	waiting = CONNS;
	for (int i = 0; i < CONNS; i++)
		CHECK_EQ(goro_go(serve, i), 0);
}

/* One message to each at once, in parts if so asked, and the answers. */
static void one_turn(int turn, size_t first_part)
{
	struct message m = { 0 };

	for (int i = 0; i < CONNS; i++) {
		m.conn = i;
		m.turn = turn;
		CHECK_EQ(send(near[i], &m, first_part, 0), (ssize_t)first_part);
	}
	if (first_part < sizeof m)
		goro_gosched();
	for (int i = 0; i < CONNS && first_part < sizeof m; i++) {
		m.conn = i;
		m.turn = turn;
		CHECK_EQ(send(near[i], (char *)&m + first_part, sizeof m - first_part, 0),
		         (ssize_t)(sizeof m - first_part));
	}
	for (int i = 0; i < CONNS; i++) {
		CHECK_EQ(goro_read_full(near[i], &m, sizeof m), (ssize_t)sizeof m);
		CHECK_EQ(m.conn, i);
		CHECK_EQ(m.turn, turn + 1);
	}
}

static void end_all(void)
{
	for (int i = 0; i < CONNS; i++)
		goro_close(near[i]);
	AWAIT(__atomic_load_n(&waiting, __ATOMIC_RELAXED) == 0);
	for (int i = 0; i < CONNS; i++)
		goro_close(far[i]);
}

GO_TEST(each_gets_its_own)
{
	connect_all();
	serve_all();
	for (int turn = 0; turn < SCALED(2000) || (has_ring() && reads() == 0); turn++)
		one_turn(turn, turn % 3 ? sizeof(struct message) : 5);
	end_all();
}

/* Until events are answered by a batch, or it is known that there is none. */
static bool batches(void)
{
	for (int turn = 0; turn < 2000; turn++) {
		uint64_t before = reads();

		await_all();
		one_turn(turn, sizeof(struct message));
		if (reads() >= before + CONNS / 2)
			return true;
	}
	return false;
}

/* The end of the file comes to all at once. */
GO_TEST(the_end_is_a_result)
{
	connect_all();
	serve_all();
	if (!batches())
		SKIP("no io_uring");
	await_all();
	end_all();	/* serve checks that it got 0 */
}

static void read_reset(int i)
{
	char c;
	ssize_t n = goro_read(far[i], &c, 1);

	if (n != -ECONNRESET)
		__atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&waiting, -1, __ATOMIC_RELAXED);
}

/* An error is told to who waits, once: it is gone after that. */
GO_TEST(an_error_is_a_result)
{
	connect_all();
	serve_all();
	if (!batches())
		SKIP("no io_uring");
	end_all();
	connect_all();
	waiting = CONNS;
	for (int i = 0; i < CONNS; i++)
		CHECK_EQ(goro_go(read_reset, i), 0);
	await_all();
	for (int i = 0; i < CONNS; i++) {
		struct linger none = { .l_onoff = 1, .l_linger = 0 };

		CHECK_EQ(setsockopt(near[i], SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
		goro_close(near[i]);
	}
	AWAIT(__atomic_load_n(&waiting, __ATOMIC_RELAXED) == 0);
	CHECK_EQ(__atomic_load_n(&failed, __ATOMIC_RELAXED), 0);
	for (int i = 0; i < CONNS; i++)
		goro_close(far[i]);
}

/* What an event has announced is gone when it is looked at, if nobody was faster than we
 * are here: who waits goes on waiting. */
GO_TEST(nothing_left_is_no_result)
{
	struct message m = { 0 };

	connect_all();
	serve_all();
	if (!batches())
		SKIP("no io_uring");
	for (int turn = 0; turn < 100; turn++) {
		await_all();
		for (int i = 0; i < CONNS; i++) {
			m.conn = i;
			CHECK_EQ(send(near[i], &m, sizeof m, 0), (ssize_t)sizeof m);
		}
		for (int i = 0; i < CONNS; i++)
			if (recv(far[i], &m, sizeof m, MSG_DONTWAIT) != sizeof m)
				CHECK_EQ(goro_read_full(near[i], &m, sizeof m), (ssize_t)sizeof m);
		one_turn(turn, sizeof m);
	}
	end_all();
}

/* Much at once is read all the same, and in order. */
#define MUCH 30000

static void read_much(int i)
{
	unsigned char buf[8192];
	int at = 0;
	ssize_t n;

	while ((n = goro_read(far[i], buf, sizeof buf)) > 0)
		for (ssize_t k = 0; k < n; k++, at++)
			CHECK_EQ(buf[k], at % 251);
	CHECK_EQ(n, 0);
	CHECK_EQ(at, MUCH);
	__atomic_fetch_add(&waiting, -1, __ATOMIC_RELAXED);
}

GO_TEST(much_comes_in_order)
{
	static unsigned char data[MUCH];

	for (int i = 0; i < MUCH; i++)
		data[i] = (unsigned char)(i % 251);
	connect_all();
	serve_all();
	batches();
	end_all();
	connect_all();
	waiting = CONNS;
	for (int i = 0; i < CONNS; i++)
		CHECK_EQ(goro_go(read_much, i), 0);
	await_all();
	for (int at = 0; at < MUCH; at += 1000)
		for (int i = 0; i < CONNS; i++)
			CHECK_EQ(goro_write(near[i], data + at, 1000), 1000);
	end_all();
}
