/*
 * debug_http.h - the debug server's pages, as its files see each other.
 */
#ifndef GORO_DEBUG_HTTP_H
#define GORO_DEBUG_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "http_request.h"

struct reply {
	int status;		/* 200 unless a page says otherwise */
	const char *type;	/* of the content; text/plain unless a page says otherwise */
	const char *filename;	/* to be saved under; NULL: to be shown */
	bool profile_error;	/* Go's X-Go-Pprof: what pprof shows */
	const char *location;	/* of a redirect */
	FILE *out;		/* the content goes here */
	int fd;			/* of the connection: whether the client is still there */
};

/* ---- debug_http.c */

/* goro_debug_serve; *port is the one it got. */
int debug_http_serve(const char *address, int *port);
/* GORO_DEBUG_SERVE, if it is set. */
void debug_http_init(void);
/* What a page that takes its time waits with: false if the client has gone meanwhile. */
bool reply_sleep(struct reply *rp, int64_t ns);

/* ---- debug_page.c: the live page, its figures, and those for Prometheus */

void page_live(const struct http_request *rq, struct reply *rp);
void page_stats(const struct http_request *rq, struct reply *rp);
void page_metrics(const struct http_request *rq, struct reply *rp);

/* ---- debug_pprof.c: net/http/pprof */

void page_pprof(const struct http_request *rq, struct reply *rp);

#endif
