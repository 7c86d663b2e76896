/*
 * http_request.h - the head of an HTTP/1.x request, parsed strictly. For the debug
 * server; knows nothing of sockets. Defined in http_request.c.
 */
#ifndef GORO_HTTP_REQUEST_H
#define GORO_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

/* Strings lie in the buffer that was parsed, which is cut into them. */
struct http_request {
	const char *method;
	const char *path;	/* decoded, up to the question mark */
	const char *query;	/* after it, as it came; "": none */
	const char *host;	/* the target's, or else the header's; NULL: none was given */
	const char *origin, *fetch_site, *fetch_mode, *fetch_dest;	/* NULL: not said */
	bool has_chunks;	/* the client understands them: HTTP/1.1 */
	bool keep_alive;
	size_t body_bytes;	/* that follow the head */
	const char *body;	/* set by who reads them */
};

/* Where the head in buf ends, behind its empty line; 0: not yet. */
size_t http_head_end(const char *buf, size_t n);

/* Parses a head of n bytes. 0, or the status to refuse it with. */
int http_parse(char *head, size_t n, struct http_request *out);

/* The value of a parameter of the query, decoded, in out; false: it has none, or it is
 * too long. */
bool http_query(const struct http_request *rq, const char *name, char *out, size_t max);

#endif
