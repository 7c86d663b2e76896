/*
 * idleconns - idle connections, with a goroutine each that waits to read from
 * it: memory of a connection. The other ends are bare descriptors.
 *
 * idleconns.bytes: when they have been idle for a while, and the runtime has had
 * time to tidy up (Go is also asked to).
 * idleconns.bytes.new: as soon as they are open.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#define IDLE_NS (6 * GORO_SECOND)

static goro_waitgroup ended;

static void server(int fd)
{
	char buf[64];

	while (goro_read(fd, buf, sizeof buf) > 0)
		;
	goro_close(fd);
	goro_waitgroup_done(&ended);
}

static void check(int result, const char *what)
{
	if (result < 0)
		measure_fail(what);
}

/* Ends by a reset, not by TIME_WAIT, or the next run would find no ports. */
static int connect_to(struct sockaddr_in *a)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	check(setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 },
	                 sizeof(struct linger)), "setsockopt");
	check(connect(fd, (struct sockaddr *)a, sizeof *a), "connect");
	return fd;
}

static int listen_anywhere(struct sockaddr_in *a)
{
	socklen_t len = sizeof *a;
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*a = (struct sockaddr_in){ .sin_family = AF_INET,
	                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	check(bind(l, (struct sockaddr *)a, len), "bind");
	check(listen(l, 1024), "listen");
	getsockname(l, (struct sockaddr *)a, &len);
	return l;
}

static void report_bytes(const char *name, int64_t before, int conns)
{
	bench_report(name, (double)(measure_memory_bytes() - before) / conns, "B",
	             "%d connections", conns);
}

static int bench_main(int argc, char **argv)
{
	static int client[MEASURE_MAX_CONNS];
	int conns = measure_max_conns();
	struct sockaddr_in a;
	int l = listen_anywhere(&a);
	int64_t before;

	(void)argc, (void)argv;
	before = measure_memory_bytes();
	goro_waitgroup_add(&ended, conns);
	for (int i = 0; i < conns; i++) {
		int fd;

		client[i] = connect_to(&a);
		fd = goro_accept(l, NULL, NULL);
		check(fd, "accept");
		BENCH_GO(server, fd);
	}
	goro_sleep(50 * GORO_MILLISECOND);      /* until all wait */
	report_bytes("idleconns.bytes.new", before, conns);
	goro_sleep(IDLE_NS);
	report_bytes("idleconns.bytes", before, conns);
	for (int i = 0; i < conns; i++)
		close(client[i]);
	goro_waitgroup_wait(&ended);
	return 0;
}

GORO_MAIN(bench_main)
