/*
 * ratelimit.c - a server that limits its clients: RATE requests a second each, BURST
 * at once.
 *
 *	ratelimit [-r RATE] [-b BURST] [-w MS] [ADDRESS]        10, 20, 0, 127.0.0.1:8080
 *	for i in $(seq 30); do curl -so /dev/null -w '%{http_code} ' localhost:8080; done
 *
 * Each client address has a token bucket: a request takes a token, BURST tokens fit,
 * and RATE flow in each second. Without a token the answer is 429, or, with -w, comes
 * when there is one, if that is within MS milliseconds.
 *
 * What to look at: no goroutine fills the buckets. A bucket is one number, the time at
 * which it will be full again; what is in it now follows from that. A ticker forgets
 * those that are full, which are as good as new ones, and says each second what went
 * on. A request that waits is a goroutine that sleeps. SIGINT and SIGTERM let the
 * requests under way end.
 */
#define _GNU_SOURCE		/* memmem */
#include <goro.h>
#include <netdb.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	CONNECTIONS_MAX = 1000,		/* more wait to be accepted */
	CLIENTS_MAX = 100000,		/* known at once: buckets that are not full */
	HASH_SIZE = 4096,
};

#define REQUEST_TIMEOUT (5 * GORO_SECOND)
#define REFUSED         INT64_C(-1)

/* ----------------------------------------------------------- token buckets */

struct bucket {
	int64_t full_at;
	struct bucket *next;
	char client[NI_MAXHOST];
};

static int64_t interval = GORO_SECOND / 10;	/* a token flows in each */
static int64_t burst = 20, patience;

static goro_mutex lock;				/* guards all below */
static struct bucket *buckets[HASH_SIZE];
static int clients;
static struct { unsigned at_once, delayed, refused; } counts;

/* The client's bucket, a full one if it has none; NULL if there are too many. */
static struct bucket *find(const char *client)
{
	struct bucket **at, *b;
	unsigned hash = 5381;

	for (const char *c = client; *c; c++)
		hash = hash * 33 ^ (unsigned char)*c;
	for (at = &buckets[hash % HASH_SIZE]; (b = *at); at = &b->next)
		if (strcmp(b->client, client) == 0)
			return b;
	if (clients >= CLIENTS_MAX || !(b = calloc(1, sizeof *b)))
		return NULL;
	clients++;
	strcpy(b->client, client);
	return *at = b;
}

/* Takes a token out of the bucket and returns how long to wait until it has flowed in. If
 * that is too long, it leaves it there and returns REFUSED; *retry: when to try again. */
static int64_t take(const char *client, int64_t *retry)
{
	int64_t now = goro_now(), full_at, wait = REFUSED;
	struct bucket *b;

	*retry = GORO_SECOND;
	goro_mutex_lock(&lock);
	if ((b = find(client))) {
		full_at = (b->full_at > now ? b->full_at : now) + interval;
		wait = full_at - now - burst * interval;
		if (wait <= patience) {
			b->full_at = full_at;
			wait = wait < 0 ? 0 : wait;
		} else {
			*retry = wait - patience;
			wait = REFUSED;
		}
	}
	++*(wait == 0 ? &counts.at_once : wait > 0 ? &counts.delayed : &counts.refused);
	goro_mutex_unlock(&lock);
	return wait;
}

/* Forgets the buckets that are full. */
static void sweep(int64_t now)
{
	for (struct bucket **chain = buckets; chain < buckets + HASH_SIZE; chain++)
		for (struct bucket **at = chain, *b; (b = *at); ) {
			if (b->full_at > now) {
				at = &b->next;
				continue;
			}
			*at = b->next;
			free(b);
			clients--;
		}
}

/* The ticker's: says what went on, if anything did. */
static void report(void)
{
	static unsigned asked_before;
	unsigned asked;
	int clients_before;

	goro_mutex_lock(&lock);
	clients_before = clients;
	sweep(goro_now());
	asked = counts.at_once + counts.delayed + counts.refused;
	if (asked != asked_before || clients != clients_before)
		printf("at once %u, delayed %u, refused %u; clients %d\n", counts.at_once,
		       counts.delayed, counts.refused, clients);
	asked_before = asked;
	goro_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- requests */

static goro_sema places;			/* one for each connection */
static atomic_bool stopping;

/* Reads a request to the empty line at its end: what it asks for makes no difference. */
static bool read_request(int fd)
{
	char text[8192];
	size_t have = 0;
	ssize_t n;

	while (have < sizeof text &&
	       (n = goro_read(fd, text + have, sizeof text - have)) > 0) {
		have += (size_t)n;
		if (memmem(text, have, "\r\n\r\n", 4) || memmem(text, have, "\n\n", 2))
			return true;
	}
	return false;
}

static void answer(int fd, int64_t wait, int64_t retry)
{
	static const char served[] = "HTTP/1.0 200 OK\r\n"
	                             "Content-Length: 7\r\n\r\nserved\n";
	char refused[128];

	if (wait != REFUSED) {
		goro_write(fd, served, sizeof served - 1);
		return;
	}
	snprintf(refused, sizeof refused, "HTTP/1.0 429 Too Many Requests\r\n"
	         "Retry-After: %lld\r\nContent-Length: 0\r\n\r\n",
	         (long long)((retry + GORO_SECOND - 1) / GORO_SECOND));
	goro_write(fd, refused, strlen(refused));
}

static void serve(int fd, char *client)
{
	int64_t deadline = goro_now() + REQUEST_TIMEOUT, wait, retry;

	goro_set_deadline(fd, deadline, deadline + patience);
	if (read_request(fd)) {
		wait = take(client, &retry);
		if (wait > 0)
			goro_sleep(wait);
		answer(fd, wait, retry);
	}
	free(client);
	goro_close(fd);
	goro_sema_release(&places, 1);
}

/* The address in digits, to be freed; or NULL. */
static char *name_of(const struct sockaddr *from, socklen_t n)
{
	char name[NI_MAXHOST];

	return getnameinfo(from, n, name, sizeof name, NULL, 0, NI_NUMERICHOST) == 0
	               ? strdup(name) : NULL;
}

static void accept_all(int listener)
{
	struct sockaddr_storage from;
	socklen_t n;
	char *copy;
	int fd;

	while (!stopping) {
		n = sizeof from;
		goro_sema_acquire(&places, 1, GORO_FOREVER);
		fd = goro_accept(listener, (struct sockaddr *)&from, &n);
		if (fd >= 0 && (copy = name_of((struct sockaddr *)&from, n))) {
			if (go(serve, fd, copy) == 0)
				continue;
			free(copy);
		}
		if (fd >= 0)
			goro_close(fd);
		else
			goro_sleep(5 * GORO_MILLISECOND);	/* none free */
		goro_sema_release(&places, 1);
	}
}

/* -------------------------------------------------------------------- main */

static bool read_options(int argc, char **argv)
{
	double rate = 10, wait = 0;

	for (int option; (option = getopt(argc, argv, "r:b:w:")) != -1; )
		if (option == 'r')
			rate = atof(optarg);
		else if (option == 'b')
			burst = atoi(optarg);
		else if (option == 'w')
			wait = atof(optarg);
		else
			return false;
	if (!(rate >= 0.001 && rate <= 1e6 && wait >= 0 && wait <= 60000) || burst < 1 ||
	    burst > 1000000)
		return false;
	interval = (int64_t)((double)GORO_SECOND / rate);
	patience = (int64_t)(wait * (double)GORO_MILLISECOND);
	return argc - optind <= 1;
}

static int start(int argc, char **argv)
{
	goro_chan *signals = goro_signal_notify((int[]){ SIGINT, SIGTERM }, 2);
	goro_ticker *second = goro_ticker_make(GORO_SECOND);
	const char *address;
	int listener;

	if (!read_options(argc, argv)) {
		fputs("usage: ratelimit [-r RATE] [-b BURST] [-w MS] [ADDR]\n", stderr);
		return 2;
	}
	address = optind < argc ? argv[optind] : "127.0.0.1:8080";
	if ((listener = goro_listen("tcp", address)) < 0) {
		fprintf(stderr, "ratelimit: %s: %s\n", address, strerror(-listener));
		return 1;
	}
	setlinebuf(stdout);
	printf("listening on %s\n", address);
	goro_sema_init(&places, CONNECTIONS_MAX);
	go(accept_all, listener);

	while (goro_select(GORO_RECV(signals, NULL),
	                   GORO_RECV(goro_ticker_chan(second), NULL)) == 1)
		report();
	goro_signal_stop(signals);	/* a second signal ends it at once */
	stopping = true;
	goro_close(listener);
	goro_sema_acquire(&places, CONNECTIONS_MAX,
	                  goro_now() + REQUEST_TIMEOUT + patience);
	report();
	goro_ticker_free(second);
	goro_chan_unref(signals);
	return 0;
}
GORO_MAIN(start)
