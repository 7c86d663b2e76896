/*
 * debug_http.c - the debug server: net/http/pprof and a live page, over HTTP/1.1.
 *
 * A goroutine accepts, and each connection has one; they are the runtime's own, which
 * are not counted among the program's and are no leaks. They are there for somebody who
 * looks at a program in trouble, so they need little of it: a page is put together in
 * memory and then sent, nothing waits for a lock while it sends, and whoever is slow, or
 * asks too much, is sent away:
 *
 *	connections	CONNS_MAX, beyond which one gets 503 at once
 *	a head		HEAD_MAX bytes within HEAD_NS from when it began
 *	a body		BODY_MAX bytes, POST only
 *	idle		IDLE_NS, or not at all while connections are scarce
 *	sending		SEND_NS without progress
 *
 * A listener waits for I/O, so that as in Go a program whose other goroutines are all
 * asleep is not told that it is in a deadlock: it stays there to be looked at.
 *
 * Who may ask
 *
 * Anybody who can connect: on this machine only, unless the address says otherwise. A
 * web page in a browser on this machine can connect, too, under a name of its own that
 * leads here; so a listener on the loopback interface answers only to the names of that.
 */
#define _GNU_SOURCE
#include "debug_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <goro.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "environment.h"
#include "runtime.h"

#define CONNS_MAX 64
#define CONNS_SCARCE (CONNS_MAX / 2)
#define HEAD_MAX  (16 << 10)
#define BODY_MAX  (64 << 10)
#define HEAD_NS   (10 * GORO_SECOND)
#define IDLE_NS   (60 * GORO_SECOND)
#define SEND_NS   (30 * GORO_SECOND)
#define SEND_BYTES (256 << 10)		/* at a time, each within SEND_NS */

static uint32_t conns;		/* open ones, of all listeners */

struct listener {
	int fd;
	bool local;		/* on the loopback interface alone */
};

struct conn {
	int fd;
	bool local;
	size_t n;		/* in buf: what has come and was not used */
	char buf[HEAD_MAX + 1];
};

/* --------------------------------------------------------------- addresses */

/* "6060" and ":6060" are on this machine only. False: too long. */
static bool complete_address(const char *address, char *out, size_t max)
{
	bool port_only = address[strspn(address, "0123456789")] == '\0';
	const char *host = port_only ? "127.0.0.1:" : address[0] == ':' ? "127.0.0.1" : "";

	return snprintf(out, max, "%s%s", host, address) < (int)max;
}

static bool is_loopback(const struct sockaddr_storage *sa)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;

	if (sa->ss_family == AF_INET)
		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	return sa->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

/* The socket that a process that has ended has left: nobody listens on it. */
static bool is_left_over(const char *path)
{
	int fd = goro_dial("unix", path, goro_now() + GORO_SECOND);

	if (fd >= 0)
		goro_close(fd);
	return fd == -ECONNREFUSED;
}

static int listen_unix(const char *path)
{
	int fd = goro_listen("unix", path);

	if (fd == -EADDRINUSE && path[0] != '@' && is_left_over(path) && unlink(path) == 0)
		fd = goro_listen("unix", path);
	return fd;
}

static int listen_on(const char *address)
{
	char full[300];

	if (!address || !*address)
		return -EINVAL;
	if (strncmp(address, "unix:", 5) == 0)
		return listen_unix(address + 5);
	if (!complete_address(address, full, sizeof full))
		return -EINVAL;
	return goro_listen("tcp", full);
}

/* Of "host:port": localhost, 127.x.x.x or [::1], whatever the port. */
static bool is_local_name(const char *host)
{
	struct in_addr a;
	char name[64];
	size_t n;

	if (strncmp(host, "[::1]", 5) == 0)
		return host[5] == '\0' || host[5] == ':';
	n = strcspn(host, ":");
	if (n >= sizeof name)
		return false;
	memcpy(name, host, n);
	name[n] = '\0';
	return strcasecmp(name, "localhost") == 0 ||
	       (inet_pton(AF_INET, name, &a) == 1 && ntohl(a.s_addr) >> 24 == 127);
}

/* ------------------------------------------------------------------ answers */

static const struct page {
	const char *path;	/* one that ends in a slash has others below it */
	void (*show)(const struct http_request *rq, struct reply *rp);
	bool exact;
	bool may_post;
} pages[] = {
	{ "/debug/pprof/", page_pprof, false, true },
	{ "/debug/stats.json", page_stats, true, false },
	{ "/debug/metrics", page_metrics, true, false },
	{ "/debug/", page_live, true, false },
};

static const struct page *find_page(const char *path)
{
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
		if (strncmp(path, pages[i].path, strlen(pages[i].path)) == 0 &&
		    (!pages[i].exact || strcmp(path, pages[i].path) == 0))
			return &pages[i];
	return NULL;
}

static void refuse(struct reply *rp, int status, const char *why)
{
	rp->status = status;
	fprintf(rp->out, "%s\n", why);
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

	if (c->local && rq->host && !is_local_name(rq->host)) {
		refuse(rp, 403, "this server is for this machine: ask for localhost");
	} else if ((rp->location = shorter_way(rq->path))) {
		refuse(rp, 301, rp->location);
	} else if (!page) {
		refuse(rp, 404, "404 page not found");
	} else if (strcmp(rq->method, "GET") != 0 && strcmp(rq->method, "HEAD") != 0 &&
	           !(post && page->may_post)) {
		refuse(rp, 405, "method not allowed");
	} else {
		page->show(rq, rp);
	}
}

static const char *status_text(int status)
{
	switch (status) {
	case 200: return "OK";
	case 301: return "Moved Permanently";
	case 400: return "Bad Request";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 408: return "Request Timeout";
	case 413: return "Content Too Large";
	case 431: return "Request Header Fields Too Large";
	case 500: return "Internal Server Error";
	case 501: return "Not Implemented";
	case 503: return "Service Unavailable";
	case 505: return "HTTP Version Not Supported";
	default:  return "Status";
	}
}

static bool send_all(const struct conn *c, const char *p, size_t n)
{
	while (n > 0) {
		size_t k = n < SEND_BYTES ? n : SEND_BYTES;

		goro_set_deadline(c->fd, GORO_FOREVER, goro_now() + SEND_NS);
		if (goro_write_full(c->fd, p, k) < 0)
			return false;
		p += k;
		n -= k;
	}
	return true;
}

static int format_head(char *head, size_t max, const struct reply *rp, size_t n, bool keep_alive)
{
	int k = snprintf(head, max,
	                 "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
	                 "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n%s",
	                 rp->status, status_text(rp->status), rp->type, n,
	                 keep_alive ? "" : "Connection: close\r\n");

	if (rp->filename)
		k += snprintf(head + k, max - (size_t)k,
		              "Content-Disposition: attachment; filename=\"%s\"\r\n", rp->filename);
	if (rp->profile_error)
		k += snprintf(head + k, max - (size_t)k, "X-Go-Pprof: 1\r\n");
	if (rp->location)
		k += snprintf(head + k, max - (size_t)k, "Location: %s\r\n", rp->location);
	if (rp->status == 405)
		k += snprintf(head + k, max - (size_t)k, "Allow: GET, HEAD\r\n");
	return k + snprintf(head + k, max - (size_t)k, "\r\n");
}

/* Puts a page together, by answer or a refusal, and sends it. True: the connection
 * goes on. */
static bool reply_send(const struct conn *c, const struct http_request *rq, int refusal)
{
	struct reply rp = { .status = 200, .type = "text/plain; charset=utf-8", .fd = c->fd };
	bool keep_alive = rq->keep_alive && !refusal && load_relaxed(&conns) < CONNS_SCARCE;
	char *body = NULL, head[512];
	size_t n = 0;
	bool good;

	rp.out = open_memstream(&body, &n);
	if (!rp.out)
		return false;
	if (refusal)
		refuse(&rp, refusal, status_text(refusal));
	else
		answer(c, rq, &rp);
	good = !ferror(rp.out);
	good = fclose(rp.out) == 0 && good;
	if (!good)
		rp.status = 500;
	good = send_all(c, head, (size_t)format_head(head, sizeof head, &rp, n, keep_alive)) &&
	       (strcmp(rq->method, "HEAD") == 0 || send_all(c, body, n));
	free(body);
	return good && keep_alive;
}

bool reply_sleep(struct reply *rp, int64_t ns)
{
	int64_t end = goro_now() + ns;
	int events;

	/* There is nothing to read from who waits for an answer, but its end. Requests that
	 * came early end the wait for the end, too, but not the wait. */
	events = goro_poll(rp->fd, POLLRDHUP, end);
	if (events & (POLLRDHUP | POLLHUP | POLLERR))
		return false;
	if (goro_now() < end)
		goro_sleep(end - goro_now());
	return true;
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
	int64_t by = goro_now() + (c->n ? HEAD_NS : IDLE_NS);
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
	on = reply_send(c, &rq, status);
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
	if (fetch_add_relaxed(&conns, 1) < CONNS_MAX)
		while (serve_one(c))
			;
	else
		reply_send(c, &(struct http_request){ .method = "GET" }, 503);
	hang_up(c);
	fetch_add_relaxed(&conns, (uint32_t)-1);
	free(c);
}

/* ----------------------------------------------------------------- listening */

static bool start(void (*fn)(void *), void *arg)
{
	struct m *mp = rt_enter();
	bool started = g_launch_internal(mp, fn, arg);

	rt_exit(mp);
	return started;
}

static void accept_one(const struct listener *l, int fd)
{
	struct conn *c = calloc(1, sizeof *c);

	if (c)
		*c = (struct conn){ .fd = fd, .local = l->local };
	if (!c || !start(serve_conn, c)) {
		free(c);
		goro_close(fd);
	}
}

/* Until the end of the process. */
static void accept_all(void *arg)
{
	struct listener *l = arg;

	goro_set_name("debug server");
	for (;;) {
		int fd = goro_accept(l->fd, NULL, NULL);

		if (fd >= 0)
			accept_one(l, fd);
		else
			goro_sleep(50 * GORO_MILLISECOND);	/* no descriptors, or memory */
	}
}

int debug_http_serve(const char *address, int *port)
{
	struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof sa;
	struct listener *l;
	int fd;

	fd = listen_on(address);
	if (fd < 0)
		return fd;
	getsockname(fd, (struct sockaddr *)&sa, &len);
	*port = sa.ss_family == AF_INET || sa.ss_family == AF_INET6
	                ? ntohs(((struct sockaddr_in *)&sa)->sin_port) : 0;
	l = malloc(sizeof *l);
	if (l)
		*l = (struct listener){ .fd = fd, .local = is_loopback(&sa) };
	if (!l || !start(accept_all, l)) {
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
