/*
 * lateness - how late a sleep of 1 ms ends beside two busy goroutines a processor
 * that never call anything, how long a round trip over channels and one over a socket
 * take there, and how late a goroutine comes back from an announced call that sleeps in
 * the kernel for 1 ms: the median and the 99th percentile.
 *
 * Not in rounds: a fixed number of sleeps, each followed by both round trips; and then as
 * many calls.
 */
#include <sys/socket.h>
#include <time.h>

#include "bench.h"

#define SLEEPS    200
#define HOGS_A_P  2
#define SLEEP_NS  GORO_MILLISECOND

static void hog(void)
{
	for (;;)
		__asm__ volatile("");
}

static void echo(goro_chan *in, goro_chan *out)
{
	uint64_t v;

	while (goro_chan_recv(in, &v))
		goro_chan_send(out, &v);
}

static void echo_socket(int fd)
{
	char c;

	while (goro_read(fd, &c, 1) == 1)
		if (goro_write(fd, &c, 1) != 1)
			measure_fail("cannot write to a socket");
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void report(const char *what, int64_t *ns)
{
	char name[64];

	qsort(ns, SLEEPS, sizeof *ns, by_value);
	snprintf(name, sizeof name, "lateness.%s.p50", what);
	bench_report(name, (double)ns[SLEEPS / 2] / 1e3, "us", "%d", SLEEPS);
	snprintf(name, sizeof name, "lateness.%s.p99", what);
	bench_report(name, (double)ns[SLEEPS * 99 / 100] / 1e3, "us", "%d", SLEEPS);
}

static int bench_main(int argc, char **argv)
{
	static int64_t late[SLEEPS], trip[SLEEPS], socket_trip[SLEEPS], call[SLEEPS];
	goro_chan *in = goro_chan_of(uint64_t, 0), *out = goro_chan_of(uint64_t, 0);
	uint64_t v = 0;
	int fd[2];
	char c = 'x';

	(void)argc, (void)argv;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) != 0)
		measure_fail("no socket");
	for (int i = 0; i < HOGS_A_P * goro_gomaxprocs(0); i++)
		BENCH_GO(hog);
	BENCH_GO(echo, in, out);
	BENCH_GO(echo_socket, fd[1]);
	goro_sleep(20 * GORO_MILLISECOND);	/* until all of them run */
	for (int i = 0; i < SLEEPS; i++) {
		int64_t start = measure_now();

		goro_sleep(SLEEP_NS);
		late[i] = measure_now() - start - SLEEP_NS;
		start = measure_now();
		goro_chan_send(in, &v);
		goro_chan_recv(out, &v);
		trip[i] = measure_now() - start;
		start = measure_now();
		if (goro_write(fd[0], &c, 1) != 1 || goro_read(fd[0], &c, 1) != 1)
			measure_fail("no answer from a socket");
		socket_trip[i] = measure_now() - start;
	}
	for (int i = 0; i < SLEEPS; i++) {
		int64_t start = measure_now();

		goro_syscall_enter();
		nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
		goro_syscall_exit();
		call[i] = measure_now() - start - SLEEP_NS;
	}
	report("sleep", late);
	report("chan", trip);
	report("socket", socket_trip);
	report("call", call);
	return 0;
}

GORO_MAIN(bench_main)
