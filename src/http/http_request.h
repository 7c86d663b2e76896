/* http_request.h - the head of an HTTP/1.x request, parsed strictly. Knows no sockets. */
#ifndef GORO_HTTP_REQUEST_H
#define GORO_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

/* Strings lie in the buffer that was parsed: http_parse ends them there. */
struct http_request {
	const char *method;
	const char *path;	/* decoded, without the query */
	const char *query;	/* not decoded; "": none */
	const char *host;	/* NULL: none */
	const char *origin, *fetch_site, *fetch_mode, *fetch_dest;	/* NULL: none */
	bool has_chunks;	/* the client understands chunks: HTTP/1.1 */
	bool keep_alive;
};

/* The length of the head in buf, with its empty line. 0: it is not complete. */
size_t http_head_end(const char *buf, size_t n);

/* Parses a head of n bytes. Returns 0 or the status to refuse it with. */
int http_parse(char *head, size_t n, struct http_request *out);

/* Decodes a parameter of the query into out. False: there is none, or it is too long. */
bool http_query(const struct http_request *rq, const char *name, char *out, size_t max);

#endif
