/*
 * hiredis_park.h - hiredis for goroutines: they park where redisCommand blocks.
 *
 * To be copied, with hiredis_park.c. Deadlines are goro_now() times; GORO_FOREVER is
 * none. A context is for one goroutine at a time, as it is for one thread. Errors are
 * hiredis's own: in c->err and c->errstr, after which the context is good for redisFree
 * alone. A deadline that has passed is REDIS_ERR_IO with an errno of ETIMEDOUT. The
 * program ignores SIGPIPE: hiredis writes to sockets whose other side is gone.
 */
#ifndef HIREDIS_PARK_H
#define HIREDIS_PARK_H

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdint.h>

/* As redisConnect: look at c->err, and redisFree it in any case. NULL: no memory. A name
 * is looked up by getaddrinfo, which keeps a thread meanwhile: give an address in digits.
 * */
redisContext *hiredis_park_connect(const char *ip, int port, int64_t deadline);

/* The same for the socket of a server on this machine. */
redisContext *hiredis_park_connect_unix(const char *path, int64_t deadline);

/* As redisCommand: a redisReply, for freeReplyObject; NULL: an error. */
void *hiredis_park_command(redisContext *c, int64_t deadline, const char *format, ...);
void *hiredis_park_vcommand(redisContext *c, int64_t deadline, const char *format,
                            va_list args);

/* As redisGetReply: sends what redisAppendCommand has kept, and waits for the next reply.
 * For pipelines and subscriptions. REDIS_OK or REDIS_ERR. */
int hiredis_park_get_reply(redisContext *c, void **reply, int64_t deadline);

#endif
