/*
 * kv.c - a key-value server that speaks the Redis protocol.
 *
 *	kv [-c CLIENTS] [-m MEGABYTES] [ADDRESS]	default 127.0.0.1:6379
 *	redis-cli SET greeting hello
 *
 * A goroutine serves each connection: it reads a request, runs it and replies, in plain
 * code that looks as if it blocked. Thousands of connections are served by one thread
 * for each processor, however many of them are busy. kv.h says what is in which file.
 *
 * Strings, counters, lists, expiry, SCAN, SUBSCRIBE and PUBLISH; `redis-cli COMMAND`
 * lists the commands. Nothing is written to disk.
 *
 * -m limits the data, and as much again the connections' buffers; default: a quarter of
 * the machine's memory. More connections than CLIENTS (10,000), or than descriptors
 * allow, are told so. SIGTERM, SIGINT and SHUTDOWN end it in good order: what has been
 * read is answered, and after some seconds it ends anyway. A second signal ends it at
 * once.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kv.h"

#define CLIENTS_DEFAULT 10000
#define DESCRIPTORS     64			/* for all but clients */
#define PART_TIMEOUT    GORO_SECOND
#define DRAIN_TIMEOUT   (5 * GORO_SECOND)

static atomic_int clients;
static int clients_limit = CLIENTS_DEFAULT;
static goro_waitgroup serving;			/* connections, and who accepts them */
static goro_chan *stop_asked;

static goro_mutex all_lock;			/* guards these two */
static struct conn *all;
static bool stopping;

int clients_count(void)
{
	return atomic_load(&clients);
}

int clients_max(void)
{
	return clients_limit;
}

void server_stop(void)
{
	goro_chan_try_send(stop_asked, NULL);
}

/* ------------------------------------------------------------- connections */

/* It reads nothing more. What it has read it still answers. */
static void hurry(struct conn *c)
{
	goro_set_deadline(c->fd, GORO_NOW, goro_now() + DRAIN_TIMEOUT);
}

static void enter(struct conn *c)
{
	goro_mutex_lock(&all_lock);
	c->next = all;
	c->prev = &all;
	if (all)
		all->prev = &c->next;
	all = c;
	if (stopping)
		hurry(c);
	goro_mutex_unlock(&all_lock);
}

static void leave(struct conn *c)
{
	goro_mutex_lock(&all_lock);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	goro_mutex_unlock(&all_lock);
}

/* Closing a socket with bytes unread resets the connection, and the client may not
 * see the last replies. So it is told that this was all, and given a moment to
 * leave. */
static void part(struct conn *c)
{
	if (!resp_flush(c) || shutdown(c->fd, SHUT_WR) != 0)
		return;
	goro_set_deadline(c->fd, goro_now() + PART_TIMEOUT, GORO_NOW);
	while (goro_read(c->fd, c->in.first, sizeof c->in.first) > 0)
		;
}

static void serve(int fd)
{
	struct conn c;		/* its buffers stay untouched until they are used */

	resp_init(&c, fd);
	enter(&c);
	while (!c.closing && !c.broken && resp_read(&c))
		command_run(&c);
	resp_flush(&c);
	pubsub_leave(&c);
	leave(&c);
	part(&c);
	goro_close(fd);
	resp_free(&c);
	atomic_fetch_sub(&clients, 1);
	goro_waitgroup_done(&serving);
}

static void welcome(int fd)
{
	atomic_fetch_add(&clients, 1);
	goro_waitgroup_add(&serving, 1);
	if (go(serve, fd) == 0)
		return;
	atomic_fetch_sub(&clients, 1);
	goro_waitgroup_done(&serving);
	goro_close(fd);
}

static void turn_away(int fd)
{
	static const char why[] = "-ERR max number of clients reached\r\n";

	goro_send(fd, why, sizeof why - 1, MSG_DONTWAIT);
	goro_close(fd);
}

/* Out of descriptors or memory: clients that leave will leave some. */
static bool is_passing(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOBUFS ||
	       error == -ENOMEM || error == -ECONNABORTED || error == -EPROTO;
}

static void accept_all(int listener)
{
	bool complained = false;
	int fd;

	for (;;) {
		fd = goro_accept(listener, NULL, NULL);
		if (fd >= 0 && clients_count() < clients_limit) {
			welcome(fd);
		} else if (fd >= 0) {
			turn_away(fd);
		} else if (is_passing(fd)) {
			if (!complained)
				fprintf(stderr, "kv: accept: %s; going on\n",
				        strerror(-fd));
			complained = true;
			goro_sleep(10 * GORO_MILLISECOND);
		} else {
			break;
		}
	}
	goro_waitgroup_done(&serving);
}

/* ------------------------------------------------------------- the program */

/* As many descriptors as may be had. */
static void limit_clients(void)
{
	struct rlimit files;
	int most;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	getrlimit(RLIMIT_NOFILE, &files);
	most = files.rlim_cur > DESCRIPTORS ? (int)(files.rlim_cur - DESCRIPTORS) : 1;
	if (files.rlim_cur < (rlim_t)clients_limit + DESCRIPTORS) {
		fprintf(stderr, "kv: at most %d clients at once, not %d: %llu open files "
		        "are allowed\n", most, clients_limit,
		        (unsigned long long)files.rlim_cur);
		clients_limit = most;
	}
}

static size_t quarter_of_memory(void)
{
	return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 4;
}

/* A number of at least 1, or -1. */
static long number(const char *s)
{
	char *end;
	long n = strtol(s, &end, 10);

	return *end == '\0' && n >= 1 && n <= 1 << 30 ? n : -1;
}

static const char *read_options(int argc, char **argv)
{
	int option;

	memory_limit(quarter_of_memory());
	while ((option = getopt(argc, argv, "c:m:")) != -1) {
		long n = option == '?' ? -1 : number(optarg);

		if (n < 0)
			return NULL;
		if (option == 'c')
			clients_limit = (int)n;
		else
			memory_limit((size_t)n << 20);
	}
	if (optind == argc)
		return "127.0.0.1:6379";
	return optind + 1 == argc ? argv[optind] : NULL;
}

static void say_where(int listener)
{
	union {
		struct sockaddr any;
		struct sockaddr_in ip4;
		struct sockaddr_in6 ip6;
	} a = { .any.sa_family = AF_UNSPEC };
	socklen_t len = sizeof a;
	in_port_t port;

	getsockname(listener, &a.any, &len);
	port = a.any.sa_family == AF_INET6 ? a.ip6.sin6_port : a.ip4.sin_port;
	printf("listening on port %d\n", ntohs(port));
	fflush(stdout);
}

static void drain(int listener)
{
	goro_close(listener);
	goro_mutex_lock(&all_lock);
	stopping = true;
	for (struct conn *c = all; c; c = c->next)
		hurry(c);
	goro_mutex_unlock(&all_lock);
	goro_waitgroup_wait(&serving);
}

static int kv(int argc, char **argv)
{
	const char *address = read_options(argc, argv);
	goro_chan *signals;
	int listener, error;

	if (!address) {
		fprintf(stderr, "usage: kv [-c CLIENTS] [-m MEGABYTES] [ADDRESS]\n");
		return 2;
	}
	limit_clients();
	error = store_init();
	listener = error ? error : goro_listen("tcp", address);
	if (listener < 0) {
		fprintf(stderr, "kv: %s: %s\n", address, strerror(-listener));
		return 1;
	}
	command_init();
	store_start_janitor();
	signals = goro_signal_notify((int[]){ SIGTERM, SIGINT }, 2);
	stop_asked = goro_chan_make(0, 1);
	goro_waitgroup_add(&serving, 1);
	go(accept_all, listener);
	say_where(listener);

	goro_select(GORO_RECV(signals, NULL), GORO_RECV(stop_asked, NULL));
	goro_signal_stop(signals);	/* a second one ends it at once */
	goro_chan_unref(signals);
	drain(listener);
	printf("bye\n");
	return 0;
}
GORO_MAIN(kv)
