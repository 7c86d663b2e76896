/*
 * world_test.c - the number of Ps is changed under load, and nothing is lost.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "test.h"

static bool stop;
static int running;
static int64_t sent, received, started, ended;

static void add(int64_t *n)
{
	fetch_add_relaxed(n, 1);
}

/* ------------------------------------------------------------------- load */

static void yield_on(void)
{
	while (!load_relaxed(&stop))
		goro_gosched();
	fetch_add_relaxed(&running, -1);
}

static void short_lived(void)
{
	goro_gosched();
	add(&ended);
}

static void spawn_on(void)
{
	while (!load_relaxed(&stop)) {
		for (int i = 0; i < 10; i++) {
			add(&started);
			go(short_lived);
		}
		goro_gosched();
	}
	fetch_add_relaxed(&running, -1);
}

static void send_on(goro_chan *c)
{
	while (!load_relaxed(&stop)) {
		goro_chan_send(c, &(int){ 1 });
		add(&sent);
	}
	fetch_add_relaxed(&running, -1);
}

static void receive_on(goro_chan *c)
{
	while (goro_chan_recv(c, NULL))
		add(&received);
}

static void load_start(goro_chan *c)
{
	running = 8 + 2 + 4;
	for (int i = 0; i < 8; i++)
		go(yield_on);
	for (int i = 0; i < 2; i++)
		go(spawn_on);
	for (int i = 0; i < 4; i++)
		go(receive_on, c);
	for (int i = 0; i < 4; i++)
		go(send_on, c);
}

/* Whatever was on its way when the load stopped arrives. */
static void load_stop(goro_chan *c)
{
	AWAIT(load_relaxed(&sent) > 0 && load_relaxed(&started) > 0);
	store_relaxed(&stop, true);
	AWAIT(load_relaxed(&running) == 0);
	goro_chan_close(c);
	AWAIT(load_relaxed(&ended) == load_relaxed(&started));
	AWAIT(load_relaxed(&received) == load_relaxed(&sent));
	AWAIT(goro_num_goroutine() == 1);
}

static unsigned next_random(unsigned *state)
{
	*state = *state * 1103515245 + 12345;
	return *state >> 16;
}

static void change_often(int times, unsigned seed)
{
	for (int i = 0; i < times; i++) {
		goro_gomaxprocs((int)(next_random(&seed) % 64) + 1);
		goro_gosched();
	}
}

GO_TEST(changing_the_number_under_load_loses_nothing)
{
	goro_chan *c = goro_chan_of(int, 0);

	load_start(c);
	change_often(SCALED(200), 1);
	load_stop(c);
}

static void *change_in_thread(void *arg)
{
	change_often(SCALED(100), (unsigned)(uintptr_t)arg);
	return NULL;
}

GO_TEST(plain_threads_change_the_number_under_load)
{
	goro_chan *c = goro_chan_of(int, 3);
	pthread_t t[2];

	load_start(c);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, change_in_thread, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	load_stop(c);
}

static void change_in_goroutine(unsigned seed, goro_waitgroup *wg)
{
	change_often(SCALED(40), seed);
	goro_waitgroup_done(wg);
}

GO_TEST(several_goroutines_change_the_number_at_once)
{
	goro_chan *c = goro_chan_of(int, 1);
	goro_waitgroup wg = { 0 };

	load_start(c);
	goro_waitgroup_add(&wg, 8);
	for (unsigned i = 0; i < 8; i++)
		go(change_in_goroutine, i, &wg);
	goro_waitgroup_wait(&wg);
	load_stop(c);
}

static void change_while_locked(unsigned seed, goro_waitgroup *wg)
{
	goro_lock_os_thread();
	change_often(SCALED(40), seed);
	goro_unlock_os_thread();
	goro_waitgroup_done(wg);
}

GO_TEST(goroutines_locked_to_their_threads_change_the_number)
{
	goro_chan *c = goro_chan_of(int, 1);
	goro_waitgroup wg = { 0 };

	load_start(c);
	goro_waitgroup_add(&wg, 3);
	for (unsigned i = 0; i < 3; i++)
		go(change_while_locked, i, &wg);
	goro_waitgroup_wait(&wg);
	load_stop(c);
}

/* ----------------------------------------------------------- the settings */

GO_TEST(the_previous_number_is_returned)
{
	int first = goro_gomaxprocs(0);

	CHECK(first >= 1);
	CHECK_EQ(goro_gomaxprocs(7), first);
	CHECK_EQ(goro_gomaxprocs(0), 7);
	CHECK_EQ(goro_gomaxprocs(-3), 7);
	CHECK_EQ(goro_gomaxprocs(1), 7);
	CHECK_EQ(goro_gomaxprocs(1), 1);
}

static void meet(int n)
{
	fetch_add_seqcst(&running, 1);
	SPIN_UNTIL(load_seqcst(&running) >= n);
}

GO_TEST(more_ps_run_more_at_once)
{
	goro_gomaxprocs(16);
	for (int i = 1; i < 16; i++)
		go(meet, 16);
	meet(16);
}

/* How many are inside at once, where inside makes no call of goro's. One that
 * loses its CPU there stays inside, so too many threads at work show even where
 * there are few CPUs. */
static int inside, most;

static void be_inside(goro_waitgroup *wg)
{
	int n, m = load_relaxed(&most);
	int64_t end = goro_now() + 20 * GORO_MICROSECOND;

	goro_preempt_disable();		/* one that is stopped inside would stay */
	n = fetch_add_seqcst(&inside, 1) + 1;
	while (n > m && !cas_seqcst(&most, &m, n))
		;
	while (goro_now() < end)
		;
	fetch_add_seqcst(&inside, -1);
	goro_preempt_enable();
	goro_waitgroup_done(wg);
}

static int most_inside(int goroutines)
{
	goro_waitgroup wg = { 0 };

	most = 0;
	goro_waitgroup_add(&wg, goroutines);
	for (int i = 0; i < goroutines; i++)
		go(be_inside, &wg);
	goro_waitgroup_wait(&wg);
	return most;
}

GO_TEST(fewer_ps_run_fewer_at_once)
{
	goro_gomaxprocs(8);
	goro_gomaxprocs(2);
	for (int i = 0; i < 3; i++) {
		int seen = most_inside(1000);

		if (seen < 1 || seen > 2)
			FAIL("%d ran at once on 2 Ps", seen);
	}
}

GO_TEST(a_thousand_ps)
{
	CHECK(goro_gomaxprocs(1024) >= 1);
	CHECK_EQ(goro_gomaxprocs(0), 1024);
	CHECK(most_inside(5000) >= 1);
	CHECK_EQ(goro_gomaxprocs(1), 1024);
}

GO_TEST(a_number_beyond_the_largest_is_cut)
{
	int n;

	goro_gomaxprocs(1000000);
	n = goro_gomaxprocs(1);
	CHECK(n >= 1024 && n < 1000000);
}

/* -------------------------------------------------------------- a busy loop */

static bool hog_runs, hog_stop;

static void hog(void)
{
	int64_t end = goro_now() + seconds(10);

	store_seqcst(&hog_runs, true);
	while (!load_relaxed(&hog_stop) && goro_now() < end)
		;
	store_seqcst(&hog_runs, false);
}

GO_TEST(a_busy_loop_does_not_hold_up_a_change)
{
	int64_t start;

	goro_gomaxprocs(2);
	go(hog);
	SPIN_UNTIL(load_seqcst(&hog_runs));
	start = goro_now();
	for (int n = 3; n < 10; n++)
		goro_gomaxprocs(n);
	goro_gomaxprocs(1);
	CHECK(load_seqcst(&hog_runs));
	if (goro_now() - start > seconds(2))
		FAIL("8 changes took %lld ms", (long long)((goro_now() - start) / 1000000));
	store_relaxed(&hog_stop, true);
	AWAIT(!load_seqcst(&hog_runs));
}

/* As many goroutines are given a P while the number is changed once, 11 times, sorted. */
#define CHANGES 11
#define HOGS    8

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t switches(void)
{
	struct goro_stats s;

	goro_stats_read(&s);
	return s.context_switches;
}

/* A caller that goes behind all hogs, each with its slice, sees all of them run. */
GO_TEST(whoever_changes_the_number_goes_on_before_those_who_compute)
{
	uint64_t switched[CHANGES];

	goro_gomaxprocs(2);
	for (int i = 0; i < HOGS; i++)
		go(hog);
	AWAIT(load_seqcst(&hog_runs));
	for (int i = 0; i < CHANGES; i++) {
		uint64_t before = switches();

		goro_gomaxprocs(1 + i % 2);
		switched[i] = switches() - before;
	}
	store_relaxed(&hog_stop, true);
	qsort(switched, CHANGES, sizeof *switched, compare);
	if (switched[CHANGES / 2] >= HOGS)
		FAIL("%llu goroutines ran during a change",
		     (unsigned long long)switched[CHANGES / 2]);
}

static void set(bool *flag)
{
	store_seqcst(flag, true);
}

GO_TEST(a_loop_of_changes_starves_nobody)
{
	bool done = false;

	goro_gomaxprocs(1);
	go(hog);
	go(set, &done);
	for (int i = 0; !load_seqcst(&done); i++)
		goro_gomaxprocs(1 + i % 2);
	store_relaxed(&hog_stop, true);
}

/* ------------------------------------------------------------- the default */

static int asked;

static int ask(int argc, char **argv)
{
	(void)argc, (void)argv;
	asked = goro_gomaxprocs(0);
	return 0;
}

TEST(the_environment_sets_the_number)
{
	setenv("GORO_MAXPROCS", "3", 1);
	goro_run(ask, 0, NULL);
	CHECK_EQ(asked, 3);
}

TEST(without_the_environment_the_machine_sets_the_number)
{
	unsetenv("GORO_MAXPROCS");
	goro_run(ask, 0, NULL);
	CHECK_EQ(asked, goro_num_cpu());
	CHECK(asked >= 1);
}

static void nonsense(const char *value)
{
	setenv("GORO_MAXPROCS", value, 1);
	goro_run(ask, 0, NULL);
	CHECK_EQ(asked, goro_num_cpu());
}

TEST(zero_in_the_environment_is_ignored)     { nonsense("0"); }
TEST(a_word_in_the_environment_is_ignored)   { nonsense("many"); }
TEST(nothing_in_the_environment_is_ignored)  { nonsense(""); }
TEST(a_negative_in_the_environment_is_ignored) { nonsense("-4"); }

GO_TEST(set_default_follows_the_machine_again)
{
	goro_gomaxprocs(11);
	goro_set_default_gomaxprocs();
	CHECK_EQ(goro_gomaxprocs(0), goro_num_cpu());
}

TEST(a_plain_thread_sets_the_number_before_anything_runs)
{
	goro_gomaxprocs(5);
	goro_run(ask, 0, NULL);
	CHECK_EQ(asked, 5);
}
