/*
 * net.c - goro_listen and goro_dial: net.Listen and net.Dial.
 *
 * All of it is made of goro's public calls and runs as user code. Options are set as Go
 * sets them:
 *
 *	tcp           TCP_NODELAY; keep-alive, a probe after TCP_KEEPALIVE_S and each time
 *	              again, TCP_KEEPALIVE_PROBES of them. On a listener too, from which
 *	              connections inherit them.
 *	tcp listener  SO_REUSEADDR; the longest backlog that the system allows
 *	udp           SO_BROADCAST
 *	IPv6          IPV6_V6ONLY on "tcp6" and "udp6", off otherwise
 *	all           CLOEXEC
 *
 * A listener without a host, or on 0.0.0.0 or ::, takes both IPv4 and IPv6 where the
 * system can do that with one socket.
 *
 * Several addresses
 *
 * They are tried in turn, in the order that the resolver gave (RFC 6724), each for its
 * share of the time left, but for DIAL_SHARE_MIN_NS at least if that much is left. With
 * both kinds of addresses, those of the first one's kind are tried, and DIAL_FALLBACK_NS
 * later, or when they have failed, the others beside them (RFC 6555, "happy eyeballs").
 * The first to connect wins and the other one gives up. If all fail, the error is that of
 * the first address.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <goro.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "platform/atomic.h"
#include "base/config.h"
#include "io/resolve.h"

/* Go's figures: the least share of an address; the head start of the first kind. */
#define DIAL_SHARE_MIN_NS (2 * 1000000000LL)
#define DIAL_FALLBACK_NS  300000000

/* Go's figures: unused connections get a probe after this long, and again, and end after
 * this many without an answer. */
#define TCP_KEEPALIVE_S      15
#define TCP_KEEPALIVE_PROBES 9

static const struct network {
	const char *name;
	int family;
	int type;
} networks[] = {
	{ "tcp", AF_UNSPEC, SOCK_STREAM },
	{ "tcp4", AF_INET, SOCK_STREAM },
	{ "tcp6", AF_INET6, SOCK_STREAM },
	{ "udp", AF_UNSPEC, SOCK_DGRAM },
	{ "udp4", AF_INET, SOCK_DGRAM },
	{ "udp6", AF_INET6, SOCK_DGRAM },
	{ "unix", AF_UNIX, SOCK_STREAM },
	{ "unixgram", AF_UNIX, SOCK_DGRAM },
	{ "unixpacket", AF_UNIX, SOCK_SEQPACKET },
};

static const struct network *network_of(const char *name)
{
	for (size_t i = 0; name && i < sizeof networks / sizeof *networks; i++)
		if (strcmp(networks[i].name, name) == 0)
			return &networks[i];
	return NULL;
}

/* ---------------------------------------------------------------- addresses */

/* More than the longest name. */
#define HOST_BYTES 1024
#define SERVICE_BYTES 64

struct host_port {
	char host[HOST_BYTES];
	char service[SERVICE_BYTES];
};

static int copy(char *to, size_t room, const char *from, size_t n)
{
	if (n >= room || memchr(from, '[', n) || memchr(from, ']', n))
		return -EINVAL;
	memcpy(to, from, n);
	to[n] = '\0';
	return 0;
}

/* "host:port" or "[host]:port", where only the latter may have colons inside. */
static int split(const char *address, struct host_port *out)
{
	const char *colon = strrchr(address, ':'), *host = address, *end = colon;
	int r;

	if (!colon)
		return -EINVAL;
	if (*host == '[') {
		end = strchr(++host, ']');
		if (!end || end + 1 != colon)
			return -EINVAL;
	} else if (memchr(host, ':', (size_t)(colon - host))) {
		return -EINVAL;
	}
	r = copy(out->host, sizeof out->host, host, (size_t)(end - host));
	return r ? r : copy(out->service, sizeof out->service, colon + 1, strlen(colon + 1));
}

static socklen_t addr_len(const union net_addr *a)
{
	return a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
}

static bool is_wildcard(const union net_addr *a)
{
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == INADDR_ANY;
	return IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
}

static bool is_multicast(const union net_addr *a)
{
	if (a->any.sa_family == AF_INET)
		return IN_MULTICAST(ntohl(a->v4.sin_addr.s_addr));
	return IN6_IS_ADDR_MULTICAST(&a->v6.sin6_addr);
}

/* The addresses of "host:port"; any is the host where there is none. */
static int addresses(const struct network *net, const char *address, const char *any,
                     int64_t deadline, struct net_addrs **out)
{
	struct host_port *hp;
	int r;

	if (!address)
		return -EINVAL;
	hp = malloc(sizeof *hp);	/* too large for a small stack */
	if (!hp)
		return -ENOMEM;
	r = split(address, hp);
	if (r == 0)
		r = resolve(hp->host[0] ? hp->host : any, hp->service, net->family, net->type,
		            deadline, out);
	free(hp);
	return r;
}

/* A path; with a leading @ an abstract name; "": the system chooses one. */
static int unix_address(const char *path, struct sockaddr_un *sa, socklen_t *len)
{
	size_t n = path ? strlen(path) : 0;

	if (!path || n >= sizeof sa->sun_path)
		return -EINVAL;
	memset(sa, 0, sizeof *sa);
	sa->sun_family = AF_UNIX;
	memcpy(sa->sun_path, path, n);
	if (path[0] == '@')
		sa->sun_path[0] = '\0';
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	if (n > 0 && path[0] != '@')
		++*len;		/* the terminating zero of a path counts */
	return 0;
}

/* ------------------------------------------------------------------ sockets */

static int set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof value) == 0 ? 0 : -errno;
}

static void set_tcp_options(int fd)
{
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, TCP_KEEPALIVE_S);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, TCP_KEEPALIVE_S);
	set(fd, IPPROTO_TCP, TCP_KEEPCNT, TCP_KEEPALIVE_PROBES);
}

/* A socket of this family, with its options; or -errno. */
static int make_socket(const struct network *net, int family)
{
	int fd = goro_socket(family, net->type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return fd;
	if (family == AF_INET6)
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, net->family == AF_INET6);
	if (family != AF_UNIX && net->type == SOCK_STREAM)
		set_tcp_options(fd);
	if (family != AF_UNIX && net->type == SOCK_DGRAM)
		set(fd, SOL_SOCKET, SO_BROADCAST, 1);
	return fd;
}

static int close_with(int fd, int error)
{
	goro_close(fd);
	return error;
}

/* ------------------------------------------------------------------- listen */

/* The system shortens the backlog to what it allows. */
static int bind_and_listen(int fd, const struct network *net, const struct sockaddr *sa,
                           socklen_t len)
{
	if (bind(fd, sa, len) != 0)
		return close_with(fd, -errno);
	if (net->type != SOCK_DGRAM && listen(fd, INT_MAX) != 0)
		return close_with(fd, -errno);
	return fd;
}

static int listen_on(const struct network *net, const union net_addr *a)
{
	int fd = make_socket(net, a->any.sa_family);

	if (fd < 0)
		return fd;
	if (net->type == SOCK_STREAM || is_multicast(a))
		set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	return bind_and_listen(fd, net, &a->any, addr_len(a));
}

/* On all addresses of both kinds, by one socket; or -errno. */
static int listen_on_both(const struct network *net, const union net_addr *a)
{
	union net_addr both = { .v6 = { .sin6_family = AF_INET6 } };

	both.v6.sin6_port = a->any.sa_family == AF_INET ? a->v4.sin_port : a->v6.sin6_port;
	return listen_on(net, &both);
}

/* Go's choice: an IPv4 address if the name has one. */
static const union net_addr *choose(const struct net_addrs *addrs)
{
	for (size_t i = 0; i < addrs->n; i++)
		if (addrs->at[i].any.sa_family == AF_INET)
			return &addrs->at[i];
	return &addrs->at[0];
}

static int listen_internet(const struct network *net, const char *address)
{
	const char *any = net->family == AF_INET6 ? "::" : "0.0.0.0";
	const union net_addr *a;
	struct net_addrs *addrs;
	int r = addresses(net, address, any, GORO_FOREVER, &addrs);

	if (r < 0)
		return r;
	a = choose(addrs);
	r = -EAFNOSUPPORT;
	if (net->family == AF_UNSPEC && is_wildcard(a))
		r = listen_on_both(net, a);
	if (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL)
		r = listen_on(net, a);	/* no IPv6 here */
	free(addrs);
	return r;
}

static int listen_unix(const struct network *net, const char *path)
{
	struct sockaddr_un sa;
	socklen_t len;
	int r = unix_address(path, &sa, &len);

	if (r == 0)
		r = make_socket(net, AF_UNIX);
	return r < 0 ? r : bind_and_listen(r, net, (struct sockaddr *)&sa, len);
}

int goro_listen(const char *network, const char *address)
{
	const struct network *net = network_of(network);

	if (!net)
		return -EINVAL;
	return net->family == AF_UNIX ? listen_unix(net, address) : listen_internet(net, address);
}

/* ---------------------------------------------------- one address, or in turn */

/* An attempt that another goroutine may end: see cancel. */
struct attempt {
	goro_mutex lock;
	int fd;			/* -1: none */
	bool over;
};

/* False: it is over. */
static bool attempt_set(struct attempt *t, int fd)
{
	bool go_on = true;

	if (!t)
		return true;
	goro_mutex_lock(&t->lock);
	t->fd = fd;
	go_on = !t->over;
	goro_mutex_unlock(&t->lock);
	return go_on;
}

/* The attempt does not close its descriptor while the lock is held. */
static void cancel(struct attempt *t)
{
	goro_mutex_lock(&t->lock);
	t->over = true;
	if (t->fd >= 0)
		goro_set_deadline(t->fd, GORO_NOW, GORO_NOW);
	goro_mutex_unlock(&t->lock);
}

static int connect_socket(int fd, const struct sockaddr *sa, socklen_t len, int64_t deadline,
                          struct attempt *t)
{
	int r;

	if (deadline != GORO_FOREVER)
		goro_set_deadline(fd, GORO_FOREVER, deadline);
	if (!attempt_set(t, fd))
		return close_with(fd, -ECANCELED);
	r = goro_connect(fd, sa, len);
	attempt_set(t, -1);
	if (r < 0)
		return close_with(fd, r);
	goro_set_deadline(fd, GORO_FOREVER, GORO_FOREVER);
	return fd;
}

/* A socket may be given the very port that it connects to, and connect to itself. */
static bool met_itself(int fd)
{
	union net_addr here, there;
	socklen_t here_n = sizeof here, there_n = sizeof there;

	memset(&here, 0, sizeof here);
	memset(&there, 0, sizeof there);
	return getsockname(fd, &here.any, &here_n) == 0 &&
	       getpeername(fd, &there.any, &there_n) == 0 &&
	       here_n == there_n && memcmp(&here, &there, here_n) == 0;
}

static int dial_one(const struct network *net, const union net_addr *a, int64_t deadline,
                    struct attempt *t)
{
	for (int tries = 0; tries < 3; tries++) {
		int fd = make_socket(net, a->any.sa_family);

		if (fd < 0)
			return fd;
		fd = connect_socket(fd, &a->any, addr_len(a), deadline, t);
		if (fd == -EADDRNOTAVAIL)
			continue;	/* no port is free at the moment */
		if (fd < 0 || net->type != SOCK_STREAM || !met_itself(fd))
			return fd;
		goro_close(fd);
	}
	return -ECONNREFUSED;
}

/* An equal share of the time left, but enough to connect. */
static int64_t share(int64_t deadline, size_t addresses_left)
{
	int64_t now = goro_now(), left = deadline - now, part = left / (int64_t)addresses_left;

	if (deadline == GORO_FOREVER || left <= 0)
		return deadline;
	if (part < DIAL_SHARE_MIN_NS)
		part = left < DIAL_SHARE_MIN_NS ? left : DIAL_SHARE_MIN_NS;
	return now + part;
}

static int dial_in_turn(const struct network *net, const union net_addr *a, size_t n,
                        int64_t deadline, struct attempt *t)
{
	int first = 0;

	for (size_t i = 0; i < n; i++) {
		int r;

		if (goro_now() >= deadline)
			return first ? first : -ETIMEDOUT;
		r = dial_one(net, &a[i], share(deadline, n - i), t);
		if (r >= 0 || r == -ECANCELED)
			return r;
		if (!first)
			first = r;
	}
	return first;
}

/* --------------------------------------------------- two kinds of addresses */

/* Shared by the dialer and its racers; the last of them frees it. */
struct race {
	uint32_t refs;
	const struct network *net;
	int64_t deadline;
	goro_chan *results;		/* of struct result, with room for both */
	struct attempt attempt[2];
	size_t first[2], n[2];		/* each racer's part of the addresses */
	struct net_addrs *addrs;
};

struct result {
	int racer;
	int fd;				/* or -errno */
};

static void race_unref(struct race *r)
{
	/* acqrel: the last one has seen what the others did; pairs with itself */
	if (fetch_add_acqrel(&r->refs, (uint32_t)-1) != 1)
		return;
	goro_chan_unref(r->results);
	free(r->addrs);
	free(r);
}

/* Closes a connection that comes when the race is over. */
static void racer(struct race *r, int i)
{
	struct attempt *t = &r->attempt[i];
	struct result result = { .racer = i };

	result.fd = dial_in_turn(r->net, r->addrs->at + r->first[i], r->n[i], r->deadline, t);
	goro_mutex_lock(&t->lock);
	if (t->over && result.fd >= 0)
		goro_close(result.fd);
	else
		goro_chan_send(r->results, &result);
	goro_mutex_unlock(&t->lock);
	race_unref(r);
}

static int racer_start(struct race *r, int i)
{
	int error;

	fetch_add_relaxed(&r->refs, 1);
	error = go(racer, r, i);
	if (error) {
		goro_chan_send(r->results, &(struct result){ i, error });
		race_unref(r);
	}
	return error;
}

/* The winner's descriptor, or the first racer's error. */
static int race_run(struct race *r)
{
	int64_t second_at = goro_now() + DIAL_FALLBACK_NS;
	int started = 1, ended = 0, error[2] = { 0, 0 };

	racer_start(r, 0);
	while (ended < 2) {
		struct result result;
		int64_t until = started < 2 ? second_at : GORO_FOREVER;

		if (goro_select_until(until, GORO_RECV(r->results, &result)) == 0) {
			if (result.fd >= 0)
				return result.fd;
			error[result.racer] = result.fd;
			ended++;
		}
		if (started < 2) {
			started++;
			racer_start(r, 1);
		}
	}
	return error[0];
}

/* Moves the addresses of the first one's kind to the front, in order. Their number. */
static size_t sort_by_kind(struct net_addrs *addrs)
{
	size_t same = 0;

	for (size_t i = 0; i < addrs->n; i++) {
		union net_addr a = addrs->at[i];

		if (a.any.sa_family != addrs->at[0].any.sa_family)
			continue;
		memmove(&addrs->at[same + 1], &addrs->at[same], (i - same) * sizeof a);
		addrs->at[same++] = a;
	}
	return same;
}

/* Takes over addrs. */
static int dial_race(const struct network *net, struct net_addrs *addrs, size_t same,
                     int64_t deadline)
{
	struct race *r = calloc(1, sizeof *r);
	struct result late;
	int fd;

	if (r)
		r->results = goro_chan_of(struct result, 2);
	if (!r || !r->results) {
		free(r);
		free(addrs);
		return -ENOMEM;
	}
	r->refs = 1;
	r->net = net;
	r->deadline = deadline;
	r->addrs = addrs;
	r->attempt[0].fd = r->attempt[1].fd = -1;
	r->n[0] = r->first[1] = same;
	r->n[1] = addrs->n - same;
	fd = race_run(r);
	cancel(&r->attempt[0]);
	cancel(&r->attempt[1]);
	while (goro_chan_try_recv(r->results, &late) == GORO_RECV_OK)
		if (late.fd >= 0)
			goro_close(late.fd);
	race_unref(r);
	return fd;
}

/* --------------------------------------------------------------------- dial */

static int dial_internet(const struct network *net, const char *address, int64_t deadline)
{
	const char *any = net->family == AF_INET6 ? "::1" : "127.0.0.1";
	struct net_addrs *addrs;
	size_t same;
	int r = addresses(net, address, any, deadline, &addrs);

	if (r < 0)
		return r;
	same = sort_by_kind(addrs);
	if (same < addrs->n && net->type == SOCK_STREAM)
		return dial_race(net, addrs, same, deadline);
	r = dial_in_turn(net, addrs->at, addrs->n, deadline, NULL);
	free(addrs);
	return r;
}

static int dial_unix(const struct network *net, const char *path, int64_t deadline)
{
	struct sockaddr_un sa;
	socklen_t len;
	int r = unix_address(path, &sa, &len);

	if (r == 0 && path[0] == '\0')
		r = -EINVAL;
	if (r == 0)
		r = make_socket(net, AF_UNIX);
	return r < 0 ? r : connect_socket(r, (struct sockaddr *)&sa, len, deadline, NULL);
}

int goro_dial(const char *network, const char *address, int64_t deadline)
{
	const struct network *net = network_of(network);

	if (!net)
		return -EINVAL;
	if (goro_now() >= deadline)
		return -ETIMEDOUT;
	return net->family == AF_UNIX ? dial_unix(net, address, deadline)
	                              : dial_internet(net, address, deadline);
}
