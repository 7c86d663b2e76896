/*
 * uv.c - a loop of libuv's beside goroutines, and 1,000 requests under way.
 *
 * The program has a server that libuv runs: whatever bytes a client sends are a request.
 * The loop hands each to a goroutine of its own, which may park, and here waits for a
 * second. Its answer goes back through a queue, and uv_async_send tells the loop.
 *
 *	uv park|block [CLIENTS [QUICK]]
 *
 *	park	the loop is a goroutine that parks: uv_park.h
 *	block	the loop is a goroutine that calls uv_run as it is, and keeps a thread
 *
 * The clients are goroutines with goro's own I/O.
 */
#include <arpa/inet.h>
#include <goro.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "uv_park.h"

#define BACKLOG 4096

static uv_loop_t loop;
static uv_tcp_t server;
static uv_async_t answered;
static char address[32];

/* A request, and its answer: one byte. */
struct request {
	struct request *next;
	uv_stream_t *client;
	char byte;
	uv_write_t write;
};

/* Those that are answered, for the loop to send: pushed by goroutines. */
static goro_mutex lock;
static struct request *answers;

/* --------------------------------------------------- a request's goroutine */

static void answer(struct request *r)
{
	if (r->byte == 's')
		goro_sleep(GORO_SECOND);
	r->byte++;
	goro_mutex_lock(&lock);
	r->next = answers;
	answers = r;
	goro_mutex_unlock(&lock);
	uv_async_send(&answered);
}

/* ------------------------------------------------------ the loop's callbacks */

static void on_closed(uv_handle_t *handle)
{
	free(handle);
}

static void on_written(uv_write_t *write, int status)
{
	struct request *r = write->data;

	if (status < 0)
		die("answer: %s", uv_strerror(status));
	free(r);
}

static void on_answered(uv_async_t *unused)
{
	struct request *r, *next;

	(void)unused;
	goro_mutex_lock(&lock);
	r = answers;
	answers = NULL;
	goro_mutex_unlock(&lock);
	for (; r; r = next) {
		uv_buf_t buf = uv_buf_init(&r->byte, 1);

		next = r->next;
		r->write.data = r;
		uv_write(&r->write, r->client, &buf, 1, on_written);
	}
}

static void on_room(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	static char room[64];	/* the loop's: one read at a time */

	(void)handle, (void)size;
	*buf = uv_buf_init(room, sizeof room);
}

static void on_read(uv_stream_t *client, ssize_t n, const uv_buf_t *buf)
{
	struct request *r;

	if (n < 0) {
		uv_close((uv_handle_t *)client, on_closed);
		return;
	}
	if (n == 0)
		return;
	r = calloc(1, sizeof *r);
	if (!r)
		die("no memory");
	r->client = client;
	r->byte = buf->base[0];
	if (go(answer, r) != 0)
		die("no memory for a goroutine");
}

static void on_connection(uv_stream_t *listener, int status)
{
	uv_tcp_t *client = malloc(sizeof *client);

	if (status < 0 || !client || uv_tcp_init(&loop, client) < 0 ||
	    uv_accept(listener, (uv_stream_t *)client) < 0)
		die("accept: %s", uv_strerror(status));
	uv_read_start((uv_stream_t *)client, on_room, on_read);
}

/* As long as the program: the server is never closed. */
static void run_loop(int (*run)(uv_loop_t *))
{
	die("the loop: %s", uv_strerror(run(&loop)));
}

static int block_run(uv_loop_t *l)
{
	return uv_run(l, UV_RUN_DEFAULT);
}

static void listen_somewhere(void)
{
	struct sockaddr_in at;
	int size = sizeof at, r;

	uv_loop_init(&loop);
	uv_async_init(&loop, &answered, on_answered);
	uv_tcp_init(&loop, &server);
	uv_ip4_addr("127.0.0.1", 0, &at);
	if ((r = uv_tcp_bind(&server, (struct sockaddr *)&at, 0)) < 0 ||
	    (r = uv_listen((uv_stream_t *)&server, BACKLOG, on_connection)) < 0 ||
	    (r = uv_tcp_getsockname(&server, (struct sockaddr *)&at, &size)) < 0)
		die("listen: %s", uv_strerror(r));
	snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(at.sin_port));
}

/* -------------------------------------------------------------- the clients */

static goro_once once;

static void park_begin(void *unused)
{
	(void)unused;
	listen_somewhere();
	go(run_loop, uv_park_run);
}

static void block_begin(void *unused)
{
	(void)unused;
	listen_somewhere();
	go(run_loop, block_run);
}

static void *dial(void)
{
	int fd = goro_dial("tcp", address, GORO_FOREVER);

	if (fd < 0)
		die("%s: %s", address, strerror(-fd));
	return (void *)(intptr_t)fd;
}

static void *park_open(int i)
{
	(void)i;
	goro_once_do(&once, park_begin, NULL);
	return dial();
}

static void *block_open(int i)
{
	(void)i;
	goro_once_do(&once, block_begin, NULL);
	return dial();
}

static void ask(void *connection, char byte)
{
	int fd = (int)(intptr_t)connection;
	char reply = 0;

	if (goro_write(fd, &byte, 1) != 1 || goro_read(fd, &reply, 1) != 1 || reply != byte + 1)
		die("no answer, or a wrong one");
}

static void slow(void *connection, int i)
{
	(void)i;
	ask(connection, 's');
}

static void quick(void *connection, int i)
{
	(void)i;
	ask(connection, 'q');
}

static void hang_up(void *connection)
{
	goro_close((int)(intptr_t)connection);
}

int main(int argc, char **argv)
{
	static const struct client block = { block_open, slow, quick, hang_up };
	static const struct client park = { park_open, slow, quick, hang_up };

	if (argc > 1 && strcmp(argv[1], "thread") == 0)
		die("usage: %s park|block [CLIENTS [QUICK]]", argv[0]);
	return measure_main(argc, argv, &block, &park);
}
