/*
 * io_deadline_test.c - deadlines of descriptors, after Go's net/timeout_test.go.
 */
/* test: procs */
#include <goro.h>

#include <pthread.h>

#include "net.h"

/* A deadline may be late because the machine is busy; by more than this it is wrong. */
#define TOO_LATE (5 * GORO_SECOND)

static void check_time(int64_t start, int64_t ns)
{
	int64_t took = goro_now() - start;

	CHECK(took >= ns);
	CHECK(took < (ns > 0 ? ns : 0) + TOO_LATE);
}

/* Deadlines that end a call at once, without a wait. */
static const int64_t past[] = { GORO_NOW, 1, -GORO_SECOND, INT64_MIN };
static const int64_t spans[] = { 0, 1, GORO_MICROSECOND, 50 * GORO_MICROSECOND, GORO_MILLISECOND,
                                 5 * GORO_MILLISECOND, 50 * GORO_MILLISECOND };
#define N(a) (sizeof(a) / sizeof((a)[0]))

GO_TEST(read_times_out)
{
	char c;
	int fd[2];

	net_pair(fd);
	CHECK_EQ(goro_write(fd[1], "x", 1), 1);
	CHECK_EQ(goro_poll(fd[0], POLLIN, GORO_FOREVER), POLLIN);
	for (size_t i = 0; i < N(past); i++) {
		CHECK_EQ(goro_set_deadline(fd[0], past[i], GORO_FOREVER), 0);
		CHECK_EQ(goro_read(fd[0], &c, 1), -ETIMEDOUT);
		CHECK_EQ(goro_recv(fd[0], &c, 1, 0), -ETIMEDOUT);
		CHECK_EQ(goro_write(fd[0], "y", 1), 1);
	}
	CHECK_EQ(goro_set_deadline(fd[0], GORO_FOREVER, GORO_FOREVER), 0);
	CHECK_EQ(goro_read(fd[0], &c, 1), 1);
	for (size_t i = 0; i < N(spans); i++) {
		int64_t start = goro_now();

		CHECK_EQ(goro_set_deadline(fd[0], start + spans[i], GORO_FOREVER), 0);
		CHECK_EQ(goro_read(fd[0], &c, 1), -ETIMEDOUT);
		check_time(start, spans[i]);
		CHECK_EQ(goro_read_full(fd[0], &c, 1), -ETIMEDOUT);
	}
	net_close(fd);
}

GO_TEST(write_times_out)
{
	static char big[16 << 20];
	ssize_t n;
	int fd[2];

	net_pair(fd);
	for (size_t i = 0; i < N(past); i++) {
		CHECK_EQ(goro_set_deadline(fd[0], GORO_FOREVER, past[i]), 0);
		CHECK_EQ(goro_write(fd[0], "x", 1), -ETIMEDOUT);
	}
	for (size_t i = 0; i < N(spans); i++) {
		int64_t start = goro_now();

		CHECK_EQ(goro_set_deadline(fd[0], GORO_FOREVER, start + spans[i]), 0);
		n = goro_write(fd[0], big, sizeof big);
		CHECK(n == -ETIMEDOUT || (n > 0 && n < (ssize_t)sizeof big));
		check_time(start, spans[i]);
		CHECK_EQ(goro_write_full(fd[0], big, 1), -ETIMEDOUT);
	}
	net_close(fd);
}

GO_TEST(accept_times_out)
{
	struct sockaddr_in a;
	int l = net_listen(&a), fd = net_dial(&a), got;

	for (size_t i = 0; i < N(past); i++) {
		CHECK_EQ(goro_set_deadline(l, past[i], GORO_FOREVER), 0);
		CHECK_EQ(goro_accept(l, NULL, NULL), -ETIMEDOUT);
	}
	CHECK_EQ(goro_set_deadline(l, goro_now() + GORO_SECOND, GORO_FOREVER), 0);
	got = goro_accept(l, NULL, NULL);
	CHECK(got >= 0);
	for (size_t i = 0; i < N(spans); i++) {
		int64_t start = goro_now();

		CHECK_EQ(goro_set_deadline(l, start + spans[i], GORO_FOREVER), 0);
		CHECK_EQ(goro_accept(l, NULL, NULL), -ETIMEDOUT);
		check_time(start, spans[i]);
	}
	net_close((int[]){ fd, got });
	CHECK_EQ(goro_close(l), 0);
}

/* A full queue drops what comes, so that connecting takes for ever. */
GO_TEST(connect_times_out)
{
	struct sockaddr_in a;
	int l = net_listen(&a), fd = -1, r = 0;

	CHECK_EQ(listen(l, 0), 0);
	for (int i = 0; i < 20 && r == 0; i++) {
		int64_t start = goro_now();

		fd = goro_socket(AF_INET, SOCK_STREAM, 0);
		CHECK_EQ(goro_set_deadline(fd, GORO_FOREVER, start + 10 * GORO_MILLISECOND), 0);
		r = goro_connect(fd, (struct sockaddr *)&a, sizeof a);
		if (r == -ETIMEDOUT)
			check_time(start, 10 * GORO_MILLISECOND);
	}
	CHECK_EQ(r, -ETIMEDOUT);
	net_close((int[]){ fd, l });
}

GO_TEST(datagram_times_out)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = goro_socket(AF_INET, SOCK_DGRAM, 0);
	char c;

	CHECK_EQ(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	for (size_t i = 0; i < N(spans); i++) {
		int64_t start = goro_now();

		CHECK_EQ(goro_set_deadline(fd, start + spans[i], GORO_FOREVER), 0);
		CHECK_EQ(goro_recvfrom(fd, &c, 1, 0, NULL, NULL), -ETIMEDOUT);
		check_time(start, spans[i]);
	}
	CHECK_EQ(goro_close(fd), 0);
}

GO_TEST(pipe_times_out)
{
	int fd[2];
	char c;

	CHECK_EQ(pipe(fd), 0);
	for (size_t i = 0; i < N(spans); i++) {
		int64_t start = goro_now();

		CHECK_EQ(goro_set_deadline(fd[0], start + spans[i], GORO_FOREVER), 0);
		CHECK_EQ(goro_read(fd[0], &c, 1), -ETIMEDOUT);
		check_time(start, spans[i]);
	}
	net_close(fd);
}

/* ------------------------------------------------------- must not return */

static int returned;

static void read_and_say(int fd)
{
	char c;
	ssize_t n = goro_read(fd, &c, 1);

	CHECK(n == -ECANCELED);
	__atomic_store_n(&returned, 1, __ATOMIC_RELEASE);
}

GO_TEST(no_deadline_does_not_time_out)
{
	int fd[2];
	size_t before;

	net_pair(fd);
	CHECK_EQ(goro_set_deadline(fd[0], GORO_NOW, GORO_NOW), 0);
	CHECK_EQ(goro_set_deadline(fd[0], GORO_FOREVER, GORO_NOW), 0);
	before = net_waiting();
	go(read_and_say, fd[0]);
	AWAIT(net_waiting() > before);
	/* A deadline that is taken away again, while the read waits, does nothing. */
	CHECK_EQ(goro_set_deadline(fd[0], goro_now() + 20 * GORO_MILLISECOND, GORO_FOREVER), 0);
	CHECK_EQ(goro_set_deadline(fd[0], GORO_FOREVER, GORO_FOREVER), 0);
	goro_sleep(50 * GORO_MILLISECOND);
	CHECK_EQ(__atomic_load_n(&returned, __ATOMIC_ACQUIRE), 0);
	CHECK_EQ(goro_close(fd[0]), 0);
	AWAIT(__atomic_load_n(&returned, __ATOMIC_ACQUIRE));
	CHECK_EQ(goro_close(fd[1]), 0);
}

static void accept_and_say(int l)
{
	CHECK_EQ(goro_accept(l, NULL, NULL), -ECANCELED);
	__atomic_store_n(&returned, 1, __ATOMIC_RELEASE);
}

GO_TEST(an_accept_without_a_deadline_waits_on)
{
	struct sockaddr_in a;
	int l = net_listen(&a);
	size_t before = net_waiting();

	CHECK_EQ(goro_set_deadline(l, GORO_FOREVER, GORO_NOW), 0);
	go(accept_and_say, l);
	AWAIT(net_waiting() > before);
	goro_sleep(30 * GORO_MILLISECOND);
	CHECK_EQ(__atomic_load_n(&returned, __ATOMIC_ACQUIRE), 0);
	CHECK_EQ(goro_close(l), 0);
	AWAIT(__atomic_load_n(&returned, __ATOMIC_ACQUIRE));
}

static void write_and_say(int fd)
{
	static char big[16 << 20];
	ssize_t n = goro_write(fd, big, sizeof big);

	CHECK(n == -ECANCELED || (n > 0 && n < (ssize_t)sizeof big));
	__atomic_store_n(&returned, 1, __ATOMIC_RELEASE);
}

GO_TEST(a_write_without_a_deadline_waits_on)
{
	size_t before;
	int fd[2];

	net_pair(fd);
	CHECK_EQ(goro_set_deadline(fd[0], GORO_NOW, GORO_FOREVER), 0);
	before = net_waiting();
	go(write_and_say, fd[0]);
	AWAIT(net_waiting() > before);
	goro_sleep(30 * GORO_MILLISECOND);
	CHECK_EQ(__atomic_load_n(&returned, __ATOMIC_ACQUIRE), 0);
	CHECK_EQ(goro_close(fd[0]), 0);
	AWAIT(__atomic_load_n(&returned, __ATOMIC_ACQUIRE));
	CHECK_EQ(goro_close(fd[1]), 0);
}

/* ------------------------------------------------------------ fluctuation */

/* Again and again, each time later than its deadline, and not by much on average. */
GO_TEST(fluctuation)
{
	int64_t late = 0;
	char c;
	int fd[2], rounds = SCALED(100);

	net_pair(fd);
	for (int i = 0; i < rounds; i++) {
		int64_t d = goro_now() + GORO_MILLISECOND + i % 10 * 100 * GORO_MICROSECOND;

		CHECK_EQ(goro_set_deadline(fd[0], d, GORO_FOREVER), 0);
		CHECK_EQ(goro_read(fd[0], &c, 1), -ETIMEDOUT);
		CHECK(goro_now() >= d);
		late += goro_now() - d;
	}
	CHECK(late / rounds < 50 * GORO_MILLISECOND);
	net_close(fd);
}

/* ------------------------------------------------------ changes while it waits */

static int64_t set_at;

static void set_later(int fd, int64_t wait, int64_t deadline)
{
	goro_sleep(wait);
	CHECK_EQ(goro_set_deadline(fd, deadline, GORO_FOREVER), 0);
	__atomic_store_n(&set_at, goro_now(), __ATOMIC_RELEASE);
}

GO_TEST(deadline_set_while_waiting)
{
	int64_t start = goro_now(), early = start + 20 * GORO_MILLISECOND;
	char c;
	int fd[2];

	net_pair(fd);
	go(set_later, fd[0], 5 * GORO_MILLISECOND, early);
	CHECK_EQ(goro_read(fd[0], &c, 1), -ETIMEDOUT);
	check_time(start, 20 * GORO_MILLISECOND);

	/* From later to earlier. */
	start = goro_now();
	CHECK_EQ(goro_set_deadline(fd[0], start + 3600 * GORO_SECOND, GORO_FOREVER), 0);
	go(set_later, fd[0], 5 * GORO_MILLISECOND, start + 20 * GORO_MILLISECOND);
	CHECK_EQ(goro_read(fd[0], &c, 1), -ETIMEDOUT);
	check_time(start, 20 * GORO_MILLISECOND);

	/* From earlier to later, by which the timer comes too early; if the machine was
	 * not too busy to set it in time. */
	start = goro_now();
	set_at = 0;
	CHECK_EQ(goro_set_deadline(fd[0], start + 20 * GORO_MILLISECOND, GORO_FOREVER), 0);
	go(set_later, fd[0], 2 * GORO_MILLISECOND, start + 40 * GORO_MILLISECOND);
	CHECK_EQ(goro_read(fd[0], &c, 1), -ETIMEDOUT);
	AWAIT(__atomic_load_n(&set_at, __ATOMIC_ACQUIRE) != 0);
	if (set_at < start + 20 * GORO_MILLISECOND)
		check_time(start, 40 * GORO_MILLISECOND);

	/* Into the past. */
	start = goro_now();
	CHECK_EQ(goro_set_deadline(fd[0], start + 3600 * GORO_SECOND, GORO_FOREVER), 0);
	go(set_later, fd[0], 2 * GORO_MILLISECOND, GORO_NOW);
	CHECK_EQ(goro_read(fd[0], &c, 1), -ETIMEDOUT);
	check_time(start, 2 * GORO_MILLISECOND);
	net_close(fd);
}

/* Go's TestReadWriteProlongedTimeout: a deadline that keeps moving never comes. */
GO_TEST(prolonged)
{
	char c;
	int fd[2];

	net_pair(fd);
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(goro_set_deadline(fd[0], goro_now() + GORO_SECOND * 10, GORO_FOREVER), 0);
		CHECK_EQ(goro_write(fd[1], "x", 1), 1);
		CHECK_EQ(goro_read(fd[0], &c, 1), 1);
		goro_sleep(GORO_MILLISECOND / 5);
	}
	net_close(fd);
}

/* ------------------------------------------------------- various deadlines */

static void flood(int fd)
{
	static char buf[4096];

	while (goro_write(fd, buf, sizeof buf) > 0)
		;
	goro_close(fd);
}

static void serve_floods(int l)
{
	int fd;

	while ((fd = goro_accept(l, NULL, NULL)) >= 0)
		go(flood, fd);
}

/* Reads until the deadline, from a writer that never stops. */
GO_TEST(various_deadlines)
{
	static const int64_t timeouts[] = { 1, 10, 100, GORO_MICROSECOND, 10 * GORO_MICROSECOND,
		100 * GORO_MICROSECOND, GORO_MILLISECOND, 10 * GORO_MILLISECOND, 50 * GORO_MILLISECOND };
	char buf[8192];
	struct sockaddr_in a;
	int l = net_listen(&a);

	go(serve_floods, l);
	for (size_t i = 0; i < N(timeouts); i++)
		for (int run = 0; run < 2; run++) {
			int fd = net_dial(&a);
			int64_t start = goro_now();
			ssize_t n;

			CHECK_EQ(goro_set_deadline(fd, start + timeouts[i], GORO_FOREVER), 0);
			while ((n = goro_read(fd, buf, sizeof buf)) > 0)
				;
			CHECK_EQ(n, -ETIMEDOUT);
			check_time(start, timeouts[i]);
			CHECK_EQ(goro_close(fd), 0);
		}
	CHECK_EQ(goro_close(l), 0);
}

/* ------------------------------------------------------------- concurrently */

static int race_over;

static void set_all_the_time(int fd, goro_waitgroup *wg)
{
	for (int i = 0; !__atomic_load_n(&race_over, __ATOMIC_ACQUIRE); i++) {
		int64_t now = goro_now();

		CHECK_EQ(goro_set_deadline(fd, i % 3 ? now + i % 50 * GORO_MICROSECOND : GORO_FOREVER,
		                           now + i % 7 * 30 * GORO_MICROSECOND), 0);
		if (i % 8 == 0)
			goro_sleep(20 * GORO_MICROSECOND);
	}
	goro_waitgroup_done(wg);
}

static void use_all_the_time(int fd, bool writes, goro_waitgroup *wg)
{
	char buf[64] = { 0 };

	while (!__atomic_load_n(&race_over, __ATOMIC_ACQUIRE)) {
		ssize_t n = writes ? goro_write(fd, buf, sizeof buf) : goro_read(fd, buf, sizeof buf);

		CHECK(n > 0 || n == -ETIMEDOUT);
		if (n < 0)
			goro_sleep(10 * GORO_MICROSECOND);
	}
	goro_waitgroup_done(wg);
}

/* Go's TestConcurrentSetDeadline and TestReadWriteDeadlineRace. */
GO_TEST(concurrent_set)
{
	goro_waitgroup wg = { 0 };
	int fd[2];

	net_pair(fd);
	goro_waitgroup_add(&wg, 8);
	for (int i = 0; i < 2; i++) {
		go(set_all_the_time, fd[i], &wg);
		go(set_all_the_time, fd[i], &wg);
		go(use_all_the_time, fd[i], false, &wg);
		go(use_all_the_time, fd[i], true, &wg);
	}
	goro_sleep(SCALED(300) * GORO_MILLISECOND);
	__atomic_store_n(&race_over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(goro_set_deadline(fd[i], GORO_NOW, GORO_NOW), 0);
	goro_waitgroup_wait(&wg);
	net_close(fd);
}

/* Go's TestRacyRead: many read one pipe, each with deadlines of its own that come all
 * the time; no byte is lost or read twice. */
static int racy_sum, racy_left;

static void racy_reader(int fd, goro_waitgroup *wg)
{
	for (int i = 0; __atomic_load_n(&racy_left, __ATOMIC_ACQUIRE) > 0; i++) {
		unsigned char c;
		ssize_t n;

		CHECK_EQ(goro_set_deadline(fd, goro_now() + i % 20 * GORO_MICROSECOND, GORO_FOREVER), 0);
		n = goro_read(fd, &c, 1);
		CHECK(n == 1 || n == -ETIMEDOUT);
		if (n == 1) {
			__atomic_add_fetch(&racy_sum, c, __ATOMIC_RELAXED);
			__atomic_sub_fetch(&racy_left, 1, __ATOMIC_RELEASE);
		} else {
			goro_gosched();
		}
	}
	goro_waitgroup_done(wg);
}

GO_TEST(racy_reads)
{
	goro_waitgroup wg = { 0 };
	int fd[2], sum = 0, bytes = SCALED(3000);

	CHECK_EQ(pipe(fd), 0);
	racy_left = bytes;
	goro_waitgroup_add(&wg, 8);
	for (int i = 0; i < 8; i++)
		go(racy_reader, fd[0], &wg);
	for (int i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)i;

		CHECK_EQ(goro_write(fd[1], &c, 1), 1);
		sum += c;
		if (i % 16 == 0)
			goro_sleep(10 * GORO_MICROSECOND);
	}
	goro_waitgroup_wait(&wg);
	CHECK_EQ(racy_sum, sum);
	net_close(fd);
}

static void expect_timeout(int fd, goro_waitgroup *wg)
{
	char c;

	CHECK_EQ(goro_read(fd, &c, 1), -ETIMEDOUT);
	goro_waitgroup_done(wg);
}

/* One deadline wakes all. */
GO_TEST(all_who_wait_time_out)
{
	goro_waitgroup wg = { 0 };
	int fd[2];

	net_pair(fd);
	CHECK_EQ(goro_set_deadline(fd[0], goro_now() + 20 * GORO_MILLISECOND, GORO_FOREVER), 0);
	goro_waitgroup_add(&wg, 50);
	for (int i = 0; i < 50; i++)
		go(expect_timeout, fd[0], &wg);
	goro_waitgroup_wait(&wg);
	net_close(fd);
}

/* A deadline goes with its file, not with the number; a timer left running does no
 * harm to the next one. */
GO_TEST(deadline_ends_with_the_file)
{
	struct sockaddr_in a;
	int l = net_listen(&a);
	char c;

	for (int i = 0; i < 20; i++) {
		int fd = net_dial(&a), peer = goro_accept(l, NULL, NULL);

		CHECK_EQ(goro_set_deadline(fd, goro_now() + 2 * GORO_MILLISECOND, GORO_NOW), 0);
		if (i % 2)
			CHECK_EQ(goro_read(fd, &c, 1), -ETIMEDOUT);
		net_close((int[]){ fd, peer });
		fd = net_dial(&a);
		peer = goro_accept(l, NULL, NULL);
		CHECK_EQ(goro_poll(fd, POLLIN, goro_now() + 4 * GORO_MILLISECOND), 0);
		CHECK_EQ(goro_write(fd, "x", 1), 1);
		CHECK_EQ(goro_write(peer, "x", 1), 1);
		CHECK_EQ(goro_read(fd, &c, 1), 1);
		net_close((int[]){ fd, peer });
	}
	CHECK_EQ(goro_close(l), 0);
}

static void *plain_timeout(void *arg)
{
	char c;

	CHECK_EQ(goro_read(*(int *)arg, &c, 1), -ETIMEDOUT);
	return NULL;
}

TEST(in_a_plain_thread)
{
	int64_t start = goro_now();
	pthread_t t;
	int fd[2];

	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(goro_set_deadline(fd[0], start + 20 * GORO_MILLISECOND, GORO_FOREVER), 0);
	CHECK_EQ(pthread_create(&t, NULL, plain_timeout, &fd[0]), 0);
	plain_timeout(&fd[0]);
	check_time(start, 20 * GORO_MILLISECOND);
	pthread_join(t, NULL);
	CHECK_EQ(goro_close(fd[0]), 0);
}
