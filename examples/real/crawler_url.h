/*
 * crawler_url.h - the addresses in a page, as crawler.c needs them: http only.
 *
 * An address is kept as "http://HOST/PATH": no fragment, no "." and ".." in the path,
 * no port 80. What holds blanks or control characters is none, so that a page cannot
 * slip lines of its own into a request.
 */
#ifndef CRAWLER_URL_H
#define CRAWLER_URL_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { URL_MAX = 2048 };

static const char http[] = "http://";

/* Where the path of an address begins. */
static const char *url_path(const char *url)
{
	return url + sizeof http - 1 + strcspn(url + sizeof http - 1, "/");
}

/* The host of an address, and its port if that is not 80. */
static void url_host(const char *url, char *host, size_t size)
{
	const char *from = url + sizeof http - 1;

	snprintf(host, size, "%.*s", (int)(url_path(url) - from), from);
}

/* The path without "." and "..", in place; a query is left as it is. */
static void remove_dots(char *path)
{
	char *from = path, *to = path, *query = path + strcspn(path, "?");
	size_t n;

	while (from < query) {		/* at a slash */
		n = 1 + strcspn(from + 1, "/?");
		if (n == 2 && from[1] == '.') {
			from += n;
			if (from == query)
				*to++ = '/';
		} else if (n == 3 && from[1] == '.' && from[2] == '.') {
			while (to > path && *--to != '/')
				;
			from += n;
			if (from == query)
				*to++ = '/';
		} else {
			memmove(to, from, n);
			to += n;
			from += n;
		}
	}
	if (to == path)
		*to++ = '/';
	memmove(to, query, strlen(query) + 1);
}

/* What the n bytes at link, in the page base, lead to. False: no page of http. */
static bool url_resolve(char url[URL_MAX], const char *base, const char *link, size_t n)
{
	size_t scheme = strcspn(link, ":/?#\"' ");
	char text[URL_MAX], *at, *path;
	int length, keep = 0;		/* of base */

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)link[i] <= ' ' || link[i] == 127)
			return false;
	n = strcspn(link, "#") < n ? strcspn(link, "#") : n;
	if (scheme < n && link[scheme] == ':') {
		if (n < sizeof http || strncasecmp(link, http, sizeof http - 1) != 0)
			return false;
		link += sizeof http - 1;
		n -= sizeof http - 1;
		keep = sizeof http - 1;
	} else if (n >= 2 && link[0] == '/' && link[1] == '/') {
		keep = sizeof http - 3;
	} else if (n > 0 && link[0] == '/') {
		keep = (int)(url_path(base) - base);
	} else {
		keep = (int)strcspn(base, "?");
		while (n > 0 && link[0] != '?' && base[keep - 1] != '/')
			keep--;
	}
	if (n == 0)
		return false;		/* base itself */
	length = snprintf(text, sizeof text, "%.*s%.*s", keep, base, (int)n, link);
	if (length >= (int)sizeof text - 2 || length < (int)sizeof http)
		return false;
	while ((at = strstr(text, "&amp;")))
		memmove(at + 1, at + 5, strlen(at + 5) + 1);

	/* The host ends at a slash or a query, in front of which a slash is missing. */
	path = text + sizeof http - 1;
	for (; *path && *path != '/' && *path != '?'; path++)
		if (*path >= 'A' && *path <= 'Z')
			*path += 'a' - 'A';
		else if (strchr("@\\\"'<>", *path))
			return false;
	if (path == text + sizeof http - 1)
		return false;
	if (*path != '/') {
		memmove(path + 1, path, strlen(path) + 1);
		*path = '/';
	}
	if (path - text > 3 && strncmp(path - 3, ":80/", 4) == 0) {
		memmove(path - 3, path, strlen(path) + 1);
		path -= 3;
	}
	remove_dots(path);
	strcpy(url, text);
	return true;
}

/* Finds the next link of a page: href="LINK" or href='LINK'. NULL: there is none. */
static const char *next_link(const char *at, size_t *n)
{
	while ((at = strcasestr(at, "href="))) {
		at += 5;
		if (*at == '"' || *at == '\'') {
			const char *end = strchr(at + 1, *at);

			if (!end)
				return NULL;
			*n = (size_t)(end - at - 1);
			return at + 1;
		}
	}
	return NULL;
}

#endif
