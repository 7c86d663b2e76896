/*
 * sim_log.c - the log of a simulated run: one line a choice.
 *
 *	TIME THREAD KIND VALUE
 *
 * The value is the thread that goes on or is woken or made, or the time for "time".
 * Written line by line, so that it is whole however the process ends; by a call that
 * passes no point, so that a run is the same with and without its log.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/sys.h"
#include "base/text.h"
#include "sim/sim.h"

static int fd = -1;

/* The number is high, out of the way of those that the program counts on. */
#define LOG_FD_LEAST 900

void sim_log_open(const char *path)
{
	int low = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (low < 0)
		return;
	fd = fcntl(low, F_DUPFD_CLOEXEC, LOG_FD_LEAST);
	if (fd >= 0)
		close(low);
	else
		fd = low;
}

static void add_number(struct text *t, int64_t n)
{
	char digits[24];
	size_t at = sizeof digits;

	do
		digits[--at] = (char)('0' + n % 10);
	while (n /= 10);
	text_add_bytes(t, digits + at, sizeof digits - at);
}

void sim_log(enum sim_kind kind, int64_t now, int thread, int64_t value)
{
	static const char *const names[] = {
#define X(id, text) [id] = text,
		SIM_KIND_LIST(X)
#undef X
	};
	char line[96];
	struct text t = text_make(line, sizeof line);

	if (fd < 0)
		return;
	add_number(&t, now);
	text_add(&t, " T");
	add_number(&t, thread);
	text_add(&t, " ");
	text_add(&t, names[kind]);
	text_add(&t, kind == SIM_TIME ? " " : " T");
	add_number(&t, value);
	text_add(&t, "\n");
	sys3(SYS_write, fd, line, t.length);
}
