/* uv_test.c - uv_park_run does what uv_run does: timers, sockets, closing, and it ends.
 * */
#include <goro.h>

#include "expect.h"
#include "uv_park.h"

static int fired, closed, idled, woken, echoed, checked;
static uv_timer_t timer;
static uv_async_t async;
static uv_idle_t idle;
static uv_tcp_t server, client, accepted;
static uv_connect_t connecting;
static uv_write_t writing[2];
static struct sockaddr_storage at;
static char bytes[16];

static void on_close(uv_handle_t *handle)
{
	(void)handle;
	closed++;
}

static void on_timer(uv_timer_t *t)
{
	if (++fired == 3)
		uv_close((uv_handle_t *)t, on_close);
}

static void on_idle(uv_idle_t *i)
{
	if (++idled == 100)
		uv_close((uv_handle_t *)i, on_close);
}

/* Timers, and a loop that has something to do at once. */
static void timers(uv_loop_t *loop)
{
	int64_t start = goro_now();

	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_timer, 20, 20);
	uv_idle_init(loop, &idle);
	uv_idle_start(&idle, on_idle);
	expect(uv_park_run(loop) == 0);
	expect(fired == 3 && idled == 100 && closed == 2);
	expect(goro_now() - start >= 59 * GORO_MILLISECOND);
}

static void wake_later(void)
{
	goro_sleep(20 * GORO_MILLISECOND);
	uv_async_send(&async);
}

static void on_async(uv_async_t *a)
{
	woken++;
	goro_sleep(GORO_MILLISECOND);	/* a callback may park */
	uv_close((uv_handle_t *)a, on_close);
}

/* Another goroutine wakes the loop. */
static void wakes(uv_loop_t *loop)
{
	uv_async_init(loop, &async, on_async);
	go(wake_later);
	expect(uv_park_run(loop) == 0 && woken == 1);
}

static void on_room(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	(void)handle, (void)size;
	*buf = uv_buf_init(bytes, sizeof bytes);
}

static void on_echo(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	expect(n == 5 && memcmp(buf->base, "hello", 5) == 0);
	echoed++;
	uv_close((uv_handle_t *)s, on_close);
	uv_close((uv_handle_t *)&accepted, on_close);
	uv_close((uv_handle_t *)&server, on_close);
}

static void on_request(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	uv_buf_t reply = uv_buf_init(buf->base, (unsigned)n);

	if (n > 0)
		uv_write(&writing[1], s, &reply, 1, NULL);
}

static void on_connection(uv_stream_t *s, int status)
{
	expect(status == 0 && uv_tcp_init(s->loop, &accepted) == 0);
	expect(uv_accept(s, (uv_stream_t *)&accepted) == 0);
	uv_read_start((uv_stream_t *)&accepted, on_room, on_request);
}

static void on_connect(uv_connect_t *c, int status)
{
	uv_buf_t hello = uv_buf_init("hello", 5);

	expect(status == 0);
	uv_write(&writing[0], c->handle, &hello, 1, NULL);
	uv_read_start(c->handle, on_room, on_echo);
}

/* What is begun in the last callbacks of a turn is waited for as well: here in a close's.
 * */
static void on_close_connect(uv_handle_t *handle)
{
	checked++;
	uv_tcp_init(handle->loop, &client);
	expect(uv_tcp_connect(&connecting, &client, (struct sockaddr *)&at, on_connect) == 0);
}

static void sockets(uv_loop_t *loop)
{
	int size = sizeof at;

	expect(uv_ip4_addr("127.0.0.1", 0, (struct sockaddr_in *)&at) == 0);
	uv_tcp_init(loop, &server);
	expect(uv_tcp_bind(&server, (struct sockaddr *)&at, 0) == 0);
	expect(uv_listen((uv_stream_t *)&server, 10, on_connection) == 0);
	expect(uv_tcp_getsockname(&server, (struct sockaddr *)&at, &size) == 0);
	uv_timer_init(loop, &timer);
	uv_close((uv_handle_t *)&timer, on_close_connect);
	expect(uv_park_run(loop) == 0 && echoed == 1 && checked == 1);
}

static int start(int argc, char **argv)
{
	uv_loop_t loop;

	(void)argc, (void)argv;
	expect(uv_loop_init(&loop) == 0);
	expect(uv_park_run(&loop) == 0);	/* nothing to wait for */
	timers(&loop);
	wakes(&loop);
	sockets(&loop);
	expect(uv_loop_close(&loop) == 0);
	return 0;
}
GORO_MAIN(start)
