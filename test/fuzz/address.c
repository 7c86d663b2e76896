/* address.c - addresses, as listen and dial take them apart. */
#define goro_listen fuzz_goro_listen
#define goro_dial   fuzz_goro_dial
#define resolve     fuzz_resolve
#include "../../src/io/net.c"
#include "../../src/io/resolve.c"
#undef goro_listen
#undef goro_dial
#undef resolve

#include "fuzz.h"

void fuzz_address(const uint8_t *data, size_t n)
{
	char *s = fuzz_string(&data, &n);
	static struct host_port hp;
	struct sockaddr_un sa;
	union net_addr a;
	socklen_t len;

	if (split(s, &hp) == 0) {
		parse_address(hp.host, &a);
		if (parse_port(hp.service) == -1)
			known_port(hp.service, SOCK_STREAM);
	}
	if (unix_address(s, &sa, &len) == 0 && len > sizeof sa)
		abort();
	network_of(s);
	free(s);
}
