/*
 * ssl.c - OpenSSL as a client: 1,000 connections, a request under way on each.
 *
 * block_*: as everybody writes it. It works in a goroutine as it is, which keeps a thread
 * while its request is under way. park_*: the same with ssl_park.h.
 *
 *	WITH_HTTPS=443 WITH_CA=ca.pem ssl park|block|thread [CLIENTS [QUICK]]
 */
#include <arpa/inet.h>
#include <goro.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include "https.h"
#include "measure.h"
#include "ssl_park.h"

static SSL_CTX *context;

_Noreturn static void fail(SSL *ssl, int r, const char *what)
{
	int error = SSL_get_error(ssl, r);
	unsigned long reason = ERR_get_error();

	die("%s: error %d, %s", what, error, reason ? ERR_reason_error_string(reason) : "");
}

/* A connection that is to be verified as localhost's. */
static SSL *ssl_on(int fd)
{
	SSL *ssl = SSL_new(context);

	if (!ssl || !SSL_set_fd(ssl, fd) || !SSL_set1_host(ssl, "localhost"))
		die("OpenSSL: no memory");
	return ssl;
}

static const char *path_of(const char *path, char text[64])
{
	snprintf(text, 64, "GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
	return text;
}

static void check(const struct https *answer)
{
	if (strncmp(answer->text, "HTTP/1.1 200 ", 13) != 0)
		die("answer: %s", answer->text);
}

/* --------------------------------------------------------------- blocking */

static void *block_connect(int i)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
	                          .sin_port = htons((uint16_t)atoi(setting("WITH_HTTPS"))),
	                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), r;
	SSL *ssl;

	(void)i;
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
		die("connect: %s", strerror(errno));
	ssl = ssl_on(fd);
	if ((r = SSL_connect(ssl)) <= 0)
		fail(ssl, r, "handshake");
	return ssl;
}

static void block_get(SSL *ssl, const char *path)
{
	struct https answer = { .n = 0 };
	char request[64];
	int r;

	path_of(path, request);
	if ((r = SSL_write(ssl, request, (int)strlen(request))) <= 0)
		fail(ssl, r, "write");
	while (!https_complete(&answer)) {
		r = SSL_read(ssl, answer.text + answer.n, HTTPS_MAX - answer.n);
		if (r <= 0)
			fail(ssl, r, "read");
		answer.n += r;
	}
	check(&answer);
}

static void block_slow(void *ssl, int i)
{
	(void)i;
	block_get(ssl, "slow");
}

static void block_quick(void *ssl, int i)
{
	(void)i;
	block_get(ssl, "quick");
}

static void block_close(void *ssl)
{
	close(SSL_get_fd(ssl));
	SSL_free(ssl);
}

/* ---------------------------------------------------------------- parking */

static void *park_connect(int i)
{
	int64_t deadline = goro_deadline_in(60 * GORO_SECOND);
	char address[32];
	int fd, r;
	SSL *ssl;

	(void)i;
	snprintf(address, sizeof address, "127.0.0.1:%s", setting("WITH_HTTPS"));
	if ((fd = goro_dial("tcp", address, deadline)) < 0)
		die("%s: %s", address, strerror(-fd));
	ssl = ssl_on(fd);
	if ((r = ssl_park_connect(ssl, deadline)) <= 0)
		fail(ssl, r, "handshake");
	return ssl;
}

static void park_get(SSL *ssl, const char *path)
{
	int64_t deadline = goro_deadline_in(60 * GORO_SECOND);
	struct https answer = { .n = 0 };
	char request[64];
	int r;

	path_of(path, request);
	if ((r = ssl_park_write(ssl, request, (int)strlen(request), deadline)) <= 0)
		fail(ssl, r, "write");
	while (!https_complete(&answer)) {
		r = ssl_park_read(ssl, answer.text + answer.n, HTTPS_MAX - answer.n, deadline);
		if (r <= 0)
			fail(ssl, r, "read");
		answer.n += r;
	}
	check(&answer);
}

static void park_slow(void *ssl, int i)
{
	(void)i;
	park_get(ssl, "slow");
}

static void park_quick(void *ssl, int i)
{
	(void)i;
	park_get(ssl, "quick");
}

static void park_close(void *ssl)
{
	goro_close(SSL_get_fd(ssl));
	SSL_free(ssl);
}

int main(int argc, char **argv)
{
	static const struct client block = { block_connect, block_slow, block_quick, block_close };
	static const struct client park = { park_connect, park_slow, park_quick, park_close };
	int r;

	context = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	if (!SSL_CTX_load_verify_locations(context, setting("WITH_CA"), NULL))
		die("%s: cannot be read", setting("WITH_CA"));
	r = measure_main(argc, argv, &block, &park);
	SSL_CTX_free(context);
	return r;
}
