/* curl_test.c - what curl_park.c does when things go wrong, and with large answers. */
#include <goro.h>
#include <signal.h>
#include <sys/socket.h>

#include "curl_park.h"
#include "expect.h"
#include "measure.h"

static curl_park *p;

static size_t count(char *bytes, size_t size, size_t n, void *total)
{
	(void)bytes;
	*(size_t *)total += size * n;
	return size * n;
}

static size_t refuse(char *bytes, size_t size, size_t n, void *unused)
{
	(void)bytes, (void)size, (void)n, (void)unused;
	return 0;
}

static CURL *get(const char *scheme, const char *port, const char *path, size_t *got)
{
	CURL *easy = curl_easy_init();
	char url[64];

	expect(easy);
	*got = 0;
	snprintf(url, sizeof url, "%s://127.0.0.1:%s/%s", scheme, port, path);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, count);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, got);
	return easy;
}

/* Performs, and that is all with this handle. */
static CURLcode end(CURL *easy, int64_t deadline)
{
	CURLcode r = curl_park_perform(p, easy, deadline);

	curl_easy_cleanup(easy);
	return r;
}

static void plain(void)
{
	size_t got;
	long connects = -1;
	CURL *easy = get("http", setting("WITH_HTTP"), "quick", &got);

	expect(curl_park_perform(p, easy, GORO_FOREVER) == CURLE_OK && got == 100);
	expect(curl_park_perform(p, easy, GORO_FOREVER) == CURLE_OK && got == 200);
	curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects);
	expect(connects == 0);	/* it uses the connection again */
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, refuse);
	expect(end(easy, GORO_FOREVER) == CURLE_WRITE_ERROR);
	expect(end(get("http", setting("WITH_HTTP"), "large", &got), GORO_FOREVER) == CURLE_OK);
	expect(got == 100000000);
	expect(end(get("nonsense", "1", "", &got), GORO_FOREVER) == CURLE_UNSUPPORTED_PROTOCOL);
}

static void refused(void)
{
	size_t got;

	expect(end(get("http", setting("WITH_NOBODY"), "", &got), GORO_FOREVER) ==
	       CURLE_COULDNT_CONNECT);
}

/* A server that says this, and is gone. */
static void say(int listener, const char *what)
{
	char request[1000];
	int fd = goro_accept(listener, NULL, NULL);

	expect(fd >= 0 && goro_read(fd, request, sizeof request) > 0);
	expect(goro_write(fd, what, strlen(what)) >= 0);
	goro_close(fd);
}

static CURLcode get_from(int listener, const char *port, const char *what)
{
	size_t got;

	go(say, listener, what);
	return end(get("http", port, "", &got), GORO_FOREVER);
}

static void server_gone(void)
{
	int listener = goro_listen("tcp", "127.0.0.1:0");
	unsigned char address[16];
	socklen_t size = sizeof address;
	char port[8];

	expect(listener >= 0);
	expect(getsockname(listener, (struct sockaddr *)address, &size) == 0);
	snprintf(port, sizeof port, "%d", address[2] << 8 | address[3]);
	expect(get_from(listener, port, "") == CURLE_GOT_NOTHING);
	expect(get_from(listener, port, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
	                                "and so") == CURLE_PARTIAL_FILE);
	goro_close(listener);
}

static void tls(void)
{
	size_t got;
	CURL *easy = get("https", setting("WITH_HTTPS"), "quick", &got);

	curl_easy_setopt(easy, CURLOPT_CAINFO, setting("WITH_CA"));
	expect(end(easy, GORO_FOREVER) == CURLE_OK && got == 100);
	expect(end(get("https", setting("WITH_HTTPS"), "quick", &got), GORO_FOREVER) ==
	       CURLE_PEER_FAILED_VERIFICATION);
	expect(end(get("https", setting("WITH_HTTP"), "quick", &got), GORO_FOREVER) ==
	       CURLE_SSL_CONNECT_ERROR);
}

static void deadlines(void)
{
	size_t got;
	CURL *easy = get("http", setting("WITH_HTTP"), "endless", &got);
	int64_t start = goro_now();
	char url[64];

	expect(curl_park_perform(p, easy, goro_deadline_in(50 * GORO_MILLISECOND)) ==
	       CURLE_OPERATION_TIMEDOUT);
	expect(goro_now() - start >= 50 * GORO_MILLISECOND);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 100L);	/* curl's own */
	expect(curl_park_perform(p, easy, GORO_FOREVER) == CURLE_OPERATION_TIMEDOUT);
	expect(goro_now() - start >= 150 * GORO_MILLISECOND);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 0L);
	snprintf(url, sizeof url, "http://127.0.0.1:%s/quick", setting("WITH_HTTP"));
	curl_easy_setopt(easy, CURLOPT_URL, url);
	got = 0;
	expect(end(easy, GORO_FOREVER) == CURLE_OK && got == 100);
	easy = get("http", setting("WITH_SILENT"), "", &got);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 50L);
	expect(end(easy, GORO_FOREVER) == CURLE_OPERATION_TIMEDOUT);
	expect(end(get("http", setting("WITH_SILENT"), "", &got),
	           goro_deadline_in(50 * GORO_MILLISECOND)) == CURLE_OPERATION_TIMEDOUT);
}

static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	signal(SIGPIPE, SIG_IGN);
	p = curl_park_make();
	expect(p);
	plain();
	refused();
	server_gone();
	tls();
	deadlines();
	curl_park_free(p);
	return 0;
}

int main(int argc, char **argv)
{
	curl_global_init(CURL_GLOBAL_ALL);
	return goro_run(start, argc, argv);
}
