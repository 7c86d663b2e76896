/*
 * pq.c - PostgreSQL by libpq: 1,000 connections, a query under way on each.
 *
 * block_*: as everybody writes it. It works in a goroutine as it is, which keeps a thread
 * while its query is under way. park_*: the same with pq_park.h.
 *
 *	export WITH_POSTGRES='hostaddr=127.0.0.1 dbname=test'
 *	pq park|block|thread [CLIENTS [QUICK]]
 */
#include <goro.h>
#include <string.h>

#include "measure.h"
#include "pq_park.h"

static void *connected(PGconn *conn)
{
	if (PQstatus(conn) != CONNECTION_OK)
		die("connect: %s", PQerrorMessage(conn));
	return conn;
}

static PGresult *checked(PGconn *conn, PGresult *result, const char *want)
{
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		die("query: %s", PQerrorMessage(conn));
	if (strcmp(PQgetvalue(result, 0, 0), want) != 0)
		die("query: got %s instead of %s", PQgetvalue(result, 0, 0), want);
	return result;
}

static const char *number(char text[16], int i)
{
	snprintf(text, 16, "%d", i);
	return text;
}

/* From one second to two: a thousand processes of the server's that all wake at once on
 * the same machine would measure that. pg_sleep's value is the empty text. */
static const char *slow_query(char query[64], int i)
{
	snprintf(query, 64, "SELECT pg_sleep(1 + %d / 1000.0)::text || %d", i % 1000, i);
	return query;
}

/* --------------------------------------------------------------- blocking */

static void *block_connect(int i)
{
	(void)i;
	return connected(PQconnectdb(setting("WITH_POSTGRES")));
}

static void block_slow(void *conn, int i)
{
	char query[64], want[16];

	PQclear(checked(conn, PQexec(conn, slow_query(query, i)), number(want, i)));
}

static void block_quick(void *conn, int i)
{
	(void)i;
	PQclear(checked(conn, PQexec(conn, "SELECT 1"), "1"));
}

static void block_finish(void *conn)
{
	PQfinish(conn);
}

/* ---------------------------------------------------------------- parking */

static void *park_connect(int i)
{
	(void)i;
	return connected(pq_park_connect(setting("WITH_POSTGRES"), GORO_FOREVER));
}

static void park_slow(void *conn, int i)
{
	char query[64], want[16];
	int64_t deadline = goro_deadline_in(60 * GORO_SECOND);

	pq_park_clear(checked(conn, pq_park_exec(conn, slow_query(query, i), deadline), number(want, i)));
}

static void park_quick(void *conn, int i)
{
	(void)i;
	pq_park_clear(checked(conn, pq_park_exec(conn, "SELECT 1", GORO_FOREVER), "1"));
}

static void park_finish(void *conn)
{
	pq_park_finish(conn);
}

int main(int argc, char **argv)
{
	static const struct client block = { block_connect, block_slow, block_quick, block_finish };
	static const struct client park = { park_connect, park_slow, park_quick, park_finish };

	return measure_main(argc, argv, &block, &park);
}
