/* ssl_test.c - what ssl_park.c does when things go wrong, and with large messages. */
#include <goro.h>
#include <openssl/err.h>
#include <signal.h>
#include <sys/socket.h>

#include "expect.h"
#include "measure.h"
#include "ssl_park.h"

static SSL_CTX *client_context, *server_context;

struct pair {
	SSL *client, *server;
	int fd[2];
};

/* Two ends of a connection, non-blocking, before their handshake. */
static void pair_make(struct pair *p)
{
	expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p->fd) == 0);
	p->client = SSL_new(client_context);
	p->server = SSL_new(server_context);
	expect(SSL_set_fd(p->client, p->fd[0]) && SSL_set_fd(p->server, p->fd[1]));
}

static void pair_free(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		if (p->fd[i] >= 0)
			goro_close(p->fd[i]);
	SSL_free(p->client);
	SSL_free(p->server);
}

static void accepts(struct pair *p, goro_chan *result)
{
	int r = ssl_park_accept(p->server, GORO_FOREVER);

	goro_chan_send(result, &r);
	goro_chan_unref(result);
}

static void connected(struct pair *p)
{
	goro_chan *result = goro_chan_of(int, 1);
	int server;

	pair_make(p);
	go(accepts, p, goro_chan_ref(result));
	expect(ssl_park_connect(p->client, GORO_FOREVER) == 1);
	goro_chan_recv(result, &server);
	expect(server == 1);
	goro_chan_unref(result);
}

/* The client does not know who has signed the certificate. */
static void not_verified(void)
{
	goro_chan *result = goro_chan_of(int, 1);
	struct pair p;
	int r;

	SSL_CTX_set_verify(client_context, SSL_VERIFY_PEER, NULL);
	pair_make(&p);
	go(accepts, &p, goro_chan_ref(result));
	r = ssl_park_connect(p.client, GORO_FOREVER);
	expect(r <= 0 && SSL_get_error(p.client, r) == SSL_ERROR_SSL);
	expect(ERR_GET_REASON(ERR_get_error()) == SSL_R_CERTIFICATE_VERIFY_FAILED);
	goro_chan_recv(result, &r);
	expect(r <= 0);		/* the server is told */
	goro_chan_unref(result);
	SSL_CTX_set_verify(client_context, SSL_VERIFY_NONE, NULL);
	pair_free(&p);
}

/* One who does not speak TLS. */
static void no_tls(void)
{
	struct pair p;
	int r;

	pair_make(&p);
	expect(goro_write(p.fd[1], "HTTP/1.1 400 Bad Request\r\n\r\n", 28) == 28);
	r = ssl_park_connect(p.client, GORO_FOREVER);
	expect(r <= 0 && SSL_get_error(p.client, r) == SSL_ERROR_SSL);
	expect(ERR_GET_REASON(ERR_get_error()) == SSL_R_WRONG_VERSION_NUMBER);
	pair_free(&p);
}

static void deadlines(void)
{
	struct pair p;
	int64_t start = goro_now();
	char buf[10];
	int r;

	pair_make(&p);		/* nobody accepts */
	r = ssl_park_connect(p.client, goro_deadline_in(50 * GORO_MILLISECOND));
	expect(r <= 0 && SSL_get_error(p.client, r) == SSL_ERROR_WANT_READ);
	expect(goro_now() - start >= 50 * GORO_MILLISECOND);
	pair_free(&p);

	connected(&p);		/* nobody writes; and then somebody does */
	r = ssl_park_read(p.client, buf, sizeof buf, goro_deadline_in(50 * GORO_MILLISECOND));
	expect(r <= 0 && SSL_get_error(p.client, r) == SSL_ERROR_WANT_READ);
	expect(ssl_park_write(p.server, "hello", 5, GORO_FOREVER) == 5);
	expect(ssl_park_read(p.client, buf, sizeof buf, GORO_FOREVER) == 5);
	pair_free(&p);
}

static void ends(struct pair *p)
{
	goro_sleep(20 * GORO_MILLISECOND);
	goro_close(p->fd[1]);
	p->fd[1] = -1;
}

/* The other side goes without a word, while one reads; and before one writes. */
static void other_side_gone(void)
{
	struct pair p;
	char buf[10];
	int r;

	connected(&p);
	go(ends, &p);
	r = ssl_park_read(p.client, buf, sizeof buf, GORO_FOREVER);
	expect(r <= 0);
	r = SSL_get_error(p.client, r);
	expect(r == SSL_ERROR_SSL || r == SSL_ERROR_SYSCALL);
	pair_free(&p);
}

static void says_goodbye(struct pair *p, goro_chan *result)
{
	int r = ssl_park_shutdown(p->server, GORO_FOREVER);

	goro_chan_send(result, &r);
}

static void goodbye(void)
{
	goro_chan *result = goro_chan_of(int, 1);
	struct pair p;
	char buf[10];
	int r;

	connected(&p);
	go(says_goodbye, &p, result);
	r = ssl_park_read(p.client, buf, sizeof buf, GORO_FOREVER);
	expect(r <= 0 && SSL_get_error(p.client, r) == SSL_ERROR_ZERO_RETURN);
	expect(ssl_park_shutdown(p.client, GORO_FOREVER) == 1);
	goro_chan_recv(result, &r);
	expect(r == 1);
	goro_chan_unref(result);
	pair_free(&p);
}

enum { SIZE = 40 << 20 };

static void writes(struct pair *p, const char *bytes, goro_chan *result)
{
	int r = ssl_park_write(p->server, bytes, SIZE, GORO_FOREVER);

	goro_chan_send(result, &r);
}

static void large(void)
{
	goro_chan *result = goro_chan_of(int, 1);
	char *sent = malloc(SIZE), *got = malloc(SIZE);
	struct pair p;
	int n = 0, r;

	for (int i = 0; i < SIZE; i++)
		sent[i] = (char)(i * 7 >> 3);
	connected(&p);
	go(writes, &p, sent, result);
	while (n < SIZE) {
		r = ssl_park_read(p.client, got + n, SIZE - n, GORO_FOREVER);
		expect(r > 0);
		n += r;
	}
	goro_chan_recv(result, &r);
	expect(r == SIZE && memcmp(sent, got, SIZE) == 0);
	goro_chan_unref(result);
	free(sent);
	free(got);
	pair_free(&p);
}

/* An error that some other code has left in the thread's queue does no harm. */
static void errors_of_others(void)
{
	struct pair p;
	char buf[10];
	int r;

	connected(&p);
	ERR_raise(ERR_LIB_USER, 1);
	r = ssl_park_read(p.client, buf, sizeof buf, GORO_NOW);
	expect(r <= 0 && SSL_get_error(p.client, r) == SSL_ERROR_WANT_READ);
	pair_free(&p);
}

static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	signal(SIGPIPE, SIG_IGN);
	client_context = SSL_CTX_new(TLS_client_method());
	server_context = SSL_CTX_new(TLS_server_method());
	expect(SSL_CTX_use_certificate_chain_file(server_context,
	                                          setting("WITH_CERTIFICATE")) == 1);
	expect(SSL_CTX_use_PrivateKey_file(server_context, setting("WITH_KEY"),
	                                   SSL_FILETYPE_PEM) == 1);
	not_verified();
	no_tls();
	deadlines();
	other_side_gone();
	goodbye();
	large();
	errors_of_others();
	SSL_CTX_free(client_context);
	SSL_CTX_free(server_context);
	return 0;
}
GORO_MAIN(start)
