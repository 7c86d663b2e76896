/*
 * debug_pprof.c - net/http/pprof: the profiles, under the addresses and with the answers
 * that `go tool pprof` and other tools know from Go.
 */
#include "debug_http.h"

#include <goro.h>
#include <stdlib.h>
#include <string.h>

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

static void goroutine(const struct http_request *rq, struct reply *rp)
{
	(void)rq;
	goro_dump(rp->out);
}

/* ------------------------------------------------------------------ the index */

static const struct entry {
	const char *name;
	void (*show)(const struct http_request *rq, struct reply *rp);
	const char *query;	/* that the index links to */
	const char *text;
} entries[] = {
	{ "goroutine", goroutine, "?debug=2", "Stacks of all goroutines." },
	{ "cmdline", cmdline, "", "The command line of the program." },
	{ "symbol", symbol, NULL, NULL },
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
	      "<a href=\"goroutine?debug=2\">full goroutine stack dump</a></p>\n</body></html>\n",
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
	(void)query_int;
}
