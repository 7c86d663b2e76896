/*
 * curl.c - HTTP by libcurl: 1,000 requests under way.
 *
 * block_*: as everybody writes it. It works in a goroutine as it is, which keeps a thread
 * while its request is under way. park_*: the same with curl_park.h.
 *
 *	WITH_HTTP=80 curl park|block|thread [CLIENTS [QUICK]]
 */
#include <goro.h>

#include "curl_park.h"
#include "measure.h"

static size_t count(char *bytes, size_t size, size_t n, void *total)
{
	(void)bytes;
	*(size_t *)total += size * n;
	return size * n;
}

static void *make(int i)
{
	CURL *easy = curl_easy_init();

	(void)i;
	if (!easy)
		die("curl: no memory");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, count);
	return easy;
}

static void prepare(CURL *easy, const char *path, size_t *got)
{
	char url[64];

	*got = 0;
	snprintf(url, sizeof url, "http://127.0.0.1:%s/%s", setting("WITH_HTTP"), path);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, got);
}

static void check(CURLcode result, size_t got, size_t want)
{
	if (result != CURLE_OK)
		die("curl: %s", curl_easy_strerror(result));
	if (got != want)
		die("curl: %zu bytes instead of %zu", got, want);
}

/* --------------------------------------------------------------- blocking */

static void block_get(CURL *easy, const char *path, size_t want)
{
	CURLcode result;
	size_t got;

	prepare(easy, path, &got);
	result = curl_easy_perform(easy);
	check(result, got, want);
}

static void block_slow(void *easy, int i)
{
	(void)i;
	block_get(easy, "slow", 2000);
}

static void block_quick(void *easy, int i)
{
	(void)i;
	block_get(easy, "quick", 100);
}

/* ---------------------------------------------------------------- parking */

static curl_park *curls;

static void make_curls(void *unused)
{
	(void)unused;
	curls = curl_park_make();
	if (!curls)
		die("curl: no memory");
}

static void *park_make(int i)
{
	static goro_once once;

	goro_once_do(&once, make_curls, NULL);
	return make(i);
}

static void park_get(CURL *easy, const char *path, size_t want)
{
	int64_t deadline = goro_deadline_in(60 * GORO_SECOND);
	CURLcode result;
	size_t got;

	prepare(easy, path, &got);
	result = curl_park_perform(curls, easy, deadline);
	check(result, got, want);
}

static void park_slow(void *easy, int i)
{
	(void)i;
	park_get(easy, "slow", 2000);
}

static void park_quick(void *easy, int i)
{
	(void)i;
	park_get(easy, "quick", 100);
}

static void cleanup(void *easy)
{
	curl_easy_cleanup(easy);
}

int main(int argc, char **argv)
{
	static const struct client block = { make, block_slow, block_quick, cleanup };
	static const struct client park = { park_make, park_slow, park_quick, cleanup };
	int r;

	curl_global_init(CURL_GLOBAL_ALL);
	r = measure_main(argc, argv, &block, &park);
	curl_global_cleanup();
	return r;
}
