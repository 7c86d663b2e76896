/*
 * http.h - the head of an HTTP/1.1 request and the framing of its body, parsed
 * strictly, as RFC 9112 has it. For httpd.c; knows nothing of sockets.
 *
 * What two implementations may understand differently is refused: a lone LF or CR,
 * space before the colon, folded lines, a length that is given twice, a length beside
 * chunks. That is how requests are smuggled past a proxy.
 */
#ifndef HTTP_H
#define HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HTTP_FIELDS_MAX 100
#define HTTP_TARGET_MAX 8000

/* A piece of the request as it lies in the buffer. */
struct http_text {
	const char *at;
	size_t n;
};

struct http_request {
	struct http_text method, target;
	int minor;                  /* of HTTP/1.x */
	bool keep_alive;
	bool chunked;
	bool expects_continue;
	bool has_host, has_length;
	uint64_t length;            /* of a body that is not chunked */
	size_t head_n;              /* bytes up to the body */
};

static inline bool http_is(struct http_text t, const char *s)
{
	return t.n == strlen(s) && memcmp(t.at, s, t.n) == 0;
}

static inline char http_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static inline bool http_is_nocase(struct http_text t, const char *s)
{
	if (t.n != strlen(s))
		return false;
	for (size_t i = 0; i < t.n; i++)
		if (http_lower(t.at[i]) != s[i])
			return false;
	return true;
}

/* The characters of a token: RFC 9110, 5.6.2. */
static inline bool http_is_token_char(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return true;
	c = (unsigned char)http_lower((char)c);
	return (c >= 'a' && c <= 'z') || (c != 0 && strchr("!#$%&'*+-.^_`|~", c));
}

static inline bool http_is_token(struct http_text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (!http_is_token_char((unsigned char)t.at[i]))
			return false;
	return t.n > 0;
}

/* Text up to a line's CR LF; false: there is none. */
static inline bool http_line(const char *p, size_t n, struct http_text *line)
{
	const char *lf = memchr(p, '\n', n);

	if (!lf)
		return false;
	line->at = p;
	line->n = (size_t)(lf - p);	/* with the CR, if there is one */
	return true;
}

/* Drops the CR; false: there is none, or another, or some other control character. */
static inline bool http_line_is_clean(struct http_text *line)
{
	if (line->n == 0 || line->at[--line->n] != '\r')
		return false;
	for (size_t i = 0; i < line->n; i++)
		if (((unsigned char)line->at[i] < ' ' && line->at[i] != '\t') || line->at[i] == 127)
			return false;
	return true;
}

/* 0, or the status to answer with. */
static inline int http_parse_target(struct http_text t)
{
	if (t.n > HTTP_TARGET_MAX)
		return 414;
	for (size_t i = 0; i < t.n; i++)
		if ((unsigned char)t.at[i] <= ' ' || (unsigned char)t.at[i] >= 127)
			return 400;
	if (t.n == 0)
		return 400;
	return t.at[0] == '/' || http_is(t, "*") || (t.n > 7 && memcmp(t.at, "http://", 7) == 0) ? 0 : 400;
}

static inline int http_parse_version(struct http_text v, struct http_request *r)
{
	if (v.n != 8 || memcmp(v.at, "HTTP/", 5) != 0 || v.at[6] != '.' ||
	    v.at[5] < '0' || v.at[5] > '9' || v.at[7] < '0' || v.at[7] > '9')
		return 400;
	if (v.at[5] != '1')
		return 505;
	r->minor = v.at[7] - '0';
	r->keep_alive = r->minor >= 1;
	return 0;
}

/* METHOD SP TARGET SP VERSION */
static inline int http_parse_first(struct http_text line, struct http_request *r)
{
	const char *end = line.at + line.n, *sp1, *sp2;
	int status;

	sp1 = memchr(line.at, ' ', line.n);
	sp2 = sp1 ? memchr(sp1 + 1, ' ', (size_t)(end - sp1 - 1)) : NULL;
	if (!sp2)
		return 400;
	r->method = (struct http_text){ line.at, (size_t)(sp1 - line.at) };
	r->target = (struct http_text){ sp1 + 1, (size_t)(sp2 - sp1 - 1) };
	if (!http_is_token(r->method))
		return 400;
	status = http_parse_target(r->target);
	return status ? status :
	       http_parse_version((struct http_text){ sp2 + 1, (size_t)(end - sp2 - 1) }, r);
}

static inline int http_parse_length(struct http_text v, struct http_request *r)
{
	uint64_t n = 0;

	if (v.n == 0 || v.n > 18 || r->has_length)
		return 400;
	for (size_t i = 0; i < v.n; i++) {
		if (v.at[i] < '0' || v.at[i] > '9')
			return 400;
		n = n * 10 + (uint64_t)(v.at[i] - '0');
	}
	r->length = n;
	r->has_length = true;
	return 0;
}

/* A list with commas in between. */
static inline void http_parse_connection(struct http_text v, struct http_request *r)
{
	while (v.n > 0) {
		const char *comma = memchr(v.at, ',', v.n);
		struct http_text item = { v.at, comma ? (size_t)(comma - v.at) : v.n };

		v.n -= item.n + (comma != NULL);
		v.at += item.n + (comma != NULL);
		while (item.n > 0 && (*item.at == ' ' || *item.at == '\t'))
			item.at++, item.n--;
		while (item.n > 0 && (item.at[item.n - 1] == ' ' || item.at[item.n - 1] == '\t'))
			item.n--;
		if (http_is_nocase(item, "close"))
			r->keep_alive = false;
		else if (http_is_nocase(item, "keep-alive") && r->minor == 0)
			r->keep_alive = true;
	}
}

static inline int http_parse_field(struct http_text line, struct http_request *r)
{
	const char *colon = memchr(line.at, ':', line.n), *end = line.at + line.n;
	struct http_text name, value;

	if (!colon)
		return 400;
	name = (struct http_text){ line.at, (size_t)(colon - line.at) };
	if (!http_is_token(name))	/* which also finds a fold, and a space */
		return 400;
	value = (struct http_text){ colon + 1, (size_t)(end - colon - 1) };
	while (value.n > 0 && (*value.at == ' ' || *value.at == '\t'))
		value.at++, value.n--;
	while (value.n > 0 && (value.at[value.n - 1] == ' ' || value.at[value.n - 1] == '\t'))
		value.n--;
	if (http_is_nocase(name, "content-length"))
		return http_parse_length(value, r);
	if (http_is_nocase(name, "transfer-encoding")) {
		if (r->chunked)
			return 400;
		r->chunked = true;
		return http_is_nocase(value, "chunked") ? 0 : 501;
	}
	if (http_is_nocase(name, "host")) {
		if (r->has_host)
			return 400;
		r->has_host = true;
	} else if (http_is_nocase(name, "connection")) {
		http_parse_connection(value, r);
	} else if (http_is_nocase(name, "expect")) {
		if (!http_is_nocase(value, "100-continue"))
			return 417;
		r->expects_continue = true;
	}
	return 0;
}

static inline int http_check(const struct http_request *r)
{
	if (r->minor >= 1 && !r->has_host)
		return 400;
	if (r->chunked && (r->has_length || r->minor == 0))
		return 400;
	return 0;
}

/* Parses the head of a request at p. 1: done; 0: there is more to come; else the
 * status to answer with before closing. */
static inline int http_parse(const char *p, size_t n, struct http_request *r)
{
	struct http_text line;
	size_t at = 0;
	int fields = 0, status;

	*r = (struct http_request){ .minor = 1 };
	/* An empty line before a request is passed over: RFC 9112, 2.2. */
	while (n - at >= 2 && p[at] == '\r' && p[at + 1] == '\n')
		at += 2;
	if (!http_line(p + at, n - at, &line))
		return n - at > HTTP_TARGET_MAX + 100 ? 414 : 0;
	at += line.n + 1;
	if (!http_line_is_clean(&line))
		return 400;
	if ((status = http_parse_first(line, r)))
		return status;
	for (;;) {
		if (!http_line(p + at, n - at, &line))
			return 0;
		at += line.n + 1;
		if (!http_line_is_clean(&line))
			return 400;
		if (line.n == 0)
			break;
		if (++fields > HTTP_FIELDS_MAX)
			return 431;
		if ((status = http_parse_field(line, r)))
			return status;
	}
	r->head_n = at;
	status = http_check(r);
	return status ? status : 1;
}

/* The size in a chunk's first line; -1: it is none. Extensions are passed over. */
static inline int64_t http_chunk_size(struct http_text line)
{
	int64_t size = 0;
	size_t i;

	for (i = 0; i < line.n && i < 15; i++) {
		char c = http_lower(line.at[i]);
		int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

		if (digit < 0)
			break;
		size = size * 16 + digit;
	}
	if (i == 0 || (i < line.n && line.at[i] != ';'))
		return -1;
	return size;
}

#endif
