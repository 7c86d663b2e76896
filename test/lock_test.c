/*
 * lock_test.c - the runtime's own lock.
 */
#include "lock.h"

#include <pthread.h>

#include "await.h"
#include "os.h"
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

static struct waiter {
	int tid;
	bool has_it;
} waiter[THREADS];
static bool may_go_on;

static void *wait_for_it(void *arg)
{
	struct waiter *w = arg;

	store_relaxed(&w->tid, os_tid());
	lock_acquire(&lock);
	store_relaxed(&w->has_it, true);
	SPIN_UNTIL(load_relaxed(&may_go_on));
	lock_release(&lock);
	return NULL;
}

static bool is_asleep(int tid)
{
	uintptr_t address;
	int fd = 0, asleep = os_thread_asleep(tid, &fd, &address);

	os_thread_forget(&fd);
	return asleep > 0;
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

/* They need not come one after the other, each after it has waited for a CPU: the first, who keeps
 * the lock here, wakes the others. */
TEST(who_has_slept_for_long_wakes_all_others)
{
	pthread_t thread[THREADS];
	long before[THREADS];
	int tid[THREADS];

	lock_acquire(&lock);
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_create(&thread[i], NULL, wait_for_it, &waiter[i]), 0);
		SPIN_UNTIL((tid[i] = load_relaxed(&waiter[i].tid)) && is_asleep(tid[i]));
		before[i] = runs_of(tid[i]);
	}
	usleep(2000);
	lock_release(&lock);
	for (int i = 0; i < THREADS; i++)
		SPIN_UNTIL(load_relaxed(&waiter[i].has_it) || runs_of(tid[i]) > before[i]);
	store_relaxed(&may_go_on, true);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
}
