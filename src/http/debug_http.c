/*
 * debug_http.c - the debug server: net/http/pprof and a live page, over HTTP/1.1
 *
 * One goroutine accepts, and each connection has one. They are internal goroutines: the
 * program's counts and leak reports leave them out. They serve people who look at a
 * program in trouble, so they need little of it: a page is made in memory and then sent,
 * without a lock. Clients that are slow or send too much are turned away:
 *
 *	connections	CONNS_MAX, or a CONNS_PART-th of the program's descriptors; more
 *			get 503 at once
 *	a head		HEAD_MAX bytes, within HEAD_NS from its first byte
 *	idle		HEAD_NS before the first request, IDLE_NS between two; while
 *			connections are scarce each has one request
 *	sending		SEND_NS without progress (debug_reply.c)
 *
 * The accepting goroutine waits for I/O. So, as in Go, a program whose other goroutines
 * all wait is no deadlock: the process goes on and can be looked at.
 *
 * The server's sockets have high numbers and are marked, and each use looks at the mark
 * first: a program that closes all descriptors may open its own with the same numbers
 * (base/own_fd.c). A listener that was closed is made again.
 */
#define _GNU_SOURCE
#include "http/debug_http.h"

#include <errno.h>
#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/environment.h"
#include "platform/own_fd.h"
#include "base/throw.h"
#include "sched/init.h"
#include "sched/runtime.h"

#define CONNS_MAX 64
#define CONNS_PART 16		/* connections take at most 1/16 of the descriptors */
#define HEAD_MAX  (16 << 10)
#define HEAD_NS   (10 * GORO_SECOND)
#define IDLE_NS   (60 * GORO_SECOND)
#define AGAIN_NS  GORO_SECOND	/* between two tries to listen again */
#define ADDRESS_MAX 310		/* more than debug_listen takes */

static uint32_t conns;		/* atomic: connections of all listeners */

struct listener {
	int fd;
	bool local;		/* on the loopback interface alone */
	char address[ADDRESS_MAX];
};

struct conn {
	int fd;
	bool local;		/* the listener's */
	bool served;		/* a request has been answered */
	size_t n;		/* bytes in buf: received and not used yet */
	char buf[HEAD_MAX + 1];
};

static uint32_t conns_max(void)
{
	struct rlimit limit;
	rlim_t n = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / CONNS_PART : CONNS_MAX;

	return n < 1 ? 1 : n < CONNS_MAX ? (uint32_t)n : CONNS_MAX;
}

static bool are_scarce(void)
{
	return load_relaxed(&conns) > conns_max() / 2;
}

/* ------------------------------------------------------------------ answers */

static const struct page {
	const char *path;
	void (*show)(const struct http_request *rq, struct reply *rp);
	bool exact;		/* paths below are not shown by it */
	bool may_be_linked;	/* from other web pages */
} pages[] = {
	{ .path = "/debug/pprof/", .show = page_pprof },
	{ .path = "/debug/stats.json", .show = page_stats, .exact = true },
	{ .path = "/debug/metrics", .show = page_metrics, .exact = true },
	{ .path = "/debug/", .show = page_live, .exact = true, .may_be_linked = true },
};

static const struct page *find_page(const char *path)
{
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
		if (strncmp(path, pages[i].path, strlen(pages[i].path)) == 0 &&
		    (!pages[i].exact || strcmp(path, pages[i].path) == 0))
			return &pages[i];
	return NULL;
}

static const char *shorter_way(const char *path)
{
	if (strcmp(path, "/") == 0 || strcmp(path, "/debug") == 0)
		return "/debug/";
	return strcmp(path, "/debug/pprof") == 0 ? "/debug/pprof/" : NULL;
}

static void answer(const struct conn *c, const struct http_request *rq, struct reply *rp)
{
	const struct page *page = find_page(rq->path);
	const char *way = shorter_way(rq->path);
	const char *why = debug_guard(rq, c->local, way || (page && page->may_be_linked));

	if (why) {
		reply_refuse(rp, 403, why);
	} else if (way) {
		rp->location = way;
		reply_refuse(rp, 301, way);
	} else if (!page) {
		reply_refuse(rp, 404, "404 page not found");
	} else if (strcmp(rq->method, "GET") != 0 && strcmp(rq->method, "HEAD") != 0) {
		reply_refuse(rp, 405, "method not allowed");
	} else {
		page->show(rq, rp);
	}
}

/* Makes a page, by answer or the refusal, and sends it. False: the connection ends. */
static bool reply_to(const struct conn *c, const struct http_request *rq, int refusal)
{
	struct reply rp = {
		.status = 200, .type = "text/plain; charset=utf-8", .fd = c->fd,
		.keep_alive = rq->keep_alive && !refusal && !are_scarce(),
		.head_only = strcmp(rq->method, "HEAD") == 0, .chunks = rq->has_chunks,
	};
	char *body = NULL;
	size_t n = 0;
	bool good;

	rp.out = open_memstream(&body, &n);
	if (!rp.out)
		return false;
	if (refusal)
		reply_refuse(&rp, refusal, reply_status_text(refusal));
	else
		answer(c, rq, &rp);
	good = !ferror(rp.out);
	good = fclose(rp.out) == 0 && good;
	if (!good)
		rp.status = 500;
	if (!rp.begun)
		reply_send(&rp, body, good ? n : 0);
	free(body);
	return !rp.failed && rp.keep_alive;
}

/* ----------------------------------------------------------------- requests */

/* Receives more into the buffer. False: the client sends no more, or not until `by`. */
static bool receive(struct conn *c, int64_t by)
{
	ssize_t n;

	check(c->n < HEAD_MAX);		/* a read of no bytes would look like the end */
	if (!own_fd_is(c->fd, OWN_FD_DEBUG))
		return false;
	goro_set_deadline(c->fd, by, GORO_FOREVER);
	n = goro_read(c->fd, c->buf + c->n, HEAD_MAX - c->n);
	if (n <= 0)
		return false;
	c->n += (size_t)n;
	return true;
}

static void use_up(struct conn *c, size_t n)
{
	check(n <= c->n);
	c->n -= n;
	memmove(c->buf, c->buf + n, c->n);
}

/* Receives a head. Its length; 0: none came; negative: the status to refuse it with. */
static ssize_t read_head(struct conn *c)
{
	int64_t by = goro_now() + (c->n || !c->served ? HEAD_NS : IDLE_NS);
	size_t n;

	while (!(n = http_head_end(c->buf, c->n))) {
		bool first = c->n == 0;

		if (c->n == HEAD_MAX)
			return -431;
		if (!receive(c, by))
			return c->n && goro_now() >= by ? -408 : 0;
		if (first)
			by = goro_now() + HEAD_NS;
		/* RFC 9112: blank lines before a request are ignored. */
		while (c->n >= 2 && c->buf[0] == '\r' && c->buf[1] == '\n')
			use_up(c, 2);
	}
	return (ssize_t)n;
}

/* Serves one request. False: the connection ends. */
static bool serve_one(struct conn *c)
{
	struct http_request rq = { .method = "" };
	ssize_t n = read_head(c);
	int status;

	if (n == 0)
		return false;
	status = n < 0 ? (int)-n : http_parse(c->buf, (size_t)n, &rq);
	if (!reply_to(c, &rq, status))
		return false;
	use_up(c, (size_t)n);
	return true;
}

/* Reads what the client still sends. If a socket is closed with data unread, the kernel
 * resets the connection, and the client may lose the answer. */
static void hang_up(struct conn *c)
{
	int64_t by = goro_now() + GORO_SECOND;

	if (!own_fd_is(c->fd, OWN_FD_DEBUG))
		return;
	shutdown(c->fd, SHUT_WR);
	do
		c->n = 0;
	while (receive(c, by));
	if (own_fd_is(c->fd, OWN_FD_DEBUG))
		goro_close(c->fd);
}

static void serve_conn(void *arg)
{
	struct conn *c = arg;

	goro_set_name("debug server");
	while (serve_one(c))
		c->served = true;
	hang_up(c);
	fetch_add_relaxed(&conns, (uint32_t)-1);
	free(c);
}

/* ----------------------------------------------------------------- listening */

bool debug_go(void (*fn)(void *), void *arg)
{
	struct m *mp = rt_enter();
	bool started = g_launch_internal(mp, fn, arg);

	rt_exit(mp);
	return started;
}

/* Refuses a connection without waiting: a crowd of clients must take neither descriptors
 * nor goroutines. Reads what the client has sent, for the reason that hang_up has. */
static void turn_away(int fd)
{
	static const char head[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
	                           "Connection: close\r\n\r\n";
	char sink[4096];

	while (recv(fd, sink, sizeof sink, MSG_DONTWAIT) == (ssize_t)sizeof sink)
		;
	if (send(fd, head, sizeof head - 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		shutdown(fd, SHUT_WR);
	goro_close(fd);
}

void debug_http_take(int fd, bool local)
{
	struct conn *c;

	if (fetch_add_relaxed(&conns, 1) >= conns_max()) {
		turn_away(fd);
	} else if ((c = calloc(1, sizeof *c))) {
		c->fd = own_fd_take_many(fd, OWN_FD_DEBUG);
		c->local = local;
		if (debug_go(serve_conn, c))
			return;
		goro_close(c->fd);
		free(c);
	} else {
		goro_close(fd);
	}
	fetch_add_relaxed(&conns, (uint32_t)-1);
}

/* The program has closed the listener. */
static void listen_again(struct listener *l)
{
	int port;

	while ((l->fd = debug_listen(l->address, &port, &l->local)) < 0)
		goro_sleep(AGAIN_NS);
}

/* Until the end of the process. */
static void accept_all(void *arg)
{
	struct listener *l = arg;

	goro_set_name("debug server");
	for (;;) {
		int fd;

		if (!own_fd_is(l->fd, OWN_FD_DEBUG))
			listen_again(l);
		/* Fails while there are no descriptors or no memory. */
		fd = goro_accept(l->fd, NULL, NULL);
		if (fd >= 0)
			debug_http_take(fd, l->local);
		else
			goro_sleep(50 * GORO_MILLISECOND);
	}
}

/* Keeps the address to listen on again, with the listener's port in place of port 0. */
static void keep_address(struct listener *l, const char *address, int port)
{
	const char *colon = strrchr(address, ':'), *last = colon ? colon + 1 : address;

	snprintf(l->address, sizeof l->address, "%s", address);
	if (port != 0 && strcmp(last, "0") == 0)
		snprintf(l->address, sizeof l->address, "%.*s%d", (int)(last - address), address, port);
}

int debug_http_serve(const char *address, int *port)
{
	struct listener *l = calloc(1, sizeof *l);

	if (!l)
		return -ENOMEM;
	l->fd = debug_listen(address, port, &l->local);
	if (l->fd < 0) {
		int error = l->fd;

		free(l);
		return error;
	}
	keep_address(l, address, *port);
	if (!debug_go(accept_all, l)) {
		goro_close(l->fd);
		free(l);
		return -ENOMEM;
	}
	return 0;
}

int goro_debug_serve(const char *address)
{
	int port;

	return debug_http_serve(address, &port);
}

/* ------------------------------------------------------ without the program */

/* On a thread of its own: the caller of debug_http_init is starting the runtime. */
static void *serve_as_asked(void *arg)
{
	int port, error = debug_http_serve(arg, &port);

	if (error)
		environment_complain("GORO_DEBUG_SERVE", strerror(-error));
	else if (port)
		fprintf(stderr, "goro: debug server on port %d: /debug/\n", port);
	return NULL;
}

static void debug_http_init(void)
{
	static char address[300];
	const char *value = environment_get("GORO_DEBUG_SERVE");
	int error;

	if (!value)
		return;
	error = environment_expand(value, address, sizeof address)
	                ? m_thread_make_quiet(serve_as_asked, address) : ENAMETOOLONG;
	if (error)
		environment_complain("GORO_DEBUG_SERVE", strerror(error));
}

HOOK(at_start, START_SERVICES, debug_http_init);
