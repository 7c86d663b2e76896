/*
 * measure.c - what the library goro-calls costs and gains: the figures of
 * docs/blocking.md, "Announced without a word".
 *
 *	measure ready            ns for reading a byte from a pipe that has one: in a
 *	                         plain thread, in a goroutine alone, and beside one that
 *	                         waits
 *	measure requests N [US]  ms for 20 requests of each of N goroutines to an echo
 *	                         peer, which rests for US microseconds after each look
 *	measure threads N [US]   the same with N threads, without goro
 *	measure sleepers N       ms until N goroutines have begun to sleep in poll
 *	measure locked           ns of a locked instruction here
 *
 * Run it as it is, and with LD_PRELOAD=libgoro-calls.so. The peer is a process of its own
 * that serves all sockets by epoll.
 */
#define _GNU_SOURCE
#include <goro.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUESTS 20
#define READS    200000
#define SLEEPERS_MS 3000
#define LOCKED   20000000
#define PEER_EVENTS 256
#define THREAD_STACK_BYTES 65536

static int n, rest_us;
static int (*sockets)[2];

/* ------------------------------------------------------------------ requests */

static void serve(int epoll)
{
	struct epoll_event e[PEER_EVENTS];
	char c[64];

	for (;;) {
		int k = epoll_wait(epoll, e, PEER_EVENTS, -1);

		for (int i = 0; i < k; i++) {
			ssize_t got = read(e[i].data.fd, c, sizeof c);

			if (got <= 0)
				_exit(0);	/* the other process has ended */
			if (write(e[i].data.fd, c, (size_t)got) != got)
				_exit(1);
		}
		if (rest_us != 0)
			usleep((useconds_t)rest_us);
	}
}

static void start_peer(void)
{
	struct rlimit files = { 65536, 65536 };

	setrlimit(RLIMIT_NOFILE, &files);
	sockets = calloc((size_t)n, sizeof *sockets);
	for (int i = 0; i < n; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[i]) != 0) {
			perror("socketpair");
			exit(1);
		}
	if (fork() == 0) {
		int epoll = epoll_create1(0);

		for (int i = 0; i < n; i++) {
			struct epoll_event e = { .events = EPOLLIN, .data.fd = sockets[i][1] };

			close(sockets[i][0]);
			epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[i][1], &e);
		}
		serve(epoll);
	}
	for (int i = 0; i < n; i++)
		close(sockets[i][1]);
}

static void requests(int fd)
{
	char c;

	for (int i = 0; i < REQUESTS; i++)
		if (write(fd, "x", 1) != 1 || read(fd, &c, 1) != 1)
			abort();
}

static double cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static void report(int64_t since)
{
	printf("%.0f ms, %.0f ms of CPU time\n", (double)(goro_now() - since) / 1e6, cpu_ms());
}

static void one_of_many(int i, goro_waitgroup *wg)
{
	requests(sockets[i][0]);
	goro_waitgroup_done(wg);
}

static int with_goroutines(int argc, char **argv)
{
	goro_waitgroup wg = { 0 };
	int64_t since = goro_now();

	(void)argc, (void)argv;
	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		go(one_of_many, i, &wg);
	goro_waitgroup_wait(&wg);
	report(since);
	return 0;
}

static void *one_thread(void *arg)
{
	requests(sockets[(intptr_t)arg][0]);
	return NULL;
}

static int with_threads(void)
{
	pthread_t *t = calloc((size_t)n, sizeof *t);
	int64_t since = goro_now();
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	for (intptr_t i = 0; i < n; i++)
		if (pthread_create(&t[i], &attr, one_thread, (void *)i) != 0)
			abort();
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	report(since);
	return 0;
}

/* ------------------------------------------------------------------ sleepers */

static int asleep;
static int64_t all_asleep_at;

static void sleep_in_poll(void)
{
	if (__atomic_add_fetch(&asleep, 1, __ATOMIC_SEQ_CST) == n)
		all_asleep_at = goro_now();
	poll(NULL, 0, SLEEPERS_MS);
}

static int sleepers(int argc, char **argv)
{
	int64_t since = goro_now();

	(void)argc, (void)argv;
	for (int i = 0; i < n; i++)
		go(sleep_in_poll);
	while (__atomic_load_n(&asleep, __ATOMIC_SEQ_CST) < n)
		goro_sleep(GORO_MILLISECOND);
	printf("%.0f ms\n", (double)(all_asleep_at - since) / 1e6);
	return 0;
}

/* --------------------------------------------------------------- ready reads */

static int full[2];

static double ns_a_read(void)
{
	static char bytes[READS > 65536 ? 65536 : READS];
	int64_t spent = 0;
	char c;

	for (int done = 0; done < READS; done += (int)sizeof bytes) {
		int64_t since;

		if (write(full[1], bytes, sizeof bytes) != (ssize_t)sizeof bytes)
			abort();
		since = goro_now();
		for (size_t i = 0; i < sizeof bytes; i++)
			if (read(full[0], &c, 1) != 1)
				abort();
		spent += goro_now() - since;
	}
	return (double)spent / (double)(READS / sizeof bytes * sizeof bytes + sizeof bytes);
}

static bool stop;

static void wait_for_turn(void)
{
	while (!stop)
		goro_gosched();
}

static int ready(int argc, char **argv)
{
	(void)argc, (void)argv;
	goro_gomaxprocs(1);
	printf("goroutine %.0f ns", ns_a_read());
	go(wait_for_turn);
	printf(", beside one that waits %.0f ns\n", ns_a_read());
	stop = true;
	return 0;
}

static int locked(void)
{
	static uint64_t word;
	int64_t since = goro_now();

	for (int i = 0; i < LOCKED; i++)
		__atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
	printf("%.1f ns\n", (double)(goro_now() - since) / LOCKED);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	n = argc > 2 ? atoi(argv[2]) : 0;
	rest_us = argc > 3 ? atoi(argv[3]) : 0;
	if (strcmp(what, "locked") == 0)
		return locked();
	if (strcmp(what, "ready") == 0) {
		if (pipe(full) != 0)
			return 1;
		printf("thread %.0f ns, ", ns_a_read());
		return goro_run(ready, argc, argv);
	}
	if (n <= 0) {
		fprintf(stderr, "usage: measure ready|locked|requests N [US]|threads N [US]|sleepers N\n");
		return 2;
	}
	if (strcmp(what, "sleepers") == 0)
		return goro_run(sleepers, argc, argv);
	start_peer();
	return strcmp(what, "threads") == 0 ? with_threads() : goro_run(with_goroutines, argc, argv);
}
