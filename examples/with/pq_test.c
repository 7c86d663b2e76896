/* pq_test.c - what pq_park.c does when things go wrong, and with large results. */
#include <goro.h>
#include <signal.h>

#include "expect.h"
#include "measure.h"
#include "pq_park.h"

enum { LARGE = 40 << 20 };

static PGconn *connect_now(void)
{
	PGconn *conn = pq_park_connect(setting("WITH_POSTGRES"), GORO_FOREVER);

	expect(PQstatus(conn) == CONNECTION_OK && errno == 0);
	return conn;
}

static void is_one(PGresult *r)
{
	expect(PQresultStatus(r) == PGRES_TUPLES_OK);
	expect(strcmp(PQgetvalue(r, 0, 0), "1") == 0);
	pq_park_clear(r);
}

static void refused(void)
{
	char where[64];
	PGconn *conn;

	snprintf(where, sizeof where, "hostaddr=127.0.0.1 port=%s", setting("WITH_NOBODY"));
	conn = pq_park_connect(where, GORO_FOREVER);
	expect(PQstatus(conn) == CONNECTION_BAD);
	expect(says(PQerrorMessage(conn), "refused"));
	expect(errno == 0);
	pq_park_finish(conn);
}

/* One who accepts, and never says a word. */
static void connect_timeout(void)
{
	char where[64];
	int64_t start = goro_now();
	PGconn *conn;

	snprintf(where, sizeof where, "hostaddr=127.0.0.1 port=%s", setting("WITH_SILENT"));
	conn = pq_park_connect(where, goro_deadline_in(50 * GORO_MILLISECOND));
	expect(errno == ETIMEDOUT);
	expect(PQstatus(conn) != CONNECTION_OK);
	expect(goro_now() - start >= 50 * GORO_MILLISECOND);
	pq_park_finish(conn);
}

static void wrong_query(void)
{
	PGconn *conn = connect_now();
	PGresult *r = pq_park_exec(conn, "SELECT nonsense", GORO_FOREVER);

	expect(PQresultStatus(r) == PGRES_FATAL_ERROR && errno == 0);
	expect(says(PQresultErrorMessage(r), "column \"nonsense\" does not exist"));
	pq_park_clear(r);
	is_one(pq_park_exec(conn, "SELECT 1", GORO_FOREVER));
	pq_park_finish(conn);
}

/* The server's process ends while the query is under way. */
static void server_gone(void)
{
	PGconn *conn = connect_now();
	PGresult *r = pq_park_exec(conn, "SELECT pg_terminate_backend(pg_backend_pid())",
	                           GORO_FOREVER);

	expect(PQresultStatus(r) == PGRES_FATAL_ERROR && errno == 0);
	expect(says(PQerrorMessage(conn), "terminating connection"));
	expect(says(PQerrorMessage(conn), "server closed the connection"));
	pq_park_clear(r);
	r = pq_park_exec(conn, "SELECT 1", GORO_FOREVER);
	expect(PQresultStatus(r) != PGRES_TUPLES_OK);
	expect(PQstatus(conn) == CONNECTION_BAD);
	pq_park_clear(r);
	pq_park_finish(conn);
}

static void deadline_and_cancel(void)
{
	PGconn *conn = connect_now();
	int64_t start = goro_now();

	expect(!pq_park_exec(conn, "SELECT pg_sleep(600)",
	                     goro_deadline_in(50 * GORO_MILLISECOND)));
	expect(errno == ETIMEDOUT);
	expect(goro_now() - start >= 50 * GORO_MILLISECOND);
	expect(!pq_park_exec(conn, "SELECT 1", GORO_FOREVER));
	expect(says(PQerrorMessage(conn), "another command is already in progress"));
	expect(pq_park_cancel(conn, GORO_FOREVER) == 1);
	is_one(pq_park_exec(conn, "SELECT 1", GORO_FOREVER));
	expect(goro_now() - start < 500 * GORO_SECOND);
	pq_park_finish(conn);
}

/* 40 MB each way: what is sent does not fit into the socket, nor does what comes back. */
static void large(void)
{
	PGconn *conn = connect_now();
	char *text = malloc(LARGE + 1);
	const char *values[] = { text };
	PGresult *r;

	memset(text, 'x', LARGE);
	text[LARGE] = 0;
	expect(PQsendQueryParams(conn, "SELECT $1::text", 1, NULL, values, NULL, NULL, 0));
	r = pq_park_last_result(conn, GORO_FOREVER);
	expect(PQresultStatus(r) == PGRES_TUPLES_OK);
	expect(PQgetlength(r, 0, 0) == LARGE);
	expect(strcmp(PQgetvalue(r, 0, 0), text) == 0);
	pq_park_clear(r);
	free(text);
	r = pq_park_exec(conn, "SELECT generate_series(1, 300000)", GORO_FOREVER);
	expect(PQntuples(r) == 300000);
	pq_park_clear(r);
	pq_park_finish(conn);
}

static void rows_one_by_one(void)
{
	PGconn *conn = connect_now();
	int rows = 0, ends = 0;
	PGresult *r;

	expect(PQsendQuery(conn, "SELECT generate_series(1, 1000)") && PQsetSingleRowMode(conn));
	while ((r = pq_park_get_result(conn, GORO_FOREVER))) {
		rows += PQresultStatus(r) == PGRES_SINGLE_TUPLE;
		ends += PQresultStatus(r) == PGRES_TUPLES_OK;
		pq_park_clear(r);
	}
	expect(rows == 1000 && ends == 1 && errno == 0);
	pq_park_finish(conn);
}

/* As PQexec: of several commands the last one's result, or the error's. */
static void several_commands(void)
{
	PGconn *conn = connect_now();
	PGresult *r;

	is_one(pq_park_exec(conn, "SELECT 2; SELECT 1", GORO_FOREVER));
	r = pq_park_exec(conn, "SELECT 2; SELECT nonsense; SELECT 1", GORO_FOREVER);
	expect(PQresultStatus(r) == PGRES_FATAL_ERROR);
	pq_park_clear(r);
	r = pq_park_exec(conn, "COPY (SELECT 1) TO STDOUT", GORO_FOREVER);
	expect(PQresultStatus(r) == PGRES_COPY_OUT);
	pq_park_clear(r);
	pq_park_finish(conn);
}

/* A server that does not take what is sent: the deadline holds for that, too. */
static void nobody_reads(void)
{
	PGconn *conn = connect_now();
	char *query = malloc(LARGE + 1);
	int server = PQbackendPID(conn);

	memset(query, ' ', LARGE);
	query[LARGE] = 0;
	expect(kill(server, SIGSTOP) == 0);
	expect(!pq_park_exec(conn, query, goro_deadline_in(50 * GORO_MILLISECOND)));
	expect(errno == ETIMEDOUT);
	expect(kill(server, SIGCONT) == 0);
	free(query);
	pq_park_finish(conn);
}

/* In a pipeline the server answers before it has read everything, and reads on when that
 * has been taken. */
static void pipeline(void)
{
	enum { QUERIES = 200, SIZE = 100000, TIMES = 5 };
	PGconn *conn = connect_now();
	char *text = malloc(SIZE + 1);
	const char *values[] = { text };
	PGresult *r;

	memset(text, 'x', SIZE);
	text[SIZE] = 0;
	expect(PQenterPipelineMode(conn));
	for (int i = 0; i < QUERIES; i++)
		expect(PQsendQueryParams(conn, "SELECT repeat($1, 5)", 1, NULL, values, NULL,
		                         NULL, 0));
	expect(PQpipelineSync(conn));
	for (int i = 0; i < QUERIES; i++) {
		r = pq_park_get_result(conn, GORO_FOREVER);
		expect(PQresultStatus(r) == PGRES_TUPLES_OK && PQgetlength(r, 0, 0) == TIMES * SIZE);
		pq_park_clear(r);
		expect(!pq_park_get_result(conn, GORO_FOREVER) && errno == 0);
	}
	r = pq_park_get_result(conn, GORO_FOREVER);
	expect(PQresultStatus(r) == PGRES_PIPELINE_SYNC);
	pq_park_clear(r);
	free(text);
	pq_park_finish(conn);
}

static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	refused();
	connect_timeout();
	wrong_query();
	server_gone();
	deadline_and_cancel();
	large();
	rows_one_by_one();
	several_commands();
	nobody_reads();
	pipeline();
	return 0;
}
GORO_MAIN(start)
