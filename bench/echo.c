/*
 * echo - 64 bytes to a server and back over loopback TCP, a goroutine at each end of
 * each connection, all in one process: with 1, 100, 1,000 and 10,000 connections; round
 * trips a second, of all connections together.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#define BYTES   64
#define MAX     MEASURE_MAX_CONNS

static int conns;               /* in this measurement */
static int trips;               /* a round, of each connection */
static int client[MAX];

static void check(ssize_t result, const char *what)
{
	if (result < 0)
		measure_fail(what);
}

static void no_delay(int fd)
{
	check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), "setsockopt");
}

/* By a reset, not by TIME_WAIT, or the next run would find no ports. */
static void reset(int fd)
{
	check(setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 },
	                 sizeof(struct linger)), "setsockopt");
	goro_close(fd);
}

static void server(int fd)
{
	char buf[BYTES];
	ssize_t n;

	while ((n = goro_read(fd, buf, sizeof buf)) > 0)
		check(goro_write(fd, buf, (size_t)n), "server: write");
	goro_close(fd);
}

static void connect_all(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	int l = goro_socket(AF_INET, SOCK_STREAM, 0);

	check(bind(l, (struct sockaddr *)&a, len), "bind");
	check(listen(l, 1024), "listen");
	getsockname(l, (struct sockaddr *)&a, &len);
	for (int i = 0; i < conns; i++) {
		int fd;

		client[i] = goro_socket(AF_INET, SOCK_STREAM, 0);
		check(goro_connect(client[i], (struct sockaddr *)&a, len), "connect");
		fd = goro_accept(l, NULL, NULL);
		check(fd, "accept");
		no_delay(client[i]);
		no_delay(fd);
		BENCH_GO(server, fd);
	}
	goro_close(l);
}

static void talk(int fd, uint64_t *sum, goro_waitgroup *wg)
{
	unsigned char buf[BYTES] = { 0 };

	for (int i = 0; i < trips; i++) {
		buf[0]++;
		check(goro_write(fd, buf, BYTES), "client: write");
		check(goro_read_full(fd, buf, BYTES), "client: read");
		*sum += buf[0];
	}
	goro_waitgroup_done(wg);
}

static uint64_t echo_round(void)
{
	static uint64_t sums[MAX];
	goro_waitgroup wg = { 0 };
	uint64_t sum = 0;

	goro_waitgroup_add(&wg, conns);
	for (int i = 0; i < conns; i++) {
		sums[i] = 0;
		BENCH_GO(talk, client[i], &sums[i], &wg);
	}
	goro_waitgroup_wait(&wg);
	for (int i = 0; i < conns; i++)
		sum += sums[i];
	return sum;
}

static void measure_with(const char *name, int n, int trips_a_round)
{
	struct measurement m;

	conns = n;
	trips = trips_a_round;
	connect_all();
	m = measure(echo_round, (double)conns * trips);
	bench_report(name, 1e9 / m.ns_per_op, "/s", "%" PRIu64, m.check);
	for (int i = 0; i < conns; i++)
		reset(client[i]);
}

static int bench_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	measure_with("echo.1", 1, 1000);
	measure_with("echo.100", 100, 20);
	measure_with("echo.1000", 1000, 5);
	measure_with("echo.10000", measure_max_conns(), 1);
	return 0;
}

GORO_MAIN(bench_main)
