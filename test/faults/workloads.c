/*
 * workloads.c - six programs that use all that may fail: faults WORKLOAD runs one.
 *
 * Each ends in one of these ways, which the runner (walk) tells apart:
 *
 *	status 0, "right"          everything came out as without faults
 *	status 0, "said WHAT: E"   calls reported errors, and all else is there
 *	status 3, "wrong: ..."     a value, a goroutine or an error is not as it should be
 *
 * A call may report the error of the plan, and nothing else but what follows from it: a
 * peer that closed. It may not report EINTR or EAGAIN, which the runtime has to deal
 * with, except for calls on files, which report what the kernel says, of dial and listen,
 * where EAGAIN is about names, and of what starts a thread.
 */
#define _GNU_SOURCE
#include "faults.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define WRONG(...)                             \
	do {                                   \
		dprintf(2, "wrong: " __VA_ARGS__); \
		dprintf(2, "\n");              \
		_exit(3);                      \
	} while (0)
#define MUST(cond) do { if (!(cond)) WRONG("line %d: %s", __LINE__, #cond); } while (0)

/* For the program's own calls, which may be forbidden as well: then this part is left
 * out. */
#define OWN(cond)                                                  \
	do {                                                       \
		if (!(cond)) {                                     \
			if (faults_error() == FAULTS_FORBIDDEN)    \
				return;                            \
			WRONG("line %d: %s", __LINE__, #cond);     \
		}                                                  \
	} while (0)

static _Atomic int said;
/* Those that pass on what the kernel says. */
static const char file_calls[] = "goro_open goro_pread goro_pwrite goro_fsync goro_close goro_dial goro_listen "
                                 "goro_trace_start goro_profile_cpu_start";

/* Whether a call went well, r >= 0. Otherwise its error must follow from the plan's. */
static bool went(const char *what, long r)
{
	int e = (int)-r;

	if (r >= 0)
		return true;
	if (!faults_any())
		WRONG("%s: %s, though nothing has failed", what, strerror(e));
	if (e == EINTR && !strstr(file_calls, what))
		WRONG("%s: reports EINTR", what);
	if (faults_error() < 0 && strcmp(what, "goro_dial") == 0 && (e == EAGAIN || e == EIO || e == ENOENT))
		return false;	/* getaddrinfo's own errors */
	if (faults_error() == FAULTS_FORBIDDEN) {
		said++;
		return false;
	}
	if (e == EAGAIN && !strstr(file_calls, what))
		WRONG("%s: reports EAGAIN", what);
	if (e != faults_error() && e != ENOMEM && e != EPIPE && e != ECONNRESET && e != ECANCELED &&
	    e != ENOTCONN && e != EIO && e != ECONNREFUSED && !(e == EBADF && (strstr(what, "trace") || strstr(what, "profile"))))
		WRONG("%s: %s", what, strerror(e));
	said++;
	dprintf(1, "said %s: %s\n", what, strerror(e));
	return false;
}

/* The same for what is NULL without memory. */
static bool made(const char *what, const void *p)
{
	return went(what, p ? 0 : -ENOMEM);
}

/* --------------------------------------------- goroutines that are waited for */

static goro_waitgroup all;

static void begin(void (*fn)(void *), void *arg, const char *what);

struct begun {
	void (*fn)(void *);
	void *arg;
};

static void run_begun(void *arg)
{
	struct begun b = *(struct begun *)arg;

	b.fn(b.arg);
	goro_waitgroup_done(&all);
}

/* As a goroutine; where none can be had, here. */
static void begin(void (*fn)(void *), void *arg, const char *what)
{
	struct begun b = { fn, arg };

	goro_waitgroup_add(&all, 1);
	if (!went(what, goro_go_copy(NULL, run_begun, &b, sizeof b)))
		run_begun(&b);
}

/* Whether it was begun: for those that others have to run beside. */
static bool began(void (*fn)(void *), void *arg, const char *what)
{
	struct begun b = { fn, arg };

	goro_waitgroup_add(&all, 1);
	if (went(what, goro_go_copy(NULL, run_begun, &b, sizeof b)))
		return true;
	goro_waitgroup_done(&all);
	return false;
}

/* ------------------------------------------------------------------ channels */

#define PRODUCERS 4
#define VALUES 60

static _Atomic long sent_sum, received_sum;

static void produce(void *c)
{
	for (long i = 1; i <= VALUES; i++) {
		goro_chan_send(c, &i);
		sent_sum += i;
	}
}

static void consume(void *c)
{
	long x;

	while (goro_chan_recv(c, &x))
		received_sum += x;
}

static void through_channels(size_t capacity)
{
	goro_chan *c = goro_chan_make(sizeof(long), capacity);
	int consumers = 0, i;

	if (!made("goro_chan_make", c))
		return;
	for (i = 0; i < 2; i++)
		consumers += began(consume, c, "go");
	for (i = 0; i < PRODUCERS && consumers > 0; i++)
		if (!began(produce, c, "go"))
			break;
	while (consumers > 0 && sent_sum < (long)i * VALUES * (VALUES + 1) / 2)
		goro_sleep(100 * GORO_MICROSECOND);
	goro_chan_close(c);
	goro_waitgroup_wait(&all);
	MUST(sent_sum == received_sum);
	sent_sum = received_sum = 0;
	goro_chan_unref(c);
}

static goro_mutex mutex;
static goro_rwmutex rwmutex;
static goro_sema sema;
static long counted;

static void count(void *arg)
{
	(void)arg;
	for (int i = 0; i < 30; i++) {
		goro_mutex_lock(&mutex);
		counted++;
		if (i % 10 == 0)
			goro_gosched();
		goro_mutex_unlock(&mutex);
		goro_rwmutex_rlock(&rwmutex);
		goro_rwmutex_runlock(&rwmutex);
		MUST(goro_sema_acquire(&sema, 1, GORO_FOREVER) == 0);
		goro_sema_release(&sema, 1);
	}
}

static void select_on(void *arg)
{
	goro_chan **c = arg;
	int x, y, open = 2;
	bool ok;

	while (open > 0) {
		switch (goro_select_until(goro_deadline_in(10 * GORO_SECOND),
		                          GORO_RECV_OKP(c[0], &x, &ok), GORO_RECV_OKP(c[1], &y, &ok))) {
		case 0: case 1:
			if (!ok)
				open = 0;
			break;
		default: WRONG("select: ten seconds without a value");
		}
	}
}

static int add_one(goro_ctx *ctx, void *arg)
{
	(void)ctx;
	++*(_Atomic int *)arg;
	return 0;
}

static void task(void *arg)
{
	++*(_Atomic int *)arg;
}

static void in_groups(void)
{
	goro_group *g = goro_group_make(NULL, 2);
	goro_pool *p;
	_Atomic int n = 0;
	int started = 0;

	if (made("goro_group_make", g)) {
		for (int i = 0; i < 5; i++)
			started += went("goro_group_go", goro_group_go(g, add_one, &n));
		MUST(goro_group_wait(g) == 0);
		MUST(n == started);
	}
	n = started = 0;
	p = goro_pool_make(2, 4);
	if (made("goro_pool_make", p)) {
		for (int i = 0; i < 5; i++)
			started += went("goro_pool_submit", goro_pool_submit(p, task, &n, GORO_FOREVER));
		goro_pool_close(p);
		MUST(n == started);
	}
}

static void do_nothing(void *arg)
{
	goro_chan_recv(arg, NULL);
}

/* Enough for several batches of stacks. */
static void many(void)
{
	goro_chan *gate = goro_chan_make(0, 0);

	if (!made("goro_chan_make", gate))
		return;
	for (int i = 0; i < 300; i++)
		if (!began(do_nothing, gate, "go"))
			break;
	goro_chan_close(gate);
	goro_waitgroup_wait(&all);
	goro_chan_unref(gate);
}

static void *plain_thread(void *c)
{
	int x = 1;

	goro_chan_send(c, &x);
	goro_chan_recv(c, &x);
	MUST(x == 2);
	return NULL;
}

static void with_plain_thread(void)
{
	goro_chan *c = goro_chan_make(sizeof(int), 0);
	pthread_t t;
	int x;

	if (!made("goro_chan_make", c))
		return;
	OWN(pthread_create(&t, NULL, plain_thread, c) == 0);
	goro_chan_recv(c, &x);
	MUST(x == 1);
	x = 2;
	goro_chan_send(c, &x);
	pthread_join(t, NULL);
	goro_chan_unref(c);
}

static void throw_up(void *arg)
{
	(void)arg;
	goro_panic("on purpose");
}

static void try_it(void *arg)
{
	(void)arg;
	goro_try(throw_up, NULL);
}

static void channels(void)
{
	goro_chan *c[2];
	int x = 1;

	through_channels(0);
	through_channels(8);
	for (int i = 0; i < 4; i++)
		begin(count, NULL, "go");
	goro_waitgroup_wait(&all);
	MUST(counted == 4 * 30);
	c[0] = goro_chan_make(sizeof(int), 0);
	c[1] = goro_chan_make(sizeof(int), 1);
	if (made("goro_chan_make", c[0]) && made("goro_chan_make", c[1]) && began(select_on, c, "go")) {
		for (int i = 0; i < 20; i++)
			goro_chan_send(c[i % 2], &x);
		goro_chan_close(c[0]);
	}
	goro_waitgroup_wait(&all);
	in_groups();
	many();
	with_plain_thread();
	begin(try_it, NULL, "go");
	goro_waitgroup_wait(&all);
}

/* ------------------------------------------------------------------- network */

#define MESSAGES 12

/* Sends back what comes. */
static void echo(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[64];
	long n;

	while ((n = goro_read(fd, buf, sizeof buf)) > 0)
		if (!went("goro_write", goro_write_full(fd, buf, (size_t)n)))
			break;
	went("goro_read", n);
	went("goro_close", goro_close(fd));
}

static _Atomic bool serving;

static void serve(void *arg)
{
	int listener = (int)(intptr_t)arg, fd, refused = 0;

	for (;;) {
		fd = goro_accept(listener, NULL, NULL);
		if (fd >= 0)
			begin(echo, (void *)(intptr_t)fd, "go");
		else if (!serving)
			return;
		else if (!went("goro_accept", fd) && ++refused == 20) {
			serving = false;
			goro_close(listener);
			return;
		}
	}
}

/* What is sent comes back whole and in order, unless a call says that it failed. */
static void converse(int fd)
{
	char out[32], in[32];
	long n;

	for (int i = 0; i < MESSAGES; i++) {
		memset(out, 'a' + i, sizeof out);
		if (!went("goro_write", goro_write_full(fd, out, sizeof out)))
			break;
		n = goro_read_full(fd, in, sizeof in);
		if (!went("goro_read", n))
			break;
		for (long k = 0; k < n; k++)
			MUST(in[k] == 'a' + i);
		if (n < (long)sizeof in) {
			if (!faults_any())
				WRONG("echo: the end after %ld bytes", n);
			break;
		}
	}
	went("goro_close", goro_close(fd));
}

static void pipe_up(void *arg)
{
	int fd = (int)(intptr_t)arg;

	goro_sleep(GORO_MILLISECOND);
	went("goro_write", goro_write(fd, "xyz", 3));
	went("goro_close", goro_close(fd));
}

static void over_pipe(void)
{
	int fd[2], got = 0;
	char c[4];
	long n = 0;

	OWN(pipe(fd) == 0);
	begin(pipe_up, (void *)(intptr_t)fd[1], "go");
	while (got < 3 && (n = goro_read(fd[0], c + got, (size_t)(3 - got))) > 0)
		got += (int)n;
	went("goro_read", n);
	MUST(memcmp(c, "xyz", (size_t)got) == 0);
	MUST(got == 3 || said);
	goro_waitgroup_wait(&all);
	went("goro_close", goro_close(fd[0]));
}

static void wait_for_nothing(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char c;
	long r = goro_read(fd, &c, 1);

	if (r != -ECANCELED)
		MUST(!went("goro_read", r));
}

static void deadlines_and_close(void)
{
	int fd[2];
	char c;
	long r;

	OWN(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
	if (went("goro_set_deadline", goro_set_deadline(fd[0], goro_deadline_in(2 * GORO_MILLISECOND),
	                                                GORO_FOREVER))) {
		r = goro_read(fd[0], &c, 1);
		if (r != -ETIMEDOUT)
			MUST(!went("goro_read", r));
	}
	if (began(wait_for_nothing, (void *)(intptr_t)fd[1], "go"))
		goro_sleep(GORO_MILLISECOND);
	r = goro_poll(fd[0], POLLIN, goro_deadline_in(GORO_MILLISECOND));
	if (went("goro_poll", r))
		MUST(r == 0);
	went("goro_close", goro_close(fd[1]));
	goro_waitgroup_wait(&all);
	went("goro_close", goro_close(fd[0]));
}

static int port_of(int fd)
{
	struct sockaddr_in a;
	socklen_t n = sizeof a;

	MUST(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	return ntohs(a.sin_port);
}

static void datagrams(void)
{
	int a = goro_listen("udp4", "127.0.0.1:0"), b;
	struct sockaddr_in from;
	socklen_t len = sizeof from;
	char address[40], text[8];

	if (!went("goro_listen", a))
		return;
	snprintf(address, sizeof address, "127.0.0.1:%d", port_of(a));
	b = goro_dial("udp4", address, GORO_FOREVER);
	if (went("goro_dial", b)) {
		if (went("goro_send", goro_send(b, "hello", 5, 0))) {
			long n = goro_recvfrom(a, text, sizeof text, 0, (struct sockaddr *)&from, &len);

			if (went("goro_recvfrom", n)) {
				struct iovec iov = { "you", 3 };
				struct msghdr msg = { &from, len, &iov, 1, NULL, 0, 0 };

				MUST(n == 5 || faults_any());
				if (went("goro_sendmsg", goro_sendmsg(a, &msg, 0))) {
					iov.iov_base = text;
					msg.msg_name = NULL, msg.msg_namelen = 0;
					went("goro_recvmsg", goro_recvmsg(b, &msg, 0));
				}
			}
		}
		went("goro_close", goro_close(b));
	}
	went("goro_close", goro_close(a));
}

static char dialed[40];

static void dial_and_converse(void *network)
{
	int fd = goro_dial(network, dialed, goro_deadline_in(20 * GORO_SECOND));

	if (went("goro_dial", fd))
		converse(fd);
}

static void network(void)
{
	int listener = goro_listen("tcp", "127.0.0.1:0"), port;

	if (went("goro_listen", listener)) {
		serving = true;
		port = port_of(listener);
		snprintf(dialed, sizeof dialed, "127.0.0.1:%d", port);
		if (began(serve, (void *)(intptr_t)listener, "go")) {
			for (int i = 0; i < 3; i++)
				dial_and_converse("tcp");
			snprintf(dialed, sizeof dialed, "localhost:%d", port);
			dial_and_converse("tcp4");
		}
		if (serving) {
			serving = false;
			went("goro_close", goro_close(listener));
		}
		goro_waitgroup_wait(&all);
	}
	over_pipe();
	deadlines_and_close();
	datagrams();
}

/* Several conversations at once, on pairs, so that the deferred calls are used. */
static void converse_begun(void *arg)
{
	converse((int)(intptr_t)arg);
}

static void crowd(void)
{
	for (int i = 0; i < 6; i++) {
		int fd[2];

		OWN(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
		if (began(echo, (void *)(intptr_t)fd[0], "go"))
			begin(converse_begun, (void *)(intptr_t)fd[1], "go");
	}
	goro_waitgroup_wait(&all);
}

static void network_all(void)
{
	network();
	crowd();
}

/* --------------------------------------------------------------------- files */

#define FILE_BYTES (64 << 10)

static void read_back(void *arg)
{
	int fd = (int)(intptr_t)arg;
	static const int step = 4096;
	unsigned char buf[4096];

	for (int at = 0; at < FILE_BYTES; at += step) {
		long n = goro_pread(fd, buf, (size_t)step, at);

		if (!went("goro_pread", n))
			continue;
		MUST(n > 0);
		MUST(n == step || faults_any());
		for (long i = 0; i < n; i++)
			MUST(buf[i] == (unsigned char)((at + i) / 7));
	}
}

static void files(void)
{
	char path[] = "/tmp/goro-faults-XXXXXX";
	unsigned char bytes[FILE_BYTES], two[8];
	struct iovec iov[2] = { { two, 4 }, { two + 4, 4 } };
	int fd = mkstemp(path);
	long n;

	OWN(fd >= 0);
	close(fd);
	fd = goro_open(path, O_RDWR);
	unlink(path);
	if (!went("goro_open", fd))
		return;
	for (int i = 0; i < FILE_BYTES; i++)
		bytes[i] = (unsigned char)(i / 7);
	for (int at = 0; at < FILE_BYTES;) {
		n = goro_pwrite(fd, bytes + at, (size_t)(FILE_BYTES - at), at);
		if (!went("goro_pwrite", n)) {
			OWN(pwrite(fd, bytes, FILE_BYTES, 0) == FILE_BYTES);
			break;
		}
		MUST(n > 0);
		at += (int)n;
	}
	went("goro_fsync", goro_fsync(fd));
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	for (int i = 0; i < 3; i++)
		begin(read_back, (void *)(intptr_t)fd, "go");
	goro_waitgroup_wait(&all);
	n = goro_readv(fd, iov, 2);
	if (went("goro_readv", n))
		MUST(n == 8 || faults_any());
	n = goro_read(fd, two, sizeof two);
	went("goro_read", n);
	went("goro_write", goro_write(fd, two, sizeof two));
	went("goro_writev", goro_writev(fd, iov, 2));
	went("goro_close", goro_close(fd));
	over_pipe();
	fd = goro_open("/nowhere/at/all", O_RDONLY);
	if (fd != -ENOENT)
		MUST(!went("goro_open", fd));
}

/* ---------------------------------------------------- blocking and preemption */

static void sleep_in_libc(void *arg)
{
	(void)arg;
	usleep(3000);
}

static _Atomic bool over;

static void hog(void *arg)
{
	(void)arg;
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		;
}

static pthread_mutex_t libc_mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock_libc(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(&libc_mutex);
		usleep(500);
		pthread_mutex_unlock(&libc_mutex);
	}
}

static void announced(void *arg)
{
	(void)arg;
	goro_blocking(sleep_in_libc, NULL);
}

static void locked(void *arg)
{
	goro_lock_os_thread();
	goro_sleep(GORO_MILLISECOND);
	sleep_in_libc(arg);
	goro_gosched();
	goro_unlock_os_thread();
}

static void blocking(void)
{
	int procs = goro_gomaxprocs(0), hogs = 0;
	FILE *out = fopen("/dev/null", "w");

	for (int i = 0; i < 8; i++)
		begin(sleep_in_libc, NULL, "go");
	goro_waitgroup_wait(&all);
	for (int i = 0; i < procs + 1; i++)
		hogs += began(hog, NULL, "go");
	goro_sleep(2 * GORO_MILLISECOND);
	goro_gosched();
	if (out)
		goro_dump(out);
	atomic_store(&over, true);
	goro_waitgroup_wait(&all);
	for (int i = 0; i < 4; i++)
		begin(lock_libc, NULL, "go");
	for (int i = 0; i < 3; i++)
		begin(announced, NULL, "go");
	for (int i = 0; i < 2; i++)
		begin(locked, NULL, "go");
	goro_waitgroup_wait(&all);
	goro_gomaxprocs(procs + 2);
	for (int i = 0; i < 4; i++)
		begin(count, NULL, "go");
	goro_waitgroup_wait(&all);
	goro_gomaxprocs(procs);
	MUST(goro_gomaxprocs(0) == procs);
	MUST(goro_num_cpu() >= 1);
	if (out)
		fclose(out);
}

/* -------------------------------------------------------------------- timers */

static _Atomic int slept;

static void sleep_some(void *arg)
{
	int64_t start = goro_now(), ns = (int64_t)(intptr_t)arg;

	goro_sleep(ns);
	MUST(goro_now() - start >= ns);
	slept++;
}

static void fired(void *arg)
{
	goro_chan_close(arg);
}

/* Waits for c at most ten seconds. */
static bool within_seconds(goro_chan *c)
{
	return goro_select_until(goro_deadline_in(10 * GORO_SECOND), GORO_RECV(c, NULL)) == 0;
}

static void timers(void)
{
	goro_timer *t, *f;
	goro_ticker *k;
	goro_ctx *ctx;
	goro_chan *c, *sig;
	int usr1 = SIGUSR1;

	for (int i = 0; i < 20; i++)
		begin(sleep_some, (void *)(intptr_t)((i % 5 + 1) * 300000), "go");
	goro_waitgroup_wait(&all);
	MUST(slept == 20);
	t = goro_timer_make(GORO_MILLISECOND);
	if (made("goro_timer_make", t)) {
		MUST(within_seconds(goro_timer_chan(t)));
		goro_timer_reset(t, GORO_SECOND);
		MUST(goro_timer_stop(t));
		goro_timer_free(t);
	}
	k = goro_ticker_make(GORO_MILLISECOND);
	if (made("goro_ticker_make", k)) {
		for (int i = 0; i < 3; i++)
			MUST(within_seconds(goro_ticker_chan(k)));
		goro_ticker_free(k);
	}
	c = goro_chan_make(0, 0);
	if (made("goro_chan_make", c)) {
		f = goro_after_func(GORO_MILLISECOND, fired, c);
		if (made("goro_after_func", f)) {
			/* Without memory at its moment the function does not run, and a
			 * message says so. */
			if (!within_seconds(c) && !faults_any())
				WRONG("goro_after_func has not run");
			goro_timer_free(f);
		} else {
			goro_chan_close(c);
		}
	}
	ctx = goro_ctx_with_timeout(goro_ctx_background(), GORO_MILLISECOND);
	if (made("goro_ctx_with_timeout", ctx)) {
		goro_chan *done = goro_ctx_done(ctx);

		MUST(within_seconds(done));
		MUST(goro_ctx_err(ctx) == -ETIMEDOUT);
		goro_ctx_unref(ctx);
	}
	sig = goro_signal_notify(&usr1, 1);
	if (made("goro_signal_notify", sig)) {
		kill(getpid(), SIGUSR1);
		MUST(within_seconds(sig));
		goro_signal_stop(sig);
		goro_chan_unref(sig);
	}
	goro_sleep(20 * GORO_MILLISECOND);	/* all idle */
}

/* --------------------------------------------------------- trace and profile */

static int memory_file(void)
{
	return memfd_create("out", MFD_CLOEXEC);
}

static char debug_name[40];

static void http(const char *path, const char *wanted)
{
	int fd = goro_dial("unix", debug_name, goro_deadline_in(20 * GORO_SECOND));
	char request[200], answer[65536];
	size_t total = 0;
	long n;

	if (!went("goro_dial", fd))
		return;
	/* Where accept fails for good nobody answers. */
	went("goro_set_deadline", goro_set_deadline(fd, goro_deadline_in(2 * GORO_SECOND), GORO_FOREVER));
	snprintf(request, sizeof request, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
	if (went("goro_write", goro_write_full(fd, request, strlen(request)))) {
		while (total < sizeof answer - 1 &&
		       (n = goro_read(fd, answer + total, sizeof answer - 1 - total)) > 0)
			total += (size_t)n;
		answer[total] = '\0';
		if (n != -ETIMEDOUT || !faults_any())
			went("goro_read", total < sizeof answer - 1 ? n : 0);
		if (!strstr(answer, wanted) && !faults_any())
			WRONG("%s: %.300s", path, answer);
	}
	went("goro_close", goro_close(fd));
}

static void observe(void)
{
	static const char *profiles[] = { "goroutine", "block", "mutex", "threadcreate", "goroutineleak" };
	int fd = memory_file();
	char head[16] = "", address[60];
	bool traced;

	OWN(fd >= 0);
	goro_profile_block_rate(1);
	goro_profile_mutex_fraction(1);
	traced = went("goro_trace_start", goro_trace_start(fd));
	{
		uint64_t t = goro_trace_task_begin("task");

		goro_trace_region_begin(t, "region");
		goro_trace_log(t, "key", "value");
		for (int i = 0; i < 4; i++)
			begin(count, NULL, "go");
		begin(sleep_in_libc, NULL, "go");
		goro_waitgroup_wait(&all);
		goro_trace_region_end(t, "region");
		goro_trace_task_end(t);
	}
	if (traced) {
		goro_trace_stop();
		if (went("goro_trace_error", goro_trace_error())) {
			MUST(pread(fd, head, 15, 0) >= 8);
			MUST(memcmp(head, "go 1.2", 6) == 0);
			MUST(lseek(fd, 0, SEEK_END) > 200);
		}
	}
	close(fd);
	for (int i = 0; i < 5; i++) {
		fd = memory_file();
		OWN(fd >= 0);
		if (went("goro_profile_write", goro_profile_write(profiles[i], fd))) {
			MUST(pread(fd, head, 2, 0) == 2);
			MUST(memcmp(head, "\x1f\x8b", 2) == 0);
		}
		close(fd);
	}
	fd = memory_file();
	OWN(fd >= 0);
	if (went("goro_profile_cpu_start", goro_profile_cpu_start(fd, 1000))) {
		int64_t until = goro_now() + 4 * GORO_MILLISECOND;

		while (goro_now() < until)
			;
		goro_profile_cpu_stop();
	}
	close(fd);
	snprintf(debug_name, sizeof debug_name, "@goro-faults-%d", getpid());
	snprintf(address, sizeof address, "unix:%s", debug_name);
	if (went("goro_debug_serve", goro_debug_serve(address))) {
		http("/debug/metrics", "200");
		http("/debug/pprof/goroutine?debug=1", "200");
		http("/debug/goroutines?debug=2", "");
		http("/nothing", "404");
	}
}

/* --------------------------------------------------------------------- main */

static const struct {
	const char *name;
	void (*fn)(void);
} workloads[] = {
	{ "channels", channels }, { "network", network_all }, { "files", files },
	{ "blocking", blocking }, { "timers", timers },       { "observe", observe },
};
static void (*workload)(void);

static int run(int argc, char **argv)
{
	(void)argc, (void)argv;
	goro_sema_init(&sema, 2);
	workload();
	return 0;
}

bool workload_run(const char *name)
{
	workload = NULL;
	for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
		if (strcmp(workloads[i].name, name) == 0)
			workload = workloads[i].fn;
	if (!workload)
		return false;
	if (goro_run(run, 0, NULL) != 0)
		WRONG("goro_run");
	dprintf(1, "right\n");
	return true;
}
