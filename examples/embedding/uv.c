/*
 * uv.c - goroutines in a program that has an event loop of its own, here libuv's.
 *
 *	uv [PORT]                       a server on loopback, 7000: a line is a job
 *	printf 'primes 1000000\nsleep 100\n' | nc -q1 localhost 7000
 *
 * What to look at: the loop stays as it is, on main's thread, and nobody calls
 * goro_run. The loop hands a job in by go(), which never waits. The goroutine may
 * block and compute; it hands the result back on a channel and wakes the loop by
 * uv_async_send, the one call of libuv's that other threads may make. The loop never
 * waits on a channel: it tries. All clients are the loop's alone; a job holds a
 * reference to its client, who may leave meanwhile. One with JOBS_MAX jobs is not read
 * from until one of them is done.
 */
#include <goro.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

enum { JOBS_MAX = 100 };

struct client {
	uv_tcp_t tcp;
	int jobs;
	bool ended, closed;		/* no more input; the handle is free */
	size_t have;
	char line[256];
};

struct job {
	struct client *client;
	uv_write_t write;
	char text[256];			/* what to do; then the answer */
};

static uv_async_t answered;
static goro_chan *answers;		/* of struct job *, from goroutines to the loop */
static uv_tcp_t listener;
static uv_signal_t stop;
static int jobs;
static bool stopping;

/* ------------------------------------------------------- in goroutines */

static int count_primes(int below)
{
	int count = 0;

	for (int n = 2, d; n < below; n++) {
		for (d = 2; d * d <= n && n % d; d++)
			;
		count += d * d > n;
	}
	return count;
}

static void work(struct job *job)
{
	int n;

	if (sscanf(job->text, "primes %d", &n) == 1 && n <= 10000000) {
		sprintf(job->text, "%d primes below %d\n", count_primes(n), n);
	} else if (sscanf(job->text, "sleep %d", &n) == 1 && n >= 0 && n <= 10000) {
		usleep((useconds_t)n * 1000);
		sprintf(job->text, "slept %d ms\n", n);
	} else {
		strcpy(job->text, "primes N, or sleep MS\n");
	}
	goro_chan_send(answers, &job);
	uv_async_send(&answered);	/* after the send: the loop will find it */
}

/* --------------------------------------------------------- in the loop */

static void end_if_done(void);

static void free_if_unused(struct client *c)
{
	if (c->closed && c->jobs == 0)
		free(c);
}

static void on_closed(uv_handle_t *handle)
{
	struct client *c = handle->data;

	c->closed = true;
	free_if_unused(c);
}

static bool is_closing(struct client *c)
{
	return uv_is_closing((uv_handle_t *)&c->tcp);
}

static void close_client(struct client *c)
{
	if (!is_closing(c))
		uv_close((uv_handle_t *)&c->tcp, on_closed);
}

/* Starts a goroutine for each line that is there, as long as the client may have more. */
static void start_jobs(struct client *c)
{
	struct job *job;
	char *end;

	while (c->jobs < JOBS_MAX && (end = memchr(c->line, '\n', c->have))) {
		if ((job = calloc(1, sizeof *job))) {
			job->client = c;
			memcpy(job->text, c->line, (size_t)(end - c->line));
		}
		if (!job || go(work, job) != 0) {
			free(job);
			close_client(c);
			return;
		}
		c->jobs++;
		jobs++;
		c->have -= (size_t)(end + 1 - c->line);
		memmove(c->line, end + 1, c->have);
	}
}

static void read_on(struct client *c);

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct client *c = handle->data;

	(void)suggested;
	*buffer = uv_buf_init(c->line + c->have, (unsigned)(sizeof c->line - c->have));
}

/* No more input, or none that makes sense, is the end of the client; its jobs go on. */
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
	struct client *c = stream->data;

	(void)buffer;
	if (n > 0)
		c->have += (size_t)n;
	start_jobs(c);
	c->ended |= n < 0;
	read_on(c);
}

/* Reads from the client, unless it has to wait for its jobs. */
static void read_on(struct client *c)
{
	uv_stream_t *stream = (uv_stream_t *)&c->tcp;

	if (is_closing(c))
		return;
	uv_read_stop(stream);
	if (c->jobs == JOBS_MAX)
		return;
	if (c->ended ? c->jobs == 0 : c->have == sizeof c->line)
		close_client(c);
	else if (!c->ended)
		uv_read_start(stream, on_alloc, on_read);
}

static void on_written(uv_write_t *write, int status)
{
	struct job *job = write->data;
	struct client *c = job->client;

	if (status < 0)
		close_client(c);
	free(job);
	c->jobs--;
	jobs--;
	if (!is_closing(c))
		start_jobs(c);
	read_on(c);
	free_if_unused(c);
	end_if_done();
}

/* Runs when a goroutine has called uv_async_send; several calls may be one. */
static void on_answered(uv_async_t *async)
{
	struct job *job;
	uv_buf_t text;

	(void)async;
	while (goro_chan_try_recv(answers, &job) == GORO_RECV_OK) {
		text = uv_buf_init(job->text, (unsigned)strlen(job->text));
		job->write.data = job;
		if (is_closing(job->client) ||
		    uv_write(&job->write, (uv_stream_t *)&job->client->tcp, &text, 1,
		             on_written) != 0)
			on_written(&job->write, UV_ECANCELED);
	}
}

static void on_client(uv_stream_t *server, int status)
{
	struct client *c = calloc(1, sizeof *c);

	if (!c || status < 0) {
		free(c);
		return;
	}
	c->tcp.data = c;
	uv_tcp_init(server->loop, &c->tcp);
	if (uv_accept(server, (uv_stream_t *)&c->tcp) == 0)
		read_on(c);
	else
		close_client(c);
}

/* ---------------------------------------------------------- begin and end */

static void close_if_client(uv_handle_t *handle, void *unused)
{
	(void)unused;
	if (handle->type == UV_TCP && handle->data)
		close_client(handle->data);
}

/* The loop ends when its last handle is closed: the one that goroutines still use. */
static void end_if_done(void)
{
	if (stopping && jobs == 0)
		uv_close((uv_handle_t *)&answered, NULL);
}

static void on_stop(uv_signal_t *signal, int number)
{
	(void)number;
	stopping = true;
	uv_close((uv_handle_t *)signal, NULL);
	uv_close((uv_handle_t *)&listener, NULL);
	uv_walk(signal->loop, close_if_client, NULL);
	end_if_done();
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();
	struct sockaddr_in address;
	int err;

	signal(SIGPIPE, SIG_IGN);	/* libuv's writes */
	answers = goro_chan_of(struct job *, JOBS_MAX);	/* 1 would do, 0 would not */
	uv_async_init(loop, &answered, on_answered);
	uv_signal_init(loop, &stop);
	uv_signal_start(&stop, on_stop, SIGTERM);
	uv_tcp_init(loop, &listener);
	uv_ip4_addr("127.0.0.1", argc > 1 ? atoi(argv[1]) : 7000, &address);
	if ((err = uv_tcp_bind(&listener, (struct sockaddr *)&address, 0)) < 0 ||
	    (err = uv_listen((uv_stream_t *)&listener, 128, on_client)) < 0) {
		fprintf(stderr, "uv: %s\n", uv_strerror(err));
		return 1;
	}
	uv_run(loop, UV_RUN_DEFAULT);
	uv_loop_close(loop);
	goro_chan_unref(answers);
	return 0;
}
