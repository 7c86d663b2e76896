/*
 * io_test.c - reading and writing: sockets, pipes and what else there is.
 */
/* test: procs */
#include <goro.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "in_runtime.h"
#include "net.h"
#include "syscall_filter.h"

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

	net_pair(fd);
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
	int fd = net_dial(a);
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
	int l = net_listen(&a);

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

/* ------------------------------------------------------------- streams */

static void send_bytes(int fd, size_t n)
{
	char *buf = malloc(n);

	for (size_t i = 0; i < n; i++)
		buf[i] = (char)(i * 7);
	CHECK_EQ(goro_write(fd, buf, n), n);
	free(buf);
	CHECK_EQ(shutdown(fd, SHUT_WR), 0);
}

/* The writer waits for the reader, and writes everything. */
GO_TEST(slow_reader)
{
	enum { BYTES = 4 << 20 };
	size_t got = 0;
	char buf[65536];
	ssize_t n;
	int fd[2];

	net_pair(fd);
	go(send_bytes, fd[0], BYTES);
	while ((n = goro_read(fd[1], buf, sizeof buf)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			CHECK_EQ(buf[i], (char)((got + (size_t)i) * 7));
		got += (size_t)n;
		if (got % (1 << 20) < sizeof buf)
			goro_sleep(GORO_MILLISECOND);
	}
	CHECK_EQ(n, 0);
	CHECK_EQ(got, BYTES);
	net_close(fd);
}

static void dribble(int fd, int n)
{
	for (int i = 0; i < n; i++) {
		char c = (char)i;

		CHECK_EQ(goro_write(fd, &c, 1), 1);
		if (i % 16 == 0)
			goro_sleep(GORO_MICROSECOND * 50);
		else
			goro_gosched();
	}
}

GO_TEST(a_byte_at_a_time)
{
	char buf[500];
	int fd[2];

	net_pair(fd);
	go(dribble, fd[0], 2 * (int)sizeof buf);
	for (int k = 0; k < 2; k++) {
		CHECK_EQ(goro_read_full(fd[1], buf, sizeof buf), sizeof buf);
		for (int i = 0; i < (int)sizeof buf; i++)
			CHECK_EQ(buf[i], (char)(k * (int)sizeof buf + i));
	}
	net_close(fd);
}

static void answer_at_end(int fd)
{
	char buf[100];
	size_t got = 0;
	ssize_t n;

	while ((n = goro_read(fd, buf, sizeof buf)) > 0)
		got += (size_t)n;
	CHECK_EQ(n, 0);
	CHECK_EQ(goro_write(fd, &got, sizeof got), sizeof got);
}

GO_TEST(half_close)
{
	size_t got;
	int fd[2];

	net_pair(fd);
	go(answer_at_end, fd[1]);
	CHECK_EQ(goro_write(fd[0], "hello", 5), 5);
	CHECK_EQ(shutdown(fd[0], SHUT_WR), 0);
	CHECK_EQ(goro_read_full(fd[0], &got, sizeof got), sizeof got);
	CHECK_EQ(got, 5);
	net_close(fd);
}

static void reset(int fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	NET_AWAIT_WAITER();
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
	CHECK_EQ(goro_close(fd), 0);
}

GO_TEST(reset_wakes_the_reader)
{
	char c;
	int fd[2];

	net_pair(fd);
	go(reset, fd[1]);
	CHECK_EQ(goro_read(fd[0], &c, 1), -ECONNRESET);
	CHECK_EQ(goro_write(fd[0], &c, 1), -EPIPE);
	CHECK_EQ(goro_close(fd[0]), 0);
}

GO_TEST(reset_wakes_the_writer)
{
	static char big[8 << 20];
	ssize_t n;
	int fd[2];

	net_pair(fd);
	go(reset, fd[1]);
	n = goro_write(fd[0], big, sizeof big);
	CHECK(n > 0 && n < (ssize_t)sizeof big);
	n = goro_write(fd[0], big, sizeof big);
	CHECK(n == -ECONNRESET || n == -EPIPE);
	CHECK_EQ(goro_close(fd[0]), 0);
}

GO_TEST(nobody_listens)
{
	struct sockaddr_in a;
	int l = net_listen(&a), fd = goro_socket(AF_INET, SOCK_STREAM, 0);

	CHECK_EQ(goro_close(l), 0);
	CHECK_EQ(goro_connect(fd, (struct sockaddr *)&a, sizeof a), -ECONNREFUSED);
	CHECK_EQ(goro_close(fd), 0);
}

/* ------------------------------------------------ vectors and messages */

static void gather(int fd, size_t n)
{
	char *a = malloc(n), *b = malloc(n);
	struct iovec iov[4] = { { a, n }, { NULL, 0 }, { b, n }, { a, 3 } };

	memset(a, 'a', n);
	memset(b, 'b', n);
	CHECK_EQ(goro_writev(fd, iov, 4), 2 * n + 3);
	free(a);
	free(b);
	CHECK_EQ(shutdown(fd, SHUT_WR), 0);
}

GO_TEST(vectors_are_written_whole)
{
	enum { BYTES = 3 << 20 };
	char *x = malloc(BYTES), *y = malloc(BYTES), end[8];
	struct iovec iov[2] = { { x, 10 }, { x + 10, 5 } };
	ssize_t n;
	int fd[2];

	net_pair(fd);
	go(gather, fd[0], BYTES);
	n = goro_readv(fd[1], iov, 2);
	CHECK(n > 0 && n <= 15);
	CHECK_EQ(goro_read_full(fd[1], x + n, BYTES - (size_t)n), BYTES - n);
	CHECK_EQ(goro_read_full(fd[1], y, BYTES), BYTES);
	CHECK_EQ(goro_read_full(fd[1], end, sizeof end), 3);
	for (int i = 0; i < BYTES; i++)
		CHECK(x[i] == 'a' && y[i] == 'b');
	CHECK_EQ(memcmp(end, "aaa", 3), 0);
	free(x);
	free(y);
	net_close(fd);
}

static void send_message(int fd, size_t n)
{
	char *a = malloc(n);
	struct iovec iov[2] = { { a, 10 }, { a + 10, n - 10 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	for (size_t i = 0; i < n; i++)
		a[i] = (char)(i * 7);
	CHECK_EQ(goro_sendmsg(fd, &msg, 0), n);
	CHECK_EQ(goro_send(fd, a, n, 0), n);
	free(a);
}

GO_TEST(messages_of_a_stream_are_sent_whole)
{
	enum { BYTES = 3 << 20 };
	char *x = malloc(BYTES);
	struct iovec iov = { x, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fd[2];

	net_pair(fd);
	go(send_message, fd[0], BYTES);
	CHECK_EQ(goro_recvmsg(fd[1], &msg, 0), 1);
	CHECK_EQ(goro_recv(fd[1], x + 1, BYTES - 1, MSG_WAITALL), BYTES - 1);
	for (int i = 0; i < BYTES; i++)
		CHECK_EQ(x[i], (char)(i * 7));
	CHECK_EQ(goro_recv(fd[1], x, 10, MSG_PEEK), 10);
	CHECK_EQ(goro_recv(fd[1], x, BYTES, MSG_WAITALL), BYTES);
	CHECK_EQ(goro_recv(fd[1], x, 1, MSG_DONTWAIT), -EAGAIN);
	free(x);
	net_close(fd);
}

static void send_datagrams(int fd, struct sockaddr_in *to)
{
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(goro_sendto(fd, &i, sizeof i, 0, (struct sockaddr *)to, sizeof *to), sizeof i);
		goro_sleep(20 * GORO_MICROSECOND);
	}
}

GO_TEST(datagrams)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in from, self;
	socklen_t len = sizeof a;
	int in = goro_socket(AF_INET, SOCK_DGRAM, 0), out = goro_socket(AF_INET, SOCK_DGRAM, 0);

	CHECK_EQ(bind(in, (struct sockaddr *)&a, len), 0);
	CHECK_EQ(bind(out, (struct sockaddr *)&a, len), 0);
	CHECK_EQ(getsockname(in, (struct sockaddr *)&a, &len), 0);
	CHECK_EQ(getsockname(out, (struct sockaddr *)&self, &len), 0);
	go(send_datagrams, out, &a);
	for (int i = 0; i < 50; i++) {
		int x;

		len = sizeof from;
		CHECK_EQ(goro_recvfrom(in, &x, sizeof x, 0, (struct sockaddr *)&from, &len), sizeof x);
		CHECK_EQ(x, i);
		CHECK_EQ(from.sin_port, self.sin_port);
	}
	net_close((int[]){ in, out });
}

/* ------------------------------------------------------------ local sockets */

static int local_socket(const char *name, struct sockaddr_un *a, socklen_t *len)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
	       (size_t)snprintf(a->sun_path + 1, 100, "%s.%d", name, getpid()));
	return goro_socket(AF_UNIX, SOCK_STREAM, 0);
}

static void accept_late(int l, int n, goro_waitgroup *wg)
{
	NET_AWAIT_WAITER();	/* a connect that finds the queue full */
	for (int i = 0; i < n; i++) {
		int fd = goro_accept(l, NULL, NULL);

		CHECK(fd >= 0);
		CHECK_EQ(goro_close(fd), 0);
	}
	goro_waitgroup_done(wg);
}

/* A full queue of a local socket says EAGAIN, and no event when it is not any more. */
GO_TEST(full_queue_of_a_local_socket)
{
	goro_waitgroup wg = { 0 };
	struct sockaddr_un a;
	socklen_t len;
	int l = local_socket("full", &a, &len);

	CHECK_EQ(bind(l, (struct sockaddr *)&a, len), 0);
	CHECK_EQ(listen(l, 1), 0);
	goro_waitgroup_add(&wg, 1);
	go(accept_late, l, 8, &wg);
	for (int i = 0; i < 8; i++) {
		int fd = goro_socket(AF_UNIX, SOCK_STREAM, 0);

		CHECK_EQ(goro_connect(fd, (struct sockaddr *)&a, len), 0);
		CHECK_EQ(goro_close(fd), 0);
	}
	goro_waitgroup_wait(&wg);
	for (int i = 0; i < 2; i++) {
		int fd = goro_socket(AF_UNIX, SOCK_STREAM, 0);

		CHECK_EQ(goro_connect(fd, (struct sockaddr *)&a, len), 0);
	}
	int fd = goro_socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_EQ(goro_set_deadline(fd, GORO_FOREVER, goro_now() + 3 * GORO_MILLISECOND), 0);
	CHECK_EQ(goro_connect(fd, (struct sockaddr *)&a, len), -ETIMEDOUT);
}

/* --------------------------------------------------- what the program made */

static void plain_client(const struct sockaddr_in *a)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char c;

	CHECK_EQ(goro_connect(fd, (const struct sockaddr *)a, sizeof *a), 0);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	CHECK_EQ(goro_read(fd, &c, 1), 1);
	CHECK_EQ(goro_write(fd, &c, 1), 1);
	CHECK_EQ(close(fd), 0);
}

GO_TEST(sockets_of_the_programs_own)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0), fd;
	char c = 'x';

	CHECK_EQ(bind(l, (struct sockaddr *)&a, len), 0);
	CHECK_EQ(listen(l, 8), 0);
	CHECK_EQ(getsockname(l, (struct sockaddr *)&a, &len), 0);
	go(plain_client, &a);
	fd = goro_accept(l, NULL, NULL);
	CHECK(fd >= 0);
	NET_AWAIT_WAITER();
	CHECK_EQ(goro_write(fd, &c, 1), 1);
	CHECK_EQ(goro_read(fd, &c, 1), 1);
	CHECK_EQ(goro_read(fd, &c, 1), 0);
	net_close((int[]){ l, fd });
}

static void bump(int fd)
{
	uint64_t n = 3;

	NET_AWAIT_WAITER();
	CHECK_EQ(goro_write(fd, &n, sizeof n), sizeof n);
}

GO_TEST(eventfd_wakes)
{
	uint64_t n = 0;
	int fd = eventfd(0, 0);

	for (int i = 0; i < 10; i++) {
		go(bump, fd);
		CHECK_EQ(goro_read(fd, &n, sizeof n), sizeof n);
		CHECK_EQ(n, 3);
	}
	CHECK_EQ(goro_close(fd), 0);
}

static void type_line(int fd)
{
	NET_AWAIT_WAITER();
	CHECK_EQ(goro_write(fd, "hello\n", 6), 6);
}

GO_TEST(terminal)
{
	char buf[16];
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;

	if (master < 0 || grantpt(master) || unlockpt(master))
		SKIP("no terminals here");
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	CHECK(slave >= 0);
	go(type_line, master);
	CHECK_EQ(goro_read(slave, buf, sizeof buf), 6);
	CHECK_EQ(memcmp(buf, "hello\n", 6), 0);
	CHECK_EQ(fcntl(slave, F_GETFL) & O_NONBLOCK, 0);
	net_close((int[]){ slave, master });
}

static char *temporary_name(void)
{
	static char name[64];

	snprintf(name, sizeof name, "/tmp/goro_io_test.%d", getpid());
	return name;
}

static void fifo_writer(const char *name)
{
	static char big[300000];
	int fd = goro_open(name, O_WRONLY);

	CHECK(fd >= 0);
	NET_AWAIT_WAITER();
	CHECK_EQ(goro_write(fd, big, sizeof big), sizeof big);
	CHECK_EQ(goro_close(fd), 0);
}

GO_TEST(named_pipe)
{
	char *name = temporary_name(), buf[4096];
	size_t got = 0;
	ssize_t n;
	int fd;

	CHECK_EQ(mkfifo(name, 0600), 0);
	go(fifo_writer, name);
	fd = goro_open(name, O_RDONLY);
	CHECK(fd >= 0);
	unlink(name);
	while ((n = goro_read(fd, buf, sizeof buf)) > 0)
		got += (size_t)n;
	CHECK_EQ(n, 0);
	CHECK_EQ(got, 300000);
	CHECK_EQ(goro_close(fd), 0);
}

GO_TEST(regular_file)
{
	char *name = temporary_name(), buf[16];
	int fd = goro_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);

	CHECK(fd >= 0);
	CHECK_EQ(unlink(name), 0);
	CHECK_EQ(goro_write(fd, "hello world", 11), 11);
	CHECK_EQ(goro_pwrite(fd, "HELLO", 5, 0), 5);
	CHECK_EQ(goro_pread(fd, buf, sizeof buf, 6), 5);
	CHECK_EQ(memcmp(buf, "world", 5), 0);
	CHECK_EQ(goro_pread(fd, buf, sizeof buf, 100), 0);
	CHECK_EQ(goro_pread(fd, buf, sizeof buf, -1), -EINVAL);
	CHECK_EQ(goro_fsync(fd), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_EQ(goro_read(fd, buf, 5), 5);
	CHECK_EQ(memcmp(buf, "HELLO", 5), 0);
	CHECK_EQ(goro_poll(fd, POLLIN | POLLOUT, GORO_NOW), POLLIN | POLLOUT);
	CHECK_EQ(goro_set_deadline(fd, GORO_NOW, GORO_FOREVER), 0);
	CHECK_EQ(goro_read(fd, buf, 5), -ETIMEDOUT);
	CHECK_EQ(goro_write(fd, buf, 5), 5);
	CHECK_EQ(goro_close(fd), 0);
	CHECK_EQ(goro_open("/nonexistent/file", O_RDONLY), -ENOENT);
}

GO_TEST(devices)
{
	char buf[16] = "x";
	int null = goro_open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDONLY);

	CHECK_EQ(goro_write(null, buf, 16), 16);
	CHECK_EQ(goro_read(null, buf, 16), 0);
	CHECK_EQ(goro_read_full(zero, buf, 16), 16);
	CHECK_EQ(buf[0], 0);
	net_close((int[]){ null, zero });
}

GO_TEST(wrong_calls)
{
	char c;
	int fd[2];

	CHECK_EQ(goro_read(-1, &c, 1), -EBADF);
	CHECK_EQ(goro_read(9999, &c, 1), -EBADF);
	CHECK_EQ(goro_read(INT32_MAX, &c, 1), -EBADF);
	CHECK_EQ(goro_write(9999, &c, 1), -EBADF);
	CHECK_EQ(goro_close(9999), -EBADF);
	CHECK_EQ(goro_poll(9999, POLLIN, GORO_NOW), -EBADF);
	CHECK_EQ(goro_set_deadline(9999, 0, 0), -EBADF);
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(goro_accept(fd[0], NULL, NULL), -ENOTSOCK);
	CHECK_EQ(goro_recv(fd[0], &c, 1, 0), -ENOTSOCK);
	CHECK_EQ(goro_pread(fd[0], &c, 1, 0), -ESPIPE);
	CHECK_EQ(goro_read(fd[1], &c, 1), -EBADF);
	CHECK_EQ(goro_read(fd[0], &c, 0), 0);
	CHECK_EQ(goro_read(fd[0], NULL, 0), 0);
	CHECK_EQ(goro_writev(fd[1], NULL, -1), -EINVAL);
	CHECK_EQ(goro_write(fd[1], NULL, 1), -EFAULT);
	net_close(fd);
}

/* Nothing is sent, and nothing is read behind what there is to send. */
GO_TEST(writes_of_nothing)
{
	int fd[2];
	char c;

	net_pair(fd);
	CHECK_EQ(goro_write(fd[0], "x", 0), 0);
	CHECK_EQ(goro_write_full(fd[0], "x", 0), 0);
	CHECK_EQ(goro_send(fd[0], "x", 0, 0), 0);
	CHECK_EQ(goro_write(fd[0], NULL, 0), 0);
	CHECK_EQ(goro_write(fd[0], "y", 1), 1);
	CHECK_EQ(goro_read(fd[1], &c, 1), 1);
	CHECK_EQ(c, 'y');
	CHECK_EQ(goro_set_deadline(fd[1], goro_now() + 20 * GORO_MILLISECOND, GORO_FOREVER), 0);
	CHECK_EQ(goro_read(fd[1], &c, 1), -ETIMEDOUT);
	net_close(fd);
}

/* ---------------------------------------------------------------- SIGPIPE */

GO_TEST(no_signal_from_a_broken_pipe)
{
	int fd[2];

	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(goro_close(fd[0]), 0);
	CHECK_EQ(goro_write(fd[1], "x", 1), -EPIPE);
	CHECK_EQ(goro_close(fd[1]), 0);
	net_pair(fd);
	CHECK_EQ(shutdown(fd[0], SHUT_WR), 0);
	CHECK_EQ(goro_write(fd[0], "x", 1), -EPIPE);
	CHECK_EQ(goro_send(fd[0], "x", 1, 0), -EPIPE);
	net_close(fd);
}

static int write_to_stdout(int argc, char **argv)
{
	int fd[2];

	(void)argc, (void)argv;
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(dup2(fd[1], 1), 1);
	close(fd[0]);
	goro_write(1, "x", 1);
	return 0;
}

static void run_write_to_stdout(void)
{
	exit(goro_run(write_to_stdout, 0, NULL));
}

TEST(a_signal_from_a_broken_stdout)
{
	struct test_output o;

	test_run_child(run_write_to_stdout, &o);
	CHECK_EQ(o.signal, SIGPIPE);
}

/* ------------------------------------------------------------------- poll */

static void poke(int fd)
{
	NET_AWAIT_WAITER();
	CHECK_EQ(goro_write(fd, "x", 1), 1);
}

GO_TEST(poll_waits)
{
	int64_t start = goro_now();
	char c;
	int fd[2];

	net_pair(fd);
	CHECK_EQ(goro_poll(fd[0], POLLIN, GORO_NOW), 0);
	CHECK_EQ(goro_poll(fd[0], POLLIN, start + 5 * GORO_MILLISECOND), 0);
	CHECK(goro_now() >= start + 5 * GORO_MILLISECOND);
	CHECK_EQ(goro_poll(fd[0], POLLIN | POLLOUT, GORO_FOREVER), POLLOUT);
	go(poke, fd[1]);
	CHECK_EQ(goro_poll(fd[0], POLLIN, GORO_FOREVER), POLLIN);
	CHECK_EQ(goro_poll(fd[0], POLLIN, goro_now() + GORO_SECOND), POLLIN);
	CHECK_EQ(goro_read(fd[0], &c, 1), 1);
	CHECK_EQ(shutdown(fd[1], SHUT_WR), 0);
	CHECK_EQ(goro_poll(fd[0], POLLIN | POLLRDHUP, GORO_FOREVER), POLLIN | POLLRDHUP);
	net_close(fd);
}

static void drain_some(int fd)
{
	static char buf[1 << 20];

	NET_AWAIT_WAITER();
	for (size_t got = 0; got < sizeof buf;) {
		ssize_t n = goro_read(fd, buf, sizeof buf);

		if (n <= 0)
			break;		/* the test is over */
		got += (size_t)n;
	}
}

/* Polls for both ways at once: either ends the wait. */
GO_TEST(poll_both_ways)
{
	static char big[8 << 20];
	int fd[2];

	net_pair(fd);
	CHECK(goro_send(fd[0], big, sizeof big, MSG_DONTWAIT) > 1 << 20);
	while (goro_send(fd[0], big, sizeof big, MSG_DONTWAIT) > 0)
		;
	go(poke, fd[1]);
	CHECK_EQ(goro_poll(fd[0], POLLIN | POLLOUT, GORO_FOREVER), POLLIN);
	CHECK_EQ(goro_recv(fd[0], big, 1, 0), 1);
	go(drain_some, fd[1]);
	CHECK_EQ(goro_poll(fd[0], POLLIN | POLLOUT, GORO_FOREVER), POLLOUT);
	net_close(fd);
}

/* ------------------------------------------------------- on an older kernel */

/* Runs the tests that use features of newer kernels without these. */
TEST_TIMEOUT(without_what_is_new, 120)
{
	static const char *const tests[] = {
		"echo_over_tcp", "pipe_of_the_programs_own", "plain_thread_reads", "eventfd_wakes",
		"terminal", "named_pipe", "devices", "no_signal_from_a_broken_pipe",
		"a_signal_from_a_broken_stdout", "poll_waits", "a_byte_at_a_time",
	};

	char self[4096] = "";	/* by name: the launcher has an exe of its own */

	CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	setenv("GORO_DEBUG", "nopwait2=1,nonowait=1", 1);
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
		struct test_output o;

		test_run_program((const char *const[]){ self, tests[i], NULL }, &o);
		CHECK(o.status == 0 || o.status == TEST_SKIPPED);
	}
}

static void write_much(int fd, goro_waitgroup *wg)
{
	static char big[1 << 20];

	CHECK_EQ(goro_write(fd, big, sizeof big), sizeof big);
	goro_waitgroup_done(wg);
}

static void write_to_full_pipe(void)
{
	goro_waitgroup wg = { 0 };
	static char buf[1 << 20];
	size_t before = net_waiting();
	int fd[2];

	CHECK_EQ(pipe(fd), 0);
	goro_waitgroup_add(&wg, 1);
	go(write_much, fd[1], &wg);
	AWAIT(net_waiting() > before);		/* it is the goroutine that waits */
	CHECK_EQ(goro_read_full(fd[0], buf, sizeof buf), sizeof buf);
	goro_waitgroup_wait(&wg);
	net_close(fd);
}

GO_TEST(full_pipe) { write_to_full_pipe(); }

static int run_full_pipe(int argc, char **argv)
{
	(void)argc, (void)argv;
	write_to_full_pipe();
	return 0;
}

TEST(full_pipe_without_what_is_new)
{
	setenv("GORO_DEBUG", "nopwait2=1,nonowait=1", 1);
	CHECK_EQ(goro_run(run_full_pipe, 0, NULL), 0);
}

/* ------------------------------------ without preadv2 and pwritev2, or not allowed to
 *
 * As in a container, or under an emulator that does not know them. */

static void through_pipe(int fd[2])
{
	char c = 0;

	CHECK_EQ(goro_write(fd[1], "x", 1), 1);
	CHECK_EQ(goro_read(fd[0], &c, 1), 1);
	CHECK_EQ(c, 'x');
	go(poke, fd[1]);
	CHECK_EQ(goro_read(fd[0], &c, 1), 1);
}

static void every_kind(void)
{
	test_body_pipe_of_the_programs_own();
	test_body_vectors_are_written_whole();
	test_body_datagrams();
	test_body_eventfd_wakes();
	test_body_regular_file();
	test_body_devices();
	test_body_no_signal_from_a_broken_pipe();
	write_to_full_pipe();
}

static int denied_error;

static void deny_both(void)
{
	filter_everywhere(SYS_preadv2, -denied_error);
	filter_everywhere(SYS_pwritev2, -denied_error);
}

static void denied_before(void)
{
	deny_both();
	every_kind();
}

/* What is known of the descriptors, and of the kernel, is from before. */
static void denied_in_mid_run(void)
{
	int pipes[2], sockets[2], broken[2];

	CHECK_EQ(pipe(pipes), 0);
	CHECK_EQ(pipe(broken), 0);
	net_pair(sockets);
	through_pipe(pipes);
	through_pipe(broken);
	through_pipe(sockets);
	deny_both();
	through_pipe(pipes);
	through_pipe(sockets);
	CHECK_EQ(goro_close(broken[0]), 0);
	CHECK_EQ(goro_write(broken[1], "x", 1), -EPIPE);
	CHECK_EQ(goro_close(broken[1]), 0);
	net_close(pipes);
	net_close(sockets);
	every_kind();
}

static void denied(void (*body)(void), int error, const char *switches)
{
	denied_error = error;
	in_runtime(body, switches);
}

TEST(a_kernel_without_preadv2) { denied(denied_before, ENOSYS, ""); }
TEST(a_container_without_preadv2) { denied(denied_before, EPERM, ""); }
TEST(preadv2_is_denied_in_mid_run) { denied(denied_in_mid_run, EPERM, ""); }
TEST(preadv2_is_gone_in_mid_run) { denied(denied_in_mid_run, ENOSYS, ""); }
TEST(a_container_without_preadv2_and_an_old_kernel) { denied(denied_before, EPERM, "nonowait=1"); }
