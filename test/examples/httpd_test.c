/*
 * httpd_test.c - examples/httpd, from outside, with plain sockets: what it answers to
 * good requests, to bad ones and to slow ones, and how it ends.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "test.h"

#define HTTPD TEST_EXAMPLES_DIR "/httpd"

static pid_t server;
static int port;

/* The server as a child, on a port of its own choice. */
static void start(void)
{
	const char *launcher = getenv("TEST_LAUNCHER");
	char command[512];
	int out[2];
	FILE *f;

	CHECK_EQ(pipe(out), 0);
	snprintf(command, sizeof command, "exec %s %s 127.0.0.1:0", launcher ? launcher : "", HTTPD);
	server = fork();
	CHECK(server >= 0);
	if (server == 0) {
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	if (!f || fscanf(f, "listening on port %d", &port) != 1)
		FAIL("the server does not start");
	fclose(f);
}

static int dial(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
	                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	CHECK(fd >= 0);
	CHECK_EQ(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

/* As much as it takes; a peer that has had enough is no fault of ours. */
static void put_n(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t r = send(fd, p, n, MSG_NOSIGNAL);

		if (r <= 0)
			return;
		p += r;
		n -= (size_t)r;
	}
}

static void put(int fd, const char *s)
{
	put_n(fd, s, strlen(s));
}

/* Memory for as long as the test runs, which is short. */
static char *room_for(size_t n)
{
	static struct kept { struct kept *next; char at[]; } *kept;
	struct kept *k = malloc(sizeof *k + n);

	CHECK(k);
	k->next = kept;
	kept = k;
	return k->at;
}

/* Everything until the other side closes. */
static char *rest(int fd)
{
	size_t n = 0, room = 2 << 20;
	char *text = room_for(room);
	ssize_t r;

	while (n < room - 1 && (r = recv(fd, text + n, room - 1 - n, 0)) > 0)
		n += (size_t)r;
	text[n] = '\0';
	close(fd);
	return text;
}

static char *ask(const char *request)
{
	int fd = dial();

	put(fd, request);
	return rest(fd);
}

static int count(const char *text, const char *needle)
{
	int n = 0;

	for (; (text = strstr(text, needle)); text++)
		n++;
	return n;
}

static int end_with(int sig)
{
	bool timed_out;

	kill(server, sig);
	return test_wait(server, 20, &timed_out);
}

static void stop(void)
{
	CHECK_EQ(end_with(SIGTERM), 0);
}

#define HOST "Host: test\r\n"
#define LAST "Connection: close\r\n"

/* ------------------------------------------------------------- good requests */

TEST(a_request_is_answered)
{
	char *a;

	start();
	a = ask("GET / HTTP/1.1\r\n" HOST LAST "\r\n");
	CHECK(strncmp(a, "HTTP/1.1 200 OK\r\n", 17) == 0);
	CHECK_CONTAINS(a, "\r\nContent-Length: 14\r\n");
	CHECK_CONTAINS(a, "\r\nDate: ");
	CHECK_CONTAINS(a, "\r\n\r\nHello, World!\n");
	a = ask("HEAD /?query HTTP/1.1\r\n" HOST LAST "\r\n");
	CHECK_CONTAINS(a, "\r\nContent-Length: 14\r\n");
	CHECK(!strstr(a, "Hello"));
	CHECK_CONTAINS(ask("GET /nowhere HTTP/1.1\r\n" HOST LAST "\r\n"), "HTTP/1.1 404 Not Found\r\n");
	a = ask("DELETE / HTTP/1.1\r\n" HOST LAST "\r\n");
	CHECK_CONTAINS(a, "HTTP/1.1 405 ");
	CHECK_CONTAINS(a, "Allow: GET, HEAD\r\n");
	CHECK_CONTAINS(ask("GET / HTTP/1.0\r\n\r\n"), "Hello");
	CHECK_CONTAINS(ask("\r\n\r\nGET / HTTP/1.1\r\n" HOST LAST "\r\n"), "Hello");
	stop();
}

TEST(connections_are_kept)
{
	char buf[1024];
	int fd;

	start();
	fd = dial();
	for (int i = 0; i < 100; i++) {
		put(fd, "GET / HTTP/1.1\r\n" HOST "\r\n");
		CHECK(recv(fd, buf, sizeof buf, 0) > 100);
	}
	put(fd, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	CHECK(recv(fd, buf, sizeof buf, 0) > 100);
	put(fd, "GET / HTTP/1.0\r\n\r\n");
	CHECK_EQ(count(rest(fd), "Hello"), 1);
	stop();
}

TEST(requests_in_a_row_are_answered_in_order)
{
	char *all = room_for(1 << 20), *a;
	size_t n = 0;

	start();
	for (int i = 0; i < 1000; i++)
		n += (size_t)sprintf(all + n, i % 3 == 0 ? "GET / HTTP/1.1\r\n" HOST "\r\n" :
		                              i % 3 == 1 ? "GET /nowhere HTTP/1.1\r\n" HOST "\r\n" :
		                     "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\n%04d", i);
	sprintf(all + n, "GET / HTTP/1.1\r\n" HOST LAST "\r\n");
	a = ask(all);
	CHECK_EQ(count(a, "Hello"), 335);
	CHECK_EQ(count(a, " 404 "), 333);
	for (int i = 2; i < 1000; i += 3) {
		char body[16];

		sprintf(body, "\r\n\r\n%04d", i);
		a = strstr(a, body);
		CHECK(a);
	}
	stop();
}

TEST(bodies_come_back)
{
	size_t n = 1 << 20;
	char *big = room_for(n + 200), *a;
	int fd;

	start();
	CHECK_CONTAINS(ask("POST /echo HTTP/1.1\r\n" HOST LAST "Content-Length: 11\r\n\r\nhello, body"),
	               "\r\n\r\nhello, body");
	CHECK_CONTAINS(ask("POST /echo HTTP/1.1\r\n" HOST LAST "Transfer-Encoding: chunked\r\n\r\n"
	                   "5\r\nhello\r\n7;ext=1\r\n, chunk\r\n1\r\ns\r\n0\r\nTrailer: x\r\n\r\n"),
	               "Content-Length: 13\r\nConnection: close\r\n\r\nhello, chunks");
	CHECK_CONTAINS(ask("POST /echo HTTP/1.1\r\n" HOST LAST "Content-Length: 0\r\n\r\n"), " 200 OK");
	/* The largest there may be. */
	memset(big, 'x', n);
	fd = dial();
	sprintf(big + n, "POST /echo HTTP/1.1\r\n" HOST LAST "Content-Length: %zu\r\n\r\n", n);
	put(fd, big + n);
	put_n(fd, big, n);
	a = rest(fd);
	CHECK_CONTAINS(a, "Content-Length: 1048576\r\n");
	CHECK_EQ(strlen(strstr(a, "\r\n\r\n") + 4), n);
	/* Asked for before it is sent. */
	fd = dial();
	put(fd, "POST /echo HTTP/1.1\r\n" HOST LAST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	CHECK(recv(fd, big, 25, MSG_WAITALL) == 25);
	CHECK(memcmp(big, "HTTP/1.1 100 Continue\r\n\r\n", 25) == 0);
	put(fd, "ok");
	CHECK_CONTAINS(rest(fd), "\r\n\r\nok");
	stop();
}

TEST(a_byte_at_a_time)
{
	const char *request = "POST /echo HTTP/1.1\r\n" HOST LAST "Transfer-Encoding: chunked\r\n\r\n"
	                      "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n";
	int fd;

	start();
	fd = dial();
	for (const char *p = request; *p; p++) {
		put_n(fd, p, 1);
		usleep(200);
	}
	CHECK_CONTAINS(rest(fd), "\r\n\r\nabcdef");
	stop();
}

/* -------------------------------------------------------------- bad requests */

struct bad {
	const char *request;
	int status;
};

static const struct bad bad[] = {
	{ "GET\r\n\r\n", 400 },
	{ "GET /\r\n\r\n", 400 },
	{ "GET / HTTP/1.1 \r\n" HOST "\r\n", 400 },
	{ "GET  / HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ " GET / HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "G(T / HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET nowhere HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET /\x01 HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET /\xff HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET / HTTP/2.0\r\n" HOST "\r\n", 505 },
	{ "GET / HTTP/0.9\r\n" HOST "\r\n", 505 },
	{ "GET / HTTP/11\r\n" HOST "\r\n", 400 },
	{ "GET / http/1.1\r\n" HOST "\r\n", 400 },
	{ "GET / HTTP/1.1\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400 },
	{ "GET / HTTP/1.1\n" HOST "\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: test\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" HOST "A: b\rC: d\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" HOST " folded\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" HOST "no colon\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" HOST "A: \x02\r\n\r\n", 400 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: x\r\n\r\n", 400 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n", 400 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\nx", 400 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: \r\n\r\n", 400 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\nx", 400 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n", 400 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 999999999999999999\r\n\r\n", 413 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1048577\r\n\r\n", 413 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400 },
	{ "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", 501 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
	{ "POST /echo HTTP/1.1\r\n" HOST "Expect: miracles\r\nContent-Length: 1\r\n\r\nx", 417 },
#define CHUNKED "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	{ CHUNKED "x\r\n", 400 },
	{ CHUNKED "\r\n", 400 },
	{ CHUNKED "-1\r\n", 400 },
	{ CHUNKED "0x5\r\nhello\r\n", 400 },
	{ CHUNKED "5 \r\nhello\r\n", 400 },
	{ CHUNKED "5\nhello\r\n", 400 },
	{ CHUNKED "3\r\nhello\r\n", 400 },
	{ CHUNKED "fffffffffffffffff\r\n", 400 },
	{ CHUNKED "ffffffffffffff\r\n", 413 },
	{ CHUNKED "100001\r\n", 413 },
	{ CHUNKED "0\r\nno colon\r\n\r\n", 400 },
};

TEST(malformed_requests_are_refused)
{
	start();
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char *a = ask(bad[i].request);
		int status = 0;

		if (sscanf(a, "HTTP/1.1 %d", &status) != 1 || status != bad[i].status)
			FAIL("\"%s\" is answered with \"%s\", not %d", bad[i].request, a, bad[i].status);
		CHECK_CONTAINS(a, "Connection: close\r\n");
		/* what follows is not looked at */
		CHECK_EQ(count(a, "HTTP/1.1"), 1);
	}
	stop();
}

TEST(what_is_too_long_is_refused)
{
	size_t n = 200 << 10;
	char *big = room_for(n), *at;

	start();
	memset(big, 'a', n);
	memcpy(big, "GET /", 5);
	big[n - 1] = '\0';
	CHECK_CONTAINS(ask(big), "HTTP/1.1 414 ");
	at = big + sprintf(big, "GET / HTTP/1.1\r\n" HOST "A: ");
	*at = 'a';
	CHECK_CONTAINS(ask(big), "HTTP/1.1 431 ");
	at = big + sprintf(big, "GET / HTTP/1.1\r\n" HOST);
	for (int i = 0; i < 200; i++)
		at += sprintf(at, "A: b\r\n");
	sprintf(at, "\r\n");
	CHECK_CONTAINS(ask(big), "HTTP/1.1 431 ");
	stop();
}

/* Whatever it is sent, it goes on serving. */
TEST(noise_does_not_matter)
{
	unsigned x = 1;

	start();
	for (int i = 0; i < 300; i++) {
		char noise[512];
		int fd = dial();
		size_t good = 0;

		if (i % 2)
			good = (size_t)sprintf(noise, "%s", bad[(size_t)i % (sizeof bad / sizeof *bad)].request);
		for (size_t k = good / 2; k < sizeof noise; k++)
			noise[k] = (char)((x = x * 1103515245 + 12345) >> 16);
		put_n(fd, noise, sizeof noise);
		if (i % 3 == 0) {	/* and gone, with a reset */
			struct linger l = { 1, 0 };

			setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
			close(fd);
		} else {
			shutdown(fd, SHUT_WR);
			rest(fd);
		}
	}
	CHECK_CONTAINS(ask("GET / HTTP/1.1\r\n" HOST LAST "\r\n"), "Hello");
	stop();
}

/* ---------------------------------------------------------------------- ends */

TEST(requests_under_way_are_answered_before_it_ends)
{
	int idle, slow, fresh;
	char buf[1024], *a;

	start();
	idle = dial();
	put(idle, "GET / HTTP/1.1\r\n" HOST "\r\n");
	CHECK(recv(idle, buf, sizeof buf, 0) > 100);
	fresh = dial();		/* has not asked anything yet */
	slow = dial();
	put(slow, "GET /slow HTTP/1.1\r\n" HOST "\r\n");
	usleep(200000);
	kill(server, SIGTERM);
	CHECK_EQ(recv(idle, buf, sizeof buf, 0), 0);
	CHECK_EQ(recv(fresh, buf, sizeof buf, 0), 0);
	close(idle);
	close(fresh);
	a = rest(slow);
	CHECK_CONTAINS(a, "Hello");
	CHECK_CONTAINS(a, "Connection: close\r\n");
	CHECK_EQ(end_with(0), 0);
}

TEST(sigint_ends_it_too)
{
	start();
	CHECK_CONTAINS(ask("GET / HTTP/1.1\r\n" HOST LAST "\r\n"), "Hello");
	CHECK_EQ(end_with(SIGINT), 0);
}

TEST(a_second_signal_ends_it_at_once)
{
	int slow, status;

	start();
	slow = dial();
	put(slow, "GET /slow HTTP/1.1\r\n" HOST "\r\n");
	usleep(200000);
	kill(server, SIGTERM);
	usleep(200000);
	status = end_with(SIGTERM);
	CHECK_EQ(status, 128 + SIGTERM);
	close(slow);
}

TEST(a_bad_address_is_told)
{
	struct test_output o;

	test_run_program((const char *const[]){ HTTPD, "nonsense", NULL }, &o);
	CHECK_EQ(o.status, 1);
	CHECK_CONTAINS(o.err, "Invalid argument");
}
