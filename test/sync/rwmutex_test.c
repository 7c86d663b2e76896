/*
 * rwmutex_test.c - reader/writer locks: which goroutines get in together and in what
 * order, misuse, and when they may be freed.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "deadlock.h"
#include "sched/linger.h"
#include "race.h"
#include "test.h"

_Static_assert(sizeof(goro_rwmutex) == 32, "as promised");

GO_TEST(try_variants_say_whether_they_locked)
{
	goro_rwmutex m = { { 0 } };

	goro_rwmutex_lock(&m);
	CHECK(!goro_rwmutex_try_lock(&m));
	CHECK(!goro_rwmutex_try_rlock(&m));
	goro_rwmutex_unlock(&m);

	CHECK(goro_rwmutex_try_lock(&m));
	goro_rwmutex_unlock(&m);

	CHECK(goro_rwmutex_try_rlock(&m));
	CHECK(goro_rwmutex_try_rlock(&m));
	CHECK(!goro_rwmutex_try_lock(&m));
	goro_rwmutex_runlock(&m);
	goro_rwmutex_runlock(&m);
	CHECK(goro_rwmutex_try_lock(&m));
	goro_rwmutex_unlock(&m);
}

/* --------------------------------------------------------------------- readers */

struct readers {
	goro_rwmutex m;
	goro_chan *locked, *unlock, *done;
};

static void parallel_reader(struct readers *r)
{
	goro_rwmutex_rlock(&r->m);
	goro_chan_send(r->locked, NULL);
	goro_chan_recv(r->unlock, NULL);
	goro_rwmutex_runlock(&r->m);
	goro_chan_send(r->done, NULL);
}

static void all_at_once(int n, int procs)
{
	struct readers r = {
		.locked = goro_chan_make(0, 0),
		.unlock = goro_chan_make(0, 0),
		.done = goro_chan_make(0, 0),
	};

	goro_gomaxprocs(procs);
	for (int i = 0; i < n; i++)
		go(parallel_reader, &r);
	for (int i = 0; i < n; i++)
		goro_chan_recv(r.locked, NULL);
	for (int i = 0; i < n; i++)
		goro_chan_send(r.unlock, NULL);
	for (int i = 0; i < n; i++)
		goro_chan_recv(r.done, NULL);
	goro_chan_unref(r.locked);
	goro_chan_unref(r.unlock);
	goro_chan_unref(r.done);
}

GO_TEST(readers_do_not_exclude_each_other)
{
	all_at_once(1, 4);
	all_at_once(3, 4);
	all_at_once(4, 2);
}

/* ------------------------------------------------------------------- exclusion */

enum { WRITER = 10000 };	/* readers count one each */

struct hammer {
	goro_rwmutex m;
	int activity, loops;
	goro_waitgroup wg;
};

static void read_once(struct hammer *h, bool yield)
{
	int n;

	goro_rwmutex_rlock(&h->m);
	n = fetch_add_seqcst(&h->activity, 1) + 1;
	CHECK(n >= 1 && n < WRITER);
	if (yield)
		goro_gosched();
	fetch_add_seqcst(&h->activity, -1);
	goro_rwmutex_runlock(&h->m);
}

static void write_once(struct hammer *h, bool yield)
{
	goro_rwmutex_lock(&h->m);
	CHECK_EQ(fetch_add_seqcst(&h->activity, WRITER), 0);
	if (yield)
		goro_gosched();
	fetch_add_seqcst(&h->activity, -WRITER);
	goro_rwmutex_unlock(&h->m);
}

static void reader(struct hammer *h)
{
	for (int i = 0; i < h->loops; i++) {
		linger_round(i);
		read_once(h, i % 5 == 0);
	}
	goro_waitgroup_done(&h->wg);
}

static void writer(struct hammer *h)
{
	for (int i = 0; i < h->loops; i++)
		write_once(h, i % 5 == 0);
	goro_waitgroup_done(&h->wg);
}

static void try_both(struct hammer *h)
{
	for (int i = 0; i < h->loops; i++) {
		if (goro_rwmutex_try_lock(&h->m)) {
			CHECK_EQ(fetch_add_seqcst(&h->activity, WRITER), 0);
			fetch_add_seqcst(&h->activity, -WRITER);
			goro_rwmutex_unlock(&h->m);
		}
		if (goro_rwmutex_try_rlock(&h->m)) {
			CHECK(fetch_add_seqcst(&h->activity, 1) < WRITER);
			fetch_add_seqcst(&h->activity, -1);
			goro_rwmutex_runlock(&h->m);
		}
	}
	goro_waitgroup_done(&h->wg);
}

static void *reader_thread(void *h)
{
	reader(h);
	return NULL;
}

static void *writer_thread(void *h)
{
	writer(h);
	return NULL;
}

static void hammer(int procs, int readers, int loops)
{
	struct hammer h = { .loops = loops };

	goro_gomaxprocs(procs);
	goro_waitgroup_add(&h.wg, readers + 2);
	go(writer, &h);
	for (int i = 0; i < readers; i++) {
		if (i == readers / 2)
			go(writer, &h);
		go(reader, &h);
	}
	goro_waitgroup_wait(&h.wg);
	CHECK(goro_rwmutex_try_lock(&h.m));
}

GO_TEST_TIMEOUT(hammered_by_goroutines, 120)
{
	static const int readers[] = { 1, 3, 5, 10 }, procs[] = { 1, 4, 10 };

	for (int p = 0; p < 3; p++)
		for (int r = 0; r < 4; r++)
			hammer(procs[p], readers[r], SCALED(1000));
}

GO_TEST_TIMEOUT(hammered_by_many_writers_and_triers, 120)
{
	struct hammer h = { .loops = SCALED(1000) };

	goro_waitgroup_add(&h.wg, 30);
	for (int i = 0; i < 10; i++) {
		go(writer, &h);
		go(reader, &h);
		go(try_both, &h);
	}
	goro_waitgroup_wait(&h.wg);
	CHECK(goro_rwmutex_try_lock(&h.m));
}

GO_TEST_TIMEOUT(threads_and_goroutines_together, 120)
{
	struct hammer h = { .loops = SCALED(1000) };
	pthread_t t[4];

	goro_waitgroup_add(&h.wg, 14);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, i % 2 ? reader_thread : writer_thread, &h);
	for (int i = 0; i < 5; i++) {
		go(reader, &h);
		go(writer, &h);
	}
	goro_waitgroup_wait(&h.wg);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

/* ------------------------------------------------------------------- taking turns */

struct turns {
	goro_rwmutex m;
	goro_chan *read, *written;
};

static void read_twice_then_write(struct turns *t, int n)
{
	for (int i = 0; i < n; i++) {
		goro_rwmutex_rlock(&t->m);
		goro_rwmutex_rlock(&t->m);
		goro_chan_send(t->read, NULL);
		goro_rwmutex_lock(&t->m);
		goro_chan_send(t->written, NULL);
	}
}

GO_TEST(a_writer_waits_for_every_reader)
{
	struct turns t = { .read = goro_chan_make(0, 1), .written = goro_chan_make(0, 1) };
	int n = 10;

	go(read_twice_then_write, &t, n);
	for (int i = 0; i < n; i++) {
		goro_chan_recv(t.read, NULL);
		goro_rwmutex_runlock(&t.m);
		CHECK_EQ(goro_chan_try_recv(t.written, NULL), GORO_RECV_EMPTY);
		goro_rwmutex_runlock(&t.m);
		goro_chan_recv(t.written, NULL);
		CHECK_EQ(goro_chan_try_recv(t.read, NULL), GORO_RECV_EMPTY);
		goro_rwmutex_unlock(&t.m);
	}
}

struct queue {
	goro_rwmutex m;
	int readers_in, writers_in, written;
	goro_waitgroup wg;
};

static void queued_reader(struct queue *q)
{
	goro_rwmutex_rlock(&q->m);
	fetch_add_seqcst(&q->readers_in, 1);
	goro_rwmutex_runlock(&q->m);
	goro_waitgroup_done(&q->wg);
}

static void queued_writer(struct queue *q, int readers_before)
{
	goro_rwmutex_lock(&q->m);
	CHECK_EQ(load_seqcst(&q->readers_in), readers_before);
	fetch_add_seqcst(&q->writers_in, 1);
	goro_rwmutex_unlock(&q->m);
	goro_waitgroup_done(&q->wg);
}

/* Readers as counted in the lock, with those that wait. */
static uint32_t readers_counted(goro_rwmutex *m)
{
	return load_relaxed(&((uint32_t *)m)[2]) & 0x3fffffff;
}

GO_TEST(a_waiting_writer_holds_off_new_readers)
{
	struct queue q = { .written = 0 };

	goro_waitgroup_add(&q.wg, 6);
	goro_rwmutex_rlock(&q.m);
	go(queued_writer, &q, 0);
	while (goro_rwmutex_try_rlock(&q.m)) {
		goro_rwmutex_runlock(&q.m);
		goro_gosched();
	}
	for (int i = 0; i < 5; i++)
		go(queued_reader, &q);
	AWAIT(readers_counted(&q.m) == 6);
	CHECK_EQ(load_seqcst(&q.readers_in), 0);
	goro_rwmutex_runlock(&q.m);
	goro_waitgroup_wait(&q.wg);
	CHECK_EQ(q.readers_in, 5);
}

GO_TEST(waiting_readers_go_before_the_next_writer)
{
	struct queue q = { .written = 0 };

	goro_waitgroup_add(&q.wg, 6);
	goro_rwmutex_lock(&q.m);
	go(queued_writer, &q, 5);
	goro_gosched();
	for (int i = 0; i < 5; i++)
		go(queued_reader, &q);
	AWAIT(readers_counted(&q.m) == 5);
	goro_rwmutex_unlock(&q.m);
	goro_waitgroup_wait(&q.wg);
}

/* ----------------------------------------------------------------------- the end */

struct shared {
	goro_rwmutex m;
	int refs;
};

/* Comes twice, so that some sleep while others come along. */
static void drop(struct shared *s, bool write)
{
	bool last = false;

	for (int i = 1; i >= 0; i--) {
		write ? goro_rwmutex_lock(&s->m) : goro_rwmutex_rlock(&s->m);
		if (i == 0)	/* excluded: there is one reader at most */
			last = --s->refs == 0;
		linger();
		write ? goro_rwmutex_unlock(&s->m) : goro_rwmutex_runlock(&s->m);
	}
	if (last) {
		memset(s, 0xa5, sizeof *s);
		free(s);
	}
}

static void drop_as_goroutine(struct shared *s, bool write, goro_waitgroup *wg)
{
	drop(s, write);
	goro_waitgroup_done(wg);
}

GO_TEST_TIMEOUT(freed_by_the_last_to_unlock, 120)
{
	for (int i = 0; i < SCALED(20000); i++) {
		struct shared *s = calloc(1, sizeof *s);
		goro_waitgroup wg = { { 0 } };

		linger_round(i);
		s->refs = 5;
		goro_waitgroup_add(&wg, 4);
		for (int k = 0; k < 4; k++)
			go(drop_as_goroutine, s, k != i % 5, &wg);
		drop(s, i % 5 != 4);
		goro_waitgroup_wait(&wg);
	}
}

static void drop_in_thread(void *s, int who, int round)
{
	(void)round;
	drop(s, who == 1 /* writes */);
}

TEST_TIMEOUT(freed_by_the_last_thread_to_unlock, 120)
{
	race_begin(2, drop_in_thread);
	for (int i = 0; i < race.rounds; i++) {
		struct shared *s = calloc(1, sizeof *s);

		linger_round(i);
		s->refs = 3;
		race_start(s);
		drop(s, true);
		race_finish();
	}
	race_end();
}

/* ----------------------------------------------------------------------- misuse */

static void unlock_new(void *m) { goro_rwmutex_unlock(m); }
static void unlock_rlocked(void *m) { goro_rwmutex_rlock(m); goro_rwmutex_unlock(m); }
static void unlock_twice(void *m)
{
	goro_rwmutex_lock(m);
	goro_rwmutex_unlock(m);
	goro_rwmutex_unlock(m);
}
static void runlock_new(void *m) { goro_rwmutex_runlock(m); }
static void runlock_locked(void *m) { goro_rwmutex_lock(m); goro_rwmutex_runlock(m); }
static void runlock_twice(void *m)
{
	goro_rwmutex_rlock(m);
	goro_rwmutex_runlock(m);
	goro_rwmutex_runlock(m);
}

static void (*misuse)(void *);

static int try_misuse(int argc, char **argv)
{
	goro_rwmutex m = { { 0 } };

	(void)argc; (void)argv;
	goro_try(misuse, &m);		/* no help: it is fatal */
	return 0;
}

static void run_misuse(void)
{
	exit(goro_run(try_misuse, 0, NULL));
}

static void check_fatal(void (*what)(void *), const char *text)
{
	struct test_output o;

	misuse = what;
	test_run_child(run_misuse, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "fatal error: ");
	CHECK_CONTAINS(o.err, text);
}

TEST(unlocking_what_is_not_locked_is_fatal)
{
	check_fatal(unlock_new, "sync: Unlock of unlocked RWMutex\n");
	check_fatal(unlock_rlocked, "sync: Unlock of unlocked RWMutex\n");
	check_fatal(unlock_twice, "sync: Unlock of unlocked RWMutex\n");
	check_fatal(runlock_new, "sync: RUnlock of unlocked RWMutex\n");
	check_fatal(runlock_locked, "sync: RUnlock of unlocked RWMutex\n");
	check_fatal(runlock_twice, "sync: RUnlock of unlocked RWMutex\n");
}

static void lock_both(bool read_first)
{
	goro_rwmutex m = { { 0 } };

	read_first ? goro_rwmutex_rlock(&m) : goro_rwmutex_lock(&m);
	read_first ? goro_rwmutex_lock(&m) : goro_rwmutex_rlock(&m);
}

static int read_then_write(int argc, char **argv)
{
	(void)argc; (void)argv;
	lock_both(true);
	return 0;
}

static int write_then_read(int argc, char **argv)
{
	(void)argc; (void)argv;
	lock_both(false);
	return 0;
}

TEST(waiting_for_oneself_is_a_deadlock)
{
	struct test_output o;

	check_deadlock(read_then_write, &o);
	CHECK_CONTAINS(o.err, "[sync.RWMutex.Lock]:\n");
	check_deadlock(write_then_read, &o);
	CHECK_CONTAINS(o.err, "[sync.RWMutex.RLock]:\n");
}
