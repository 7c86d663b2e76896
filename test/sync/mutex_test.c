/*
 * mutex_test.c - mutexes: exclusion, fairness, misuse, and when they may be freed.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>

#include "await.h"
#include "deadlock.h"
#include "sched/linger.h"
#include "sync/mutex.h"
#include "race.h"
#include "sync/sema.h"
#include "test.h"

_Static_assert(sizeof(goro_mutex) == 8, "as promised");

static uint32_t state_of(goro_mutex *m)
{
	return load_relaxed(&((struct mutex *)m)->state);
}

static uint32_t sleepers_of(goro_mutex *m)
{
	struct m *mp = rt_enter();
	uint32_t n = sema_sleepers(&((struct mutex *)m)->sema);

	rt_exit(mp);
	return n;
}

static bool is_starving(goro_mutex *m)
{
	return state_of(m) & 4;
}

/* ------------------------------------------------------------------- exclusion */

static void hammer(goro_mutex *m, int *shared, int loops, goro_waitgroup *wg)
{
	for (int i = 0; i < loops; i++) {
		if (i % 3 == 0) {
			if (goro_mutex_try_lock(m)) {
				++*shared;
				goro_mutex_unlock(m);
			}
			continue;
		}
		goro_mutex_lock(m);
		++*shared;
		goro_mutex_unlock(m);
	}
	goro_waitgroup_done(wg);
}

GO_TEST(try_lock_says_whether_it_locked)
{
	goro_mutex m = { { 0 } };

	goro_mutex_lock(&m);
	CHECK(!goro_mutex_try_lock(&m));
	goro_mutex_unlock(&m);
	CHECK(goro_mutex_try_lock(&m));
	CHECK(!goro_mutex_try_lock(&m));
	goro_mutex_unlock(&m);
}

GO_TEST(hammered_by_goroutines)
{
	goro_mutex m = { { 0 } };
	goro_waitgroup wg = { { 0 } };
	int shared = 0;

	goro_waitgroup_add(&wg, 10);
	for (int i = 0; i < 10; i++)
		go(hammer, &m, &shared, 1000, &wg);
	goro_waitgroup_wait(&wg);
	CHECK(shared >= 10 * 666);
	CHECK_EQ(state_of(&m), 0);
}

/* The holder parks now and then, so that the others sleep and are woken. */
static void hammer_and_park(goro_mutex *m, int *shared, int loops, goro_waitgroup *wg)
{
	for (int i = 0; i < loops; i++) {
		int seen;

		goro_mutex_lock(m);
		seen = ++*shared;
		if (i % 7 == 0)
			goro_gosched();
		CHECK_EQ(*shared, seen);
		goro_mutex_unlock(m);
	}
	goro_waitgroup_done(wg);
}

GO_TEST(holders_that_yield_exclude_others)
{
	goro_mutex m = { { 0 } };
	goro_waitgroup wg = { { 0 } };
	int shared = 0, loops = SCALED(2000);

	goro_waitgroup_add(&wg, 50);
	for (int i = 0; i < 50; i++)
		go(hammer_and_park, &m, &shared, loops, &wg);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(shared, 50 * loops);
	CHECK_EQ(state_of(&m), 0);
}

struct mixed {
	goro_mutex m;
	int shared, loops;
};

static void *hammer_thread(void *arg)
{
	struct mixed *x = arg;

	for (int i = 0; i < x->loops; i++) {
		goro_mutex_lock(&x->m);
		x->shared++;
		goro_mutex_unlock(&x->m);
	}
	return NULL;
}

GO_TEST(threads_and_goroutines_together)
{
	struct mixed x = { .loops = SCALED(5000) };
	goro_waitgroup wg = { { 0 } };
	pthread_t t[3];

	goro_waitgroup_add(&wg, 10);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, hammer_thread, &x);
	for (int i = 0; i < 10; i++)
		go(hammer_and_park, &x.m, &x.shared, x.loops, &wg);
	goro_waitgroup_wait(&wg);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(x.shared, 13 * x.loops);
	CHECK_EQ(state_of(&x.m), 0);
}

TEST(threads_alone)
{
	struct mixed x = { .loops = SCALED(20000) };
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, hammer_thread, &x);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(x.shared, 4 * x.loops);
}

static void unlock_it(goro_mutex *m)
{
	goro_mutex_unlock(m);
}

GO_TEST(another_goroutine_may_unlock)
{
	goro_mutex m = { { 0 } };

	goro_mutex_lock(&m);
	go(unlock_it, &m);
	goro_mutex_lock(&m);
	goro_mutex_unlock(&m);
}

/* -------------------------------------------------------------------- fairness */

struct fair {
	goro_mutex m;
	int stop, order[16], n;
	goro_waitgroup wg;
};

/* Has the lock nearly all the time. */
static void greedy(struct fair *f)
{
	while (!load_acquire(&f->stop)) {
		goro_mutex_lock(&f->m);
		usleep(100);
		goro_mutex_unlock(&f->m);
	}
	goro_waitgroup_done(&f->wg);
}

static void modest(struct fair *f)
{
	for (int i = 0; i < 10; i++) {
		goro_mutex_lock(&f->m);
		goro_mutex_unlock(&f->m);
	}
	store_release(&f->stop, 1);
	goro_waitgroup_done(&f->wg);
}

static void *greedy_thread(void *arg)
{
	greedy(arg);
	return NULL;
}

GO_TEST_TIMEOUT(the_greedy_do_not_starve_others, 10)
{
	struct fair f = { .stop = 0 };

	goro_waitgroup_add(&f.wg, 2);
	go(greedy, &f);
	go(modest, &f);
	goro_waitgroup_wait(&f.wg);
}

GO_TEST_TIMEOUT(greedy_threads_do_not_starve_goroutines, 10)
{
	struct fair f = { .stop = 0 };
	pthread_t t;

	goro_waitgroup_add(&f.wg, 2);
	pthread_create(&t, NULL, greedy_thread, &f);
	go(modest, &f);
	goro_waitgroup_wait(&f.wg);
	pthread_join(t, NULL);
}

static void note_turn(struct fair *f, int id)
{
	goro_mutex_lock(&f->m);
	f->order[f->n++] = id;
	goro_mutex_unlock(&f->m);
	goro_waitgroup_done(&f->wg);
}

static void queue_up(struct fair *f, int n)
{
	goro_waitgroup_add(&f->wg, n);
	for (int i = 0; i < n; i++) {
		go(note_turn, f, i);
		AWAIT(sleepers_of(&f->m) == (uint32_t)i + 1);
	}
}

GO_TEST(waiters_are_served_in_order)
{
	struct fair f = { .stop = 0 };

	goro_mutex_lock(&f.m);
	queue_up(&f, 10);
	goro_mutex_unlock(&f.m);
	goro_waitgroup_wait(&f.wg);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(f.order[i], i);
}

/* Unlocks, and locks again before the waiter that this woke: false if that was
 * faster. */
static bool beat_the_waiter(struct fair *f)
{
	goro_mutex_unlock(&f->m);
	goro_mutex_lock(&f->m);
	return f->n == 0;
}

/* A waiter is woken, after more than a millisecond, and beaten to it. */
static bool starve_and_hand_over(struct fair *f)
{
	bool beaten;

	goro_mutex_lock(&f->m);
	queue_up(f, 2);
	usleep(1500);
	beaten = beat_the_waiter(f);
	if (beaten) {
		AWAIT(is_starving(&f->m));
		/* it says so before it is in the queue */
		usleep(TOOL_TSAN ? 50000 : 2000);
		CHECK(!goro_mutex_try_lock(&f->m));
		goro_mutex_unlock(&f->m);	/* hands it over: is never free */
		goro_mutex_lock(&f->m);
		CHECK_EQ(f->n, 2);
		CHECK_EQ(f->order[0], 0);
		CHECK(!is_starving(&f->m));
	}
	goro_mutex_unlock(&f->m);
	goro_waitgroup_wait(&f->wg);
	CHECK_EQ(state_of(&f->m), 0);
	return beaten;
}

GO_TEST(a_beaten_waiter_is_handed_the_lock_before_newcomers)
{
	for (int i = 0; i < 100; i++) {
		struct fair f = { .stop = 0 };

		if (starve_and_hand_over(&f))
			return;
	}
	SKIP("the waiter was always faster");
}

/* --------------------------------------------------------------------- the end */

struct shared {
	goro_mutex m;
	int refs;
};

/* Comes twice, so that some sleep while others come along. */
static void drop(struct shared *s)
{
	bool last = false;

	for (int i = 1; i >= 0; i--) {
		goro_mutex_lock(&s->m);
		if (i == 0)
			last = --s->refs == 0;
		linger();
		goro_mutex_unlock(&s->m);
	}
	if (last) {
		memset(s, 0xa5, sizeof *s);
		free(s);
	}
}

static void drop_as_goroutine(struct shared *s, goro_waitgroup *wg)
{
	drop(s);
	goro_waitgroup_done(wg);
}

GO_TEST_TIMEOUT(freed_by_the_last_to_unlock, 120)
{
	for (int i = 0; i < SCALED(20000); i++) {
		struct shared *s = calloc(1, sizeof *s);
		goro_waitgroup wg = { { 0 } };

		linger_round(i);
		s->refs = 4;
		goro_waitgroup_add(&wg, 3);
		for (int k = 0; k < 3; k++)
			go(drop_as_goroutine, s, &wg);
		drop(s);
		goro_waitgroup_wait(&wg);
	}
}

static void drop_in_thread(void *s, int who, int round)
{
	(void)who, (void)round;
	drop(s);
}

TEST_TIMEOUT(freed_by_the_last_thread_to_unlock, 120)
{
	race_begin(2, drop_in_thread);
	for (int i = 0; i < race.rounds; i++) {
		struct shared *s = calloc(1, sizeof *s);

		linger_round(i);
		s->refs = 3;
		race_start(s);
		drop(s);
		race_finish();
	}
	race_end();
}

/* ----------------------------------------------------------------------- misuse */

static void unlock_new(void *arg)
{
	goro_mutex m = { { 0 } };

	(void)arg;
	goro_mutex_unlock(&m);
}

static void unlock_twice(void *arg)
{
	goro_mutex m = { { 0 } };

	(void)arg;
	goro_mutex_lock(&m);
	goro_mutex_unlock(&m);
	goro_mutex_unlock(&m);
}

static void (*misuse)(void *);

static int try_misuse(int argc, char **argv)
{
	(void)argc; (void)argv;
	goro_try(misuse, NULL);		/* no help: it is fatal */
	return 0;
}

static void misuse_in_goroutine(void)
{
	exit(goro_run(try_misuse, 0, NULL));
}

static void misuse_in_thread(void)
{
	misuse(NULL);
}

static void check_fatal(void (*what)(void *))
{
	struct test_output o;

	misuse = what;
	test_run_child(misuse_in_goroutine, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "fatal error: sync: unlock of unlocked mutex\n");
	CHECK_CONTAINS(o.err, "goro_mutex_unlock");
	test_run_child(misuse_in_thread, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "fatal error: sync: unlock of unlocked mutex\n");
}

TEST(unlocking_what_is_not_locked_is_fatal)
{
	check_fatal(unlock_new);
	check_fatal(unlock_twice);
}

static int lock_twice(int argc, char **argv)
{
	goro_mutex m = { { 0 } };

	(void)argc; (void)argv;
	goro_mutex_lock(&m);
	goro_mutex_lock(&m);
	return 0;
}

TEST(waiting_for_oneself_is_a_deadlock)
{
	struct test_output o;

	check_deadlock(lock_twice, &o);
	CHECK_CONTAINS(o.err, "[sync.Mutex.Lock]:\ngoro_mutex_lock");
}
