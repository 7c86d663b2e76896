/*
 * debug_guard.c - which requests the debug server refuses
 *
 * Every client that can connect is served: those on this machine, unless the address says
 * otherwise. But a browser on this machine can connect, too, and any web page that it
 * shows can make it send a request. Such a page must neither read an answer nor start
 * anything. It has two ways:
 *
 *  - A name of its own that resolves to this machine. So a listener on the loopback
 *    interface answers only to localhost, 127.x.x.x, [::1] and [::ffff:127.x.x.x].
 *  - The server's name, from the page's own origin. The browser tells the origin in
 *    Sec-Fetch-Site or Origin. Programs that are not browsers send neither.
 *
 * Other pages may link to the live page alone, since it does nothing by itself.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "http/debug_http.h"

bool debug_is_loopback4(const struct in_addr *a)
{
	return ntohl(a->s_addr) >> 24 == 127;
}

bool debug_is_loopback6(const struct in6_addr *a)
{
	return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

static bool is_loopback(int family, const char *name)
{
	struct in6_addr a;

	if (inet_pton(family, name, &a) != 1)
		return false;
	return family == AF_INET ? debug_is_loopback4((const void *)&a) : debug_is_loopback6(&a);
}

/* host is "host", "host:port", "[address]" or "[address]:port", with any port. */
static bool is_local_host(const char *host)
{
	bool bracket = *host == '[';
	const char *from = host + bracket, *end = from + strcspn(from, bracket ? "]" : ":");
	size_t n = (size_t)(end - from);
	char name[64];

	if (n >= sizeof name || (bracket && *end != ']'))
		return false;
	end += bracket;
	if (*end && *end != ':')
		return false;
	memcpy(name, from, n);
	name[n] = '\0';
	if (bracket)
		return is_loopback(AF_INET6, name);
	return strcasecmp(name, "localhost") == 0 || is_loopback(AF_INET, name);
}

/* Another server's web page has made the browser send the request. */
static bool is_by_another_page(const struct http_request *rq)
{
	const char *origin;

	if (rq->fetch_site)
		return strcmp(rq->fetch_site, "same-origin") != 0 && strcmp(rq->fetch_site, "none") != 0;
	if (!rq->origin)
		return false;
	origin = strstr(rq->origin, "://");
	return !origin || !rq->host || strcasecmp(origin + 3, rq->host) != 0;
}

/* The user has followed a link: the page cannot read the answer. */
static bool is_followed_link(const struct http_request *rq)
{
	return rq->fetch_mode && strcmp(rq->fetch_mode, "navigate") == 0 &&
	       rq->fetch_dest && strcmp(rq->fetch_dest, "document") == 0;
}

const char *debug_guard(const struct http_request *rq, bool local, bool may_be_linked)
{
	if (local && rq->host && !is_local_host(rq->host))
		return "this server is for this machine: ask for localhost";
	if (is_by_another_page(rq) && !(may_be_linked && is_followed_link(rq)))
		return "this was asked by another web page: enter the address yourself";
	return NULL;
}
