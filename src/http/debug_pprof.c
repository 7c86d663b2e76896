/* debug_pprof.c - net/http/pprof: the profiles, with Go's addresses and answers */
#define _GNU_SOURCE
#include "http/debug_http.h"

#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/own_fd.h"
#include "base/throw.h"
#include "profile/profile.h"
#include "unwind/symbol.h"

#define SECONDS_MAX 3600	/* of a profile or a trace */
#define CLIENT_LOOK_NS (GORO_SECOND / 5)	/* between looks for a trace's client */

/* A page below /debug/pprof/. */
struct entry {
	const char *name;
	const char *query;	/* in the index's link */
	const char *text;	/* in the index; NULL: the index leaves it out */
	/* NULL: the page is a profile that profile_print knows. */
	void (*show)(const struct http_request *rq, struct reply *rp);
};

/* Answers as Go's serveError does. */
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

/* Addresses like "0x4005d0+0x4005e8" in the query: writes a line for each with a name.
 * The first line tells pprof that there are symbols. */
static void symbol(const struct http_request *rq, struct reply *rp)
{
	const char *at = rq->query;
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

/* debug=0: the file that pprof reads; 1: the table as text; 2: goroutines one by one. */
static void from_table(const char *name, const struct http_request *rq, struct reply *rp)
{
	int debug = query_int(rq, "debug");
	struct bytes bytes;

	if (debug != 0) {
		profile_print(name, debug, rp->out);
		return;
	}
	if (profile_encode(name, &bytes)) {
		fail(rp, 500, "cannot make the profile");
		return;
	}
	rp->type = "application/octet-stream";
	rp->filename = name;
	fwrite(bytes.at, 1, bytes.n, rp->out);
	bytes_free(&bytes);
}

/* ------------------------------------------------------------- over a time */

/* The query's seconds, perhaps a fraction. False: too long; the reply says so. */
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

static void cpu_profile(const struct http_request *rq, struct reply *rp)
{
	struct bytes bytes;
	int64_t ns;
	int error;

	if (!query_time(rq, rp, 30, &ns))
		return;
	if (rp->head_only) {
		begin_file(rp, "profile");
		return;
	}
	error = profile_cpu_begin();
	if (error) {
		fail(rp, 500, error == -EBUSY
		     ? "Could not enable CPU profiling: cpu profiling already in use"
		     : "Could not enable CPU profiling");
		return;
	}
	reply_sleep(rp, ns);
	if (profile_cpu_end(&bytes)) {
		fail(rp, 500, "cannot make the profile");
		return;
	}
	if (begin_file(rp, "profile") && reply_write(rp, bytes.at, bytes.n))
		reply_end(rp);
	bytes_free(&bytes);
}

/* A trace may become any size. So it is sent while it is made, through a pipe, and takes
 * no memory here. It ends if the client reads too slowly (trace_buffer.c). Another
 * goroutine calls goro_trace_stop, which waits until all of the trace is in the pipe. */
struct tracing {
	goro_waitgroup stopped;
	bool asked;		/* stop_trace has been started */
	int from;		/* the pipe's end to read from */
	int64_t until;
};

static void stop_trace(void *arg)
{
	struct tracing *t = arg;

	goro_trace_stop();
	goro_waitgroup_done(&t->stopped);
}

static void close_pipe(struct tracing *t)
{
	if (own_fd_is(t->from, OWN_FD_DEBUG))
		goro_close(t->from);
	t->from = -1;
}

static void ask_to_stop(struct tracing *t)
{
	check(!t->asked);
	t->asked = true;
	goro_waitgroup_add(&t->stopped, 1);
	if (debug_go(stop_trace, t))
		return;
	/* No memory for a goroutine: the trace fails without its pipe, and stops then. */
	close_pipe(t);
	stop_trace(t);
}

static bool is_to_stop(const struct tracing *t, const struct reply *rp)
{
	return rp->failed || goro_trace_error() || goro_now() >= t->until || !reply_is_wanted(rp);
}

/* Passes on the trace until the pipe's other end is closed: it is over then. */
static void pass_on(struct tracing *t, struct reply *rp)
{
	char buf[16 << 10];
	ssize_t n;

	do {
		if (!t->asked && is_to_stop(t, rp))
			ask_to_stop(t);
		goro_set_deadline(t->from, t->asked ? GORO_FOREVER : goro_now() + CLIENT_LOOK_NS, GORO_FOREVER);
		n = own_fd_is(t->from, OWN_FD_DEBUG) ? goro_read(t->from, buf, sizeof buf) : -EBADF;
		if (n > 0)
			reply_write(rp, buf, (size_t)n);
	} while (n > 0 || n == -ETIMEDOUT);
	if (n < 0 && !t->asked)
		ask_to_stop(t);		/* the program has closed the pipe */
}

static void send_trace(struct reply *rp, int from, int64_t ns)
{
	struct tracing t = { .from = from, .until = goro_now() + ns };

	begin_file(rp, "trace");
	pass_on(&t, rp);
	goro_waitgroup_wait(&t.stopped);
	if (goro_trace_error())
		rp->failed = true;	/* so that the last chunk is missing */
	else
		reply_end(rp);
	close_pipe(&t);
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
		send_trace(rp, own_fd_take_many(fd[0], OWN_FD_DEBUG), ns);
		return;
	}
	close(fd[0]);
	fail(rp, 500, error == -EBUSY ? "Could not enable tracing: tracing is already enabled"
	                              : "Could not enable tracing");
}

/* ------------------------------------------------------------------ the index */

static const struct entry entries[] = {
	{ "block", "?debug=1",
	  "Where goroutines waited. Switched on by <code>goro_profile_block_rate</code>.", NULL },
	{ "goroutine", "?debug=1",
	  "Where all goroutines are; <a href=\"goroutine?debug=2\">one by one</a>.", NULL },
	{ "goroutineleak", "?debug=1",
	  "Goroutines that wait for ever, for what nobody can reach; "
	  "<a href=\"goroutineleak?debug=2\">one by one</a>.", NULL },
	{ "mutex", "?debug=1",
	  "Which goroutines held locks that others waited for. Switched on by "
	  "<code>goro_profile_mutex_fraction</code>.", NULL },
	{ "profile", "?seconds=30",
	  "Where CPU time goes in these seconds: a file for <code>go tool pprof</code>.",
	  cpu_profile },
	{ "threadcreate", "?debug=1", "Which calls made the threads.", NULL },
	{ "cmdline", "", "The command line of the program.", cmdline },
	{ "symbol", NULL, NULL, symbol },
	{ "trace", "?seconds=1",
	  "All that happens in these seconds: a file for <code>go tool trace</code>.", trace },
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
			if (entries[i].show)
				entries[i].show(rq, rp);
			else
				from_table(name, rq, rp);
			return;
		}
	fail(rp, 404, "Unknown profile");
}
