/*
 * respload.c - a load for servers of the Redis protocol that takes little CPU time.
 *
 *	respload PORT get|set CONNECTIONS PIPELINE SECONDS
 *
 * redis-benchmark parses each reply and takes as much CPU time as the server, so that on
 * a machine with few CPUs it is the bottleneck. respload builds its requests beforehand.
 * All replies have the same length: it counts their bytes, and looks at the first one. It
 * is one thread, without goro. First it sets all keys; then each connection sends
 * PIPELINE requests and waits for the replies, again and again. It prints how many
 * requests were answered in a second.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define KEYS      100000
#define REQUESTS  65536			/* made beforehand, with keys at random */
#define AT_ONCE   64			/* events taken at a time */
#define TO_FILL   100			/* requests sent at a time, to set all keys */
#define PIPELINE_MAX 1024

#define SET "*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$3\r\nxxx\r\n"
#define GET "*2\r\n$3\r\nGET\r\n$16\r\nkey:%012d\r\n"

/* What is asked, and how long each answer is. */
struct load {
	char *text;			/* REQUESTS of them */
	size_t request, reply;		/* bytes of one */
	char first;			/* of each reply */
	size_t next;			/* the request that is sent next */
};

struct conn {
	int fd;
	size_t left;			/* bytes of replies that are still to come */
};

static _Noreturn __attribute__((format(printf, 1, 2))) void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("respload: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* random: keys at random; otherwise one after the other. */
static struct load load_make(const char *format, const char *reply, bool random)
{
	struct load l = { .request = (size_t)snprintf(NULL, 0, format, 0),
	                  .reply = strlen(reply), .first = reply[0] };
	int n = random ? REQUESTS : KEYS;

	l.text = malloc((size_t)n * l.request + 1);
	if (!l.text)
		die("no memory");
	for (int i = 0; i < n; i++)
		sprintf(l.text + (size_t)i * l.request, format, random ? rand() % KEYS : i);
	return l;
}

static int dial(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
	                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
		die("port %d: %s", port, strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	return fd;
}

/* Sends the next n requests. */
static void ask(struct load *l, struct conn *c, size_t n)
{
	const char *at = l->text + l->next * l->request;

	for (size_t left = n * l->request; left > 0;) {
		ssize_t sent = send(c->fd, at, left, MSG_NOSIGNAL);

		if (sent < 0)
			die("send: %s", strerror(errno));
		at += sent;
		left -= (size_t)sent;
	}
	l->next += n;
	c->left = n * l->reply;
}

/* Takes what has come. True: all replies have. */
static bool hear(const struct load *l, struct conn *c)
{
	char buf[16 << 10];
	bool begins = c->left % l->reply == 0;
	ssize_t n = recv(c->fd, buf, sizeof buf, 0);

	if (n <= 0)
		die("the server has hung up");
	if ((size_t)n > c->left || (begins && buf[0] != l->first))
		die("not the replies that were expected: %.*s", (int)n, buf);
	c->left -= (size_t)n;
	return c->left == 0;
}

static void set_all(int port)
{
	struct load l = load_make(SET, "+OK\r\n", false);
	struct conn c = { .fd = dial(port) };

	while (l.next < KEYS) {
		ask(&l, &c, TO_FILL);
		while (!hear(&l, &c))
			;
	}
	close(c.fd);
	free(l.text);
}

/* Requests answered in a second. */
static double measure(struct load *l, int port, size_t connections, size_t pipeline,
                      double seconds)
{
	int poller = epoll_create1(EPOLL_CLOEXEC);
	struct conn *all = calloc(connections, sizeof *all);
	double began, took, answered = 0;

	for (size_t i = 0; all && i < connections; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = &all[i] };

		all[i].fd = dial(port);
		epoll_ctl(poller, EPOLL_CTL_ADD, all[i].fd, &event);
	}
	began = now();
	for (size_t i = 0; all && i < connections; i++)
		ask(l, &all[i], pipeline);
	while ((took = now() - began) < seconds) {
		struct epoll_event events[AT_ONCE];
		int n = epoll_wait(poller, events, AT_ONCE, 1000);

		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;

			if (!hear(l, c))
				continue;
			answered += (double)pipeline;
			if (l->next + pipeline > REQUESTS)
				l->next = 0;
			ask(l, c, pipeline);
		}
	}
	return answered / took;
}

int main(int argc, char **argv)
{
	int port = argc > 1 ? atoi(argv[1]) : 0, connections = argc > 3 ? atoi(argv[3]) : 0;
	int pipeline = argc > 4 ? atoi(argv[4]) : 0;
	double seconds = argc > 5 ? atof(argv[5]) : 0;
	struct load l;

	if (port <= 0 || connections <= 0 || pipeline <= 0 || pipeline > PIPELINE_MAX ||
	    seconds <= 0 ||
	    (strcmp(argv[2], "get") != 0 && strcmp(argv[2], "set") != 0)) {
		fprintf(stderr, "usage: respload PORT get|set CONNECTIONS PIPELINE SECONDS\n");
		return 2;
	}
	set_all(port);
	l = strcmp(argv[2], "get") == 0 ? load_make(GET, "$3\r\nxxx\r\n", true)
	                                : load_make(SET, "+OK\r\n", true);
	printf("%.0f\n", measure(&l, port, (size_t)connections, (size_t)pipeline, seconds));
	return 0;
}
