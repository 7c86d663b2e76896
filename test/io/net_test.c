/*
 * net_test.c - dial and listen: networks, addresses, names, deadlines.
 *
 * Names are looked up by a getaddrinfo of the test's own. It knows the hosts and services
 * in the tables below, and is slow or fails as they say.
 */
/* test: procs */
#include <arpa/inet.h>
#include <fcntl.h>
#include <goro.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "platform/atomic.h"
#include "await.h"
#include "test.h"

/* -------------------------------------------------------------- name service */

static const struct host {
	const char *name;
	int error;			/* EAI_ */
	const char *address[4];
} hosts[] = {
	{ "one.test", 0, { "127.0.0.1" } },
	{ "refused-first.test", 0, { "127.0.0.2", "127.0.0.3", "127.0.0.1" } },
	{ "both.test", 0, { "::1", "127.0.0.1" } },
	{ "v4-first.test", 0, { "127.0.0.1", "::1" } },
	{ "silent-first.test", 0, { "127.0.0.1", "127.0.0.2" } },
	{ "slow.test", 0, { "127.0.0.1" } },
	{ "stuck.test", 0, { "127.0.0.1" } },
	{ "unknown.test", EAI_NONAME, { NULL } },
	{ "again.test", EAI_AGAIN, { NULL } },
	{ "fail.test", EAI_FAIL, { NULL } },
	{ "memory.test", EAI_MEMORY, { NULL } },
};

/* A service is one of TCP or one of UDP, and may have another port there. */
static const struct service {
	const char *name;
	int type;
	int port;
} services[] = {
	{ "clock", SOCK_DGRAM, 123 },
	{ "relay", SOCK_STREAM, 1234 },
	{ "both", SOCK_STREAM, 1001 },
	{ "both", SOCK_DGRAM, 1002 },
	{ "any", SOCK_DGRAM, 0 },
};

static int lookups, lookups_at_once, lookups_most;
static bool unstick;

static void fill_address(struct addrinfo *ai, const char *text, int family)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ai->ai_addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ai->ai_addr;

	ai->ai_family = family;
	ai->ai_addr->sa_family = (sa_family_t)family;
	ai->ai_addrlen = family == AF_INET ? sizeof *v4 : sizeof *v6;
	CHECK_EQ(inet_pton(family, text, family == AF_INET ? (void *)&v4->sin_addr
	                                                   : (void *)&v6->sin6_addr), 1);
}

static int find_host(const struct host *h, int wanted, struct addrinfo **out)
{
	struct addrinfo **end = out;

	for (int i = 0; i < 4 && h->address[i]; i++) {
		int family = strchr(h->address[i], ':') ? AF_INET6 : AF_INET;

		if (wanted != AF_UNSPEC && wanted != family)
			continue;
		*end = calloc(1, sizeof **end + sizeof(struct sockaddr_in6));
		(*end)->ai_addr = (struct sockaddr *)(*end + 1);
		fill_address(*end, h->address[i], family);
		end = &(*end)->ai_next;
	}
	return *out ? 0 : EAI_NONAME;
}

/* Needs a good deal of stack, as some of the real ones do. */
static int look_around(const char *name)
{
	volatile char big[64 << 10];

	big[0] = big[sizeof big - 1] = *name;
	if (strcmp(name, "slow.test") == 0)
		usleep(100000);
	while (strcmp(name, "stuck.test") == 0 && !load_relaxed(&unstick))
		usleep(1000);
	return big[0] == big[sizeof big - 1];
}

static int port_of_service(const char *name, int type)
{
	for (size_t i = 0; i < sizeof services / sizeof *services; i++)
		if (strcmp(services[i].name, name) == 0 && (type == 0 || type == services[i].type))
			return services[i].port;
	return -1;
}

static void set_ports(struct addrinfo *ai, int port)
{
	for (; ai; ai = ai->ai_next)	/* at the same place for both kinds */
		((struct sockaddr_in *)ai->ai_addr)->sin_port = htons((uint16_t)port);
}

static int find_name(const char *name, int family, struct addrinfo **out)
{
	struct host digits = { name, 0, { name } };

	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
		if (strcmp(hosts[i].name, name) == 0)
			return hosts[i].error ? hosts[i].error : find_host(&hosts[i], family, out);
	return strstr(name, ".test") ? EAI_NONAME : find_host(&digits, family, out);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
	int n = fetch_add_seqcst(&lookups_at_once, 1) + 1, port, r;

	fetch_add_seqcst(&lookups, 1);
	if (n > load_relaxed(&lookups_most))
		store_relaxed(&lookups_most, n);
	look_around(name);
	*out = NULL;
	port = service ? port_of_service(service, hints->ai_socktype) : 0;
	r = port < 0 ? EAI_SERVICE : find_name(name, hints->ai_family, out);
	set_ports(*out, port);
	fetch_add_seqcst(&lookups_at_once, -1);
	return r;
}

void freeaddrinfo(struct addrinfo *ai)
{
	while (ai) {
		struct addrinfo *next = ai->ai_next;

		free(ai);
		ai = next;
	}
}

/* -------------------------------------------------------------------- tools */

static int port_of(int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;

	CHECK_EQ(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	if (ss.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&ss)->sin_port);
	CHECK_EQ(ss.ss_family, AF_INET6);
	return ntohs(((struct sockaddr_in6 *)&ss)->sin6_port);
}

static int family_of(int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;

	CHECK_EQ(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	return ss.ss_family;
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof value;

	CHECK_EQ(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

/* "host:port" for a listener's port. */
static const char *at(const char *host, int listener)
{
	static _Thread_local char text[8][300];
	static _Thread_local unsigned turn;
	char *s = text[turn++ % 8];

	snprintf(s, 300, "%s:%d", host, port_of(listener));
	return s;
}

static bool have_ipv6(void)
{
	int fd = goro_listen("tcp6", "[::1]:0");

	if (fd >= 0)
		goro_close(fd);
	return fd >= 0;
}

/* A byte one way and the other way back. */
static void check_connected(int listener, int client)
{
	int server = goro_accept(listener, NULL, NULL);
	char c = 0;

	CHECK(server >= 0);
	CHECK_EQ(goro_write(client, "x", 1), 1);
	CHECK_EQ(goro_read(server, &c, 1), 1);
	CHECK_EQ(c, 'x');
	CHECK_EQ(goro_write(server, "y", 1), 1);
	CHECK_EQ(goro_read(client, &c, 1), 1);
	CHECK_EQ(c, 'y');
	goro_close(server);
}

static void dial_by_and_check(const char *network, const char *address, int listener, int64_t deadline)
{
	int client = goro_dial(network, address, deadline);

	if (client < 0)
		FAIL("dial %s %s: %s", network, address, strerror(-client));
	check_connected(listener, client);
	goro_close(client);
}

static void dial_and_check(const char *network, const char *address, int listener)
{
	dial_by_and_check(network, address, listener, goro_now() + seconds(20));
}

/* ------------------------------------------------------------------ networks */

GO_TEST(tcp_over_ipv4)
{
	int l = goro_listen("tcp", "127.0.0.1:0");

	CHECK(l >= 0);
	CHECK_EQ(family_of(l), AF_INET);
	dial_and_check("tcp", at("127.0.0.1", l), l);
	dial_and_check("tcp4", at("127.0.0.1", l), l);
	CHECK_EQ(goro_dial("tcp6", at("127.0.0.1", l), GORO_FOREVER), -EAFNOSUPPORT);
	goro_close(l);
	l = goro_listen("tcp4", ":0");
	CHECK_EQ(family_of(l), AF_INET);
	dial_and_check("tcp", at("", l), l);
	goro_close(l);
}

GO_TEST(tcp_over_ipv6)
{
	int l;

	if (!have_ipv6())
		SKIP("no IPv6 here");
	l = goro_listen("tcp", "[::1]:0");
	CHECK(l >= 0);
	CHECK_EQ(family_of(l), AF_INET6);
	dial_and_check("tcp", at("[::1]", l), l);
	dial_and_check("tcp6", at("[::1]", l), l);
	dial_and_check("tcp6", at("[::1%lo]", l), l);
	CHECK_EQ(goro_dial("tcp4", at("[::1]", l), GORO_FOREVER), -EAFNOSUPPORT);
	goro_close(l);
	l = goro_listen("tcp6", "[::]:0");
	CHECK_EQ(option(l, IPPROTO_IPV6, IPV6_V6ONLY), 1);
	dial_and_check("tcp6", at("", l), l);
	CHECK_EQ(goro_dial("tcp4", at("127.0.0.1", l), GORO_FOREVER), -ECONNREFUSED);
	goro_close(l);
}

GO_TEST(a_listener_without_a_host_takes_both_kinds)
{
	int l = goro_listen("tcp", ":0");

	CHECK(l >= 0);
	dial_and_check("tcp", at("127.0.0.1", l), l);
	dial_and_check("tcp", at("", l), l);
	if (have_ipv6()) {
		CHECK_EQ(option(l, IPPROTO_IPV6, IPV6_V6ONLY), 0);
		dial_and_check("tcp", at("[::1]", l), l);
	}
	goro_close(l);
}

static void check_udp(const char *network, const char *address, const char *host)
{
	int l = goro_listen(network, address), c;
	struct sockaddr_storage from;
	socklen_t len = sizeof from;
	char buf[8];

	CHECK(l >= 0);
	CHECK_EQ(option(l, SOL_SOCKET, SO_BROADCAST), 1);
	c = goro_dial(network, at(host, l), GORO_FOREVER);
	CHECK(c >= 0);
	CHECK_EQ(goro_write(c, "ping", 4), 4);
	CHECK_EQ(goro_recvfrom(l, buf, sizeof buf, 0, (struct sockaddr *)&from, &len), 4);
	CHECK_EQ(goro_sendto(l, "pong!", 5, 0, (struct sockaddr *)&from, len), 5);
	CHECK_EQ(goro_read(c, buf, sizeof buf), 5);
	goro_close(c);
	goro_close(l);
}

GO_TEST(udp)
{
	check_udp("udp", "127.0.0.1:0", "127.0.0.1");
	check_udp("udp4", ":0", "");
	check_udp("udp", ":0", "127.0.0.1");
	if (have_ipv6()) {
		check_udp("udp6", "[::1]:0", "[::1]");
		check_udp("udp", ":0", "[::1]");
	}
}

static void check_unix(const char *path)
{
	int l = goro_listen("unix", path);

	CHECK(l >= 0);
	dial_and_check("unix", path, l);
	CHECK_EQ(goro_listen("unix", path), -EADDRINUSE);
	CHECK_EQ(goro_dial("unixgram", path, GORO_FOREVER),
	         path[0] == '@' ? -ECONNREFUSED : -EPROTOTYPE);
	goro_close(l);
	CHECK_EQ(goro_dial("unix", path, GORO_FOREVER), -ECONNREFUSED);
	unlink(path);
}

GO_TEST(unix_sockets)
{
	char path[64], name[64];
	char *dir, at_dir[] = "/tmp/goro-net-XXXXXX";

	dir = mkdtemp(at_dir);
	CHECK(dir);
	snprintf(path, sizeof path, "%s/socket", dir);
	snprintf(name, sizeof name, "@goro-net-test-%d", getpid());
	check_unix(path);
	check_unix(name);
	CHECK_EQ(goro_dial("unix", path, GORO_FOREVER), -ENOENT);
	rmdir(dir);
}

GO_TEST(unix_packets)
{
	char name[64], buf[16];
	int l, c, s;

	snprintf(name, sizeof name, "@goro-packets-%d", getpid());
	l = goro_listen("unixpacket", name);
	CHECK(l >= 0);
	c = goro_dial("unixpacket", name, GORO_FOREVER);
	CHECK(c >= 0);
	s = goro_accept(l, NULL, NULL);
	CHECK_EQ(goro_write(c, "ab", 2), 2);
	CHECK_EQ(goro_write(c, "cde", 3), 3);
	CHECK_EQ(goro_read(s, buf, sizeof buf), 2);
	CHECK_EQ(goro_read(s, buf, sizeof buf), 3);
	goro_close(l);
	goro_close(c);
	goro_close(s);
	l = goro_listen("unixgram", name);
	c = goro_dial("unixgram", name, GORO_FOREVER);
	CHECK(l >= 0 && c >= 0);
	CHECK_EQ(goro_write(c, "datagram", 8), 8);
	CHECK_EQ(goro_read(l, buf, sizeof buf), 8);
	goro_close(l);
	goro_close(c);
}

GO_TEST(options_are_those_of_go)
{
	int l = goro_listen("tcp", "127.0.0.1:0"), fds[3];

	CHECK_EQ(option(l, SOL_SOCKET, SO_REUSEADDR), 1);
	fds[0] = l;
	fds[1] = goro_dial("tcp", at("127.0.0.1", l), GORO_FOREVER);
	fds[2] = goro_accept(l, NULL, NULL);
	for (int i = 0; i < 3; i++) {
		CHECK(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
		CHECK(option(fds[i], IPPROTO_TCP, TCP_NODELAY) != 0);
		CHECK(option(fds[i], SOL_SOCKET, SO_KEEPALIVE) != 0);
		CHECK_EQ(option(fds[i], IPPROTO_TCP, TCP_KEEPIDLE), 15);
		CHECK_EQ(option(fds[i], IPPROTO_TCP, TCP_KEEPINTVL), 15);
		CHECK_EQ(option(fds[i], IPPROTO_TCP, TCP_KEEPCNT), 9);
		goro_close(fds[i]);
	}
	l = goro_listen("udp", "127.0.0.1:0");
	CHECK_EQ(option(l, SOL_SOCKET, SO_REUSEADDR), 0);
	CHECK_EQ(goro_listen("udp", at("127.0.0.1", l)), -EADDRINUSE);
	goro_close(l);
}

/* A port is free again at once, though connections of the old listener linger. */
GO_TEST(a_server_can_be_started_again)
{
	int l = goro_listen("tcp", "127.0.0.1:0"), c, s;
	const char *address = at("127.0.0.1", l);

	c = goro_dial("tcp", address, GORO_FOREVER);
	s = goro_accept(l, NULL, NULL);
	goro_close(s);		/* first: TIME_WAIT is on this side */
	goro_close(c);
	goro_close(l);
	l = goro_listen("tcp", address);
	CHECK(l >= 0);
	CHECK_EQ(goro_listen("tcp", address), -EADDRINUSE);
	goro_close(l);
}

/* ----------------------------------------------------------------- bad input */

GO_TEST(bad_networks_and_addresses)
{
	static const char *const networks[] = { "", "tcp5", "TCP", "ip", "unixx", "tcp ", NULL };
	static const char *const addresses[] = {
		"", "127.0.0.1", "localhost", "::1", "::1:80", "[::1]", "[::1]80", "[::1:80",
		"::1]:80", "[[::1]]:80", "127.0.0.1:65536", "127.0.0.1:99999999999",
		"127.0.0.1:-1", "127.0.0.1:http!", "127.0.0.1:80:80", "127.0.0.1:nosuchservice",
		"[127.0.0.1]:]", NULL,
	};
	char longer[2000];

	for (int i = 0; networks[i]; i++) {
		CHECK_EQ(goro_dial(networks[i], "127.0.0.1:80", GORO_FOREVER), -EINVAL);
		CHECK_EQ(goro_listen(networks[i], "127.0.0.1:0"), -EINVAL);
	}
	CHECK_EQ(goro_dial(NULL, "127.0.0.1:80", GORO_FOREVER), -EINVAL);
	CHECK_EQ(goro_dial("tcp", NULL, GORO_FOREVER), -EINVAL);
	CHECK_EQ(goro_listen("tcp", NULL), -EINVAL);
	CHECK_EQ(goro_listen("unix", NULL), -EINVAL);
	CHECK_EQ(goro_dial("unix", "", GORO_FOREVER), -EINVAL);
	for (int i = 0; addresses[i]; i++) {
		int d = goro_dial("tcp", addresses[i], GORO_FOREVER);
		int l = goro_listen("tcp", addresses[i]);

		if (d != -EINVAL || l != -EINVAL)
			FAIL("%s: dial %d, listen %d", addresses[i], d, l);
	}
	memset(longer, 'x', sizeof longer);
	longer[sizeof longer - 1] = '\0';
	CHECK_EQ(goro_dial("unix", longer, GORO_FOREVER), -EINVAL);
	memcpy(longer + sizeof longer - 4, ":80", 4);
	CHECK_EQ(goro_dial("tcp", longer, GORO_FOREVER), -EINVAL);
}

GO_TEST(nobody_there)
{
	int l = goro_listen("tcp", "127.0.0.1:0");
	const char *address = at("127.0.0.1", l);

	goro_close(l);
	CHECK_EQ(goro_dial("tcp", address, GORO_FOREVER), -ECONNREFUSED);
	CHECK_EQ(goro_listen("tcp", "192.0.2.1:0"), -EADDRNOTAVAIL);
}

/* --------------------------------------------------------------------- names */

GO_TEST(names_and_services)
{
	int l = goro_listen("tcp", "one.test:0");

	CHECK(l >= 0);
	CHECK_EQ(family_of(l), AF_INET);
	dial_and_check("tcp", at("one.test", l), l);
	goro_close(l);
	/* Known without a lookup. */
	store_relaxed(&lookups, 0);
	CHECK(goro_dial("tcp", "127.0.0.2:submissions", goro_now() + seconds(20)) == -ECONNREFUSED);
	CHECK_EQ(load_relaxed(&lookups), 0);
}

/* The port that a dial came to, or -errno. */
static int peer_port(const char *network, const char *address)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	int r, fd = goro_dial(network, address, goro_now() + seconds(20));

	if (fd < 0)
		return fd;
	CHECK_EQ(getpeername(fd, (struct sockaddr *)&ss, &len), 0);
	r = ntohs(((struct sockaddr_in *)&ss)->sin_port);
	goro_close(fd);
	return r;
}

GO_TEST(services_are_those_of_the_network)
{
	static const char *const names[] = { "udp", "udp4" };
	int l;

	for (int i = 0; i < 2; i++) {
		CHECK_EQ(peer_port(names[i], "one.test:clock"), 123);
		CHECK_EQ(peer_port(names[i], "127.0.0.1:clock"), 123);
		CHECK_EQ(peer_port(names[i], "127.0.0.1:both"), 1002);
		CHECK_EQ(peer_port(names[i], "127.0.0.1:relay"), -EINVAL);
		CHECK_EQ(peer_port(names[i], "127.0.0.1:domain"), 53);
		CHECK_EQ(peer_port(names[i], "127.0.0.1:telnet"), -EINVAL);
		l = goro_listen(names[i], "127.0.0.1:any");
		CHECK(l >= 0);
		goro_close(l);
		CHECK_EQ(goro_listen(names[i], "127.0.0.1:relay"), -EINVAL);
	}
	if (have_ipv6())
		CHECK_EQ(peer_port("udp6", "[::1]:clock"), 123);
	CHECK_EQ(peer_port("tcp", "127.0.0.2:relay"), -ECONNREFUSED);
	CHECK_EQ(peer_port("tcp", "127.0.0.1:clock"), -EINVAL);
	CHECK_EQ(goro_listen("tcp4", "127.0.0.1:any"), -EINVAL);
}

GO_TEST(names_that_do_not_resolve)
{
	CHECK_EQ(goro_dial("tcp", "unknown.test:80", GORO_FOREVER), -ENOENT);
	CHECK_EQ(goro_listen("tcp", "unknown.test:0"), -ENOENT);
	CHECK_EQ(goro_dial("tcp", "again.test:80", GORO_FOREVER), -EAGAIN);
	CHECK_EQ(goro_dial("tcp", "fail.test:80", GORO_FOREVER), -EIO);
	CHECK_EQ(goro_dial("tcp", "memory.test:80", GORO_FOREVER), -ENOMEM);
	CHECK_EQ(goro_dial("tcp6", "one.test:80", GORO_FOREVER), -ENOENT);
}

GO_TEST(several_addresses_are_tried_in_turn)
{
	int l = goro_listen("tcp", "127.0.0.1:0");

	dial_and_check("tcp", at("refused-first.test", l), l);
	goro_close(l);
}

GO_TEST(the_other_kind_is_tried_too)
{
	int l = goro_listen("tcp4", "127.0.0.1:0");

	dial_and_check("tcp", at("both.test", l), l);	/* no listener at ::1 */
	dial_and_check("tcp", at("v4-first.test", l), l);
	goro_close(l);
	CHECK_EQ(goro_dial("tcp", at("both.test", l = goro_listen("udp", ":0")), GORO_FOREVER),
	         -ECONNREFUSED);
	goro_close(l);
}

/* A hole in place of the first: a listener whose queue is full swallows connections. */
static int full_listener(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	CHECK_EQ(listen(fd, 0), 0);
	for (int i = 0; i < 8; i++) {
		int c = goro_dial("tcp", at("127.0.0.1", fd), goro_now() + 50 * GORO_MILLISECOND);

		if (c == -ETIMEDOUT)
			return fd;
		CHECK(c >= 0);		/* stays open, in the queue */
	}
	FAIL("the queue does not fill");
}

GO_TEST(a_slow_first_kind_is_overtaken)
{
	int hole, l;
	int64_t start;

	if (!have_ipv6())
		SKIP("no IPv6 here");
	hole = full_listener();
	/* The same port on ::1, with a listener. */
	l = goro_listen("tcp6", at("[::1]", hole));
	if (l < 0)
		SKIP("the port is taken");
	start = goro_now();
	dial_and_check("tcp", at("v4-first.test", hole), l);
	CHECK(goro_now() - start >= 250 * GORO_MILLISECOND);
	goro_close(l);
	goro_close(hole);
}

/* ----------------------------------------------------------------- deadlines */

GO_TEST(a_dial_ends_at_its_deadline)
{
	int hole = full_listener();
	int64_t start = goro_now();

	CHECK_EQ(goro_dial("tcp", at("127.0.0.1", hole), start + 50 * GORO_MILLISECOND), -ETIMEDOUT);
	CHECK(goro_now() - start >= 50 * GORO_MILLISECOND);
	CHECK(goro_now() - start < seconds(10));
	CHECK_EQ(goro_dial("tcp", at("127.0.0.1", hole), GORO_NOW), -ETIMEDOUT);
	CHECK_EQ(goro_dial("tcp", at("127.0.0.1", hole), goro_now() - 1), -ETIMEDOUT);
	goro_close(hole);
}

/* An address that does not answer gets its share of the time, and not all of it. */
GO_TEST(the_deadline_is_shared_between_addresses)
{
	int hole = full_listener(), l;
	int64_t limit = seconds(5), start, took;

	l = goro_listen("tcp", at("127.0.0.2", hole));
	if (l < 0)
		SKIP("the port is taken");
	start = goro_now();
	dial_by_and_check("tcp", at("silent-first.test", hole), l, start + limit);
	took = goro_now() - start;
	CHECK(took >= limit / 2);
	CHECK(took < limit);
	goro_close(l);
	goro_close(hole);
}

GO_TEST(a_deadline_does_not_stay_with_the_connection)
{
	int l = goro_listen("tcp", "127.0.0.1:0");
	int c = goro_dial("tcp", at("127.0.0.1", l), goro_now() + 50 * GORO_MILLISECOND);

	if (c == -ETIMEDOUT)
		SKIP("the machine is too busy");
	goro_sleep(60 * GORO_MILLISECOND);
	check_connected(l, c);
	goro_close(c);
	goro_close(l);
}

GO_TEST(a_lookup_is_left_at_the_deadline)
{
	int64_t start = goro_now();

	CHECK_EQ(goro_dial("tcp", "stuck.test:80", start + 50 * GORO_MILLISECOND), -ETIMEDOUT);
	CHECK(goro_now() - start < seconds(10));
	AWAIT(load_seqcst(&lookups_at_once) == 1);	/* one goes on, or has yet to
							 * begin */
	store_relaxed(&unstick, true);
	AWAIT(load_seqcst(&lookups_at_once) == 0);
}

/* -------------------------------------------------------------- under load */

static void look_up(const char *name, goro_waitgroup *wg)
{
	CHECK_EQ(goro_dial("unknown", name, GORO_FOREVER), -EINVAL);
	CHECK_EQ(goro_dial("tcp6", name, GORO_FOREVER), -ENOENT);	/* has no IPv6 */
	goro_waitgroup_done(wg);
}

GO_TEST(lookups_hold_up_nobody_and_are_bounded)
{
	enum { N = 600 };
	goro_waitgroup wg = { 0 };
	int64_t start = goro_now();

	goro_waitgroup_add(&wg, N);
	for (int i = 0; i < N; i++)
		go(look_up, "slow.test:1", &wg);
	AWAIT(load_seqcst(&lookups_at_once) > 0);
	goro_sleep(GORO_MILLISECOND);	/* runs on although all of those wait */
	goro_waitgroup_wait(&wg);
	CHECK_EQ(load_seqcst(&lookups), N);
	CHECK(load_seqcst(&lookups_most) <= 500);
	/* One after the other they would take a minute. */
	CHECK(goro_now() - start < seconds(30));
}

static void dial_from_small_stack(void *arg)
{
	int l = goro_listen("tcp", "one.test:0"), c;
	char address[40];

	CHECK(l >= 0);
	snprintf(address, sizeof address, "one.test:%d", port_of(l));
	c = goro_dial("tcp", address, GORO_FOREVER);
	CHECK(c >= 0);
	goro_close(c);
	goro_close(l);
	goro_waitgroup_done(arg);
}

GO_TEST(a_small_stack_is_enough)
{
	struct goro_attr attr = { .stack_size = 16 << 10 };
	goro_waitgroup wg = { 0 };

	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("frames are larger under a sanitizer");
	goro_waitgroup_add(&wg, 1);
	CHECK_EQ(goro_go_attr(&attr, dial_from_small_stack, &wg), 0);
	goro_waitgroup_wait(&wg);
}

static void *dial_in_thread(void *arg)
{
	int l = *(int *)arg;

	dial_and_check("tcp", at("refused-first.test", l), l);
	dial_and_check("tcp", at("both.test", l), l);
	return NULL;
}

TEST(plain_threads_dial)
{
	int l = goro_listen("tcp4", "127.0.0.1:0");
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, dial_in_thread, &l), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	goro_close(l);
}

static void accept_all(int l)
{
	int c;

	while ((c = goro_accept(l, NULL, NULL)) >= 0)
		goro_close(c);
}

static void dial_many(int l, int n, goro_waitgroup *wg)
{
	for (int i = 0; i < n; i++) {
		const char *host = i % 3 == 0 ? "127.0.0.1" : i % 3 == 1 ? "both.test" : "one.test";
		char address[40];
		int c;

		snprintf(address, sizeof address, "%s:%d", host, port_of(l));
		c = goro_dial("tcp", address, goro_now() + seconds(50));
		if (c < 0)
			FAIL("%s: %s", address, strerror(-c));
		goro_close(c);
	}
	goro_waitgroup_done(wg);
}

static int open_sockets(void)
{
	struct stat st;
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
	return n;
}

/* Go's dial stress, and no descriptor is left behind by races. */
GO_TEST(many_dials_leave_nothing_behind)
{
	int l = goro_listen("tcp4", "127.0.0.1:0"), before;
	goro_waitgroup wg = { 0 };

	go(accept_all, l);
	goro_waitgroup_add(&wg, 9);
	dial_many(l, 3, &wg);
	goro_sleep(10 * GORO_MILLISECOND);
	before = open_sockets();
	for (int i = 0; i < 8; i++)
		go(dial_many, l, SCALED(60), &wg);
	goro_waitgroup_wait(&wg);
	AWAIT(open_sockets() <= before);
	goro_close(l);
}
