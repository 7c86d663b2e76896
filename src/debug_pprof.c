/*
 * debug_pprof.c - net/http/pprof: the profiles, under the addresses and with the answers
 * that `go tool pprof` and other tools know from Go.
 */
#define _GNU_SOURCE
#include "debug_http.h"

#include <errno.h>
#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile.h"
#include "symbol.h"

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

/* What was written to a file in memory. */
static void copy_file(struct reply *rp, int fd)
{
	char buf[16 << 10];
	ssize_t n;

	for (off_t at = 0; (n = pread(fd, buf, sizeof buf, at)) > 0; at += n)
		fwrite(buf, 1, (size_t)n, rp->out);
}

static void cpu_profile(const struct http_request *rq, struct reply *rp)
{
	int seconds = query_int(rq, "seconds");
	int fd = memfd_create("profile", MFD_CLOEXEC), error;

	if (fd < 0) {
		fail(rp, 500, "Could not enable CPU profiling: no file in memory");
		return;
	}
	error = goro_profile_cpu_start(fd, 0);
	if (error == -EBUSY) {
		fail(rp, 500, "Could not enable CPU profiling: cpu profiling already in use");
	} else if (error) {
		fail(rp, 500, "Could not enable CPU profiling");
	} else {
		reply_sleep(rp, (seconds > 0 ? seconds : 30) * GORO_SECOND);
		goro_profile_cpu_stop();
		rp->type = "application/octet-stream";
		rp->filename = "profile";
		copy_file(rp, fd);
	}
	close(fd);
}

/* The seconds of a trace may be a fraction. */
static void trace(const struct http_request *rq, struct reply *rp)
{
	int fd = memfd_create("trace", MFD_CLOEXEC), error;
	char value[16];
	double seconds = http_query(rq, "seconds", value, sizeof value) ? strtod(value, NULL) : 0;

	if (fd < 0) {
		fail(rp, 500, "Could not enable tracing: no file in memory");
		return;
	}
	error = goro_trace_start(fd);
	if (error == -EBUSY) {
		fail(rp, 500, "Could not enable tracing: tracing is already enabled");
	} else if (error) {
		fail(rp, 500, "Could not enable tracing");
	} else {
		reply_sleep(rp, (int64_t)((seconds > 0 && seconds < 1e6 ? seconds : 1) * 1e9));
		goro_trace_stop();
		rp->type = "application/octet-stream";
		rp->filename = "trace";
		copy_file(rp, fd);
	}
	close(fd);
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
