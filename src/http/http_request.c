/*
 * http_request.c - the head of an HTTP/1.x request, by RFC 9112 as far as needed
 *
 * A request that can be understood in two ways is refused with 400: lines that do not end
 * in CR LF, names with spaces, folded lines, two hosts, HTTP/1.1 without a host. So are
 * whole addresses, which clients send to a proxy, and bodies, which no page takes.
 */
#include "http/http_request.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/throw.h"

size_t http_head_end(const char *buf, size_t n)
{
	const char *end = memmem(buf, n, "\r\n\r\n", 4);

	return end ? (size_t)(end - buf) + 4 : 0;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes in place. plus: a + is a blank. False: a % without two digits, or %00. */
static bool decode(char *s, bool plus)
{
	char *to = s;

	for (; *s; s++) {
		char c = plus && *s == '+' ? ' ' : *s;

		if (c == '%') {
			int hi = hex_value(s[1]), lo = hi < 0 ? -1 : hex_value(s[2]);

			if (lo < 0 || (hi | lo) == 0)
				return false;
			c = (char)(hi << 4 | lo);
			s += 2;
		}
		*to++ = c;
	}
	*to = '\0';
	return true;
}

static bool is_token(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (*s <= ' ' || *s >= 127 || strchr("\"(),/:;<=>?@[\\]{}", *s))
			return false;
	return true;
}

/* Ends the line at *at before its CR LF, and moves *at behind that. NULL: it is bad. */
static char *next_line(char **at)
{
	char *line = *at, *end = line;

	while (*end != '\r') {
		if ((unsigned char)*end < ' ' && *end != '\t')
			return NULL;
		end++;
	}
	if (end[1] != '\n')
		return NULL;
	*end = '\0';
	*at = end + 2;
	return line;
}

/* METHOD TARGET HTTP/1.x */
static int parse_first(char *line, struct http_request *rq)
{
	char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;
	char *query;

	if (!version)
		return 400;
	*target++ = '\0';
	*version++ = '\0';
	if (strncmp(version, "HTTP/", 5) != 0)
		return 400;
	if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
		return 505;
	if (!is_token(line) || *target != '/')
		return 400;
	query = strchr(target, '?');
	if (query)
		*query++ = '\0';
	rq->method = line;
	rq->path = target;
	rq->query = query ? query : "";
	rq->keep_alive = rq->has_chunks = version[7] == '1';
	return decode(target, false) ? 0 : 400;
}

static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t");
	for (n = strlen(s); n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'); n--)
		;
	s[n] = '\0';
	return s;
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (; *list; list += strcspn(list, ",") , list += *list == ',') {
		list += strspn(list, " \t");
		if (strncasecmp(list, word, n) == 0 && (!list[n] || strchr(", \t", list[n])))
			return true;
	}
	return false;
}

/* Headers by which a browser tells which page made it send the request. */
static void parse_fetch(const char *name, const char *value, struct http_request *rq)
{
	const struct { const char *name, **value; } known[] = {
		{ "Origin", &rq->origin }, { "Sec-Fetch-Site", &rq->fetch_site },
		{ "Sec-Fetch-Mode", &rq->fetch_mode }, { "Sec-Fetch-Dest", &rq->fetch_dest },
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcasecmp(name, known[i].name) == 0)
			*known[i].value = value;
}

static int parse_field(char *line, struct http_request *rq)
{
	char *value = strchr(line, ':');

	if (!value)
		return 400;
	*value++ = '\0';
	if (!is_token(line))
		return 400;
	value = trim(value);
	if (strcasecmp(line, "Host") == 0) {
		if (rq->host)
			return 400;
		rq->host = value;
	} else if (strcasecmp(line, "Content-Length") == 0) {
		return strcmp(value, "0") == 0 ? 0 : 413;
	} else if (strcasecmp(line, "Transfer-Encoding") == 0) {
		return 501;
	} else if (strcasecmp(line, "Connection") == 0) {
		if (has_word(value, "close"))
			rq->keep_alive = false;
		else if (has_word(value, "keep-alive"))
			rq->keep_alive = true;
	} else {
		parse_fetch(line, value, rq);
	}
	return 0;
}

int http_parse(char *head, size_t n, struct http_request *rq)
{
	char *at = head, *end = head + n - 2, *line;
	int status;

	check(http_head_end(head, n) == n);	/* next_line stops at a CR LF only */
	*rq = (struct http_request){ .method = "", .path = "", .query = "" };
	if (memchr(head, '\0', n) || !(line = next_line(&at)))
		return 400;
	status = parse_first(line, rq);
	while (!status && at < end) {
		line = next_line(&at);
		status = line ? parse_field(line, rq) : 400;
	}
	if (!status && rq->has_chunks && !rq->host)
		return 400;	/* HTTP/1.1 demands one */
	return status;
}

bool http_query(const struct http_request *rq, const char *name, char *out, size_t max)
{
	size_t n = strlen(name);

	for (const char *at = rq->query; *at; at += strcspn(at, "&"), at += *at == '&') {
		size_t len = strcspn(at, "&");

		if (len <= n || strncmp(at, name, n) != 0 || at[n] != '=')
			continue;
		len -= n + 1;
		if (len >= max)
			return false;
		memcpy(out, at + n + 1, len);
		out[len] = '\0';
		return decode(out, true);
	}
	return false;
}
