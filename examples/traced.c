/*
 * traced FILE - requests that go through three stages, traced. Then
 *
 *	go tool trace FILE
 *
 * shows them: each request is a task, each stage of it a region (see docs/tracing.md).
 */
#include <fcntl.h>
#include <goro.h>
#include <string.h>
#include <unistd.h>

#define REQUESTS 200
#define WORKERS  4

struct request {
	int id;
	uint64_t task;
	unsigned long sum;
};

static volatile unsigned long unknown = 1;

static void parse(struct request *r)
{
	goro_trace_region_begin(r->task, "parse");
	for (int i = 0; i < 20000; i++)
		r->sum = r->sum * 31 + unknown;
	goro_trace_region_end(r->task, "parse");
}

/* A library that knows nothing of goroutines, and blocks. */
static void look_up(struct request *r)
{
	goro_trace_region_begin(r->task, "look up");
	usleep((useconds_t)(500 + r->id % 7 * 100));
	goro_trace_region_end(r->task, "look up");
}

static goro_mutex log_lock;

static void answer(struct request *r)
{
	char number[32];

	goro_trace_region_begin(r->task, "answer");
	goro_mutex_lock(&log_lock);
	goro_sleep(20 * GORO_MICROSECOND);
	goro_mutex_unlock(&log_lock);
	snprintf(number, sizeof number, "%d", r->id);
	goro_trace_log(r->task, "answered", number);
	goro_trace_region_end(r->task, "answer");
}

static void worker(goro_chan *requests, goro_waitgroup *wg)
{
	struct request r;

	goro_set_name("worker");
	while (goro_chan_recv(requests, &r)) {
		parse(&r);
		look_up(&r);
		answer(&r);
		goro_trace_task_end(r.task);
	}
	goro_chan_unref(requests);
	goro_waitgroup_done(wg);
}

static int start(int argc, char **argv)
{
	goro_waitgroup wg = { { 0 } };
	goro_chan *requests;
	int fd, error;

	if (argc != 2) {
		fprintf(stderr, "usage: traced FILE\n");
		return 2;
	}
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0666);
	error = fd < 0 ? -errno : goro_trace_start(fd);
	if (error) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-error));
		return 1;
	}
	close(fd);
	requests = goro_chan_of(struct request, 0);
	goro_waitgroup_add(&wg, WORKERS);
	for (int i = 0; i < WORKERS; i++)
		go(worker, goro_chan_ref(requests), &wg);
	for (int i = 0; i < REQUESTS; i++) {
		struct request r = { .id = i, .task = goro_trace_task_begin("request") };

		goro_chan_send(requests, &r);
	}
	goro_chan_close(requests);
	goro_chan_unref(requests);
	goro_waitgroup_wait(&wg);
	goro_trace_stop();
	error = goro_trace_error();
	if (error)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-error));
	return error != 0;
}
GORO_MAIN(start)
