/* 7_watched.c - the chat server: names and tasks that traces, profiles and dumps show. */
#include <goro.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct line {
	int length;
	char text[252];
};

/* What happens to a client; sent to the broker. */
struct event {
	enum { JOIN, SAY, LEAVE, STOP, ANSWER } kind;
	int id, fd;
	struct line line;
};

/* The broker's alone: no other goroutine has a pointer to one. */
struct client {
	int id, fd;
	goro_chan *out;		/* lines for it, to its writer */
	goro_ctx *ctx;		/* done when it leaves */
	struct client *next;
};

static goro_chan *events;
static int64_t patience = 60 * GORO_SECOND;
static struct client *clients;
static goro_pool *workers;
static goro_ctx *server;
static goro_waitgroup running;	/* the broker and the writers */

/* ------------------------------------------------------- one connection */

/* Writes what the broker sends to one client. The broker closes the channel at the
 * end. */
static void writer(int fd, goro_chan *out)
{
	struct line line;

	goro_set_name("writer");
	while (goro_chan_recv(out, &line))
		goro_write(fd, line.text, (size_t)line.length);
	goro_close(fd);
	goro_chan_unref(out);
	goro_waitgroup_done(&running);
}

/* Reads before the client's patience ends. A write gets a second more. */
static ssize_t read_some(int fd, char *buf, int n)
{
	int64_t until = goro_now() + patience;

	goro_set_deadline(fd, until, until + GORO_SECOND);
	return goro_read(fd, buf, (size_t)n);
}

/* Reads lines from one client and tells the broker. */
static void reader(int fd, int id)
{
	struct event event = { .kind = JOIN, .id = id, .fd = fd };
	char *text = event.line.text, *end;
	int have = 0, room = sizeof event.line.text;
	ssize_t n = 0;

	goro_set_name("reader");
	goro_chan_send(events, &event);
	event.kind = SAY;
	while (have < room && (n = read_some(fd, text + have, room - have)) > 0) {
		have += (int)n;
		while ((end = memchr(text, '\n', (size_t)have))) {
			event.line.length = (int)(end + 1 - text);
			goro_chan_send(events, &event);
			have -= event.line.length;
			memmove(text, end + 1, (size_t)have);
		}
	}
	if (n == -ETIMEDOUT) {
		event.line.length = sprintf(text, "(asleep)\n");
		goro_chan_send(events, &event);
	}
	event.kind = LEAVE;
	goro_chan_send(events, &event);
}

/* ---------------------------------------------------------- computing */

/* What a worker is asked for. */
struct question {
	int id, n;
	goro_ctx *ctx;
	uint64_t task;		/* in a trace: from the question to its answer */
};

/* Counts the primes below n, until ctx is done. */
static int count_primes(int n, goro_ctx *ctx)
{
	int count = 0;

	for (int i = 2; i < n && goro_ctx_err(ctx) == 0; i++) {
		bool prime = true;

		for (int d = 2; prime && d <= i / d; d++)
			prime = i % d != 0;
		count += prime;
	}
	return count;
}

static void answer(void *arg)
{
	struct question *q = arg;
	struct event event = { .kind = ANSWER, .id = q->id };
	int count;

	goro_trace_region_begin(q->task, "count");
	count = count_primes(q->n, q->ctx);
	goro_trace_region_end(q->task, "count");
	event.line.length = sprintf(event.line.text, "%d primes below %d\n", count, q->n);
	if (goro_ctx_err(q->ctx) == 0)
		goro_select(GORO_SEND(events, &event), GORO_RECV(goro_ctx_done(q->ctx), NULL));
	goro_trace_task_end(q->task);
	goro_ctx_unref(q->ctx);
	free(q);
}

/* ----------------------------------------------------------- the broker */

/* A line for one client. One that is too slow for its 16 lines of room misses some. */
static void tell(struct client *c, const char *who, const struct line *what)
{
	struct line line;

	line.length = snprintf(line.text, sizeof line.text, "%s: %.*s", who, what->length, what->text);
	if (line.length >= (int)sizeof line.text)
		line.length = sizeof line.text - 1;
	goro_chan_try_send(c->out, &line);
}

static void tell_all(const char *who, const struct line *what)
{
	for (struct client *c = clients; c; c = c->next)
		tell(c, who, what);
}

static struct client *find(int id)
{
	struct client *c = clients;

	while (c && c->id != id)
		c = c->next;
	return c;
}

/* Gives a question to the workers. If all are busy and eight wait, the client is told. */
static void ask(struct client *c, int n)
{
	static const struct line busy = { 5, "busy\n" };
	struct question *q = malloc(sizeof *q);

	*q = (struct question){ c->id, n, goro_ctx_ref(c->ctx), goro_trace_task_begin("primes") };
	if (goro_pool_submit(workers, answer, q, GORO_NOW) == 0)
		return;
	tell(c, "server", &busy);
	goro_trace_task_end(q->task);
	goro_ctx_unref(q->ctx);
	free(q);
}

/* A line that a client has sent: a question, or something for all. */
static void heard(int id, const char *who, struct line *line)
{
	int n;

	line->text[line->length - 1] = '\0';
	if (sscanf(line->text, "/primes %d", &n) == 1) {
		ask(find(id), n);
		return;
	}
	line->text[line->length - 1] = '\n';
	tell_all(who, line);
}

static void join(int id, int fd)
{
	struct client *c = malloc(sizeof *c);

	*c = (struct client){ id, fd, goro_chan_of(struct line, 16), goro_ctx_with_cancel(server), clients };
	clients = c;
	goro_waitgroup_add(&running, 1);
	go(writer, fd, goro_chan_ref(c->out));
}

static void leave(int id)
{
	for (struct client **at = &clients, *c; (c = *at); at = &c->next)
		if (c->id == id) {
			*at = c->next;
			goro_chan_close(c->out);
			goro_chan_unref(c->out);
			goro_ctx_cancel(c->ctx);
			goro_ctx_unref(c->ctx);
			free(c);
			return;
		}
}

/* Ends what the clients can say. Their readers see the end and leave, one by one. */
static void stop(void)
{
	static const struct line goodbye = { 8, "goodbye\n" };

	tell_all("server", &goodbye);
	for (struct client *c = clients; c; c = c->next)
		shutdown(c->fd, SHUT_RD);
}

static void broker(void)
{
	static const struct line joined = { 7, "joined\n" }, left = { 5, "left\n" };
	bool stopping = false;
	struct event event;
	char who[16];

	goro_set_name("broker");
	while (!stopping || clients) {
		goro_chan_recv(events, &event);
		snprintf(who, sizeof who, "guest%d", event.id);
		switch (event.kind) {
		case JOIN:
			join(event.id, event.fd);
			tell_all(who, &joined);
			break;
		case SAY:
			heard(event.id, who, &event.line);
			break;
		case LEAVE:
			leave(event.id);
			if (!stopping)
				tell_all(who, &left);
			break;
		case ANSWER:
			if (find(event.id))
				tell(find(event.id), "server", &event.line);
			break;
		case STOP:
			stopping = true;
			stop();
			break;
		}
	}
	goro_waitgroup_done(&running);
}

/* Ends when the listener is closed. */
static void accept_all(int listener)
{
	for (int id = 1, fd; (fd = goro_accept(listener, NULL, NULL)) >= 0; id++)
		go(reader, fd, id);
}

static int start(int argc, char **argv)
{
	const char *address = argc > 1 ? argv[1] : "127.0.0.1:7000";
	goro_chan *signals = goro_signal_notify((int[]){ SIGINT, SIGTERM }, 2);
	int listener = goro_listen("tcp", address);

	if (listener < 0) {
		fprintf(stderr, "%s: %s\n", address, strerror(-listener));
		return 1;
	}
	if (argc > 2)
		patience = atoi(argv[2]) * GORO_SECOND;
	events = goro_chan_of(struct event, 0);
	server = goro_ctx_with_cancel(goro_ctx_background());
	workers = goro_pool_make(goro_gomaxprocs(0), 8);
	goro_waitgroup_add(&running, 1);
	go(broker);
	go(accept_all, listener);
	fprintf(stderr, "listening on %s\n", address);

	goro_chan_recv(signals, NULL);
	goro_close(listener);
	goro_ctx_cancel(server);
	goro_chan_send(events, &(struct event){ .kind = STOP });
	goro_waitgroup_wait(&running);
	goro_pool_close(workers);
	fprintf(stderr, "bye\n");
	return 0;
}
GORO_MAIN(start)
