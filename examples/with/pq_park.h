/*
 * pq_park.h - libpq for goroutines: they park where PQexec and the like block.
 *
 * To be copied, with pq_park.c. Deadlines are goro_now() times; GORO_FOREVER is none. A
 * connection is for one goroutine at a time, as it is for one thread. Errors are libpq's
 * own. Where the deadline has passed errno is ETIMEDOUT, and for all other errors it is
 * 0.
 */
#ifndef PQ_PARK_H
#define PQ_PARK_H

#include <libpq-fe.h>
#include <stdint.h>

/* As PQconnectdb: look at PQstatus and PQerrorMessage, and PQfinish it in any case. NULL:
 * no memory. A host's name is looked up by getaddrinfo, which keeps a thread meanwhile:
 * say hostaddr=ADDRESS. The deadline stands in for connect_timeout. */
PGconn *pq_park_connect(const char *conninfo, int64_t deadline);

/* As PQexec: the last result, to be cleared. NULL: not even sent, as PQerrorMessage says,
 * or the deadline has passed. Then the server still works at it: cancel that or PQfinish.
 * */
PGresult *pq_park_exec(PGconn *conn, const char *query, int64_t deadline);

/* The last result of what was sent by PQsendQueryParams, PQsendPrepare,
 * PQsendQueryPrepared and so on, to a connection of pq_park_connect's. As pq_park_exec.
 * */
PGresult *pq_park_last_result(PGconn *conn, int64_t deadline);

/* As PQgetResult: one after the other, until NULL with an errno of 0. For single rows
 * (PQsetSingleRowMode) and several commands in one query. */
PGresult *pq_park_get_result(PGconn *conn, int64_t deadline);

/* As PQclear and PQfinish, which do, too. Where hundreds of goroutines call these at once
 * on a busy machine, here they take turns, and need fewer threads. */
void pq_park_clear(PGresult *result);
void pq_park_finish(PGconn *conn);

/* Asks the server to give up the query that is under way, and waits until it has. 1: the
 * connection can be used again. 0: it can not. PQcancel keeps a thread while it connects.
 * */
int pq_park_cancel(PGconn *conn, int64_t deadline);

#endif
