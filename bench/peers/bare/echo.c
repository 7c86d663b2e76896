/*
 * echo - 64 bytes to a server and back over loopback TCP, with 1, 100, 1,000 and
 * 10,000 connections; round trips a second, of all connections together.
 *
 * An endless loop of epoll_wait, recv and send for each processor, with its share of the
 * connections, both ends.
 */
#include "share.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BYTES  64
#define EVENTS 256

struct conn {
	int client, server;
	unsigned char out[BYTES];
	int left;               /* trips in this round */
	uint64_t sum;
};

static struct conn conn[MEASURE_MAX_CONNS];
static struct { _Alignas(PEER_LINE) int poller, busy; } loop[SHARES_MAX];
static int conns, trips;

static void check(ssize_t result, const char *what)
{
	if (result < 0)
		measure_fail(what);
}

static void put(int fd, const void *data)
{
	if (send(fd, data, BYTES, MSG_NOSIGNAL) != BYTES)
		measure_fail("a write was not done at once");
}

static void next_trip(struct conn *c)
{
	c->out[0]++;
	put(c->client, c->out);
}

/* An event says whose it is: twice the connection's number, and 1 for the server's
 * end. */
static void see_to(int share, uint64_t whose)
{
	struct conn *c = &conn[whose / 2];
	unsigned char in[BYTES];

	if (recv(whose % 2 ? c->server : c->client, in, BYTES, 0) != BYTES)
		measure_fail("a message came in parts");
	if (whose % 2) {
		put(c->server, in);
		return;
	}
	c->sum += in[0];
	if (--c->left > 0)
		next_trip(c);
	else
		loop[share].busy--;
}

static void echo_share(int share)
{
	struct epoll_event ev[EVENTS];

	loop[share].busy = 0;
	for (int i = share; i < conns; i += shares.n) {
		conn[i].sum = conn[i].out[0] = 0;
		conn[i].left = trips;
		loop[share].busy++;
		next_trip(&conn[i]);
	}
	while (loop[share].busy > 0) {
		int n = epoll_wait(loop[share].poller, ev, EVENTS, -1);

		for (int i = 0; i < n; i++)
			see_to(share, ev[i].data.u64);
	}
}

static uint64_t echo_round(void)
{
	uint64_t sum = 0;

	shares_round();
	for (int i = 0; i < conns; i++)
		sum += conn[i].sum;
	return sum;
}

/* ------------------------------------------------------------ connecting */

static void add(int poller, int fd, uint64_t whose)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = whose };

	check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), "setsockopt");
	check(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &ev), "epoll_ctl");
}

static void connect_all(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0);

	check(bind(l, (struct sockaddr *)&a, len), "bind");
	check(listen(l, 1024), "listen");
	getsockname(l, (struct sockaddr *)&a, &len);
	for (int i = 0; i < conns; i++) {
		int poller = loop[i % shares.n].poller;

		conn[i].client = socket(AF_INET, SOCK_STREAM, 0);
		check(connect(conn[i].client, (struct sockaddr *)&a, len), "connect");
		conn[i].server = accept(l, NULL, NULL);
		check(conn[i].server, "accept");
		add(poller, conn[i].client, 2 * (uint64_t)i);
		add(poller, conn[i].server, 2 * (uint64_t)i + 1);
	}
	close(l);
}

/* By a reset, not by TIME_WAIT, or the next run would find no ports. */
static void reset(const struct conn *c)
{
	check(setsockopt(c->client, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 },
	                 sizeof(struct linger)), "setsockopt");
	close(c->client);
	close(c->server);
}

static void measure_with(const char *name, int n, int trips_a_round)
{
	struct measurement m;

	conns = n;
	trips = trips_a_round;
	shares_start(peer_procs() < n ? peer_procs() : n, echo_share);
	for (int i = 0; i < shares.n; i++) {
		loop[i].poller = epoll_create1(EPOLL_CLOEXEC);
		check(loop[i].poller, "epoll_create1");
	}
	connect_all();
	m = measure(echo_round, (double)conns * trips);
	peer_report(name, 1e9 / m.ns_per_op, "/s", "%" PRIu64, m.check);
	shares_stop();
	for (int i = 0; i < conns; i++)
		reset(&conn[i]);
	for (int i = 0; i < shares.n; i++)
		close(loop[i].poller);
}

int main(void)
{
	measure_with("echo.1", 1, 1000);
	measure_with("echo.100", 100, 20);
	measure_with("echo.1000", 1000, 5);
	measure_with("echo.10000", measure_max_conns(), 1);
	return 0;
}
