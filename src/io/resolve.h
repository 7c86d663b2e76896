/* resolve.h - names to addresses. Defined in resolve.c. */
#ifndef GORO_RESOLVE_H
#define GORO_RESOLVE_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* An internet address of either kind. */
union net_addr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct net_addrs {
	size_t n;
	union net_addr at[];
};

/* The addresses of host, a name or an address, each with the port of service, a number or
 * a name known for sockets of type (SOCK_STREAM or SOCK_DGRAM). Of one family, or
 * AF_UNSPEC. 0, and *out is the caller's to free; or -errno (see goro_dial). In user
 * code; waits until the deadline. */
int resolve(const char *host, const char *service, int family, int type, int64_t deadline,
            struct net_addrs **out);

#endif
