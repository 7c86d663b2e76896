/*
 * fd_test.c - descriptors: closed while in use, numbers used again, exhaustion.
 */
/* test: procs */
#include <goro.h>

#include <fcntl.h>
#include <pthread.h>

#include "sched/linger.h"
#include "net.h"

/* ------------------------------------------------------------------ close */

static void read_canceled(int fd, goro_waitgroup *wg)
{
	char c;

	CHECK_EQ(goro_read(fd, &c, 1), -ECANCELED);
	goro_waitgroup_done(wg);
}

static void read_and_say(int fd, goro_chan *woken, int i)
{
	char c;

	CHECK_EQ(goro_read(fd, &c, 1), -ECANCELED);
	goro_chan_send(woken, &i);
}

/* On one P; unless one is preempted. */
static bool close_wakes_in_order(void)
{
	enum { N = 10 };
	goro_chan *woken = goro_chan_of(int, N);
	bool in_order = true;
	size_t before;
	int fd[2];

	net_pair(fd);
	before = net_waiting();
	for (size_t i = 0; i < N; i++) {
		go(read_and_say, fd[0], woken, (int)i);
		AWAIT(net_waiting() == before + i + 1);
	}
	net_close(fd);
	for (int i = 0, who; i < N; i++) {
		goro_chan_recv(woken, &who);
		in_order = in_order && who == i;
	}
	goro_chan_unref(woken);
	return in_order;
}

GO_TEST(close_wakes_the_longest_waiter_first)
{
	goro_gomaxprocs(1);
	for (int tries = 10; !close_wakes_in_order();)
		CHECK(--tries > 0);
}

static void poll_canceled(int fd, goro_waitgroup *wg)
{
	CHECK_EQ(goro_poll(fd, POLLIN | POLLPRI, GORO_FOREVER), -ECANCELED);
	goro_waitgroup_done(wg);
}

static void write_canceled(int fd, goro_waitgroup *wg)
{
	static char big[8 << 20];
	ssize_t n = goro_write(fd, big, sizeof big);

	CHECK(n == -ECANCELED || (n > 0 && n < (ssize_t)sizeof big));
	goro_waitgroup_done(wg);
}

static void *thread_canceled(void *arg)
{
	char c;

	CHECK_EQ(goro_read(*(int *)arg, &c, 1), -ECANCELED);
	return NULL;
}

GO_TEST(close_wakes_everyone)
{
	goro_waitgroup wg = { 0 };
	pthread_t t;
	size_t before;
	int fd[2];

	net_pair(fd);
	before = net_waiting();
	goro_waitgroup_add(&wg, 32);
	for (int i = 0; i < 20; i++)
		go(read_canceled, fd[0], &wg);
	for (int i = 0; i < 10; i++)
		go(poll_canceled, fd[0], &wg);
	for (int i = 0; i < 2; i++)
		go(write_canceled, fd[0], &wg);
	CHECK_EQ(pthread_create(&t, NULL, thread_canceled, &fd[0]), 0);
	AWAIT(net_waiting() >= before + 32);
	goro_sleep(5 * GORO_MILLISECOND);	/* for the thread, most likely */
	CHECK_EQ(goro_close(fd[0]), 0);
	/* Another descriptor, of the runtime's own, may have the number for a moment. */
	AWAIT(fcntl(fd[0], F_GETFL) == -1);
	goro_waitgroup_wait(&wg);
	pthread_join(t, NULL);
	AWAIT(goro_read(fd[0], &t, 1) == -EBADF);
	CHECK_EQ(goro_close(fd[1]), 0);
}

static void accept_canceled(int l, goro_waitgroup *wg)
{
	CHECK_EQ(goro_accept(l, NULL, NULL), -ECANCELED);
	goro_waitgroup_done(wg);
}

GO_TEST(close_wakes_accepts)
{
	goro_waitgroup wg = { 0 };
	struct sockaddr_in a;
	size_t before = net_waiting();
	int l = net_listen(&a);

	goro_waitgroup_add(&wg, 10);
	for (int i = 0; i < 10; i++)
		go(accept_canceled, l, &wg);
	AWAIT(net_waiting() >= before + 10);
	CHECK_EQ(goro_close(l), 0);
	goro_waitgroup_wait(&wg);
}

/* Go's TestTTYClose. */
GO_TEST(close_wakes_who_reads_a_terminal)
{
	goro_waitgroup wg = { 0 };
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	size_t before = net_waiting();

	if (master < 0 || grantpt(master) || unlockpt(master))
		SKIP("no terminals here");
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	goro_waitgroup_add(&wg, 1);
	go(read_canceled, slave, &wg);
	AWAIT(net_waiting() > before);
	CHECK_EQ(goro_close(slave), 0);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(goro_close(master), 0);
}

/* Moves the descriptor to a number that the runtime does not get by chance: it opens some
 * of its own now and then. */
static int move_to(int fd, int number)
{
	CHECK_EQ(dup2(fd, number), number);
	CHECK_EQ(close(fd), 0);
	return number;
}

/* Two goroutines close at once: one of them does. */
static int closed, refused;

static void close_once(int fd, goro_waitgroup *wg)
{
	int r = goro_close(fd);

	CHECK(r == 0 || r == -EBADF);
	__atomic_add_fetch(r ? &refused : &closed, 1, __ATOMIC_RELAXED);
	goro_waitgroup_done(wg);
}

GO_TEST(one_of_many_closes)
{
	for (int i = 0; i < SCALED(400); i++) {
		goro_waitgroup wg = { 0 };
		int fd[2];

		linger_round(i);
		CHECK_EQ(pipe(fd), 0);
		fd[0] = move_to(fd[0], 500);
		goro_waitgroup_add(&wg, 4);
		for (int k = 0; k < 4; k++)
			go(close_once, fd[0], &wg);
		goro_waitgroup_wait(&wg);
		CHECK_EQ(goro_close(fd[1]), 0);
		CHECK_EQ(__atomic_load_n(&closed, __ATOMIC_RELAXED), i + 1);
	}
}

/* Go's TestClosedPipeRaceRead and Write, and for sockets: a close while users enter the
 * call, are in it, or leave it. */
static void use_until_closed(int fd, bool writes, goro_waitgroup *wg)
{
	static char buf[4096];
	ssize_t n;

	do
		n = writes ? goro_write(fd, buf, sizeof buf) : goro_read(fd, buf, sizeof buf);
	while (n > 0);
	CHECK(n == -ECANCELED || n == -EBADF || n == -EPIPE || n == 0);
	goro_waitgroup_done(wg);
}

static void race(bool socket, bool writes)
{
	for (int i = 0; i < SCALED(300); i++) {
		goro_waitgroup wg = { 0 };
		int fd[2], used;

		linger_round(i);
		if (socket)
			net_pair(fd);
		else
			CHECK_EQ(pipe(fd), 0);
		used = fd[writes];
		goro_waitgroup_add(&wg, 4);
		for (int k = 0; k < 4; k++)
			go(use_until_closed, used, writes, &wg);
		if (i % 3)
			goro_sleep(i % 7 * 10 * GORO_MICROSECOND);
		CHECK_EQ(goro_close(used), 0);
		goro_waitgroup_wait(&wg);
		CHECK_EQ(goro_close(fd[!writes]), 0);
	}
}

GO_TEST(close_races_pipe_read) { race(false, false); }
GO_TEST(close_races_pipe_write) { race(false, true); }
GO_TEST(close_races_socket_read) { race(true, false); }
GO_TEST(close_races_socket_write) { race(true, true); }

/* ------------------------------------------------------ numbers used again */

/*
 * Readers on one number, that is closed and used again all the time. Each pipe holds
 * its own turn; who was on a pipe when it was closed must not read from the next. A
 * reader enters with a turn that is at most one behind.
 */
static int turn_now, reuse_over;

static void read_turns(int fd, goro_waitgroup *wg)
{
	int last = 0;

	while (!__atomic_load_n(&reuse_over, __ATOMIC_ACQUIRE)) {
		int before = __atomic_load_n(&turn_now, __ATOMIC_ACQUIRE), got;
		ssize_t n = goro_read(fd, &got, sizeof got);
		int after = __atomic_load_n(&turn_now, __ATOMIC_ACQUIRE);

		if (n != sizeof got) {
			CHECK(n == -ECANCELED || n == -EBADF || n == 0);
			goro_gosched();
			continue;
		}
		CHECK(got >= before - 1 && got <= after);
		CHECK(got >= last);
		last = got;
	}
	goro_waitgroup_done(wg);
}

GO_TEST(who_was_in_a_call_never_gets_the_next_file)
{
	goro_waitgroup wg = { 0 };
	int fd[2];

	goro_waitgroup_add(&wg, 4);
	for (int k = 0; k < 4; k++)
		go(read_turns, 500, &wg);
	for (int i = 1; i <= SCALED(2000); i++) {
		linger_round(i);
		CHECK_EQ(pipe(fd), 0);
		fd[0] = move_to(fd[0], 500);
		__atomic_store_n(&turn_now, i, __ATOMIC_RELEASE);
		/* A reader of the turn before that still waited would see this one. */
		if (i % 2)
			CHECK_EQ(goro_write(fd[1], &i, sizeof i), sizeof i);
		if (i % 5 == 0)
			goro_sleep(10 * GORO_MICROSECOND);
		CHECK_EQ(goro_close(fd[0]), 0);
		/* Where pipes do not know RWF_NOWAIT a reader in a call may close it. */
		AWAIT(fcntl(fd[0], F_GETFD) < 0);
		CHECK_EQ(goro_close(fd[1]), 0);
	}
	__atomic_store_n(&reuse_over, 1, __ATOMIC_RELEASE);
	goro_waitgroup_wait(&wg);
}

/* ----------------------------------------------- close(2) instead of goro_close */

static void write_later(int fd)
{
	goro_sleep(GORO_MILLISECOND);
	CHECK_EQ(goro_write(fd, "x", 1), 1);
}

static void use_pair(int fd[2])
{
	char c;

	go(write_later, fd[1]);
	CHECK_EQ(goro_read(fd[0], &c, 1), 1);
	CHECK_EQ(close(fd[0]), 0);
	CHECK_EQ(close(fd[1]), 0);
}

/* The same two numbers, for another kind of file each time. */
GO_TEST(plain_close_and_the_number_again)
{
	enum { NUMBER = 500 };
	int fd[2];

	for (int i = 0; i < 30; i++) {
		if (i % 3 == 0)
			CHECK_EQ(pipe(fd), 0);
		else
			CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
		fd[0] = move_to(fd[0], NUMBER);
		use_pair(fd);
		if (i % 5 == 0) {
			char c;

			fd[0] = move_to(open("/dev/null", O_RDONLY), NUMBER);
			CHECK_EQ(goro_read(fd[0], &c, 1), 0);
			close(fd[0]);
			fd[0] = move_to(open("/proc/self/exe", O_RDONLY), NUMBER);
			CHECK_EQ(goro_read(fd[0], &c, 1), 1);
			close(fd[0]);
		}
	}
}

/* A pair of sockets, of which the first has that number. */
static void pair_at(int number, int fd[2])
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	fd[0] = move_to(fd[0], number);
}

static uint64_t wakeups(void)
{
	struct goro_stats now;

	goro_stats_read(&now);
	return now.netpoll_wakeups;
}

static void write_to_old(int fd)
{
	NET_AWAIT_WAITER();
	CHECK_EQ(write(fd, "old", 3), 3);
}

/* The old file stays open under another number and goes on to have events. */
GO_TEST(events_of_a_file_that_lost_its_number)
{
	int fd[2], other, next[2];
	uint64_t before;
	char c;

	pair_at(500, fd);
	go(write_later, fd[1]);
	CHECK_EQ(goro_read(fd[0], &c, 1), 1);
	other = dup(fd[0]);
	CHECK_EQ(close(fd[0]), 0);
	pair_at(500, next);
	CHECK_EQ(write(fd[1], "old", 3), 3);
	go(write_later, next[1]);
	CHECK_EQ(goro_read(next[0], &c, 1), 1);
	CHECK_EQ(c, 'x');
	before = wakeups();
	for (int i = 0; i < 5; i++) {
		go(write_to_old, fd[1]);
		CHECK_EQ(goro_set_deadline(next[0], goro_now() + 5 * GORO_MILLISECOND, GORO_FOREVER), 0);
		CHECK_EQ(goro_read(next[0], &c, 1), -ETIMEDOUT);
	}
	CHECK_EQ(wakeups(), before);
	close(other);
	close(fd[1]);
	net_close(next);
}

/* The deadline is the new file's, although no goroutine has waited for that yet. */
GO_TEST(a_deadline_of_a_file_that_got_a_used_number)
{
	int fd[2], next[2];
	char c;

	pair_at(500, fd);
	go(write_later, fd[1]);
	CHECK_EQ(goro_read(fd[0], &c, 1), 1);
	CHECK_EQ(close(fd[0]), 0);
	pair_at(500, next);
	CHECK_EQ(goro_set_deadline(next[0], goro_now() + 5 * GORO_MILLISECOND, GORO_FOREVER), 0);
	CHECK_EQ(goro_read(next[0], &c, 1), -ETIMEDOUT);
	close(fd[1]);
	net_close(next);
}

/* The old file's deadline is not the new one's. */
GO_TEST(a_deadline_goes_with_its_file)
{
	int fd[2], next[2];
	char c;

	pair_at(500, fd);
	CHECK_EQ(goro_set_deadline(fd[0], goro_now(), goro_now()), 0);
	CHECK_EQ(goro_read(fd[0], &c, 1), -ETIMEDOUT);
	CHECK_EQ(close(fd[0]), 0);
	pair_at(500, next);
	CHECK_EQ(goro_write(next[0], "x", 1), 1);
	CHECK_EQ(goro_write(next[1], "x", 1), 1);
	CHECK_EQ(goro_read(next[0], &c, 1), 1);
	close(fd[1]);
	net_close(next);
}

/* Made by our own call, closed by close(2), and made again: as new. */
GO_TEST(plain_close_of_what_a_call_made)
{
	struct sockaddr_in a;
	int l = net_listen(&a);

	for (int i = 0; i < 20; i++) {
		int fd = net_dial(&a), peer = goro_accept(l, NULL, NULL);
		char c;

		go(write_later, peer);
		CHECK_EQ(goro_read(fd, &c, 1), 1);
		CHECK_EQ(goro_set_deadline(fd, GORO_NOW, GORO_NOW), 0);
		CHECK_EQ(close(fd), 0);
		CHECK_EQ(close(peer), 0);
	}
	CHECK_EQ(goro_close(l), 0);
}

static void read_badf(int fd, goro_waitgroup *wg)
{
	char c;

	CHECK_EQ(goro_read(fd, &c, 1), -EBADF);
	goro_waitgroup_done(wg);
}

/* A waiter for a file that close(2) has closed gets an error when that is found out. */
GO_TEST(plain_close_under_who_waits)
{
	goro_waitgroup wg = { 0 };
	struct sockaddr_in a;
	int l = net_listen(&a), fd = net_dial(&a), peer = goro_accept(l, NULL, NULL), next;
	size_t before = net_waiting();

	goro_waitgroup_add(&wg, 1);
	go(read_badf, fd, &wg);
	AWAIT(net_waiting() > before);
	CHECK_EQ(close(fd), 0);
	next = goro_socket(AF_INET, SOCK_STREAM, 0);
	if (next != fd)
		SKIP("the runtime opened a file meanwhile");
	goro_waitgroup_wait(&wg);
	CHECK_EQ(goro_connect(next, (struct sockaddr *)&a, sizeof a), 0);
	CHECK_EQ(goro_write(next, "x", 1), 1);
	net_close((int[]){ next, peer });
	CHECK_EQ(goro_close(l), 0);
}

/* -------------------------------------------------------------- exhaustion */

/* Without a descriptor to be had calls fail and lose nothing: the connection that could
 * not be accepted is accepted when one is free again. */
GO_TEST(no_descriptor_left)
{
	struct rlimit r;
	struct sockaddr_in a;
	int l = net_listen(&a), fd[3], full[4096], n = 0, got;
	char c;

	fd[0] = net_dial(&a);
	fd[1] = goro_accept(l, NULL, NULL);
	fd[2] = net_dial(&a);		/* waits in the queue */
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = 256;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
	while ((full[n] = dup(0)) >= 0)
		n++;
	CHECK_EQ(goro_accept(l, NULL, NULL), -EMFILE);
	CHECK_EQ(goro_socket(AF_INET, SOCK_STREAM, 0), -EMFILE);
	CHECK_EQ(goro_open("/dev/null", O_RDONLY), -EMFILE);
	go(write_later, fd[1]);
	CHECK_EQ(goro_read(fd[0], &c, 1), 1);	/* what is open works */
	CHECK_EQ(goro_accept(l, NULL, NULL), -EMFILE);
	close(full[--n]);
	got = goro_accept(l, NULL, NULL);
	CHECK(got >= 0);
	CHECK_EQ(goro_write(fd[2], "y", 1), 1);
	CHECK_EQ(goro_read(got, &c, 1), 1);
	CHECK_EQ(c, 'y');
}

/* The poller itself cannot be made: an error, and the next time it can. */
GO_TEST(no_descriptor_for_the_poller)
{
	struct rlimit r;
	int full[4096], n = 0, fd[2];
	char c;

	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = 256;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
	while ((full[n] = dup(0)) >= 0)
		n++;
	CHECK_EQ(goro_read(fd[0], &c, 1), -EMFILE);
	close(full[--n]);
	CHECK_EQ(goro_read(fd[0], &c, 1), -EMFILE);
	while (n > 0)
		close(full[--n]);
	go(write_later, fd[1]);
	CHECK_EQ(goro_read(fd[0], &c, 1), 1);
}

/* ------------------------------------------------------ several on one side */

static void accept_one(int l, int *count, goro_waitgroup *wg)
{
	int fd = goro_accept(l, NULL, NULL);

	CHECK(fd >= 0);
	CHECK_EQ(goro_close(fd), 0);
	__atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
	goro_waitgroup_done(wg);
}

/* One edge may stand for many connections: every waiter gets one. */
GO_TEST(many_accept_on_one_socket)
{
	for (int round = 0; round < 20; round++) {
		enum { N = 40 };
		goro_waitgroup wg = { 0 };
		struct sockaddr_in a;
		size_t before = net_waiting();
		int l = net_listen(&a), fd[N], count = 0;

		linger_round(round);
		goro_waitgroup_add(&wg, N);
		for (int i = 0; i < N; i++)
			go(accept_one, l, &count, &wg);
		if (round % 2)
			AWAIT(net_waiting() >= before + N);
		for (int i = 0; i < N; i++)
			fd[i] = net_dial(&a);
		goro_waitgroup_wait(&wg);
		CHECK_EQ(count, N);
		for (int i = 0; i < N; i++)
			CHECK_EQ(goro_close(fd[i]), 0);
		CHECK_EQ(goro_close(l), 0);
	}
}

static void read_one(int fd, goro_waitgroup *wg)
{
	char c;

	CHECK_EQ(goro_read(fd, &c, 1), 1);
	goro_waitgroup_done(wg);
}

GO_TEST(many_read_one_socket)
{
	enum { N = 64 };
	goro_waitgroup wg = { 0 };
	char bytes[N] = { 0 };
	size_t before;
	int fd[2];

	net_pair(fd);
	before = net_waiting();
	goro_waitgroup_add(&wg, N);
	for (int i = 0; i < N; i++)
		go(read_one, fd[0], &wg);
	AWAIT(net_waiting() >= before + N);
	CHECK_EQ(goro_write(fd[1], bytes, N), N);
	goro_waitgroup_wait(&wg);
	net_close(fd);
}

static void end_seen(int fd, goro_waitgroup *wg)
{
	char c;

	CHECK_EQ(goro_read(fd, &c, 1), 0);
	goro_waitgroup_done(wg);
}

GO_TEST(the_end_is_seen_by_all)
{
	goro_waitgroup wg = { 0 };
	size_t before;
	int fd[2];

	net_pair(fd);
	before = net_waiting();
	goro_waitgroup_add(&wg, 10);
	for (int i = 0; i < 10; i++)
		go(end_seen, fd[0], &wg);
	AWAIT(net_waiting() >= before + 10);
	CHECK_EQ(goro_close(fd[1]), 0);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(goro_close(fd[0]), 0);
}
