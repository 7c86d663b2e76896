/*
 * real_test.c - client libraries that have never heard of goro, unmodified,
 * against real servers: hiredis with redis-server, libpq with PostgreSQL, libcurl
 * with nginx, SQLite on disk, getaddrinfo with a name server that takes its time.
 *
 * In each test 50 goroutines on 2 Ps make calls that block in the kernel, while a
 * ticker goroutine keeps its schedule. Results are complete and right.
 *
 * test/real/run starts the servers and says in the environment where they are.
 */
#include <goro.h>
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <netdb.h>
#include <pthread.h>
#include <sqlite3.h>

#include "../test.h"

enum { CLIENTS = 50, PROCS = 2 };

#define PERIOD_NS (2 * GORO_MILLISECOND)
#define LATE_NS   (5 * GORO_MILLISECOND)

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * GORO_SECOND + t.tv_nsec;
}

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		SKIP("the server is not there: run test/real/run");
	return value;
}

/* --------------------------------------------------------------- the ticker */

struct lateness {
	int64_t late[100000];
	int n;
};
static struct lateness ours, machines;
static bool stop;

static bool stopping(void)
{
	return __atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

static void note(struct lateness *l, int64_t late)
{
	if (l->n < 100000)
		l->late[l->n++] = late > 0 ? late : 0;
}

static void tick(goro_chan *done)
{
	for (int64_t next = now() + PERIOD_NS; !stopping(); next += PERIOD_NS) {
		int64_t t = now();

		goro_sleep(next - t);
		t = now();
		note(&ours, t - next);
		if (t - next > PERIOD_NS)
			next = t;
	}
	goro_chan_close(done);
}

/* The same in a plain thread: how late the machine itself is. */
static void *tick_plainly(void *arg)
{
	(void)arg;
	for (int64_t next = now() + PERIOD_NS; !stopping(); next += PERIOD_NS) {
		struct timespec at = { next / GORO_SECOND, next % GORO_SECOND };
		int64_t t;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		t = now();
		note(&machines, t - next);
		if (t - next > PERIOD_NS)
			next = t;
	}
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double p99_ms(struct lateness *l)
{
	CHECK(l->n > 10);
	qsort(l->late, (size_t)l->n, sizeof *l->late, by_value);
	return (double)l->late[(l->n - 1) * 99 / 100] / 1e6;
}

/* ---------------------------------------------------------------- the crowd */

static void client(void (*fn)(int), int i, goro_waitgroup *wg)
{
	fn(i);
	goro_waitgroup_done(wg);
}

/* fn(0) .. fn(49) at once, beside the ticker. */
static void crowd(void (*fn)(int))
{
	goro_chan *ticked = goro_chan_of(int, 0);
	goro_waitgroup wg = { 0 };
	int64_t start = now();
	double late, machine;
	pthread_t plain;

	goro_gomaxprocs(PROCS);
	CHECK(pthread_create(&plain, NULL, tick_plainly, NULL) == 0);
	go(tick, ticked);
	goro_sleep(5 * PERIOD_NS);	/* it ticks */
	goro_waitgroup_add(&wg, CLIENTS);
	for (int i = 0; i < CLIENTS; i++)
		CHECK(go(client, fn, i, &wg) == 0);
	goro_waitgroup_wait(&wg);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	goro_chan_recv(ticked, NULL);
	pthread_join(plain, NULL);
	late = p99_ms(&ours);
	machine = p99_ms(&machines);
	printf("%.2f s, %d ticks; late by %.2f ms (p99), a plain thread by %.2f\n",
	       (double)(now() - start) / 1e9, ours.n, late, machine);
	/* Up to three threads wake one after the other, each as late as the machine. */
	if (late > (double)LATE_NS / 1e6 + 3 * machine)
		FAIL("the ticker is late by %.2f ms", late);
}

/* ------------------------------------------------------------------- redis */

enum { COMMANDS = 200 };

static redisContext *redis_open(void)
{
	redisContext *c = redisConnect("127.0.0.1", atoi(setting("REAL_REDIS_PORT")));

	if (!c || c->err)
		FAIL("redis: %s", c ? c->errstr : "no memory");
	return c;
}

__attribute__((format(printf, 2, 3)))
static redisReply *redis_do(redisContext *c, const char *fmt, ...)
{
	redisReply *r;
	va_list args;

	va_start(args, fmt);
	r = redisvCommand(c, fmt, args);
	va_end(args);
	if (!r || r->type == REDIS_REPLY_ERROR)
		FAIL("redis: %s", r ? r->str : c->errstr);
	return r;
}

static void redis_client(int i)
{
	redisContext *c = redis_open();
	redisReply *r;
	char want[32];

	for (int n = 0; n < COMMANDS; n++) {
		snprintf(want, sizeof want, "%d of %d", n, i);
		freeReplyObject(redis_do(c, "SET key:%d %s", i, want));
		freeReplyObject(redis_do(c, "INCR total"));
		r = redis_do(c, "GET key:%d", i);
		CHECK_STR(r->str, want);
		freeReplyObject(r);
	}
	/* Each waits for the list of the one before it, and then fills its own. */
	if (i > 0)
		freeReplyObject(redis_do(c, "BLPOP baton:%d 30", i - 1));
	freeReplyObject(redis_do(c, "RPUSH baton:%d x", i));
	redisFree(c);
}

GO_TEST(hiredis)
{
	redisContext *c = redis_open();
	redisReply *r;

	freeReplyObject(redis_do(c, "FLUSHALL"));
	crowd(redis_client);
	r = redis_do(c, "GET total");
	CHECK_EQ(atoi(r->str), CLIENTS * COMMANDS);
	freeReplyObject(r);
	redisFree(c);
}

/* -------------------------------------------------------------- PostgreSQL */

enum { STATEMENTS = 40 };

static PGconn *pg_open(void)
{
	PGconn *c = PQconnectdb(setting("REAL_POSTGRES"));

	if (PQstatus(c) != CONNECTION_OK)
		FAIL("postgres: %s", PQerrorMessage(c));
	return c;
}

static long pg_do(PGconn *c, const char *sql)
{
	PGresult *r = PQexec(c, sql);
	long value = 0;

	if (PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) > 0)
		value = atol(PQgetvalue(r, 0, 0));
	else if (PQresultStatus(r) != PGRES_COMMAND_OK)
		FAIL("postgres: %s: %s", sql, PQerrorMessage(c));
	PQclear(r);
	return value;
}

static void pg_client(int i)
{
	PGconn *c = pg_open();
	char sql[128];

	for (int n = 0; n < STATEMENTS; n++) {
		snprintf(sql, sizeof sql, "INSERT INTO t VALUES (%d, %d)", i, n);
		pg_do(c, sql);
		pg_do(c, "SELECT pg_sleep(0.005)");
		snprintf(sql, sizeof sql, "SELECT sum(n) FROM t WHERE i = %d", i);
		CHECK_EQ(pg_do(c, sql), n * (n + 1) / 2);
	}
	PQfinish(c);
}

GO_TEST(libpq)
{
	PGconn *c = pg_open();

	pg_do(c, "DROP TABLE IF EXISTS t");
	pg_do(c, "CREATE TABLE t (i int, n int)");
	crowd(pg_client);
	CHECK_EQ(pg_do(c, "SELECT count(*) FROM t"), CLIENTS * STATEMENTS);
	PQfinish(c);
}

/* ------------------------------------------------------------------- curl */

enum { REQUESTS = 20 };

struct page {
	uint64_t hash;
	size_t bytes;
};

static uint64_t hash_on(uint64_t h, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)p[i]) * 1099511628211u;
	return h;
}

static size_t receive(char *p, size_t size, size_t n, void *arg)
{
	struct page *page = arg;

	page->hash = hash_on(page->hash, p, size * n);
	page->bytes += size * n;
	return size * n;
}

/* What each page is: its number on 20000 lines. test/real/run makes them so. */
static struct page expected[10];

static void expect_pages(void)
{
	for (int index = 0; index < 10; index++)
		for (int i = 0; i < 20000; i++) {
			char line[2] = { (char)('0' + index), '\n' };

			receive(line, 1, sizeof line, &expected[index]);
		}
}

static void curl_client(int i)
{
	CURL *c = curl_easy_init();
	char url[128];

	CHECK(c != NULL);
	for (int n = 0; n < REQUESTS; n++) {
		struct page page = { 0, 0 };
		int index = (i + n) % 10;
		CURLcode r;
		long status = 0;

		snprintf(url, sizeof url, "http://127.0.0.1:%s/%d.txt", setting("REAL_NGINX_PORT"),
		         index);
		curl_easy_setopt(c, CURLOPT_URL, url);
		curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, receive);
		curl_easy_setopt(c, CURLOPT_WRITEDATA, &page);
		curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
		r = curl_easy_perform(c);
		if (r != CURLE_OK)
			FAIL("curl: %s", curl_easy_strerror(r));
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
		CHECK_EQ(status, 200);
		CHECK_EQ(page.bytes, expected[index].bytes);
		CHECK(page.hash == expected[index].hash);
	}
	curl_easy_cleanup(c);
}

GO_TEST(libcurl)
{
	CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
	setting("REAL_NGINX_PORT");
	expect_pages();
	crowd(curl_client);
}

/* ------------------------------------------------------------------ SQLite */

enum { TRANSACTIONS = 10 };
static char database[4096];

static sqlite3 *sqlite_open(void)
{
	sqlite3 *db;

	CHECK_EQ(sqlite3_open(database, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 120000);
	return db;
}

static void sqlite_do(sqlite3 *db, const char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
		FAIL("sqlite: %s: %s", sql, error);
}

static long sqlite_value(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *s;
	long value;

	CHECK_EQ(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	CHECK_EQ(sqlite3_step(s), SQLITE_ROW);
	value = (long)sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return value;
}

static void sqlite_client(int i)
{
	sqlite3 *db = sqlite_open();
	char sql[128];

	for (int n = 0; n < TRANSACTIONS; n++) {
		sqlite_do(db, "BEGIN IMMEDIATE");
		snprintf(sql, sizeof sql, "INSERT INTO t VALUES (%d, %d)", i, n);
		sqlite_do(db, sql);
		sqlite_do(db, "UPDATE total SET n = n + 1");
		sqlite_do(db, "COMMIT");
	}
	sqlite3_close(db);
}

GO_TEST_TIMEOUT(sqlite, 120)
{
	sqlite3 *db;

	snprintf(database, sizeof database, "%s/test.db", setting("REAL_DIR"));
	unlink(database);
	db = sqlite_open();
	sqlite_do(db, "PRAGMA journal_mode = WAL");
	sqlite_do(db, "CREATE TABLE t (i int, n int); CREATE TABLE total (n int);"
	              "INSERT INTO total VALUES (0)");
	crowd(sqlite_client);
	CHECK_EQ(sqlite_value(db, "SELECT count(*) FROM t"), CLIENTS * TRANSACTIONS);
	CHECK_EQ(sqlite_value(db, "SELECT n FROM total"), CLIENTS * TRANSACTIONS);
	sqlite3_close(db);
}

/* ------------------------------------------------------------- getaddrinfo */

enum { NAMES = 20, ANSWER_AFTER_MS = 20 };

struct query {
	unsigned char text[512];
	ssize_t n;
	struct sockaddr_in from;
	socklen_t len;
	int64_t at;
};

/* A name server, in a plain thread: the address of "hN.goro.test" is 127.1.N/256.N%256,
 * 20 ms after it was asked. Knows nothing of IPv6. */
static void answer(int fd, struct query *q)
{
	unsigned char *p = q->text;
	bool ipv4 = p[q->n - 3] == 1 && p[q->n - 4] == 0;
	/* after the header, the length and the h */
	int number = atoi((char *)p + 14);
	size_t n = (size_t)q->n;

	p[2] |= 0x80;		/* an answer .. */
	p[3] = 0x80;
	p[7] = ipv4;		/* .. with that many records */
	p[11] = 0;		/* nothing additional */
	if (ipv4) {
		const unsigned char record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 1,
		                                 (unsigned char)(number >> 8), (unsigned char)number };

		memcpy(p + n, record, sizeof record);
		n += sizeof record;
	}
	sendto(fd, p, n, 0, (struct sockaddr *)&q->from, q->len);
}

static void *serve_names(void *arg)
{
	static struct query queue[1024];
	int fd = *(int *)arg;
	unsigned head = 0, tail = 0;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (tail - head < 1024 && poll(&p, 1, 1) > 0) {
			struct query *q = &queue[tail++ % 1024];

			q->len = sizeof q->from;
			q->n = recvfrom(fd, q->text, 400, 0, (struct sockaddr *)&q->from, &q->len);
			q->at = now() + ANSWER_AFTER_MS * GORO_MILLISECOND;
			if (q->n < 20)
				tail--;
		}
		while (head != tail && queue[head % 1024].at <= now())
			answer(fd, &queue[head++ % 1024]);
	}
	return NULL;
}

static bool have_names;	/* /etc/resolv.conf names the server above */

static void expect_address(const char *name, uint32_t address)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *list;
	int r = getaddrinfo(name, "80", &hints, &list);

	if (r != 0)
		FAIL("getaddrinfo of %s: %s", name, gai_strerror(r));
	CHECK_EQ(ntohl(((struct sockaddr_in *)list->ai_addr)->sin_addr.s_addr), address);
	freeaddrinfo(list);
}

static void resolve_client(int i)
{
	char name[64];

	for (int n = 0; n < NAMES; n++) {
		int number = i * NAMES + n;

		expect_address("localhost", 0x7f000001);
		expect_address("127.9.8.7", 0x7f090807);
		if (!have_names) {
			usleep(ANSWER_AFTER_MS * 1000);
			continue;
		}
		snprintf(name, sizeof name, "h%d.goro.test.", number);
		expect_address(name, 0x7f010000u + (unsigned)number);
	}
}

GO_TEST(getaddrinfo_)
{
	const char *server = getenv("REAL_NAMESERVER");
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(53) };
	static int fd;
	pthread_t thread;

	fd = socket(AF_INET, SOCK_DGRAM, 0);
	have_names = server && inet_pton(AF_INET, server, &a.sin_addr) == 1 &&
	             bind(fd, (struct sockaddr *)&a, sizeof a) == 0;
	if (have_names)
		CHECK(pthread_create(&thread, NULL, serve_names, &fd) == 0);
	else
		printf("no name server of our own: localhost only\n");
	crowd(resolve_client);
}
