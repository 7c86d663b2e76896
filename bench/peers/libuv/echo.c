/*
 * echo - 64 bytes to a server and back over loopback TCP, with 1, 100, 1,000 and
 * 10,000 connections; round trips a second, of all connections together.
 *
 * A loop for each processor, and each loop with its share of the connections,
 * both ends: nothing is shared, which is how libuv is used on several CPUs. Both
 * ends write with uv_try_write, which at this size always writes at once.
 */
#include "peer.h"

#include <stdbool.h>
#include <uv.h>

#define BYTES     64
#define MAX_LOOPS 64
#define BACKLOG   1024          /* so many connect at once */

struct conn {
	uv_tcp_t client, server;
	uv_connect_t request;
	struct loop *loop;
	unsigned char out[BYTES];
	size_t got;             /* bytes of the answer */
	int left;               /* trips in this round */
	uint64_t sum;
};

struct loop {
	uv_loop_t uv;
	uv_tcp_t listener;
	struct conn *conn;
	struct sockaddr_in address;
	int conns, begun, accepted, connected, busy;
	char in[4096];
	uv_thread_t thread;
};

static struct conn conn[MEASURE_MAX_CONNS];
static struct loop loop[MAX_LOOPS];
static int loops, trips;
static bool over;
static uv_barrier_t begin, end;

static void check(int result, const char *what)
{
	if (result < 0)
		measure_fail(what);
}

/* ------------------------------------------------------------- both ends */

static void give_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	struct loop *l = handle->loop->data;

	(void)wanted;
	*buf = uv_buf_init(l->in, sizeof l->in);
}

static void put(uv_tcp_t *to, const void *data, size_t n)
{
	uv_buf_t buf = uv_buf_init((char *)data, (unsigned)n);

	if (uv_try_write((uv_stream_t *)to, &buf, 1) != (int)n)
		measure_fail("a write was not done at once");
}

static void server_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	if (n > 0)
		put((uv_tcp_t *)s, buf->base, (size_t)n);
}

static void next_trip(struct conn *c)
{
	c->got = 0;
	c->out[0]++;
	put(&c->client, c->out, BYTES);
}

static void client_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct conn *c = s->data;

	if (n <= 0)
		return;
	if (c->got == 0)
		c->sum += (unsigned char)buf->base[0];
	c->got += (size_t)n;
	if (c->got < BYTES)
		return;
	if (--c->left > 0)
		next_trip(c);
	else if (--c->loop->busy == 0)
		uv_stop(&c->loop->uv);
}

/* ------------------------------------------------------------ connecting */

static void stop_when_all_there(struct loop *l)
{
	if (l->accepted == l->conns && l->connected == l->conns)
		uv_stop(&l->uv);
}

static void on_connect(uv_connect_t *request, int status)
{
	struct conn *c = request->data;

	check(status, "connect");
	uv_tcp_nodelay(&c->client, 1);
	uv_read_start((uv_stream_t *)&c->client, give_buffer, client_read);
	c->loop->connected++;
	stop_when_all_there(c->loop);
}

static void connect_next(struct loop *l)
{
	struct conn *c = &l->conn[l->begun++];

	memset(c, 0, sizeof *c);
	c->loop = l;
	c->client.data = c->request.data = c;
	uv_tcp_init(&l->uv, &c->client);
	check(uv_tcp_connect(&c->request, &c->client,
	                     (struct sockaddr *)&l->address, on_connect), "connect");
}

static void on_accept(uv_stream_t *listener, int status)
{
	struct loop *l = listener->data;
	uv_tcp_t *s = &l->conn[l->accepted++].server;

	check(status, "accept");
	uv_tcp_init(&l->uv, s);
	check(uv_accept(listener, (uv_stream_t *)s), "accept");
	uv_tcp_nodelay(s, 1);
	uv_read_start((uv_stream_t *)s, give_buffer, server_read);
	if (l->begun < l->conns)
		connect_next(l);
	stop_when_all_there(l);
}

static void connect_all(struct loop *l)
{
	struct sockaddr *a = (struct sockaddr *)&l->address;
	int len = sizeof l->address;

	uv_loop_init(&l->uv);
	l->uv.data = l;
	l->begun = l->accepted = l->connected = 0;
	uv_ip4_addr("127.0.0.1", 0, &l->address);
	uv_tcp_init(&l->uv, &l->listener);
	l->listener.data = l;
	check(uv_tcp_bind(&l->listener, a, 0), "bind");
	check(uv_listen((uv_stream_t *)&l->listener, BACKLOG, on_accept), "listen");
	uv_tcp_getsockname(&l->listener, a, &len);
	while (l->begun < l->conns && l->begun < BACKLOG)
		connect_next(l);
	uv_run(&l->uv, UV_RUN_DEFAULT);
}

/* Clients by a reset, not by TIME_WAIT, or the next run would find no ports. */
static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (handle->data && handle->type == UV_TCP && handle->data != handle->loop->data)
		uv_tcp_close_reset((uv_tcp_t *)handle, NULL);
	else
		uv_close(handle, NULL);
}

static void close_all(struct loop *l)
{
	uv_walk(&l->uv, close_handle, NULL);
	uv_run(&l->uv, UV_RUN_DEFAULT);
	uv_loop_close(&l->uv);
}

/* ---------------------------------------------------------------- rounds */

static void run_share(struct loop *l)
{
	l->busy = l->conns;
	for (int i = 0; i < l->conns; i++) {
		struct conn *c = &l->conn[i];

		c->sum = 0;
		c->out[0] = 0;
		c->left = trips;
		next_trip(c);
	}
	uv_run(&l->uv, UV_RUN_DEFAULT);
}

/* The first loop is the main thread's; the others wait for a round to begin. */
static void loop_thread(void *arg)
{
	for (;;) {
		uv_barrier_wait(&begin);
		if (over)
			return;
		run_share(arg);
		uv_barrier_wait(&end);
	}
}

static uint64_t echo_round(void)
{
	uint64_t sum = 0;

	uv_barrier_wait(&begin);
	run_share(&loop[0]);
	uv_barrier_wait(&end);
	for (int i = 0; i < loops; i++)
		for (int j = 0; j < loop[i].conns; j++)
			sum += loop[i].conn[j].sum;
	return sum;
}

static void start_loops(int conns)
{
	struct conn *share = conn;

	loops = peer_procs() < conns ? peer_procs() : conns;
	uv_barrier_init(&begin, (unsigned)loops);
	uv_barrier_init(&end, (unsigned)loops);
	over = false;
	for (int i = 0; i < loops; i++) {
		loop[i].conn = share;
		loop[i].conns = conns / loops + (i < conns % loops);
		share += loop[i].conns;
		connect_all(&loop[i]);
		if (i > 0)
			uv_thread_create(&loop[i].thread, loop_thread, &loop[i]);
	}
}

static void end_loops(void)
{
	over = true;
	uv_barrier_wait(&begin);
	for (int i = 0; i < loops; i++) {
		if (i > 0)
			uv_thread_join(&loop[i].thread);
		close_all(&loop[i]);
	}
	uv_barrier_destroy(&begin);
	uv_barrier_destroy(&end);
}

static void measure_with(const char *name, int conns, int trips_a_round)
{
	struct measurement m;

	trips = trips_a_round;
	start_loops(conns);
	m = measure(echo_round, (double)conns * trips);
	peer_report(name, 1e9 / m.ns_per_op, "/s", "%" PRIu64, m.check);
	end_loops();
}

int main(void)
{
	if (peer_procs() > MAX_LOOPS)
		measure_fail("too many processors");
	measure_with("echo.1", 1, 1000);
	measure_with("echo.100", 100, 20);
	measure_with("echo.1000", 1000, 5);
	measure_with("echo.10000", measure_max_conns(), 1);
	return 0;
}
