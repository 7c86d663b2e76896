/*
 * alone_test.c - one P without plain threads needs no locked instructions, and what ends
 * that.
 */
#include <goro.h>
#include <pthread.h>
#include <unistd.h>

#include "await.h"
#include "sched/alone.h"
#include "test.h"

enum { LOOPS = 200000, GOROUTINES = 8 };

struct shared {
	goro_mutex lock;
	goro_chan *units;	/* one value: whoever has it may count, too */
	goro_waitgroup wg;
	long locked, held;	/* under lock; while the unit is held */
};

/* ThreadSanitizer has a thread of its own from the start. */
static void one_p(void)
{
	if (TOOL_TSAN)
		SKIP("the process has another thread");
	setenv("GORO_MAXPROCS", "1", 1);
}

static void count_locked(struct shared *s, int n)
{
	for (int i = 0; i < n; i++) {
		if (i % 3 != 0 || !goro_mutex_try_lock(&s->lock))
			goro_mutex_lock(&s->lock);
		s->locked++;
		goro_mutex_unlock(&s->lock);
	}
}

static void count_held(struct shared *s, int n)
{
	for (int i = 0; i < n; i++) {
		int unit;

		goro_chan_recv(s->units, &unit);
		s->held++;
		goro_chan_send(s->units, &unit);
	}
}

static void count_both(struct shared *s)
{
	count_locked(s, LOOPS);
	count_held(s, LOOPS / 4);
	goro_waitgroup_done(&s->wg);
}

/* Loses its P in a call that is not announced, and comes back to a lock without one. */
static void sleep_and_count(struct shared *s)
{
	for (int i = 0; i < 200; i++) {
		usleep(50);
		count_locked(s, 10);
		count_held(s, 2);
	}
	goro_waitgroup_done(&s->wg);
}

static void begin(struct shared *s)
{
	*s = (struct shared){ .units = goro_chan_of(int, 1) };
	goro_chan_send(s->units, &(int){ 1 });
	goro_waitgroup_add(&s->wg, GOROUTINES);
	for (int i = 0; i < GOROUTINES; i++)
		go(count_both, s);
}

static void end(struct shared *s, long more_locked, long more_held)
{
	goro_waitgroup_wait(&s->wg);
	CHECK_EQ(s->locked, (long)GOROUTINES * LOOPS + more_locked);
	CHECK_EQ(s->held, (long)GOROUTINES * (LOOPS / 4) + more_held);
	goro_chan_unref(s->units);
}

static int counts(int argc, char **argv)
{
	struct shared s;

	(void)argc, (void)argv;
	CHECK(is_alone());
	begin(&s);
	goro_waitgroup_add(&s.wg, 4);
	for (int i = 0; i < 4; i++)
		go(sleep_and_count, &s);
	end(&s, 4 * 200 * 10, 4 * 200 * 2);
	CHECK(is_alone());
	return 0;
}

TEST(locks_exclude_also_those_who_lost_the_p)
{
	one_p();
	CHECK_EQ(goro_run(counts, 0, NULL), 0);
}

static void count_in_calls(void *arg)
{
	count_locked(arg, 10);
	usleep(20);
	count_locked(arg, 10);
}

static void call_and_count(struct shared *s)
{
	for (int i = 0; i < 200; i++)
		goro_blocking(count_in_calls, s);
	goro_syscall_enter();
	count_in_calls(s);
	goro_syscall_exit();
	goro_waitgroup_done(&s->wg);
}

static int counts_in_calls(int argc, char **argv)
{
	struct shared s;

	(void)argc, (void)argv;
	begin(&s);
	goro_waitgroup_add(&s.wg, 4);
	for (int i = 0; i < 4; i++)
		go(call_and_count, &s);
	end(&s, 4 * 201 * 20, 0);
	CHECK(is_alone());
	return 0;
}

/* No other call of goro's may be made there; that of a mutex must not go wrong
 * silently. */
TEST(mutexes_exclude_also_in_announced_calls)
{
	one_p();
	CHECK_EQ(goro_run(counts_in_calls, 0, NULL), 0);
}

static int more_ps(int argc, char **argv)
{
	struct shared s;

	(void)argc, (void)argv;
	CHECK(is_alone());
	begin(&s);
	goro_sleep(2 * GORO_MILLISECOND);
	goro_gomaxprocs(4);
	CHECK(!is_alone());
	end(&s, 0, 0);
	goro_gomaxprocs(1);
	CHECK(!is_alone());
	return 0;
}

TEST(more_ps_end_it_for_good)
{
	one_p();
	CHECK_EQ(goro_run(more_ps, 0, NULL), 0);
}

static void *count_in_thread(void *arg)
{
	struct shared *s = arg;

	usleep(2000);
	count_locked(s, LOOPS);
	count_held(s, 1000);
	goro_waitgroup_done(&s->wg);
	return NULL;
}

static int with_a_thread(int argc, char **argv)
{
	struct shared s;
	pthread_t t;

	(void)argc, (void)argv;
	CHECK(is_alone());
	begin(&s);
	goro_waitgroup_add(&s.wg, 1);
	CHECK_EQ(pthread_create(&t, NULL, count_in_thread, &s), 0);
	end(&s, LOOPS, 1000);
	CHECK(!is_alone());
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}

TEST(a_plain_thread_in_a_call_ends_it)
{
	one_p();
	CHECK_EQ(goro_run(with_a_thread, 0, NULL), 0);
}

static void *sleep_in_thread(void *arg)
{
	usleep(200000);
	return arg;
}

static int not_alone(int argc, char **argv)
{
	(void)argc, (void)argv;
	CHECK(!is_alone());
	return 0;
}

TEST(a_thread_from_before_the_start_prevents_it)
{
	pthread_t t;

	one_p();
	CHECK_EQ(pthread_create(&t, NULL, sleep_in_thread, NULL), 0);
	CHECK_EQ(goro_run(not_alone, 0, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* The thread that called goro_run waits for its goroutine and touches no lock of its. */
TEST(the_caller_of_goro_run_does_not_end_it)
{
	goro_chan *c = goro_chan_of(int, 1);

	one_p();
	CHECK_EQ(goro_run(counts, 0, NULL), 0);
	CHECK(is_alone());
	goro_chan_send(c, &(int){ 1 });
	CHECK(!is_alone());
	goro_chan_unref(c);
	CHECK_EQ(goro_run(not_alone, 0, NULL), 0);
}

static int takes_signals(int argc, char **argv)
{
	goro_chan *c = goro_signal_notify((int[]){ SIGUSR1 }, 1);
	struct shared s;
	int sig;

	(void)argc, (void)argv;
	begin(&s);
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		CHECK(goro_chan_recv(c, &sig));
		CHECK_EQ(sig, SIGUSR1);
	}
	CHECK(!is_alone());
	end(&s, 0, 0);
	goro_signal_stop(c);
	goro_chan_unref(c);
	return 0;
}

TEST(signals_on_channels_end_it)
{
	one_p();
	CHECK_EQ(goro_run(takes_signals, 0, NULL), 0);
}
