/*
 * lock_test.c - the runtime's own lock.
 */
#include "base/lock.h"

#include <pthread.h>
#include <sys/resource.h>

#include "await.h"
#include "platform/os.h"
#include "test.h"

enum { THREADS = 6 };

static struct lock lock = LOCK_INIT(RANK_LEAF);

/* --------------------------------------------------------------- exclusion */

static long counted;

static void *count_up_locked(void *arg)
{
	for (int i = 0; i < *(int *)arg; i++) {
		lock_acquire(&lock);
		counted++;
		lock_release(&lock);
	}
	return NULL;
}

TEST(one_at_a_time)
{
	pthread_t thread[THREADS];
	int rounds = SCALED(200000);

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, count_up_locked, &rounds), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	CHECK_EQ(counted, (long)THREADS * rounds);
}

/* ------------------------------------------------------------- long sleeps */

static bool is_asleep(int tid)
{
	uintptr_t address;

	return os_thread_asleep(tid, &address) != OS_AWAKE;
}

/* How often the thread has been given a CPU. */
static long runs_of(int tid)
{
	char path[64];
	long runs = -1;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid);
	f = fopen(path, "r");
	CHECK(f && fscanf(f, "%*s %*s %ld", &runs) == 1);
	fclose(f);
	return runs;
}

static struct waiter {
	int tid;
	bool came;		/* it has had the lock */
} waiter[THREADS];
static int had_it;
static bool may_go_on;

/* The first to have the lock releases it at once, the second keeps it. */
static void *wait_for_it(void *arg)
{
	struct waiter *w = arg;

	store_relaxed(&w->tid, os_tid());
	lock_acquire(&lock);
	store_relaxed(&w->came, true);
	if (fetch_add_relaxed(&had_it, 1) > 0)
		SPIN_UNTIL(load_relaxed(&may_go_on));
	lock_release(&lock);
	SPIN_UNTIL(load_relaxed(&may_go_on));
	return NULL;
}

/* They do not wake one after the other, each after it has waited for a CPU: main wakes
 * one, and that one wakes four. */
TEST(who_has_slept_for_long_wakes_several_others)
{
	pthread_t thread[THREADS];
	long before[THREADS];
	int tid[THREADS], came;

	lock_acquire(&lock);
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_create(&thread[i], NULL, wait_for_it, &waiter[i]), 0);
		SPIN_UNTIL((tid[i] = load_relaxed(&waiter[i].tid)) && is_asleep(tid[i]));
		before[i] = runs_of(tid[i]);
	}
	usleep(2000);
	lock_release(&lock);
	do {
		came = 0;
		for (int i = 0; i < THREADS; i++)
			came += load_relaxed(&waiter[i].came) || runs_of(tid[i]) > before[i];
	} while (came < 1 + 4);
	store_relaxed(&may_go_on, true);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
}

/* ------------------------------------------------------------------ crowds */

/* the first, one for each of four wakes, a spare */
enum { CROWD = 200, SLEEPS_EACH = 6 };

static struct { int tid; } member[CROWD];
static long sleeps;

static long sleeps_of_this_thread(void)
{
	struct rusage u;

	CHECK_EQ(getrusage(RUSAGE_THREAD, &u), 0);
	return u.ru_nvcsw;
}

/* Holds the lock long enough for the woken threads to find it held. */
static void *pass(void *arg)
{
	long before = sleeps_of_this_thread();

	store_relaxed((int *)arg, os_tid());
	lock_acquire(&lock);
	for (int i = 0; i < 20000; i++)
		compiler_barrier();
	lock_release(&lock);
	fetch_add_relaxed(&sleeps, sleeps_of_this_thread() - before);
	return NULL;
}

TEST(the_wakes_of_a_crowd_are_in_proportion_to_it)
{
	pthread_t thread[CROWD];

	lock_acquire(&lock);
	for (int i = 0; i < CROWD; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, pass, &member[i].tid), 0);
	for (int i = 0; i < CROWD; i++)
		SPIN_UNTIL(load_relaxed(&member[i].tid) && is_asleep(load_relaxed(&member[i].tid)));
	usleep(2000);
	lock_release(&lock);
	for (int i = 0; i < CROWD; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	printf("%ld sleeps of %d\n", sleeps, CROWD);
	CHECK(sleeps <= SLEEPS_EACH * CROWD);
}
