/* pq_park.c - see pq_park.h. */
#include "pq_park.h"

#include <errno.h>
#include <goro.h>
#include <poll.h>

/* The events that are there, 0 past the deadline, with errno set; errors are for libpq to
 * find, which looks at the socket next. */
static int await(PGconn *conn, int events, int64_t deadline)
{
	int r = goro_poll(PQsocket(conn), events, deadline);

	errno = r == 0 ? ETIMEDOUT : 0;
	return r < 0 ? events : r;
}

PGconn *pq_park_connect(const char *conninfo, int64_t deadline)
{
	PGconn *conn = PQconnectStart(conninfo);
	int events = POLLOUT;

	errno = 0;
	if (!conn || PQstatus(conn) == CONNECTION_BAD)
		return conn;
	while (await(conn, events, deadline) != 0) {
		switch (PQconnectPoll(conn)) {
		case PGRES_POLLING_READING:
			events = POLLIN;
			break;
		case PGRES_POLLING_WRITING:
			events = POLLOUT;
			break;
		case PGRES_POLLING_OK:
			PQsetnonblocking(conn, 1);
			/* fall through */
		default:
			errno = 0;
			return conn;
		}
	}
	return conn;
}

/* ------------------------------------------------------------------- turns
 *
 * On a busy machine a thread may get no CPU for 10 ms or more, in the midst of libpq.
 * Its goroutine keeps the thread, and often one of malloc's locks; the runtime runs the
 * others on another thread, and those that want the same lock sleep there, each with a
 * thread. A thousand answers at once make dozens of threads in that way. So only a few
 * goroutines are in libpq at once, and the others park until it is their turn. No call
 * that is made in a turn waits for the server, or looks a name up. */

#define TURNS_PER_PROCESSOR 2

static goro_once turns_made;
static goro_sema turns;

static void make_turns(void *arg)
{
	(void)arg;
	goro_sema_init(&turns, goro_gomaxprocs(0) * TURNS_PER_PROCESSOR);
}

static void turn_begin(void)
{
	goro_once_do(&turns_made, make_turns, NULL);
	goro_sema_acquire(&turns, 1, GORO_FOREVER);
}

static void turn_end(void)
{
	goro_sema_release(&turns, 1);
}

#define IN_TURN(call) ({ turn_begin(); __auto_type result_ = (call); turn_end(); result_; })

void pq_park_clear(PGresult *result)
{
	turn_begin();
	PQclear(result);
	turn_end();
}

void pq_park_finish(PGconn *conn)
{
	turn_begin();
	PQfinish(conn);
	turn_end();
}

/* ----------------------------------------------------------------- queries */

/* Sends what libpq keeps to be sent. A server that sends before it has received
 * everything has to get rid of that first. False: past the deadline. */
static bool flush(PGconn *conn, int64_t deadline)
{
	int events;

	while (IN_TURN(PQflush(conn)) == 1) {
		events = await(conn, POLLIN | POLLOUT, deadline);
		if (events == 0)
			return false;
		if (events & POLLIN && !IN_TURN(PQconsumeInput(conn)))
			return true;	/* the next result says why */
	}
	return true;
}

PGresult *pq_park_get_result(PGconn *conn, int64_t deadline)
{
	PGresult *result;

	if (!flush(conn, deadline))
		return NULL;
	while (PQisBusy(conn)) {
		if (await(conn, POLLIN, deadline) == 0)
			return NULL;
		if (!IN_TURN(PQconsumeInput(conn)))
			break;
	}
	result = IN_TURN(PQgetResult(conn));
	errno = 0;
	return result;
}

PGresult *pq_park_last_result(PGconn *conn, int64_t deadline)
{
	PGresult *last = NULL, *result;

	while ((result = pq_park_get_result(conn, deadline))) {
		ExecStatusType status = PQresultStatus(result);

		pq_park_clear(last);
		last = result;
		if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT ||
		    status == PGRES_COPY_BOTH || PQstatus(conn) == CONNECTION_BAD)
			return last;
	}
	if (errno == ETIMEDOUT) {
		pq_park_clear(last);
		return NULL;
	}
	return last;
}

PGresult *pq_park_exec(PGconn *conn, const char *query, int64_t deadline)
{
	int sent = IN_TURN(PQsendQuery(conn, query));

	errno = 0;
	return sent ? pq_park_last_result(conn, deadline) : NULL;
}

struct cancel {
	PGcancel *cancel;
	int sent;
};

static void cancel(void *arg)
{
	struct cancel *c = arg;
	char why[256];

	c->sent = PQcancel(c->cancel, why, sizeof why);
}

int pq_park_cancel(PGconn *conn, int64_t deadline)
{
	struct cancel c = { .cancel = PQgetCancel(conn) };

	errno = 0;
	if (!c.cancel)
		return 0;
	goro_blocking(cancel, &c);
	PQfreeCancel(c.cancel);
	if (!c.sent)
		return 0;
	pq_park_clear(pq_park_last_result(conn, deadline));
	return errno != ETIMEDOUT && PQtransactionStatus(conn) != PQTRANS_ACTIVE &&
	       PQstatus(conn) == CONNECTION_OK;
}
