/* ares_test.c - what ares_park.c does when things go wrong, and with large answers. */
#include <arpa/inet.h>
#include <goro.h>

#include "ares_park.h"
#include "expect.h"

static const struct ares_addrinfo_hints hints = { .ai_family = AF_INET };

static int lookup(ares_park *r, const char *name, int64_t deadline, int *found)
{
	struct ares_addrinfo *all = NULL;
	int status = ares_park_getaddrinfo(r, name, "80", &hints, &all, deadline);

	*found = 0;
	for (struct ares_addrinfo_node *n = all ? all->nodes : NULL; n; n = n->ai_next)
		(*found)++;
	expect((status == ARES_SUCCESS) == (all != NULL));
	ares_freeaddrinfo(all);
	return status;
}

static ares_park *resolver(int timeout_ms, int tries, int udp_port)
{
	struct ares_options options = { .timeout = timeout_ms, .tries = tries,
	                                .udp_port = (unsigned short)udp_port };
	int status, mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | (udp_port ? ARES_OPT_UDP_PORT : 0);
	ares_park *r = ares_park_make(&options, mask, &status);

	expect(r && status == ARES_SUCCESS);
	return r;
}

static int start(int argc, char **argv)
{
	ares_park *r = resolver(5000, 3, 0);
	int64_t before, soon;
	int found;

	(void)argc, (void)argv;
	expect(lookup(r, "host-7.example", GORO_FOREVER, &found) == ARES_SUCCESS && found == 1);
	expect(lookup(r, "10.1.2.3", GORO_FOREVER, &found) == ARES_SUCCESS && found == 1);
	expect(lookup(r, "nobody.example", GORO_FOREVER, &found) == ARES_ENOTFOUND);

	/* An answer that does not fit into a datagram comes by TCP. */
	expect(lookup(r, "many.example", GORO_FOREVER, &found) == ARES_SUCCESS && found == 200);

	/* The deadline, and the resolver after it. */
	before = goro_now();
	soon = goro_deadline_in(50 * GORO_MILLISECOND);
	expect(lookup(r, "silence.example", soon, &found) == ARES_ETIMEOUT);
	expect(goro_now() - before >= 50 * GORO_MILLISECOND);
	expect(lookup(r, "host-8.example", GORO_FOREVER, &found) == ARES_SUCCESS && found == 1);
	ares_park_free(r);

	/* c-ares's own timeouts: it asks three times. */
	r = resolver(100, 3, 0);
	before = goro_now();
	expect(lookup(r, "silence.example", GORO_FOREVER, &found) == ARES_ETIMEOUT);
	expect(goro_now() - before >= 300 * GORO_MILLISECOND);
	ares_park_free(r);

	/* A server that nobody is at. */
	r = resolver(5000, 3, htons(1));
	expect(lookup(r, "host-7.example", GORO_FOREVER, &found) == ARES_ECONNREFUSED);
	ares_park_free(r);
	return 0;
}
GORO_MAIN(start)
