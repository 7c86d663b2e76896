/* hiredis_test.c - what hiredis_park.c does when things go wrong, and with large replies.
 * */
#include <goro.h>
#include <signal.h>

#include "expect.h"
#include "hiredis_park.h"
#include "measure.h"

static redisContext *connect_to(const char *port_setting)
{
	return hiredis_park_connect("127.0.0.1", atoi(setting(port_setting)), GORO_FOREVER);
}

static redisContext *connect_now(void)
{
	redisContext *c = connect_to("WITH_REDIS");

	expect(c && c->err == 0);
	return c;
}

static void ping(redisContext *c)
{
	redisReply *r = hiredis_park_command(c, GORO_FOREVER, "PING");

	expect(r && r->type == REDIS_REPLY_STATUS && strcmp(r->str, "PONG") == 0);
	freeReplyObject(r);
}

static void refused(void)
{
	redisContext *c = connect_to("WITH_NOBODY");

	expect(c && c->err == REDIS_ERR_IO && says(c->errstr, "refused"));
	expect(!hiredis_park_command(c, GORO_FOREVER, "PING"));
	redisFree(c);
	c = hiredis_park_connect_unix("/nonexistent/socket", GORO_FOREVER);
	expect(c && c->err == REDIS_ERR_IO && says(c->errstr, "No such file"));
	redisFree(c);
}

static void wrong_command(void)
{
	redisContext *c = connect_now();
	redisReply *r = hiredis_park_command(c, GORO_FOREVER, "NONSENSE");

	expect(r && r->type == REDIS_REPLY_ERROR && says(r->str, "unknown command"));
	freeReplyObject(r);
	ping(c);
	redisFree(c);
}

/* The server ends the connection while the command is under way. */
static void wait_in_vain(redisContext *c, goro_chan *done)
{
	bool gone = !hiredis_park_command(c, GORO_FOREVER, "BLPOP nothing 0");

	goro_chan_send(done, &gone);
}

static void server_gone(void)
{
	redisContext *c = connect_now(), *other = connect_now();
	goro_chan *done = goro_chan_of(bool, 0);
	bool gone = false;
	redisReply *r;

	r = hiredis_park_command(c, GORO_FOREVER, "CLIENT ID");
	expect(r && r->type == REDIS_REPLY_INTEGER);
	go(wait_in_vain, c, done);
	goro_sleep(20 * GORO_MILLISECOND);
	freeReplyObject(hiredis_park_command(other, GORO_FOREVER, "CLIENT KILL ID %lld",
	                                     r->integer));
	goro_chan_recv(done, &gone);
	expect(gone && c->err != 0 && says(c->errstr, "closed"));
	expect(!hiredis_park_command(c, GORO_FOREVER, "PING"));
	freeReplyObject(r);
	goro_chan_unref(done);
	redisFree(c);
	redisFree(other);
}

static void deadline(void)
{
	redisContext *c = connect_now();
	int64_t start = goro_now();

	expect(!hiredis_park_command(c, goro_deadline_in(50 * GORO_MILLISECOND),
	                             "BLPOP nothing 0"));
	expect(errno == ETIMEDOUT && c->err == REDIS_ERR_IO && says(c->errstr, "timed out"));
	expect(goro_now() - start >= 50 * GORO_MILLISECOND);
	/* the old reply may come yet */
	expect(!hiredis_park_command(c, GORO_FOREVER, "PING"));
	redisFree(c);
	c = connect_to("WITH_SILENT");
	expect(c->err == 0);
	expect(!hiredis_park_command(c, goro_deadline_in(50 * GORO_MILLISECOND), "PING"));
	expect(errno == ETIMEDOUT);
	redisFree(c);
}

/* 40 MB each way. */
static void large(void)
{
	enum { SIZE = 40 << 20 };
	redisContext *c = connect_now();
	char *text = malloc(SIZE);
	redisReply *r;

	memset(text, 'x', SIZE);
	r = hiredis_park_command(c, GORO_FOREVER, "SET large %b", text, (size_t)SIZE);
	expect(r && r->type == REDIS_REPLY_STATUS);
	freeReplyObject(r);
	r = hiredis_park_command(c, GORO_FOREVER, "GET large");
	expect(r && r->len == SIZE && memcmp(r->str, text, SIZE) == 0);
	freeReplyObject(r);
	free(text);
	freeReplyObject(hiredis_park_command(c, GORO_FOREVER, "DEL large"));
	redisFree(c);
}

/* The replies do not fit into the sockets while the commands are still being sent. They
 * are few and large: hiredis moves all that it has read for each kilobyte of replies that
 * it takes, and it may have read everything before the first one is taken. */
static void pipeline(void)
{
	enum { COMMANDS = 2000 };
	redisContext *c = connect_now();
	char value[8000];

	memset(value, 'v', sizeof value);
	for (int i = 0; i < COMMANDS; i++)
		redisAppendCommand(c, "ECHO %d%b", i, value, sizeof value);
	for (int i = 0; i < COMMANDS; i++) {
		redisReply *r = NULL;

		expect(hiredis_park_get_reply(c, (void **)&r, GORO_FOREVER) == REDIS_OK);
		expect(r->type == REDIS_REPLY_STRING && atoi(r->str) == i);
		freeReplyObject(r);
	}
	ping(c);
	redisFree(c);
}

/* A server that answers with more than it was sent, and reads on when that has been
 * taken. */
static void talk(int listener)
{
	static char said[1 << 16], read[1 << 15];
	int fd = goro_accept(listener, NULL, NULL);
	ssize_t n;

	for (int i = 0; i < 1 << 16; i += 256) {
		memset(said + i, '+', 254);
		memcpy(said + i + 254, "\r\n", 2);
	}
	while ((n = goro_read(fd, read, sizeof read)) > 0)
		if (goro_write(fd, said, (size_t)(n + 255) / 256 * 256) < 0)
			break;
	goro_close(fd);
}

static void answers_first(void)
{
	enum { COMMANDS = 100, SIZE = 1 << 18 };
	const char *path = setting("WITH_TALKER");
	int listener = goro_listen("unix", path);
	char *value = malloc(SIZE);
	redisContext *c;

	expect(listener >= 0 && value);
	go(talk, listener);
	c = hiredis_park_connect_unix(path, GORO_FOREVER);
	expect(c && c->err == 0);
	memset(value, 'v', SIZE);
	for (int i = 0; i < COMMANDS; i++)
		redisAppendCommand(c, "SET key %b", value, (size_t)SIZE);
	for (int i = 0; i < COMMANDS; i++)
		expect(hiredis_park_get_reply(c, NULL, GORO_FOREVER) == REDIS_OK);
	free(value);
	redisFree(c);
	goro_close(listener);
}

static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	signal(SIGPIPE, SIG_IGN);
	refused();
	wrong_command();
	server_gone();
	deadline();
	large();
	pipeline();
	answers_first();
	return 0;
}
GORO_MAIN(start)
