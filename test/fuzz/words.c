/* words.c - a program's own words in its trace: goro trace can read the trace, and finds
 * them. */
#define _GNU_SOURCE
#include <goro.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "../../cmd/trace_read.h"

static void see(void *arg, const struct trace_event *e)
{
	*(size_t *)arg += e->kind == EV_LOG;
}

void fuzz_words(const uint8_t *data, size_t n)
{
	static struct trace_reader r;
	int fd = memfd_create("trace", MFD_CLOEXEC);
	char *a = fuzz_string(&data, &n), *b = fuzz_string(&data, &n), *c = fuzz_string(&data, &n);
	size_t logs = 0;
	char path[40];
	uint64_t task;

	if (fd < 0 || goro_trace_start(fd) != 0)
		abort();
	task = goro_trace_task_begin(a);
	goro_trace_region_begin(task, b);
	goro_trace_log(task, b, c);
	goro_set_name(c);
	goro_trace_region_end(task, b);
	goro_trace_task_end(task);
	goro_trace_stop();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	memset(&r, 0, sizeof r);
	if (goro_trace_error() != 0 || !trace_open(&r, path) || !trace_read(&r, see, &logs) || logs != 1)
		abort();
	trace_close(&r);
	close(fd);
	free(a), free(b), free(c);
}
