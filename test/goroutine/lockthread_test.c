/*
 * lockthread_test.c - goroutines tied to their threads.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "test.h"

static bool stop;

/* A thread's id, looked up anew every time. */
__attribute__((noinline)) static int tid(void)
{
	return (int)syscall(SYS_gettid);
}

static void churn(void)
{
	while (!load_relaxed(&stop)) {
		go(goro_gosched);
		goro_gosched();
	}
}

static void start_churn(int n)
{
	for (int i = 0; i < n; i++)
		go(churn);
}

/* Each goroutine sends before it receives: where the channel holds all values, no send
 * blocks for ever. */
static void stay(goro_chan *c, int n, goro_waitgroup *wg)
{
	int mine;

	goro_lock_os_thread();
	mine = tid();
	for (int i = 0; i < n; i++) {
		goro_gosched();
		CHECK_EQ(tid(), mine);
		if (i % 2)
			goro_chan_recv(c, NULL);
		else
			goro_chan_send(c, &i);
		CHECK_EQ(tid(), mine);
	}
	goro_unlock_os_thread();
	goro_waitgroup_done(wg);
}

GO_TEST(a_locked_goroutine_stays_on_its_thread)
{
	goro_chan *c = goro_chan_of(int, 10);
	goro_waitgroup wg = { 0 };

	start_churn(5);
	goro_waitgroup_add(&wg, 10);
	for (int i = 0; i < 10; i++)
		go(stay, c, SCALED(200), &wg);
	goro_waitgroup_wait(&wg);
	store_relaxed(&stop, true);
}

static int owner[1 << 16];	/* by tid % 65536: the goroutine that is locked there */

static void alone(int me, goro_waitgroup *wg)
{
	goro_lock_os_thread();
	store_seqcst(&owner[tid() % (1 << 16)], me);
	for (int i = 0; i < 50; i++) {
		goro_gosched();
		CHECK_EQ(load_seqcst(&owner[tid() % (1 << 16)]), me);
	}
	store_seqcst(&owner[tid() % (1 << 16)], 0);
	goro_unlock_os_thread();
	goro_waitgroup_done(wg);
}

static void intruder(void)
{
	while (!load_relaxed(&stop)) {
		CHECK_EQ(load_seqcst(&owner[tid() % (1 << 16)]), 0);
		goro_gosched();
	}
}

GO_TEST(nobody_else_runs_on_a_locked_thread)
{
	goro_waitgroup wg = { 0 };

	for (int i = 0; i < 10; i++)
		go(intruder);
	goro_waitgroup_add(&wg, 40);
	for (int i = 1; i <= 40; i++)
		go(alone, i, &wg);
	goro_waitgroup_wait(&wg);
	store_relaxed(&stop, true);
}

GO_TEST(locks_nest)
{
	int mine;

	start_churn(5);
	goro_lock_os_thread();
	goro_lock_os_thread();
	mine = tid();
	goro_unlock_os_thread();
	for (int i = 0; i < 1000; i++) {
		goro_gosched();
		CHECK_EQ(tid(), mine);
	}
	goro_unlock_os_thread();
	goro_unlock_os_thread();	/* one unlock too many has no effect */
	store_relaxed(&stop, true);
}

/* With another P, and always another goroutine to run, an unlocked goroutine changes its
 * thread sooner or later. */
GO_TEST(an_unlocked_goroutine_may_change_its_thread)
{
	int mine;

	goro_gomaxprocs(4);
	start_churn(5);
	goro_lock_os_thread();
	mine = tid();
	goro_gosched();
	goro_unlock_os_thread();
	AWAIT(tid() != mine);
	store_relaxed(&stop, true);
}

static void volley(goro_chan *in, goro_chan *out, bool lock)
{
	int n;

	if (lock)
		goro_lock_os_thread();
	while (goro_chan_recv(in, &n)) {
		if (n > 0)
			n--;
		goro_chan_send(out, &n);
	}
}

GO_TEST(locked_and_unlocked_goroutines_wake_each_other)
{
	enum { PAIRS = 6 };
	goro_chan *to[PAIRS], *back[PAIRS];

	start_churn(2);
	for (int i = 0; i < PAIRS; i++) {
		to[i] = goro_chan_of(int, 0);
		back[i] = goro_chan_of(int, 0);
		go(volley, to[i], back[i], i % 2);
	}
	goro_lock_os_thread();
	for (int round = 0; round < SCALED(100); round++)
		for (int i = 0; i < PAIRS; i++) {
			int n = 7;

			goro_chan_send(to[i], &n);
			CHECK(goro_chan_recv(back[i], &n));
			CHECK_EQ(n, 6);
		}
	store_relaxed(&stop, true);
}

GO_TEST(a_ring_of_locked_goroutines)
{
	enum { N = 20 };
	goro_chan *c[N + 1];
	int n = N;

	for (int i = 0; i <= N; i++)
		c[i] = goro_chan_of(int, 0);
	for (int i = 0; i < N; i++)
		go(volley, c[i], c[i + 1], true);
	for (int round = 0; round < SCALED(50); round++) {
		n = N;
		goro_chan_send(c[0], &n);
		CHECK(goro_chan_recv(c[N], &n));
		CHECK_EQ(n, 0);
	}
}

GO_TEST(a_locked_main_starts_and_waits)
{
	goro_waitgroup wg = { 0 };
	goro_chan *c = goro_chan_of(int, 4);
	int mine;

	goro_lock_os_thread();
	mine = tid();
	goro_waitgroup_add(&wg, 4);
	for (int i = 0; i < 4; i++)
		go(stay, c, 10, &wg);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(tid(), mine);
}

/* ------------------------------------------------------------- ending locked */

static pthread_key_t key;
static int thread_ended;	/* the tid of the last thread whose key was destroyed */

static void note_thread_end(void *arg)
{
	(void)arg;
	store_seqcst(&thread_ended, tid());
}

static int locked_tid;

static void end_locked(int depth)
{
	for (int i = 0; i < depth; i++)
		goro_lock_os_thread();
	pthread_setspecific(key, &key);
	store_seqcst(&locked_tid, tid());
}

static bool thread_exists(int id)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/task/%d", id);
	return access(path, F_OK) == 0;
}

static void end_one_locked(void)
{
	store_seqcst(&locked_tid, 0);
	go(end_locked, 2);
	AWAIT(load_seqcst(&locked_tid) != 0);
	AWAIT(load_seqcst(&thread_ended) == load_seqcst(&locked_tid));
	AWAIT(!thread_exists(locked_tid));
}

GO_TEST(ending_locked_ends_the_thread)
{
	pthread_key_create(&key, note_thread_end);
	for (int i = 0; i < 20; i++)
		end_one_locked();
}

GO_TEST(ending_locked_ends_the_thread_although_others_wait_to_run)
{
	pthread_key_create(&key, note_thread_end);
	start_churn(5);
	for (int i = 0; i < 20; i++)
		end_one_locked();
	store_relaxed(&stop, true);
}

static __thread int stained;	/* by a goroutine that ended locked */

__attribute__((noinline)) static int *stain(void)
{
	int *p = &stained;

	__asm__ volatile("" : "+r"(p));
	return p;
}

static void stain_and_end(goro_waitgroup *wg)
{
	goro_lock_os_thread();
	*stain() = 1;
	goro_waitgroup_done(wg);
}

static void meet_no_stain(void)
{
	while (!load_relaxed(&stop)) {
		CHECK_EQ(*stain(), 0);
		goro_gosched();
	}
}

GO_TEST(nobody_runs_on_the_thread_of_one_that_ended_locked)
{
	goro_waitgroup wg = { 0 };

	for (int i = 0; i < 5; i++)
		go(meet_no_stain);
	for (int round = 0; round < 20; round++) {
		goro_waitgroup_add(&wg, 3);
		for (int i = 0; i < 3; i++)
			go(stain_and_end, &wg);
		goro_waitgroup_wait(&wg);
		CHECK_EQ(*stain(), 0);
	}
	store_relaxed(&stop, true);
}

/* A goroutine that ends locked may be followed by a locked one: none is lost. */
static void lock_yield_end(int n, goro_waitgroup *wg)
{
	goro_lock_os_thread();
	for (int i = 0; i < n; i++)
		goro_gosched();
	goro_waitgroup_done(wg);
}

GO_TEST(many_end_locked_and_none_is_lost)
{
	goro_waitgroup wg = { 0 };
	int n = SCALED(200);

	start_churn(2);
	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		go(lock_yield_end, i % 7, &wg);
	goro_waitgroup_wait(&wg);
	store_relaxed(&stop, true);
}

TEST(a_plain_thread_may_lock_and_unlock)
{
	goro_lock_os_thread();
	goro_lock_os_thread();
	goro_unlock_os_thread();
	goro_unlock_os_thread();
	goro_unlock_os_thread();
}
