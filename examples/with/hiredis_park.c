/* hiredis_park.c - see hiredis_park.h. */
#include "hiredis_park.h"

#include <errno.h>
#include <goro.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static int io_error(redisContext *c, int error)
{
	c->err = REDIS_ERR_IO;
	snprintf(c->errstr, sizeof c->errstr, "%s", strerror(error));
	errno = error;
	return REDIS_ERR;
}

/* The events that are there; REDIS_ERR (-1) with the error in the context. */
static int await(redisContext *c, int events, int64_t deadline)
{
	int r = goro_poll(c->fd, events, deadline);

	return r > 0 ? r : io_error(c, r == 0 ? ETIMEDOUT : -r);
}

/* The end of a connect that was begun. */
static redisContext *connected(redisContext *c, int64_t deadline)
{
	socklen_t size = sizeof(int);
	int error = 0;

	if (!c || c->err || await(c, POLLOUT, deadline) < 0)
		return c;
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		error = errno;
	if (error != 0)
		io_error(c, error);
	else
		c->flags |= REDIS_CONNECTED;
	return c;
}

redisContext *hiredis_park_connect(const char *ip, int port, int64_t deadline)
{
	return connected(redisConnectNonBlock(ip, port), deadline);
}

redisContext *hiredis_park_connect_unix(const char *path, int64_t deadline)
{
	return connected(redisConnectUnixNonBlock(path), deadline);
}

/* A server that answers before it has received everything has to get rid of that first.
 * */
static int flush(redisContext *c, int64_t deadline)
{
	int done, events;

	for (;;) {
		if (redisBufferWrite(c, &done) == REDIS_ERR)
			return REDIS_ERR;
		if (done)
			return REDIS_OK;
		events = await(c, POLLIN | POLLOUT, deadline);
		if (events < 0)
			return REDIS_ERR;
		if (events & POLLIN && redisBufferRead(c) == REDIS_ERR)
			return REDIS_ERR;
	}
}

int hiredis_park_get_reply(redisContext *c, void **reply, int64_t deadline)
{
	void *found = NULL;

	if (c->err)
		return REDIS_ERR;
	if (redisGetReplyFromReader(c, &found) == REDIS_ERR)
		return REDIS_ERR;
	if (!found && flush(c, deadline) == REDIS_ERR)
		return REDIS_ERR;
	for (;;) {
		if (!found && redisGetReplyFromReader(c, &found) == REDIS_ERR)
			return REDIS_ERR;
		if (found)
			break;
		if (await(c, POLLIN, deadline) < 0 || redisBufferRead(c) == REDIS_ERR)
			return REDIS_ERR;
	}
	if (reply)
		*reply = found;
	else
		freeReplyObject(found);
	return REDIS_OK;
}

void *hiredis_park_vcommand(redisContext *c, int64_t deadline, const char *format,
                            va_list args)
{
	void *reply = NULL;

	if (c->err || redisvAppendCommand(c, format, args) == REDIS_ERR ||
	    hiredis_park_get_reply(c, &reply, deadline) == REDIS_ERR)
		return NULL;
	return reply;
}

void *hiredis_park_command(redisContext *c, int64_t deadline, const char *format, ...)
{
	va_list args;
	void *reply;

	va_start(args, format);
	reply = hiredis_park_vcommand(c, deadline, format, args);
	va_end(args);
	return reply;
}
