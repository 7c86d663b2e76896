/*
 * crowd.h - thousands of blocking calls at the same time: the workload, which knows
 * nothing of goro.
 *
 *	sockets	20 requests of a byte of each, by read and write on a socket pair
 *	curl	20 requests of each, by libcurl on a kept connection
 *	tls	a handshake and 20 requests of a byte of each, by OpenSSL
 *	poll	the time until all of them have begun a poll of 1 s
 *
 * The caller gives crowd_run, which runs fn(0) to fn(n - 1) at the same time and returns
 * when all are done. Of each but poll three results are reported: ms until all are done,
 * ms of CPU time of this process, and the 99th percentile of a request in us.
 *
 * The server is a process of its own, which serves all connections by epoll, the same for
 * all peers:
 *
 *	PROGRAM serve pairs N      the descriptors 3 to N + 2 are its ends of the pairs
 *	PROGRAM serve curl|tls N   prints its port on 127.0.0.1
 *
 * It ends with the process that started it.
 */
#ifndef CROWD_H
#define CROWD_H

#include "measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef CROWD_CURL
#include <curl/curl.h>
#endif
#ifdef CROWD_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#endif

#define CROWD_REQUESTS   20
#define CROWD_POLL_MS    1000
#define CROWD_FIRST_FD   3
#define CROWD_FDS_MAX    65536
#define CROWD_EVENTS     256
#define CROWD_HTTP_REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

typedef void crowd_fn(int i);

/* Runs fn(0) to fn(n - 1) at the same time; the program that includes this has it. */
static void crowd_run(crowd_fn *fn, int n);

/* ------------------------------------------------------------------- server */

#ifdef CROWD_TLS
static SSL *crowd_ssl[CROWD_FDS_MAX];

static SSL_CTX *crowd_server_context(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();

	X509_gmtime_adj(X509_getm_notBefore(cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_set_pubkey(cert, key);
	X509_sign(cert, key, EVP_sha256());
	if (SSL_CTX_use_certificate(ctx, cert) != 1 || SSL_CTX_use_PrivateKey(ctx, key) != 1)
		measure_fail("no certificate");
	SSL_CTX_set_num_tickets(ctx, 0);
	return ctx;
}

/* False: the connection is over. */
static bool crowd_answer_tls(int fd)
{
	char c[64];
	int n = SSL_read(crowd_ssl[fd], c, sizeof c);

	if (n > 0)
		return SSL_write(crowd_ssl[fd], c, n) == n;
	return SSL_get_error(crowd_ssl[fd], n) == SSL_ERROR_WANT_READ;
}
#endif

/* False: the connection is over. A request comes in one piece. */
static bool crowd_answer(int fd, bool http)
{
	char c[4096];
	ssize_t n = read(fd, c, sizeof c), reply = sizeof CROWD_HTTP_REPLY - 1;

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	return http ? write(fd, CROWD_HTTP_REPLY, (size_t)reply) == reply : write(fd, c, (size_t)n) == n;
}

static void crowd_watch(int epoll, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) != 0)
		measure_fail("cannot watch a connection");
}

static int crowd_listen(int *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, CROWD_FDS_MAX) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &n) != 0)
		measure_fail("cannot listen");
	*port = ntohs(at.sin_port);
	return fd;
}

/* listener: -1 with pairs, whose ends are watched already. */
static void crowd_serve_all(int epoll, int listener, bool http, bool tls)
{
	struct epoll_event e[CROWD_EVENTS];
	int one = 1;
#ifdef CROWD_TLS
	SSL_CTX *ctx = tls ? crowd_server_context() : NULL;
#endif

	for (;;) {
		int n = epoll_wait(epoll, e, CROWD_EVENTS, -1);

		for (int i = 0; i < n; i++) {
			int fd = e[i].data.fd;
			bool goes_on;

			if (fd == listener) {
				while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
					setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
#ifdef CROWD_TLS
					if (tls) {
						crowd_ssl[fd] = SSL_new(ctx);
						SSL_set_fd(crowd_ssl[fd], fd);
						SSL_set_accept_state(crowd_ssl[fd]);
					}
#endif
					crowd_watch(epoll, fd);
				}
				continue;
			}
#ifdef CROWD_TLS
			goes_on = tls ? crowd_answer_tls(fd) : crowd_answer(fd, http);
			if (!goes_on && tls)
				SSL_free(crowd_ssl[fd]);
#else
			goes_on = crowd_answer(fd, http);
			(void)tls;
#endif
			if (!goes_on)
				close(fd);
		}
	}
}

/* PROGRAM serve KIND N: does not return then. */
static void crowd_serve_if_asked(int argc, char **argv)
{
	int epoll, listener = -1, port;

	if (argc != 4 || strcmp(argv[1], "serve") != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	measure_allow_files();
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (strcmp(argv[2], "pairs") == 0) {
		int n = atoi(argv[3]);

		epoll = dup2(epoll, CROWD_FIRST_FD + n);	/* not among them */
		for (int i = 0; i < n; i++)
			crowd_watch(epoll, CROWD_FIRST_FD + i);
	} else {
		listener = crowd_listen(&port);
		crowd_watch(epoll, listener);
		printf("%d\n", port);
		fflush(stdout);
	}
	crowd_serve_all(epoll, listener, strcmp(argv[2], "curl") == 0, strcmp(argv[2], "tls") == 0);
}

/* ------------------------------------------------------------------ clients */

static struct crowd {
	int n;
	int *fd;		/* our ends of the pairs */
	int port;
	pid_t server;
	int64_t *took;		/* of each request, ns */
	uint64_t right;		/* right answers; atomic */
	int begun;		/* that are about to sleep in poll; atomic */
	int64_t all_begun_at;
#ifdef CROWD_TLS
	SSL_CTX *ctx;
#endif
} crowd;

static void crowd_exec(const char *kind)
{
	char n[16];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(n, sizeof n, "%d", crowd.n);
	/* The server runs without the library that may be preloaded here. */
	unsetenv("LD_PRELOAD");
	execl("/proc/self/exe", "crowd", "serve", kind, n, NULL);
	_exit(1);
}

/* The child gets its ends as descriptors 3 and on; all of ours are above those. */
static void crowd_start_pairs(void)
{
	int *theirs = calloc((size_t)crowd.n, sizeof *theirs);

	crowd.fd = calloc((size_t)crowd.n, sizeof *crowd.fd);
	for (int i = 0; i < crowd.n; i++) {
		int fd[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
			measure_fail("no socket pair");
		crowd.fd[i] = fd[0];
		theirs[i] = fd[1];
	}
	crowd.server = fork();
	if (crowd.server == 0) {
		/* Descriptors above all of them first: dup2 closes what it lands on. */
		for (int i = 0; i < crowd.n; i++)
			close(crowd.fd[i]);
		for (int i = 0; i < crowd.n; i++)
			if (theirs[i] != CROWD_FIRST_FD + i && dup2(theirs[i], CROWD_FIRST_FD + i) < 0)
				_exit(1);
			else if (theirs[i] == CROWD_FIRST_FD + i)
				fcntl(theirs[i], F_SETFD, 0);
		crowd_exec("pairs");
	}
	for (int i = 0; i < crowd.n; i++)
		close(theirs[i]);
	free(theirs);
}

static void crowd_start_server(const char *kind)
{
	char text[16];
	int out[2];

	if (pipe(out) != 0)
		measure_fail("no pipe");
	crowd.server = fork();
	if (crowd.server == 0) {
		dup2(out[1], STDOUT_FILENO);
		crowd_exec(kind);
	}
	close(out[1]);
	if (read(out[0], text, sizeof text) <= 0)
		measure_fail("no server");
	close(out[0]);
	crowd.port = atoi(text);
}

static void crowd_stop_server(void)
{
	kill(crowd.server, SIGKILL);
	waitpid(crowd.server, NULL, 0);
	for (int i = 0; crowd.fd && i < crowd.n; i++)
		close(crowd.fd[i]);
	free(crowd.fd);
	crowd.fd = NULL;
}

static void crowd_count(int i, int k, int64_t since, bool right)
{
	crowd.took[i * CROWD_REQUESTS + k] = measure_now() - since;
	__atomic_fetch_add(&crowd.right, right, __ATOMIC_RELAXED);
}

static void crowd_ask_socket(int i)
{
	for (int k = 0; k < CROWD_REQUESTS; k++) {
		int64_t since = measure_now();
		char c = 0;
		bool right = write(crowd.fd[i], "x", 1) == 1 && read(crowd.fd[i], &c, 1) == 1 && c == 'x';

		crowd_count(i, k, since, right);
	}
}

#ifdef CROWD_CURL
static size_t crowd_swallow(void *data, size_t size, size_t n, void *arg)
{
	(void)data;
	*(size_t *)arg += size * n;
	return size * n;
}

static void crowd_ask_curl(int i)
{
	CURL *curl = curl_easy_init();
	char url[64];
	size_t bytes;

	snprintf(url, sizeof url, "http://127.0.0.1:%d/", crowd.port);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, crowd_swallow);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &bytes);
	for (int k = 0; k < CROWD_REQUESTS; k++) {
		int64_t since = measure_now();
		CURLcode code;

		bytes = 0;
		code = curl_easy_perform(curl);
		crowd_count(i, k, since, code == CURLE_OK && bytes == 2);
	}
	curl_easy_cleanup(curl);
}
#endif

#ifdef CROWD_TLS
static int crowd_connect(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)crowd.port),
	                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
		measure_fail("cannot connect");
	return fd;
}

static void crowd_ask_tls(int i)
{
	int fd = crowd_connect();
	SSL *ssl = SSL_new(crowd.ctx);
	bool connected;

	SSL_set_fd(ssl, fd);
	connected = SSL_connect(ssl) == 1;
	for (int k = 0; k < CROWD_REQUESTS; k++) {
		int64_t since = measure_now();
		char c = 0;
		bool right = connected && SSL_write(ssl, "x", 1) == 1 && SSL_read(ssl, &c, 1) == 1;

		crowd_count(i, k, since, right && c == 'x');
	}
	SSL_free(ssl);
	close(fd);
}
#endif

static void crowd_sleep(int i)
{
	(void)i;
	if (__atomic_add_fetch(&crowd.begun, 1, __ATOMIC_SEQ_CST) == crowd.n)
		crowd.all_begun_at = measure_now();
	poll(NULL, 0, CROWD_POLL_MS);
}

/* ------------------------------------------------------------------ results */

static void crowd_report(int procs, const char *what, const char *part, double value, const char *unit)
{
	char name[64];

	snprintf(name, sizeof name, "crowd.%s.%d%s", what, crowd.n, part);
	measure_report(procs, name, value, unit, "%" PRIu64 " of %d", crowd.right,
	               crowd.n * CROWD_REQUESTS);
}

static void crowd_requests(int procs, const char *what, crowd_fn *fn)
{
	size_t n = (size_t)crowd.n * CROWD_REQUESTS;
	int64_t since, cpu, ns;

	crowd.took = calloc(n, sizeof *crowd.took);
	crowd.right = 0;
	cpu = measure_cpu_ns();
	since = measure_now();
	crowd_run(fn, crowd.n);
	ns = measure_now() - since;
	cpu = measure_cpu_ns() - cpu;
	qsort(crowd.took, n, sizeof *crowd.took, measure_order);
	crowd_report(procs, what, "", (double)ns / 1e6, "ms");
	crowd_report(procs, what, ".cpu", (double)cpu / 1e6, "ms");
	crowd_report(procs, what, ".p99", measure_quantile(crowd.took, n, .99) / 1e3, "us");
	free(crowd.took);
	crowd_stop_server();
}

static void crowd_sleepers(int procs, const char *what, crowd_fn *fn)
{
	int64_t since = measure_now();
	char name[64];

	crowd.begun = 0;
	crowd_run(fn, crowd.n);
	snprintf(name, sizeof name, "crowd.%s.%d", what, crowd.n);
	measure_report(procs, name, (double)(crowd.all_begun_at - since) / 1e6, "ms", "%d", crowd.begun);
}

/* One workload with n at the same time. False: there is no such, or not in this build. */
static bool crowd_one(int procs, const char *what, int n)
{
	crowd.n = n;
	if (strcmp(what, "poll") == 0) {
		crowd_sleepers(procs, what, crowd_sleep);
	} else if (strcmp(what, "sockets") == 0) {
		crowd_start_pairs();
		crowd_requests(procs, what, crowd_ask_socket);
#ifdef CROWD_CURL
	} else if (strcmp(what, "curl") == 0) {
		curl_global_init(CURL_GLOBAL_DEFAULT);
		crowd_start_server(what);
		crowd_requests(procs, what, crowd_ask_curl);
#endif
#ifdef CROWD_TLS
	} else if (strcmp(what, "tls") == 0) {
		crowd.ctx = SSL_CTX_new(TLS_client_method());
		crowd_start_server(what);
		crowd_requests(procs, what, crowd_ask_tls);
		SSL_CTX_free(crowd.ctx);
#endif
	} else {
		return false;
	}
	return true;
}

/* WORKLOAD N: that one; nothing: all, with these numbers. */
static bool crowd_main(int procs, int argc, char **argv, bool (*one)(int, const char *, int))
{
	static const char *const all[] = { "poll", "announced", "sockets", "curl", "tls" };
	static const int numbers[] = { 100, 1000, 5000 };

	signal(SIGPIPE, SIG_IGN);
	measure_allow_files();
	if (argc == 3)
		return one(procs, argv[1], atoi(argv[2]));
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
			one(procs, all[i], numbers[k]);
	return true;
}

#endif
