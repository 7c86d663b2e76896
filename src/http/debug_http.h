/*
 * debug_http.h - the debug server's pages, as its files see each other.
 */
#ifndef GORO_DEBUG_HTTP_H
#define GORO_DEBUG_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "http_request.h"

struct in_addr;
struct in6_addr;

struct reply {
	int status;		/* 200 unless a page says otherwise */
	const char *type;	/* of the content; text/plain unless a page says otherwise */
	const char *filename;	/* to be saved under; NULL: to be shown */
	bool profile_error;	/* Go's X-Go-Pprof: what pprof shows */
	const char *location;	/* of a redirect */
	FILE *out;		/* the content goes here, unless the reply has begun */
	int fd;			/* of the connection */
	bool head_only;		/* the client wants no content: HEAD */
	bool chunks;		/* .. and understands chunks */
	bool keep_alive;
	bool begun;		/* reply_begin */
	bool failed;		/* the client has gone, or takes too long */
};

/* ---- debug_http.c */

/* goro_debug_serve; *port is the one it got. */
int debug_http_serve(const char *address, int *port);
/* Serves a connection, or hangs up if there are too many. local: it came by the loopback
 * interface. The caller is no goroutine, or one of the runtime's own. */
void debug_http_take(int fd, bool local);
/* GORO_DEBUG_SERVE, if it is set. */
void debug_http_init(void);
/* A goroutine of the runtime's own. False: no memory. */
bool debug_go(void (*fn)(void *), void *arg);

/* ---- debug_listen.c */

/* A listener, or -errno; its port, 0 for a Unix socket; whether only this machine reaches it. */
int debug_listen(const char *address, int *port, bool *local);

/* ---- debug_guard.c */

bool debug_is_loopback4(const struct in_addr *a);
bool debug_is_loopback6(const struct in6_addr *a);
/* Why the request is refused; NULL: it is not. local: so is the listener. */
const char *debug_guard(const struct http_request *rq, bool local, bool may_be_linked);

/* ---- debug_reply.c */

const char *reply_status_text(int status);
void reply_refuse(struct reply *rp, int status, const char *why);
/* The whole of it. */
void reply_send(struct reply *rp, const char *content, size_t n);
/* In pieces: the head, from when on rp->out is of no use; content; all is sent. False: no
 * content is wanted, or no more. */
bool reply_begin(struct reply *rp);
bool reply_write(struct reply *rp, const void *from, size_t n);
void reply_end(struct reply *rp);
/* A page that takes its time waits with this: false if the client has gone meanwhile. */
bool reply_sleep(struct reply *rp, int64_t ns);
bool reply_is_wanted(const struct reply *rp);	/* the client is still there */

/* ---- debug_page.c: the live page, its figures, and those for Prometheus */

void page_live(const struct http_request *rq, struct reply *rp);
void page_stats(const struct http_request *rq, struct reply *rp);
void page_metrics(const struct http_request *rq, struct reply *rp);

/* ---- debug_pprof.c: net/http/pprof */

void page_pprof(const struct http_request *rq, struct reply *rp);

#endif
