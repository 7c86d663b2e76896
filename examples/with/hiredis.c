/*
 * hiredis.c - Redis by hiredis: 1,000 connections, a command under way on each.
 *
 * block_*: as everybody writes it. It works in a goroutine as it is, which keeps a thread
 * while its command is under way. park_*: the same with hiredis_park.h.
 *
 *	WITH_REDIS=6379 hiredis park|block|thread [CLIENTS [QUICK]]
 */
#include <goro.h>
#include <stdlib.h>

#include "hiredis_park.h"
#include "measure.h"

/* A list that stays empty for a second: the server answers with nil. */
#define SLOW "BLPOP nothing:%d 1"

static void *connected(redisContext *c)
{
	if (!c || c->err)
		die("connect: %s", c ? c->errstr : "no memory");
	return c;
}

static void check(redisContext *c, redisReply *reply, int type)
{
	if (!reply || reply->type != type)
		die("redis: %s", !reply ? c->errstr : reply->str ? reply->str : "wrong reply");
	freeReplyObject(reply);
}

static void disconnect(void *c)
{
	redisFree(c);
}

/* --------------------------------------------------------------- blocking */

static void *block_connect(int i)
{
	(void)i;
	return connected(redisConnect("127.0.0.1", atoi(setting("WITH_REDIS"))));
}

static void block_slow(void *c, int i)
{
	check(c, redisCommand(c, SLOW, i), REDIS_REPLY_NIL);
}

static void block_quick(void *c, int i)
{
	check(c, redisCommand(c, "SET key:%d %d", i, i), REDIS_REPLY_STATUS);
}

/* ---------------------------------------------------------------- parking */

static void *park_connect(int i)
{
	(void)i;
	return connected(hiredis_park_connect("127.0.0.1", atoi(setting("WITH_REDIS")),
	                                      GORO_FOREVER));
}

static void park_slow(void *c, int i)
{
	int64_t deadline = goro_deadline_in(60 * GORO_SECOND);

	check(c, hiredis_park_command(c, deadline, SLOW, i), REDIS_REPLY_NIL);
}

static void park_quick(void *c, int i)
{
	check(c, hiredis_park_command(c, GORO_FOREVER, "SET key:%d %d", i, i),
	      REDIS_REPLY_STATUS);
}

int main(int argc, char **argv)
{
	static const struct client block = { block_connect, block_slow, block_quick, disconnect };
	static const struct client park = { park_connect, park_slow, park_quick, disconnect };

	return measure_main(argc, argv, &block, &park);
}
