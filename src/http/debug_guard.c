/*
 * debug_guard.c - who may ask the debug server.
 *
 * Anybody who can connect: on this machine only, unless the address says otherwise. But the
 * browser of somebody on this machine can connect, too, and a web page that it shows, from
 * anywhere, can have it ask. Such a page must neither read anything nor start anything:
 *
 *	by a name of its own that leads here	a listener on the loopback interface answers only
 *						to names and addresses of that: localhost,
 *						127.x.x.x, [::1], [::ffff:127.x.x.x]
 *	by our name, from its own origin	browsers say so, in Sec-Fetch-Site or in Origin
 *
 * The live page alone may be linked to, since it does nothing by itself.
 *
 * Programs that are not browsers send neither Sec-Fetch-Site nor Origin.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "debug_http.h"

bool debug_is_loopback4(const struct in_addr *a)
{
	return ntohl(a->s_addr) >> 24 == 127;
}

bool debug_is_loopback6(const struct in6_addr *a)
{
	return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

static bool is_local_name(const char *name)
{
	struct in_addr a;

	return strcasecmp(name, "localhost") == 0 ||
	       (inet_pton(AF_INET, name, &a) == 1 && debug_is_loopback4(&a));
}

static bool is_local_address6(const char *name)
{
	struct in6_addr a;

	return inet_pton(AF_INET6, name, &a) == 1 && debug_is_loopback6(&a);
}

/* Of "host", "host:port", "[address]" or "[address]:port", whatever the port. */
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
	return bracket ? is_local_address6(name) : is_local_name(name);
}

/* By a web page that is not ours. */
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

/* Somebody has followed a link, and will see the answer. */
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
