/* trace.c - traces, as goro trace reads them. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "../../cmd/trace_read.h"

static void see(void *arg, const struct trace_event *e)
{
	(void)e;
	++*(size_t *)arg;
}

void fuzz_trace(const uint8_t *data, size_t n)
{
	static struct trace_reader r;
	int fd = memfd_create("trace", MFD_CLOEXEC);
	size_t events = 0;
	char path[40];

	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	memset(&r, 0, sizeof r);
	if (trace_open(&r, path))
		trace_read(&r, see, &events);
	trace_close(&r);
	close(fd);
}
