/*
 * crawler.c - follows the links of web pages, several at a time.
 *
 *	crawler [OPTIONS] URL
 *	crawler -d 2 http://localhost:8080/          a line a page: status, depth, address
 *
 *	-a: other hosts than that of URL, too   -w: ms between fetches from a host (100)
 *	-d: how many links from URL (3)         -t: seconds for one fetch (10)
 *	-n, -p: fetches at once (8), per host (2)  -m: pages in all (10000)
 *
 * What to look at: main alone knows which pages were seen, and which hosts are to be
 * left alone for how long. There is no lock: it starts a goroutine for each fetch,
 * which returns the page on a channel, and it waits for that, for SIGINT and for the
 * next host's turn in one select. SIGINT ends the fetches under way through their
 * context. The status is 0, 130 after SIGINT, and 1 if URL itself could not be had.
 */
#define _GNU_SOURCE
#include "crawler_url.h"
#include <goro.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { HASH_SIZE = 4096, TEXT_MAX = 1 << 20 };

struct page {
	struct page *next, *next_same;	/* to fetch from the host; of the same hash */
	struct host *host;
	int depth;
	char url[];
};

struct host {
	struct host *next;
	struct page *first, **end;	/* pages to fetch */
	int running;			/* fetches */
	int64_t free_at;		/* when the next may start */
	char name[URL_MAX];
};

/* A goroutine's; main gets it back when that is over. */
struct fetch {
	struct page *page;
	goro_ctx *ctx;
	goro_waitgroup stopping;
	int fd, error, status;		/* -errno; HTTP's */
	size_t n;
	char text[TEXT_MAX + 1];	/* the answer, or its beginning */
};

static struct {
	bool all_hosts;
	int depth, fetches, per_host, wait_ms, seconds, pages;
} options = { false, 3, 8, 2, 100, 10, 10000 };

/* ---------------------------------------------------------------- one fetch */

static void stop(void *arg)
{
	struct fetch *f = arg;

	goro_set_deadline(f->fd, GORO_NOW, GORO_NOW);
	goro_waitgroup_done(&f->stopping);
}

static int talk(struct fetch *f)
{
	const char *url = f->page->url;
	char *request;
	ssize_t n = asprintf(&request, "GET %s HTTP/1.0\r\nHost: %s\r\n"
	                     "User-Agent: goro-crawler\r\nConnection: close\r\n\r\n",
	                     url_path(url), f->page->host->name);

	if (n < 0)
		return -ENOMEM;
	n = goro_write_full(f->fd, request, (size_t)n);
	free(request);
	if (n >= 0)
		n = goro_read_full(f->fd, f->text, TEXT_MAX);
	if (n < 0)
		return (int)n;
	f->n = (size_t)n;
	return sscanf(f->text, "HTTP/%*d.%*d %d", &f->status) == 1 ? 0 : -EPROTO;
}

/* Done before the fetch's time has passed, and soon after its context is. */
static void fetch(struct fetch *f, goro_chan *fetched)
{
	int64_t deadline = goro_now() + options.seconds * GORO_SECOND;
	const char *name = f->page->host->name;
	goro_ctx_func *func;
	char address[URL_MAX + 3];

	snprintf(address, sizeof address, "%s%s", name,
	         strchr(name[0] == '[' ? strchrnul(name, ']') : name, ':') ? "" : ":80");
	f->fd = f->error = goro_dial("tcp", address, deadline);
	if (f->fd >= 0) {
		goro_set_deadline(f->fd, deadline, deadline);
		goro_waitgroup_add(&f->stopping, 1);
		func = goro_ctx_after_func(f->ctx, stop, f);
		f->error = func ? talk(f) : -ENOMEM;
		/* The number must not become another file's while stop runs. */
		if (func && !goro_ctx_func_stop(func))
			goro_waitgroup_wait(&f->stopping);
		goro_close(f->fd);
	}
	goro_chan_send(fetched, &f);
}

/* ------------------------------------------------------- what main alone knows */

static struct page *seen[HASH_SIZE];
static struct host *hosts;
static int pages, queued, running, errors;

/* The host of an address. NULL: it is not to be visited. */
static struct host *find_host(const char *url)
{
	char name[URL_MAX];
	struct host *h;

	url_host(url, name, sizeof name);
	for (h = hosts; h; h = h->next)
		if (strcmp(h->name, name) == 0)
			return h;
	if ((hosts && !options.all_hosts) || !(h = calloc(1, sizeof *h)))
		return NULL;
	strcpy(h->name, name);
	h->end = &h->first;
	h->next = hosts;
	return hosts = h;
}

/* A page to fetch, if it was not seen before. */
static void add(const char *url, int depth)
{
	struct page **same, *p;
	struct host *h;
	unsigned hash = 5381;

	for (const char *c = url; *c; c++)
		hash = hash * 33 ^ (unsigned char)*c;
	for (same = &seen[hash % HASH_SIZE]; (p = *same); same = &p->next_same)
		if (strcmp(p->url, url) == 0)
			return;
	if (pages >= options.pages || depth > options.depth || !(h = find_host(url)) ||
	    !(p = calloc(1, sizeof *p + strlen(url) + 1)))
		return;
	*same = p;
	strcpy(p->url, url);
	p->host = h;
	p->depth = depth;
	*h->end = p;
	h->end = &p->next;
	pages++;
	queued++;
}

static void start_fetch(struct host *h, goro_ctx *ctx, goro_chan *fetched)
{
	struct fetch *f = calloc(1, sizeof *f);

	h->free_at = goro_now() + options.wait_ms * GORO_MILLISECOND;
	if (!f)
		return;
	f->page = h->first;
	f->ctx = ctx;
	if (go(fetch, f, fetched) != 0) {
		free(f);
		return;
	}
	if (!(h->first = h->first->next))
		h->end = &h->first;
	h->running++;
	running++;
	queued--;
}

/* Starts what may start now. When it is to be called again, if nothing happens before. */
static int64_t start_fetches(goro_ctx *ctx, goro_chan *fetched)
{
	int64_t next = GORO_FOREVER;

	for (struct host *h = hosts; h && running < options.fetches; h = h->next) {
		if (!h->first || h->running >= options.per_host)
			continue;
		if (h->free_at <= goro_now())
			start_fetch(h, ctx, fetched);
		if (h->first && h->running < options.per_host && h->free_at < next)
			next = h->free_at;
	}
	return next;
}

static void follow_links(const struct fetch *f)
{
	const struct page *p = f->page;
	const char *body = strstr(f->text, "\r\n\r\n"), *link = f->text;
	const char *type = strcasestr(f->text, "\ncontent-type: text/html");
	const char *location = strcasestr(f->text, "\nlocation: ");
	char url[URL_MAX];
	size_t n;

	if (!body)
		return;
	if (location && location < body && f->status / 100 == 3) {
		location += sizeof "\nlocation: " - 1;
		if (url_resolve(url, p->url, location, strcspn(location, "\r\n")))
			add(url, p->depth + 1);
	}
	if (f->status == 200 && type && type < body)
		for (link = body; (link = next_link(link, &n)); link += n)
			if (url_resolve(url, p->url, link, n))
				add(url, p->depth + 1);
}

static void finish_fetch(struct fetch *f)
{
	struct page *p = f->page;

	if (f->error == 0) {
		printf("%d %d %s\n", f->status, p->depth, p->url);
		follow_links(f);
	} else if (goro_ctx_err(f->ctx) == 0) {
		printf("error %d %s: %s\n", p->depth, p->url,
		       f->error == -ENOENT ? "no such host" : strerror(-f->error));
		errors++;
	}
	p->host->running--;
	running--;
	free(f);
}

static void forget_all(void)
{
	for (int i = 0; i < HASH_SIZE; i++)
		for (struct page *p; (p = seen[i]); free(p))
			seen[i] = p->next_same;
	for (struct host *h; (h = hosts); free(h))
		hosts = h->next;
}

/* True: to the end. False: SIGINT. */
static bool crawl(goro_ctx *ctx)
{
	goro_chan *signals = goro_signal_notify((int[]){ SIGINT }, 1);
	goro_chan *fetched = goro_chan_of(struct fetch *, 0);
	bool stopped = false;
	int64_t again;
	struct fetch *f;

	while ((!stopped && queued > 0) || running > 0) {
		again = stopped ? GORO_FOREVER : start_fetches(ctx, fetched);
		switch (goro_select_until(again, GORO_RECV(fetched, &f),
		                          GORO_RECV(signals, NULL))) {
		case 0:
			finish_fetch(f);
			break;
		case 1:
			goro_signal_stop(signals);	/* a second one ends it at once */
			goro_ctx_cancel(ctx);
			stopped = true;
			break;
		}
	}
	goro_signal_stop(signals);
	goro_chan_unref(signals);
	goro_chan_unref(fetched);
	return !stopped;
}

static bool read_options(int argc, char **argv)
{
	static const struct {
		char name;
		int *value, least;
	} numbers[] = {
		{ 'd', &options.depth, 0 }, { 'n', &options.fetches, 1 },
		{ 'p', &options.per_host, 1 }, { 'w', &options.wait_ms, 0 },
		{ 't', &options.seconds, 1 }, { 'm', &options.pages, 1 },
	};
	bool known = true;

	for (int option; (option = getopt(argc, argv, "ad:n:p:w:t:m:")) != -1; ) {
		options.all_hosts |= option == 'a';
		known &= option != '?';
		for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
			if (numbers[i].name == option) {
				*numbers[i].value = atoi(optarg);
				known &= *numbers[i].value >= numbers[i].least;
			}
	}
	return known && argc == optind + 1;
}

static int start(int argc, char **argv)
{
	uint64_t mark = goro_leak_mark();
	char url[URL_MAX];
	goro_ctx *ctx;
	bool ended;

	if (!read_options(argc, argv)) {
		fputs("usage: crawler [-a] [-d DEPTH] [-n FETCHES] [-p PER_HOST] [-w MS]\n"
		      "               [-t SECONDS] [-m PAGES] URL\n", stderr);
		return 2;
	}
	if (!url_resolve(url, http, argv[optind], strlen(argv[optind]))) {
		fprintf(stderr, "crawler: %s: no address of http\n", argv[optind]);
		return 2;
	}
	setlinebuf(stdout);
	ctx = goro_ctx_with_cancel(goro_ctx_background());
	add(url, 0);
	ended = crawl(ctx);
	fprintf(stderr, "%d pages seen, %d not fetched, %d errors\n", pages, queued,
	        errors);
	forget_all();
	goro_ctx_unref(ctx);
	if (goro_leak_check(mark, GORO_SECOND, stderr) > 0)
		return 3;
	return !ended ? 130 : pages == 1 && errors == 1 ? 1 : 0;
}
GORO_MAIN(start)
