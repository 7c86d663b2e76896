/*
 * sqlite.c - SQLite computes, waits for the disk, and lets one write at a time.
 *
 * Plain calls from goroutines, with a connection for each. What limits them is that there
 * is one writer: the others are told SQLITE_BUSY, and try again, or wait for their turn
 * before they ask.
 *
 *	WITH_DIR=/tmp sqlite WAY [CLIENTS [QUICK]]
 *
 *	park		goroutines; before it writes each waits for its turn at a
 *			goro_mutex, and before it reads until fewer read than there are
 *			CPUs: a goro_sema
 *	park-busy	goroutines; the busy handler sleeps by goro_sleep
 *	block		goroutines; sqlite3_busy_timeout, which sleeps in the kernel
 *	thread		pthreads; the same
 *
 * A busy handler that parks needs SQLITE_OPEN_NOMUTEX: otherwise it is called with a
 * recursive mutex held, which belongs to a thread, and the goroutine may go on on
 * another.
 *
 * The slow request is a transaction that inserts a row, the quick one finds a row.
 */
#include <goro.h>
#include <sqlite3.h>
#include <string.h>

#include "measure.h"

#define PATIENCE_MS 100000

static goro_mutex turn;		/* to write */

static void run(sqlite3 *db, const char *statement)
{
	char *why = NULL;

	if (sqlite3_exec(db, statement, NULL, NULL, &why) != SQLITE_OK)
		die("%s: %s", statement, why ? why : sqlite3_errmsg(db));
}

static sqlite3 *connect_to(void)
{
	char path[4096];
	sqlite3 *db;

	snprintf(path, sizeof path, "%s/test.db", setting("WITH_DIR"));
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
	    SQLITE_OK)
		die("%s: %s", path, sqlite3_errmsg(db));
	sqlite3_busy_timeout(db, PATIENCE_MS);
	return db;
}

static void *block_open(int i)
{
	(void)i;
	return connect_to();
}

static void insert(void *db, int i)
{
	char statement[64];

	snprintf(statement, sizeof statement, "INSERT INTO t VALUES (NULL, %d)", i);
	run(db, statement);
}

static void find(void *db, int i)
{
	sqlite3_stmt *s = NULL;

	if (sqlite3_prepare_v2(db, "SELECT value FROM t WHERE id = ?", -1, &s, NULL) != SQLITE_OK ||
	    sqlite3_bind_int(s, 1, i % 100 + 1) != SQLITE_OK || sqlite3_step(s) != SQLITE_ROW)
		die("select: %s", sqlite3_errmsg(db));
	sqlite3_finalize(s);
}

static void close_it(void *db)
{
	sqlite3_close(db);
}

static void park_insert(void *db, int i)
{
	goro_mutex_lock(&turn);
	insert(db, i);
	goro_mutex_unlock(&turn);
}

static goro_sema readers;

static void make_readers(void *unused)
{
	(void)unused;
	goro_sema_init(&readers, goro_gomaxprocs(0));
}

static void *park_open(int i)
{
	static goro_once once;

	goro_once_do(&once, make_readers, NULL);
	return block_open(i);
}

static void park_find(void *db, int i)
{
	goro_sema_acquire(&readers, 1, GORO_FOREVER);
	find(db, i);
	goro_sema_release(&readers, 1);
}

/* Longer and longer, up to 20 ms. */
static int on_busy(void *unused, int times)
{
	(void)unused;
	goro_sleep((times < 20 ? times + 1 : 20) * GORO_MILLISECOND);
	return times < PATIENCE_MS / 20;
}

static void *busy_open(int i)
{
	sqlite3 *db = block_open(i);

	sqlite3_busy_handler(db, on_busy, NULL);
	return db;
}

int main(int argc, char **argv)
{
	static const struct client block = { block_open, insert, find, close_it };
	static const struct client park = { park_open, park_insert, park_find, close_it };
	static const struct client busy = { busy_open, insert, find, close_it };
	const char *way = argc > 1 ? argv[1] : "";

	return measure_main(argc, argv, &block, strcmp(way, "park-busy") == 0 ? &busy : &park);
}
