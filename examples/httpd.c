/*
 * httpd.c - an HTTP/1.1 server: a goroutine a connection, plain blocking code.
 *
 *	httpd [ADDRESS]		default 127.0.0.1:8080
 *
 *	GET /			a greeting
 *	POST /echo		the body, back again
 *	GET /slow		the greeting, after a second
 *
 * Keep-alive and pipelining: requests are answered in order, and the answers to those
 * that came together are sent together. Bodies with a length or in chunks. Limits on
 * everything a client can make long, and on how long it can take. SIGTERM and SIGINT
 * end it gracefully: new connections are refused, idle ones closed, requests under
 * way are answered; after ten seconds it ends anyway.
 */
#include <goro.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <time.h>

#include "http.h"

#define HEAD_MAX        (16 << 10)	/* bytes of a request's head */
#define BODY_MAX        (1 << 20)
#define OUT_BYTES       (8 << 10)
#define CONNECTIONS_MAX 10000

#define IDLE_TIMEOUT  (60 * GORO_SECOND)	/* until a request begins .. */
#define HEAD_TIMEOUT  (10 * GORO_SECOND)	/* .. until its head is there .. */
#define BODY_TIMEOUT  (30 * GORO_SECOND)	/* .. and its body */
#define WRITE_TIMEOUT (30 * GORO_SECOND)
#define DRAIN_TIMEOUT (10 * GORO_SECOND)

/* --------------------------------------------------------------- connections */

struct conn {
	int fd;
	atomic_bool idle;		/* between requests */
	struct conn *next, **prev;	/* all of them; under all_lock */
	bool close;			/* after the answers under way */
	bool bad;			/* nothing can be sent or received any more */
	int64_t read_by;		/* the deadline that is set */

	size_t in_at, in_n;		/* what is in the buffer and not used */
	size_t out_n;			/* what is to be sent */
	time_t date_of;
	char date[40];
	char in[HEAD_MAX];		/* only what is used of these takes memory */
	char out[OUT_BYTES];
};

static goro_mutex all_lock;
static struct conn *all;
static atomic_bool stopping;
static goro_sema places;		/* one a connection */

static void conn_enter(struct conn *c)
{
	goro_mutex_lock(&all_lock);
	c->next = all;
	c->prev = &all;
	if (all)
		all->prev = &c->next;
	all = c;
	goro_mutex_unlock(&all_lock);
}

static void conn_leave(struct conn *c)
{
	goro_mutex_lock(&all_lock);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	goro_mutex_unlock(&all_lock);
	goro_close(c->fd);
}

/* ------------------------------------------------------------------- output */

static void flush(struct conn *c)
{
	if (c->out_n > 0 && !c->bad) {
		goro_set_deadline(c->fd, c->read_by, goro_now() + WRITE_TIMEOUT);
		c->bad = goro_write_full(c->fd, c->out, c->out_n) < 0;
	}
	c->out_n = 0;
}

static void send_bytes(struct conn *c, const void *p, size_t n)
{
	if (n > sizeof c->out - c->out_n)
		flush(c);
	if (n > sizeof c->out) {
		c->bad = c->bad || goro_write_full(c->fd, p, n) < 0;
		return;
	}
	memcpy(c->out + c->out_n, p, n);
	c->out_n += n;
}

static void send_text(struct conn *c, const char *s)
{
	send_bytes(c, s, strlen(s));
}

static const char *reason(int status)
{
	switch (status) {
	case 200: return "OK";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 408: return "Request Timeout";
	case 413: return "Content Too Large";
	case 414: return "URI Too Long";
	case 417: return "Expectation Failed";
	case 431: return "Request Header Fields Too Large";
	case 501: return "Not Implemented";
	case 505: return "HTTP Version Not Supported";
	default: return "Bad Request";
	}
}

/* "Date: ...", made anew once a second. */
static const char *date(struct conn *c)
{
	time_t now = time(NULL);
	struct tm tm;

	if (now != c->date_of) {
		c->date_of = now;
		strftime(c->date, sizeof c->date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
	}
	return c->date;
}

static void send_head(struct conn *c, int status, const char *more, size_t length)
{
	char head[512];
	int n;

	c->close = c->close || atomic_load(&stopping);
	n = snprintf(head, sizeof head,
	             "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: text/plain\r\n"
	             "Content-Length: %zu\r\n%s%s\r\n", status, reason(status), date(c), length,
	             more, c->close ? "Connection: close\r\n" : "");

	send_bytes(c, head, (size_t)n);
}

/* For what cannot be understood, or not be gone on with. */
static void refuse(struct conn *c, int status)
{
	c->close = true;
	send_head(c, status, "", strlen(reason(status)) + 1);
	send_text(c, reason(status));
	send_text(c, "\n");
}

/* -------------------------------------------------------------------- input */

/* Who waits for more has everything that came before it. */
static void prepare_read(struct conn *c, int64_t deadline)
{
	flush(c);
	if (deadline != c->read_by) {
		c->read_by = deadline;
		goro_set_deadline(c->fd, deadline, GORO_FOREVER);
	}
}

/* More bytes, by the deadline: false: there are none, or no room. */
static bool fill(struct conn *c, int64_t deadline)
{
	ssize_t n;

	if (c->in_at > 0) {
		memmove(c->in, c->in + c->in_at, c->in_n);
		c->in_at = 0;
	}
	if (c->in_n == sizeof c->in)
		return false;
	prepare_read(c, deadline);
	if (c->bad)
		return false;
	n = goro_read(c->fd, c->in + c->in_n, sizeof c->in - c->in_n);
	if (n <= 0) {
		c->bad = n != -ETIMEDOUT;
		return false;
	}
	c->in_n += (size_t)n;
	return true;
}

static void use(struct conn *c, size_t n)
{
	c->in_at += n;
	c->in_n -= n;
}

/* Waits for a request to begin. A deadline for each would be precise, and cost a
 * system call or two a request: it is set anew when a tenth of it is over. */
static bool wait_for_request(struct conn *c)
{
	int64_t now, deadline;
	bool got;

	if (c->in_n > 0)
		return true;
	now = goro_now();
	deadline = c->read_by - now > IDLE_TIMEOUT - IDLE_TIMEOUT / 10 &&
	           c->read_by - now <= IDLE_TIMEOUT ? c->read_by : now + IDLE_TIMEOUT;
	prepare_read(c, deadline);
	/* This is stored and then stopping is read; who stops does the reverse, and its
	 * deadline is not set back. */
	atomic_store(&c->idle, true);
	got = !atomic_load(&stopping) && fill(c, deadline);
	atomic_store(&c->idle, false);
	return got;
}

/* The head of the next request: 1, or the status to refuse it with; 0: none comes. */
static int read_head(struct conn *c, struct http_request *r)
{
	int64_t deadline;
	size_t seen;
	int status;

	if (!wait_for_request(c))
		return 0;
	status = http_parse(c->in + c->in_at, c->in_n, r);
	if (status != 0)
		return status;
	deadline = goro_now() + HEAD_TIMEOUT;
	for (;;) {
		seen = c->in_n;
		if (!fill(c, deadline))
			return c->bad ? 0 : c->in_n == sizeof c->in ? 431 : 408;
		if (!memchr(c->in + seen, '\n', c->in_n - seen))
			continue;	/* no use in looking again */
		status = http_parse(c->in, c->in_n, r);
		if (status != 0)
			return status;
	}
}

/* A body, as a whole. */
struct body {
	char *at;
	size_t n, room;
};

static bool body_add(struct body *b, const char *p, size_t n)
{
	if (b->n + n > b->room) {
		size_t room = b->room ? b->room : 4096;
		char *at;

		while (room < b->n + n)
			room *= 2;
		at = realloc(b->at, room);
		if (!at)
			return false;
		b->at = at;
		b->room = room;
	}
	memcpy(b->at + b->n, p, n);
	b->n += n;
	return true;
}

/* n bytes of it; 0, or the status to refuse it with. */
static int read_bytes(struct conn *c, struct body *b, uint64_t n, int64_t deadline)
{
	while (n > 0) {
		size_t part;

		if (c->in_n == 0 && !fill(c, deadline))
			return 408;
		part = c->in_n < n ? c->in_n : (size_t)n;
		if (!body_add(b, c->in + c->in_at, part))
			return 413;
		use(c, part);
		n -= part;
	}
	return 0;
}

/* A line of a chunked body, without its end; 0, or the status. */
static int read_line(struct conn *c, struct http_text *line, int64_t deadline)
{
	while (!http_line(c->in + c->in_at, c->in_n, line))
		if (!fill(c, deadline))
			return c->in_n == sizeof c->in ? 431 : 408;
	use(c, line->n + 1);
	return http_line_is_clean(line) ? 0 : 400;
}

static int read_trailers(struct conn *c, int64_t deadline)
{
	struct http_text line;
	int status;

	for (int i = 0; i <= HTTP_FIELDS_MAX; i++) {
		status = read_line(c, &line, deadline);
		if (status || line.n == 0)
			return status;
		if (!memchr(line.at, ':', line.n))
			return 400;
	}
	return 431;
}

static int read_chunks(struct conn *c, struct body *b, int64_t deadline)
{
	struct http_text line;
	int64_t size;
	int status;

	for (;;) {
		if ((status = read_line(c, &line, deadline)))
			return status;
		size = http_chunk_size(line);
		if (size < 0)
			return 400;
		if (size == 0)
			return read_trailers(c, deadline);
		if (size > BODY_MAX - (int64_t)b->n)
			return 413;
		if ((status = read_bytes(c, b, (uint64_t)size, deadline)) ||
		    (status = read_line(c, &line, deadline)))
			return status;
		if (line.n != 0)
			return 400;
	}
}

static int read_body(struct conn *c, const struct http_request *r, struct body *b)
{
	int64_t deadline;

	if (!r->chunked && r->length == 0)
		return 0;
	if (r->length > BODY_MAX)
		return 413;
	if (r->expects_continue)
		send_text(c, "HTTP/1.1 100 Continue\r\n\r\n");
	deadline = goro_now() + BODY_TIMEOUT;
	return r->chunked ? read_chunks(c, b, deadline) : read_bytes(c, b, r->length, deadline);
}

/* ------------------------------------------------------------------ answers */

/* What a request asks for; it is known before its body is read, as that lies where the
 * head does. */
enum page { PAGE_NONE, PAGE_GREETING, PAGE_ECHO, PAGE_SLOW };

struct asked {
	enum page page;
	bool allowed;
	bool head_only;
};

static struct asked ask(const struct http_request *r)
{
	struct http_text path = r->target;
	const char *query = memchr(path.at, '?', path.n);
	bool get = http_is(r->method, "GET") || http_is(r->method, "HEAD");
	struct asked a = { .head_only = http_is(r->method, "HEAD") };

	if (query)
		path.n = (size_t)(query - path.at);
	if (http_is(path, "/echo"))
		a.page = PAGE_ECHO;
	else if (http_is(path, "/slow"))
		a.page = PAGE_SLOW;
	else if (http_is(path, "/"))
		a.page = PAGE_GREETING;
	a.allowed = a.page == PAGE_ECHO ? http_is(r->method, "POST") : get;
	return a;
}

static void answer(struct conn *c, struct asked a, const struct body *b)
{
	static const char hello[] = "Hello, World!\n";
	const char *allow = a.page == PAGE_ECHO ? "Allow: POST\r\n" : "Allow: GET, HEAD\r\n";
	bool found = a.page != PAGE_NONE;

	if (!found || !a.allowed) {
		send_head(c, found ? 405 : 404, found ? allow : "", 0);
		return;
	}
	if (a.page == PAGE_SLOW) {
		flush(c);
		goro_sleep(GORO_SECOND);
	}
	if (a.page == PAGE_ECHO) {
		send_head(c, 200, "", b->n);
		send_bytes(c, b->at ? b->at : "", b->n);
		return;
	}
	send_head(c, 200, "", sizeof hello - 1);
	if (!a.head_only)
		send_bytes(c, hello, sizeof hello - 1);
}

/* One request. What is refused is the last. */
static void serve_one(struct conn *c)
{
	struct http_request r;
	struct body b = { NULL, 0, 0 };
	struct asked a;
	int status = read_head(c, &r);

	if (status == 0) {
		c->close = true;
		return;
	}
	if (status != 1) {
		refuse(c, status);
		return;
	}
	a = ask(&r);
	use(c, r.head_n);
	status = read_body(c, &r, &b);
	if (status) {
		refuse(c, status);
	} else {
		c->close = !r.keep_alive;
		answer(c, a, &b);
	}
	free(b.at);
}

/* A close with bytes unread would reset the connection, and the client might not see
 * the answer: it is given a moment to take it and to leave. */
static void part(struct conn *c)
{
	int64_t deadline = goro_now() + GORO_SECOND;

	flush(c);
	if (c->bad || shutdown(c->fd, SHUT_WR) != 0)
		return;
	do
		c->in_at = c->in_n = 0;
	while (fill(c, deadline));
}

static void serve(int fd)
{
	struct conn c;		/* the buffers stay untouched until they are used */

	c.fd = fd;
	atomic_init(&c.idle, false);
	c.close = c.bad = false;
	c.read_by = GORO_FOREVER;
	c.in_at = c.in_n = c.out_n = 0;
	c.date_of = 0;
	conn_enter(&c);
	while (!c.close && !c.bad)
		serve_one(&c);
	part(&c);
	conn_leave(&c);
	goro_sema_release(&places, 1);
}

/* ------------------------------------------------------------------ the server */

/* Out of descriptors or memory: connections that end will free some. */
static bool is_passing(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM ||
	       error == -ECONNABORTED;
}

static void accept_all(int listener, goro_chan *ended)
{
	for (;;) {
		int fd;

		goro_sema_acquire(&places, 1, GORO_FOREVER);
		fd = goro_accept(listener, NULL, NULL);
		if (fd >= 0 && go(serve, fd) == 0)
			continue;
		goro_sema_release(&places, 1);
		if (fd >= 0)
			goro_close(fd);
		else if (!is_passing(fd))
			break;
		goro_sleep(5 * GORO_MILLISECOND);
	}
	goro_chan_close(ended);
	goro_chan_unref(ended);
}

/* Who is idle is woken and sees that it is over. */
static void send_idle_away(void)
{
	goro_mutex_lock(&all_lock);
	for (struct conn *c = all; c; c = c->next)
		if (atomic_load(&c->idle))
			goro_set_deadline(c->fd, GORO_NOW, GORO_FOREVER);
	goro_mutex_unlock(&all_lock);
}

static void say_where(int listener)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	int port = 0;

	if (getsockname(listener, (struct sockaddr *)&ss, &len) == 0)
		port = ntohs(ss.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&ss)->sin6_port
		                                      : ((struct sockaddr_in *)&ss)->sin_port);
	printf("listening on port %d, gomaxprocs %d\n", port, goro_gomaxprocs(0));
	fflush(stdout);
}

static int httpd(int argc, char **argv)
{
	const char *address = argc > 1 ? argv[1] : "127.0.0.1:8080";
	int listener = goro_listen("tcp", address);
	goro_chan *signals, *ended;

	if (listener < 0) {
		fprintf(stderr, "httpd: %s: %s\n", address, strerror(-listener));
		return 1;
	}
	signals = goro_signal_notify((const int[]){ SIGTERM, SIGINT }, 2);
	ended = goro_chan_make(0, 0);
	goro_sema_init(&places, CONNECTIONS_MAX);
	say_where(listener);
	go(accept_all, listener, goro_chan_ref(ended));
	goro_select(GORO_RECV(signals, NULL), GORO_RECV(ended, NULL));
	atomic_store(&stopping, true);
	goro_signal_stop(signals);	/* a second one ends it at once */
	goro_chan_unref(signals);
	goro_close(listener);
	goro_chan_recv(ended, NULL);
	goro_chan_unref(ended);
	send_idle_away();
	/* All places: no connection is left. */
	return goro_sema_acquire(&places, CONNECTIONS_MAX, goro_now() + DRAIN_TIMEOUT) == 0 ? 0 : 1;
}

GORO_MAIN(httpd)
