/*
 * debug_pprof.c - net/http/pprof: the profiles, under the addresses and with the answers
 * that `go tool pprof` and other tools know from Go.
 */
#define _GNU_SOURCE
#include "debug_http.h"

#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile.h"
#include "symbol.h"

#define SECONDS_MAX 3600	/* of a profile or a trace */
#define CLIENT_LOOK_NS (GORO_SECOND / 5)	/* whether the client of a trace is still there */

/* As Go's serveError. */
static void fail(struct reply *rp, int status, const char *why)
{
	rp->status = status;
	rp->profile_error = true;
	rp->filename = NULL;
	rp->type = "text/plain; charset=utf-8";
	fprintf(rp->out, "%s\n", why);
}

static int query_int(const struct http_request *rq, const char *name)
{
	char value[16];

	return http_query(rq, name, value, sizeof value) ? (int)strtol(value, NULL, 10) : 0;
}

/* -------------------------------------------------------------- the small ones */

static void cmdline(const struct http_request *rq, struct reply *rp)
{
	FILE *f = fopen("/proc/self/cmdline", "re");
	bool first = true;
	int c;

	(void)rq;
	for (int last = 0; f && (c = getc(f)) != EOF; last = c) {
		if (!first && last == '\0')
			putc('\0', rp->out);
		if (c)
			putc(c, rp->out);
		first = false;
	}
	if (f)
		fclose(f);
}

/* "0x4005d0+0x4005e8": a line for each that is known. Asked with GET, the addresses are the
 * query; with POST, the body. pprof asks first whether there are symbols at all. */
static void symbol(const struct http_request *rq, struct reply *rp)
{
	const char *at = rq->body ? rq->body : rq->query;
	struct symbol sym;

	fputs("num_symbols: 1\n", rp->out);
	while (*at) {
		char *end;
		unsigned long long pc = strtoull(at, &end, 0);

		if (pc && symbol_find((uintptr_t)pc, &sym) && sym.function[0])
			fprintf(rp->out, "%#llx %s\n", pc, sym.function);
		at = end + strcspn(end, "+");
		at += *at == '+';
	}
}

/* ------------------------------------------------------------------ profiles */

/* debug=0: as pprof reads it; 1: a stack once, with how many there are. */
static void binary(const char *name, struct reply *rp)
{
	struct bytes bytes;
	int error = profile_encode(name, &bytes);

	if (error) {
		fail(rp, 500, "cannot make the profile");
		return;
	}
	rp->type = "application/octet-stream";
	rp->filename = name;
	fwrite(bytes.at, 1, bytes.n, rp->out);
	bytes_free(&bytes);
}

static void goroutine(const struct http_request *rq, struct reply *rp)
{
	int debug = query_int(rq, "debug");
	struct profile_table t;

	if (debug == 0) {
		binary("goroutine", rp);
	} else if (debug == 1) {
		profile_goroutines_take(&(struct profile_choice){ .type = "goroutine" }, &t);
		profile_text_counts(rp->out, "goroutine", &t);
		profile_table_free(&t);
	} else {
		goro_dump(rp->out);
	}
}

static void goroutineleak(const struct http_request *rq, struct reply *rp)
{
	int debug = query_int(rq, "debug");
	struct profile_table t;

	if (debug == 0) {
		binary("goroutineleak", rp);
	} else if (debug == 1) {
		profile_goroutineleak_take(&t);
		profile_text_counts(rp->out, "goroutineleak", &t);
		profile_table_free(&t);
	} else {
		profile_goroutineleak_dump(rp->out);
	}
}

/* A profile that is a table: for pprof, or for people to read under a title. */
static void from_table(const struct http_request *rq, struct reply *rp, const char *name,
                       void (*take)(struct profile_table *t),
                       void (*print)(FILE *out, const char *title, const struct profile_table *t),
                       const char *title)
{
	struct profile_table t;

	if (query_int(rq, "debug") == 0) {
		binary(name, rp);
		return;
	}
	take(&t);
	print(rp->out, title, &t);
	profile_table_free(&t);
}

static void threadcreate(const struct http_request *rq, struct reply *rp)
{
	from_table(rq, rp, "threadcreate", profile_threadcreate_take, profile_text_counts, "threadcreate");
}

static void block(const struct http_request *rq, struct reply *rp)
{
	from_table(rq, rp, "block", profile_block_take, profile_text_delays, "contention");
}

static void mutex(const struct http_request *rq, struct reply *rp)
{
	from_table(rq, rp, "mutex", profile_mutex_take, profile_text_delays, "mutex");
}

/* ------------------------------------------------------------- over a time */

/* How long, in the query: a fraction, too. False: too long, and refused. */
static bool query_time(const struct http_request *rq, struct reply *rp, int standard, int64_t *ns)
{
	char value[32];
	double s = http_query(rq, "seconds", value, sizeof value) ? strtod(value, NULL) : 0;

	if (s > SECONDS_MAX) {
		fail(rp, 400, "seconds: 3600 at most");
		return false;
	}
	*ns = (int64_t)((s > 0 ? s : standard) * (double)GORO_SECOND);
	return true;
}

static bool begin_file(struct reply *rp, const char *name)
{
	rp->type = "application/octet-stream";
	rp->filename = name;
	return reply_begin(rp);
}

/* Its size has a limit of its own (profile_cpu.c); it is written when it is over. */
static void send_profile(struct reply *rp, int fd)
{
	char buf[16 << 10];
	ssize_t n;

	if (!begin_file(rp, "profile"))
		return;
	for (off_t at = 0; (n = pread(fd, buf, sizeof buf, at)) > 0; at += n)
		if (!reply_write(rp, buf, (size_t)n))
			return;
	reply_end(rp);
}

static void cpu_profile(const struct http_request *rq, struct reply *rp)
{
	int64_t ns;
	int fd, error;

	if (!query_time(rq, rp, 30, &ns))
		return;
	if (rp->head_only) {
		begin_file(rp, "profile");
		return;
	}
	fd = memfd_create("profile", MFD_CLOEXEC);
	error = fd < 0 ? -errno : goro_profile_cpu_start(fd, 0);
	if (error == -EBUSY) {
		fail(rp, 500, "Could not enable CPU profiling: cpu profiling already in use");
	} else if (error) {
		fail(rp, 500, "Could not enable CPU profiling");
	} else {
		reply_sleep(rp, ns);
		goro_profile_cpu_stop();
		send_profile(rp, fd);
	}
	if (fd >= 0)
		close(fd);
}

/* A trace is sent while it is made, through a pipe: it may become any size, and takes no
 * memory here. A client that reads too slowly has the trace end (trace_buffer.c). To stop a
 * trace is to wait until all of it is in the pipe, so another goroutine does that. */
struct tracing {
	goro_waitgroup stopped;
	bool asked;		/* to stop */
	int from;		/* the pipe */
	int64_t until;
};

static void stop_trace(void *arg)
{
	struct tracing *t = arg;

	goro_trace_stop();
	goro_waitgroup_done(&t->stopped);
}

static void ask_to_stop(struct tracing *t)
{
	t->asked = true;
	goro_waitgroup_add(&t->stopped, 1);
	if (debug_go(stop_trace, t))
		return;
	/* Without memory for that the trace fails, and stopping it waits for nothing. */
	goro_close(t->from);
	t->from = -1;
	stop_trace(t);
}

static bool is_to_stop(const struct tracing *t, const struct reply *rp)
{
	return rp->failed || goro_trace_error() || goro_now() >= t->until || !reply_is_wanted(rp);
}

/* Until nobody writes to the pipe any more: the trace is over. */
static void pass_on(struct tracing *t, struct reply *rp)
{
	char buf[16 << 10];
	ssize_t n;

	do {
		if (!t->asked && is_to_stop(t, rp))
			ask_to_stop(t);
		goro_set_deadline(t->from, t->asked ? GORO_FOREVER : goro_now() + CLIENT_LOOK_NS, GORO_FOREVER);
		n = goro_read(t->from, buf, sizeof buf);
		if (n > 0)
			reply_write(rp, buf, (size_t)n);
	} while (n > 0 || n == -ETIMEDOUT);
}

static void send_trace(struct reply *rp, int from, int64_t ns)
{
	struct tracing t = { .from = from, .until = goro_now() + ns };

	begin_file(rp, "trace");
	pass_on(&t, rp);
	goro_waitgroup_wait(&t.stopped);
	if (goro_trace_error())
		rp->failed = true;	/* it is not whole */
	else
		reply_end(rp);
	if (t.from >= 0)
		goro_close(t.from);
}

static void trace(const struct http_request *rq, struct reply *rp)
{
	int64_t ns;
	int fd[2], error;

	if (!query_time(rq, rp, 1, &ns))
		return;
	if (rp->head_only) {
		begin_file(rp, "trace");
		return;
	}
	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) != 0) {
		fail(rp, 500, "Could not enable tracing: no pipe");
		return;
	}
	error = goro_trace_start(fd[1]);
	close(fd[1]);
	if (!error) {
		send_trace(rp, fd[0], ns);
		return;
	}
	close(fd[0]);
	fail(rp, 500, error == -EBUSY ? "Could not enable tracing: tracing is already enabled"
	                              : "Could not enable tracing");
}

/* ------------------------------------------------------------------ the index */

static const struct entry {
	const char *name;
	void (*show)(const struct http_request *rq, struct reply *rp);
	const char *query;	/* that the index links to */
	const char *text;
} entries[] = {
	{ "block", block, "?debug=1",
	  "Where goroutines waited. Switched on by <code>goro_profile_block_rate</code>." },
	{ "goroutine", goroutine, "?debug=1",
	  "Where all goroutines are; <a href=\"goroutine?debug=2\">one by one</a>." },
	{ "goroutineleak", goroutineleak, "?debug=1",
	  "Goroutines that wait for ever, for what nobody can reach; "
	  "<a href=\"goroutineleak?debug=2\">one by one</a>." },
	{ "mutex", mutex, "?debug=1",
	  "Who held locks that others waited for. Switched on by "
	  "<code>goro_profile_mutex_fraction</code>." },
	{ "profile", cpu_profile, "?seconds=30",
	  "Where CPU time goes, for so many seconds: a file for <code>go tool pprof</code>." },
	{ "threadcreate", threadcreate, "?debug=1", "Who made the threads." },
	{ "cmdline", cmdline, "", "The command line of the program." },
	{ "symbol", symbol, NULL, NULL },
	{ "trace", trace, "?seconds=1",
	  "All that happens, for so many seconds: a file for <code>go tool trace</code>." },
};

static void index_page(struct reply *rp)
{
	rp->type = "text/html; charset=utf-8";
	fputs("<!doctype html>\n<html><head><meta charset=\"utf-8\"><title>/debug/pprof/</title>\n"
	      "<style>:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;"
	      "max-width:46em;margin:2em auto;padding:0 1em}td{padding:.15em 1em .15em 0;"
	      "vertical-align:top}td:first-child{font-family:ui-monospace,monospace}</style></head>\n"
	      "<body><h1>/debug/pprof/</h1>\n<table>\n", rp->out);
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
		if (entries[i].text)
			fprintf(rp->out, "<tr><td><a href=\"%s%s\">%s</a></td><td>%s</td></tr>\n",
			        entries[i].name, entries[i].query, entries[i].name, entries[i].text);
	fputs("</table>\n<p><a href=\"/debug/\">Live page</a> &middot; "
	      "<a href=\"goroutine?debug=2\">full goroutine stack dump</a></p>\n"
	      "<p>As <code>go tool pprof</code> reads them: without <code>?debug</code>.</p>\n</body></html>\n",
	      rp->out);
}

void page_pprof(const struct http_request *rq, struct reply *rp)
{
	const char *name = rq->path + strlen("/debug/pprof/");

	if (!*name) {
		index_page(rp);
		return;
	}
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
		if (strcmp(name, entries[i].name) == 0) {
			entries[i].show(rq, rp);
			return;
		}
	fail(rp, 404, "Unknown profile");
}
