/*
 * proxy.c - a TCP proxy: what comes from a client goes to TARGET, and the other way
 * round.
 *
 *	proxy [-n CONNECTIONS] [-i IDLE] [-g GRACE] LISTEN TARGET     1000, 60 s, 10 s
 *	proxy :9000 example.org:80
 *
 * What to look at: a connection is two goroutines, each of which reads, writes and waits
 * as if it were alone; a few threads carry them all (`ls /proc/PID/task`). The end of one
 * direction is passed on with shutdown, and the other goes on: `printf ... | nc -N` gets
 * its answer. A reader that is slow holds up its own connection alone, and no more than
 * one buffer of it is kept here. A reset is passed on as a reset. A connection on which
 * neither side moves anything for IDLE seconds is closed. With CONNECTIONS of them,
 * others wait in the listen queue. SIGTERM and SIGINT stop listening and let the
 * connections end within GRACE seconds: then the status is 0, and 1 if some had to be cut
 * off.
 */
#include <goro.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define DIAL_TIMEOUT (10 * GORO_SECOND)

enum { CLIENT, TARGET };

struct link {
	int fd[2];
	goro_mutex lock;		/* guards over, and the deadlines of both */
	bool over;
	goro_waitgroup copying;
};

static int connections = 1000;
static int64_t idle = 60 * GORO_SECOND, grace = 10 * GORO_SECOND;
static const char *target;
static goro_sema places;		/* one for each connection */
static atomic_bool stopping;

/* ------------------------------------------------------------ one connection */

/* Something moved: both sides, and both directions, have time again. */
static void keep_alive(struct link *l)
{
	int64_t deadline = goro_now() + idle;

	goro_mutex_lock(&l->lock);
	for (int side = CLIENT; side <= TARGET && !l->over; side++)
		goro_set_deadline(l->fd[side], deadline, deadline);
	goro_mutex_unlock(&l->lock);
}

/* Ends both directions. With a reset, which their close then sends, both sides learn that
 * something is missing. */
static void cut(struct link *l, bool reset)
{
	struct linger none = { .l_onoff = 1, .l_linger = 0 };

	goro_mutex_lock(&l->lock);
	for (int side = CLIENT; side <= TARGET; side++) {
		if (reset)
			setsockopt(l->fd[side], SOL_SOCKET, SO_LINGER, &none, sizeof none);
		goro_set_deadline(l->fd[side], GORO_NOW, GORO_NOW);
	}
	l->over = true;
	goro_mutex_unlock(&l->lock);
}

/* One direction, until its end or the connection's. */
static void copy(struct link *l, int from, int to)
{
	char buffer[16384];
	ssize_t n, written = 0;

	while ((n = goro_read(l->fd[from], buffer, sizeof buffer)) > 0) {
		keep_alive(l);
		written = goro_write_full(l->fd[to], buffer, (size_t)n);
		if (written < 0)
			break;
		keep_alive(l);
	}
	if (n == 0)
		shutdown(l->fd[to], SHUT_WR);
	else
		cut(l, n != -ETIMEDOUT && written != -ETIMEDOUT);
	goro_waitgroup_done(&l->copying);
}

static void serve(int client)
{
	int fd = goro_dial("tcp", target, goro_now() + DIAL_TIMEOUT), one = 1;
	struct link l = { .fd = { client, fd } };

	if (fd < 0) {
		fprintf(stderr, "proxy: %s: %s\n", target,
		        fd == -ENOENT ? "no such host" : strerror(-fd));
	} else {
		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		keep_alive(&l);
		goro_waitgroup_add(&l.copying, 2);
		if (go(copy, &l, CLIENT, TARGET) != 0) {
			goro_waitgroup_done(&l.copying);
			cut(&l, true);
		}
		copy(&l, TARGET, CLIENT);
		goro_waitgroup_wait(&l.copying);
		goro_close(fd);
	}
	goro_close(client);
	goro_sema_release(&places, 1);
}

/* -------------------------------------------------------------------- main */

static void accept_all(int listener)
{
	int fd;

	while (!stopping) {
		goro_sema_acquire(&places, 1, GORO_FOREVER);
		fd = goro_accept(listener, NULL, NULL);
		if (fd >= 0 && go(serve, fd) == 0)
			continue;
		goro_sema_release(&places, 1);
		if (fd >= 0)
			goro_close(fd);
		else
			/* no descriptors, memory */
			goro_sleep(5 * GORO_MILLISECOND);
	}
}

/* As many descriptors as that takes, if they can be had. */
static bool raise_limit(void)
{
	rlim_t needed = 2 * (rlim_t)connections + 32;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
		return true;
	limit.rlim_cur = needed;
	return needed <= limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* Seconds, with a fraction, in nanoseconds; 0 if that makes no sense. */
static int64_t seconds(const char *text)
{
	char *end;
	double n = strtod(text, &end);

	return *end == '\0' && n > 0 && n < 1e6 ? (int64_t)(n * (double)GORO_SECOND) : 0;
}

static bool read_options(int argc, char **argv)
{
	bool known = true;

	for (int option; (option = getopt(argc, argv, "n:i:g:")) != -1; )
		switch (option) {
		case 'n': connections = atoi(optarg); break;
		case 'i': idle = seconds(optarg); break;
		case 'g': grace = seconds(optarg); break;
		default: known = false; break;
		}
	if (known && argc - optind == 2 && connections > 0 && connections <= 1000000 &&
	    idle > 0 && grace > 0)
		return true;
	fprintf(stderr, "usage: proxy [-n CONNECTIONS] [-i IDLE] [-g GRACE] LISTEN TARGET\n");
	return false;
}

static int start(int argc, char **argv)
{
	goro_chan *signals = goro_signal_notify((int[]){ SIGINT, SIGTERM }, 2);
	int listener;

	if (!read_options(argc, argv))
		return 2;
	if (!raise_limit()) {
		fprintf(stderr, "proxy: too few descriptors for %d connections\n", connections);
		return 1;
	}
	target = argv[optind + 1];
	if ((listener = goro_listen("tcp", argv[optind])) < 0) {
		fprintf(stderr, "proxy: %s: %s\n", argv[optind], strerror(-listener));
		return 1;
	}
	goro_sema_init(&places, connections);
	go(accept_all, listener);

	goro_chan_recv(signals, NULL);
	goro_signal_stop(signals);	/* a second one ends it at once */
	goro_chan_unref(signals);
	stopping = true;
	goro_close(listener);
	if (goro_sema_acquire(&places, connections, goro_now() + grace) == 0)
		return 0;
	fprintf(stderr, "proxy: some connections were cut off\n");
	return 1;
}
GORO_MAIN(start)
