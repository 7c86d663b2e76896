/*
 * debug_http.c - the debug server: net/http/pprof and a live page, over HTTP/1.1.
 *
 * A goroutine accepts, and each connection has one; they are the runtime's own, which
 * are not counted among the program's and are no leaks. They are there for somebody who
 * looks at a program in trouble, so they need little of it: a page is put together in
 * memory and then sent, nothing waits for a lock while it sends, and whoever is slow, or
 * asks too much, is sent away:
 *
 *	connections	CONNS_MAX, or a CONNS_PART-th of the program's descriptors; beyond that
 *			503 at once
 *	a head		HEAD_MAX bytes within HEAD_NS from when it began
 *	a body		BODY_MAX bytes, POST only
 *	idle		HEAD_NS before the first request, IDLE_NS between two, or not at all
 *			while connections are scarce
 *	sending		SEND_NS without progress (debug_reply.c)
 *
 * A listener waits for I/O, so that as in Go a program whose other goroutines are all
 * asleep is not told that it is in a deadlock: it stays there to be looked at.
 *
 * Where it listens is told in debug_listen.c, who may ask in debug_guard.c, and how a program
 * that does not listen is asked in debug_attach.c.
 */
#define _GNU_SOURCE
#include "debug_http.h"

#include <errno.h>
#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "environment.h"
#include "runtime.h"

#define CONNS_MAX 64
#define CONNS_PART 16		/* .. and no more than this part of the program's descriptors */
#define HEAD_MAX  (16 << 10)
#define BODY_MAX  (64 << 10)
#define HEAD_NS   (10 * GORO_SECOND)
#define IDLE_NS   (60 * GORO_SECOND)

static uint32_t conns;		/* open ones, of all listeners */

struct listener {
	int fd;
	bool local;		/* on the loopback interface alone */
};

struct conn {
	int fd;
	bool local;
	bool served;		/* a request */
	size_t n;		/* in buf: what has come and was not used */
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
	const char *path;	/* one that ends in a slash has others below it */
	void (*show)(const struct http_request *rq, struct reply *rp);
	bool exact;
	bool may_post;
	bool may_be_linked;	/* from other web pages */
} pages[] = {
	{ .path = "/debug/pprof/", .show = page_pprof, .may_post = true },
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
	bool post = strcmp(rq->method, "POST") == 0;
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
	} else if (strcmp(rq->method, "GET") != 0 && strcmp(rq->method, "HEAD") != 0 &&
	           !(post && page->may_post)) {
		reply_refuse(rp, 405, "method not allowed");
	} else {
		page->show(rq, rp);
	}
}

/* Puts a page together, by answer or a refusal, and sends it. True: the connection
 * goes on. */
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

/* More into the buffer, by a time: false: there is no more. */
static bool receive(struct conn *c, int64_t by)
{
	ssize_t n;

	goro_set_deadline(c->fd, by, GORO_FOREVER);
	n = goro_read(c->fd, c->buf + c->n, HEAD_MAX - c->n);
	if (n <= 0)
		return false;
	c->n += (size_t)n;
	return true;
}

static void use_up(struct conn *c, size_t n)
{
	c->n -= n;
	memmove(c->buf, c->buf + n, c->n);
}

/* The whole head: how long it is; 0: none came; or a refusal, negative. */
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
		/* Blank lines before a request are passed over. */
		while (c->n >= 2 && c->buf[0] == '\r' && c->buf[1] == '\n')
			use_up(c, 2);
	}
	return (ssize_t)n;
}

/* Behind the head in the buffer, and from there on: NULL: it did not come. */
static char *read_body(struct conn *c, size_t head, size_t n)
{
	size_t have = c->n - head < n ? c->n - head : n;
	char *body = malloc(n + 1);

	if (!body)
		return NULL;
	memcpy(body, c->buf + head, have);
	memmove(c->buf + head, c->buf + head + have, c->n - head - have);
	c->n -= have;
	goro_set_deadline(c->fd, goro_now() + HEAD_NS, GORO_FOREVER);
	if (goro_read_full(c->fd, body + have, n - have) != (ssize_t)(n - have)) {
		free(body);
		return NULL;
	}
	body[n] = '\0';
	return body;
}

/* One request and its answer. True: the connection goes on. */
static bool serve_one(struct conn *c)
{
	struct http_request rq = { .method = "" };
	ssize_t n = read_head(c);
	char *body = NULL;
	int status;
	bool on;

	if (n == 0)
		return false;
	status = n < 0 ? (int)-n : http_parse(c->buf, (size_t)n, &rq);
	if (!status && rq.body_bytes > BODY_MAX)
		status = 413;
	if (!status && rq.body_bytes > 0) {
		rq.body = body = read_body(c, (size_t)n, rq.body_bytes);
		if (!body)
			return false;
	}
	on = reply_to(c, &rq, status);
	free(body);
	if (on)
		use_up(c, (size_t)n);
	return on;
}

/* What was sent and not read would take the answer with it when the socket is closed. */
static void hang_up(struct conn *c)
{
	int64_t by = goro_now() + GORO_SECOND;

	shutdown(c->fd, SHUT_WR);
	do
		c->n = 0;
	while (receive(c, by));
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

/* At once, and without waiting for anything: a crowd is to take neither descriptors nor
 * goroutines. What the client has sent is read, since unread it would take the answer along. */
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
		c->fd = fd;
		c->local = local;
		if (debug_go(serve_conn, c))
			return;
		free(c);
		goro_close(fd);
	} else {
		goro_close(fd);
	}
	fetch_add_relaxed(&conns, (uint32_t)-1);
}

/* Until the end of the process. */
static void accept_all(void *arg)
{
	struct listener *l = arg;

	goro_set_name("debug server");
	for (;;) {
		int fd = goro_accept(l->fd, NULL, NULL);

		if (fd >= 0)
			debug_http_take(fd, l->local);
		else
			goro_sleep(50 * GORO_MILLISECOND);	/* no descriptors, or memory */
	}
}

int debug_http_serve(const char *address, int *port)
{
	struct listener *l;
	bool local;
	int fd;

	fd = debug_listen(address, port, &local);
	if (fd < 0)
		return fd;
	l = malloc(sizeof *l);
	if (l)
		*l = (struct listener){ .fd = fd, .local = local };
	if (!l || !debug_go(accept_all, l)) {
		free(l);
		goro_close(fd);
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

/* A thread of its own: whoever starts the runtime is in the middle of that. */
static void *serve_as_asked(void *arg)
{
	int port, error = debug_http_serve(arg, &port);

	if (error)
		environment_complain("GORO_DEBUG_SERVE", strerror(-error));
	else if (port)
		fprintf(stderr, "goro: debug server on port %d: /debug/\n", port);
	return NULL;
}

void debug_http_init(void)
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
