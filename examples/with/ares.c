/*
 * ares.c - names to addresses: 1,000 lookups under way.
 *
 * block_*: getaddrinfo. It works in a goroutine as it is, which keeps a thread meanwhile;
 * goro_dial does this. park_*: c-ares with ares_park.h.
 *
 *	ares park|block|thread [CLIENTS]
 */
#include <arpa/inet.h>
#include <goro.h>
#include <string.h>

#include "ares_park.h"
#include "measure.h"

static const char *name(char text[32], int i)
{
	snprintf(text, 32, "host-%d.example", i);
	return text;
}

/* The name server says 10.0.x.y for host-i. */
static void check(const struct sockaddr *address, int i)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;

	if (in->sin_family != AF_INET ||
	    ntohl(in->sin_addr.s_addr) != 0x0a000000u + (unsigned)i)
		die("host-%d has a wrong address", i);
}

static void block_lookup(void *unused, int i)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	char text[32];
	int r = getaddrinfo(name(text, i), "80", &hints, &found);

	(void)unused;
	if (r != 0)
		die("%s: %s", text, gai_strerror(r));
	check(found->ai_addr, i);
	freeaddrinfo(found);
}

static ares_park *resolver;

static void make_resolver(void *unused)
{
	int status;

	(void)unused;
	resolver = ares_park_make(NULL, 0, &status);
	if (!resolver)
		die("c-ares: %s", ares_strerror(status));
}

static void *park_open(int i)
{
	static goro_once once;

	(void)i;
	goro_once_do(&once, make_resolver, NULL);
	return resolver;
}

static void park_lookup(void *r, int i)
{
	const struct ares_addrinfo_hints hints = { .ai_family = AF_INET,
	                                           .ai_socktype = SOCK_STREAM };
	struct ares_addrinfo *found;
	char text[32];
	int status = ares_park_getaddrinfo(r, name(text, i), "80", &hints, &found,
	                                   goro_deadline_in(60 * GORO_SECOND));

	if (status != ARES_SUCCESS)
		die("%s: %s", text, ares_strerror(status));
	check(found->nodes->ai_addr, i);
	ares_freeaddrinfo(found);
}

int main(int argc, char **argv)
{
	static const struct client block = { .request = block_lookup };
	static const struct client park = { .open = park_open, .request = park_lookup };
	int r;

	ares_library_init(ARES_LIB_INIT_ALL);
	r = measure_main(argc, argv, &block, &park);
	ares_library_cleanup();
	return r;
}
