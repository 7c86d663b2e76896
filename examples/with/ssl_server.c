/*
 * ssl_server.c - OpenSSL as a server: so many connections, and then it ends.
 *
 * block_*: as everybody writes it, in a goroutine or a thread for each connection.
 * park_*: the same with ssl_park.h. GET /slow is answered after a second, everything else
 * at once.
 *
 *	WITH_SERVE=8443 WITH_CERTIFICATE=server.pem WITH_KEY=server.key \
 *		ssl_server park|block|thread [CONNECTIONS]
 *
 * Measured is the time from the first connection to the end of the last.
 */
#include <arpa/inet.h>
#include <goro.h>
#include <openssl/err.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "https.h"
#include "measure.h"
#include "ssl_park.h"

#define BACKLOG 4096
#define STACK   (256 << 10)	/* of a connection's thread: what a goroutine has */
#define IDLE    (60 * GORO_SECOND)

static SSL_CTX *context;
static const char *way;
static int connections;

static SSL *ssl_on(int fd)
{
	SSL *ssl = SSL_new(context);

	if (!ssl || !SSL_set_fd(ssl, fd))
		die("OpenSSL: no memory");
	return ssl;
}

/* Whether there is a whole request, which is taken out, and whether it is a slow one. */
static bool take(struct https *m, bool *slow)
{
	int size = https_complete(m);

	*slow = strncmp(m->text, "GET /slow ", 10) == 0;
	memmove(m->text, m->text + size, (size_t)(m->n - size));
	m->n -= size;
	m->text[m->n] = 0;
	return size > 0;
}

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"

/* --------------------------------------------------------------- blocking */

static void block_requests(SSL *ssl)
{
	struct https request = { .n = 0 };
	bool slow;
	int n;

	while ((n = SSL_read(ssl, request.text + request.n, HTTPS_MAX - request.n)) > 0) {
		request.n += n;
		while (take(&request, &slow)) {
			if (slow)
				usleep(1000000);
			if (SSL_write(ssl, ANSWER, strlen(ANSWER)) <= 0)
				return;
		}
	}
}

static void block_serve(int fd)
{
	SSL *ssl = ssl_on(fd);

	if (SSL_accept(ssl) == 1)
		block_requests(ssl);
	SSL_free(ssl);
	close(fd);
}

/* ---------------------------------------------------------------- parking */

static void park_requests(SSL *ssl)
{
	struct https request = { .n = 0 };
	bool slow;
	int n;

	while ((n = ssl_park_read(ssl, request.text + request.n, HTTPS_MAX - request.n,
	                          goro_deadline_in(IDLE))) > 0) {
		request.n += n;
		while (take(&request, &slow)) {
			if (slow)
				goro_sleep(GORO_SECOND);
			if (ssl_park_write(ssl, ANSWER, strlen(ANSWER),
			                   goro_deadline_in(IDLE)) <= 0)
				return;
		}
	}
}

static void park_serve(int fd)
{
	SSL *ssl = ssl_on(fd);

	if (ssl_park_accept(ssl, goro_deadline_in(IDLE)) == 1)
		park_requests(ssl);
	SSL_free(ssl);
	goro_close(fd);
}

/* --------------------------------------------------------- who serves whom */

static goro_waitgroup ended;

static void goroutine(void (*serve)(int), int fd)
{
	measure_under_way(1);
	serve(fd);
	measure_under_way(-1);
	goro_waitgroup_done(&ended);
}

/* A connection; for those who block, one that blocks, which goro_accept's do not. */
static int next_connection(int listener, bool park)
{
	int fd;

	if (park)
		return goro_accept(listener, NULL, NULL);
	goro_poll(listener, POLLIN, GORO_FOREVER);
	fd = accept(listener, NULL, NULL);
	return fd < 0 ? -errno : fd;
}

static int with_goroutines(int argc, char **argv)
{
	bool park = strcmp(way, "park") == 0;
	char address[32];
	int listener, fd;

	(void)argc, (void)argv;
	snprintf(address, sizeof address, "127.0.0.1:%s", setting("WITH_SERVE"));
	if ((listener = goro_listen("tcp", address)) < 0)
		die("%s: %s", address, strerror(-listener));
	goro_waitgroup_add(&ended, connections);
	for (int i = 0; i < connections; i++) {
		if ((fd = next_connection(listener, park)) < 0)
			die("accept: %s", strerror(-fd));
		if (i == 0)
			measure_begin();
		if (go(goroutine, park ? park_serve : block_serve, fd) != 0)
			die("no memory for a goroutine");
	}
	goro_waitgroup_wait(&ended);
	measure_end(way);
	goro_close(listener);
	return 0;
}

static void *thread(void *fd)
{
	measure_under_way(1);
	block_serve((int)(intptr_t)fd);
	measure_under_way(-1);
	return NULL;
}

static int with_threads(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
	                          .sin_port = htons((uint16_t)atoi(setting("WITH_SERVE"))),
	                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	pthread_t *all = calloc((size_t)connections, sizeof *all);
	int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1, fd;
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (bind(listener, (struct sockaddr *)&at, sizeof at) < 0 ||
	    listen(listener, BACKLOG) < 0)
		die("port %s: %s", setting("WITH_SERVE"), strerror(errno));
	for (int i = 0; i < connections; i++) {
		if ((fd = accept(listener, NULL, NULL)) < 0)
			die("accept: %s", strerror(errno));
		if (i == 0)
			measure_begin();
		if (!all || pthread_create(&all[i], &attr, thread, (void *)(intptr_t)fd) != 0)
			die("no thread for connection %d", i);
	}
	for (int i = 0; i < connections; i++)
		pthread_join(all[i], NULL);
	measure_end(way);
	free(all);
	close(listener);
	return 0;
}

int main(int argc, char **argv)
{
	int r;

	way = argc > 1 ? argv[1] : "";
	connections = argc > 2 ? atoi(argv[2]) : 1000;
	if (connections < 1 || (strcmp(way, "park") != 0 && strcmp(way, "block") != 0 &&
	                        strcmp(way, "thread") != 0))
		die("usage: %s park|block|thread [CONNECTIONS]", argv[0]);
	signal(SIGPIPE, SIG_IGN);
	context = SSL_CTX_new(TLS_server_method());
	if (SSL_CTX_use_certificate_chain_file(context, setting("WITH_CERTIFICATE")) != 1 ||
	    SSL_CTX_use_PrivateKey_file(context, setting("WITH_KEY"), SSL_FILETYPE_PEM) != 1)
		die("the certificate or the key cannot be read");
	r = strcmp(way, "thread") == 0 ? with_threads() : goro_run(with_goroutines, argc, argv);
	SSL_CTX_free(context);
	return r;
}
