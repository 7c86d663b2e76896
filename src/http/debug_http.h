/*
 * debug_http.h - the room http: the debug server
 *
 * An HTTP server in the process, with a live page, figures for Prometheus and
 * net/http/pprof. It may use all rooms; none uses it. Programs start it by
 * goro_debug_serve or GORO_DEBUG_SERVE; the goro command attaches to one that has not.
 */
#ifndef GORO_DEBUG_HTTP_H
#define GORO_DEBUG_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "http/http_request.h"

struct in_addr;
struct in6_addr;

struct reply {
	int status;		/* initially 200 */
	const char *type;	/* of the content; initially text/plain */
	const char *filename;	/* to save the content as; NULL: to show it */
	bool profile_error;	/* X-Go-Pprof: pprof shows the content as an error */
	const char *location;	/* of a redirect */
	FILE *out;		/* takes the content, unless the reply has begun */
	int fd;			/* the connection */
	bool head_only;		/* the request is HEAD */
	bool chunks;		/* the client understands chunks */
	bool keep_alive;
	bool begun;		/* reply_begin has sent the head */
	bool failed;		/* the client has hung up or reads too slowly */
};

/* ---- debug_http.c */

/* goro_debug_serve; sets *port to the listener's. */
int debug_http_serve(const char *address, int *port);
/* Serves a connection, or hangs up if there are too many. local: it came by the loopback
 * interface. The caller is a plain thread or an internal goroutine. */
void debug_http_take(int fd, bool local);
/* Starts an internal goroutine. False: there is no memory. */
bool debug_go(void (*fn)(void *), void *arg);

/* ---- debug_listen.c */

/* Returns a listener or -errno. Sets *port, 0 for a Unix socket, and *local if only
 * clients on this machine reach it. */
int debug_listen(const char *address, int *port, bool *local);

/* ---- debug_guard.c */

bool debug_is_loopback4(const struct in_addr *a);
bool debug_is_loopback6(const struct in6_addr *a);
/* Why the request is refused, or NULL. local: by the listener; may_be_linked: page. */
const char *debug_guard(const struct http_request *rq, bool local, bool may_be_linked);

/* ---- debug_reply.c */

const char *reply_status_text(int status);
void reply_refuse(struct reply *rp, int status, const char *why);
/* Sends all of a reply. */
void reply_send(struct reply *rp, const char *content, size_t n);
/* The same in pieces: the head, after which rp->out is not used; content; the end. False:
 * the request is HEAD, and there must be no more calls, or the client has hung up. */
bool reply_begin(struct reply *rp);
bool reply_write(struct reply *rp, const void *from, size_t n);
void reply_end(struct reply *rp);
/* Sleeps while a page is made. False: the client has hung up. */
bool reply_sleep(struct reply *rp, int64_t ns);
bool reply_is_wanted(const struct reply *rp);	/* the client has not hung up */

/* ---- debug_page.c: the live page, its figures, and those for Prometheus */

void page_live(const struct http_request *rq, struct reply *rp);
void page_stats(const struct http_request *rq, struct reply *rp);
void page_metrics(const struct http_request *rq, struct reply *rp);

/* ---- debug_pprof.c: net/http/pprof */

void page_pprof(const struct http_request *rq, struct reply *rp);

#endif
