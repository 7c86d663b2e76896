/*
 * idle_test.c - when nothing runs, nothing wakes, and threads that are not needed
 * end.
 */
#include <dirent.h>
#include <goro.h>
#include <limits.h>
#include <sys/resource.h>

#include "await.h"
#include "sched/runtime.h"
#include "test.h"
#include "thread_count.h"

/* How often the other threads have gone to sleep or lost their CPU so far; every
 * system call that waits, and every wake-up, counts. -1: a thread came or went. */
static long switches(void)
{
	char path[64], line[256];
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	long sum = 0, one;

	while ((e = readdir(dir))) {
		int id = atoi(e->d_name);
		FILE *f;

		if (id == 0 || id == (int)syscall(SYS_gettid))
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%d/status", id);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof line, f))
			if (sscanf(line, "voluntary_ctxt_switches: %ld", &one) == 1 ||
			    sscanf(line, "nonvoluntary_ctxt_switches: %ld", &one) == 1)
				sum += one;
		if (f)
			fclose(f);
		sum += 1L << 32;	/* the number of threads is part of it */
	}
	closedir(dir);
	return sum;
}

/* Nothing happens for a second and a half, sooner or later: nobody looks more often for
 * ever. */
static void becomes_idle(void)
{
	long before = switches();

	for (;;) {
		long now;

		usleep(1500000);
		now = switches();
		if (now == before)
			return;
		before = now;
	}
}

static int parked;

static void park_for_ever(goro_chan *c)
{
	fetch_add_seqcst(&parked, 1);
	goro_chan_recv(c, NULL);
}

static void short_lived(goro_waitgroup *wg)
{
	goro_gosched();
	goro_waitgroup_done(wg);
}

/* Threads, stacks, traffic: all that could leave something to be seen to. */
static void some_life(void)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 5000);
	for (int i = 0; i < 5000; i++)
		go(short_lived, &wg);
	goro_waitgroup_wait(&wg);
}

TEST(a_process_whose_goroutines_are_all_parked_is_at_rest)
{
	goro_chan *c = goro_chan_of(int, 0);

	if (TOOL_TSAN)
		SKIP("the sanitizer's own thread never rests");
	some_life();
	for (int i = 0; i < 10; i++)
		go(park_for_ever, c);
	while (load_seqcst(&parked) < 10)
		usleep(1000);
	becomes_idle();
	goro_chan_send(c, &(int){ 1 });		/* and wakes from it */
	some_life();
}

/* sysmon saw a P on its way to an M with a goroutine of its own, and was held up;
 * meanwhile the M has had it, and it is on its way there again, as to an idle one. */
TEST(a_p_is_not_called_back_from_one_that_waits_for_any_work)
{
	static struct m to;
	static struct p pp;

	m_hand_p(&to, &pp);
	m_recall_p(&to, &pp);
	CHECK(load_relaxed(&to.next_p) == &pp);
	CHECK(m_await_p(&to) == &pp);
}

/* ------------------------------------------------------------ idle threads */

static int inside;

static void meet(int n)
{
	fetch_add_seqcst(&inside, 1);
	SPIN_UNTIL(load_seqcst(&inside) >= n);
}

GO_TEST_TIMEOUT(threads_beyond_the_ps_end, 30)
{
	goro_gomaxprocs(32);
	for (int i = 1; i < 32; i++)
		go(meet, 32);
	meet(32);
	CHECK(threads() >= 32);
	AWAIT(goro_num_goroutine() == 1);
	goro_gomaxprocs(2);
	AWAIT(threads() <= 8);
}

/* ------------------------------------------------------------------ sleeping */

/* The fewest waits of threads for n sleeps, of a dozen tries: on a busy machine the one
 * that is to wake may get no CPU, and others are woken. */
static long waits_for(int n, int64_t ns, long few)
{
	struct rusage before, after;
	long least = LONG_MAX;

	for (int try = 0; try < 12 && least > few; try++) {
		getrusage(RUSAGE_SELF, &before);
		for (int i = 0; i < n; i++)
			goro_sleep(ns);
		getrusage(RUSAGE_SELF, &after);
		if (after.ru_nvcsw - before.ru_nvcsw < least)
			least = after.ru_nvcsw - before.ru_nvcsw;
	}
	return least;
}

/* The thread that wakes for the timer runs the goroutine, which sleeps again, and the
 * thread with it: nobody else need know. */
static int sleep_often(int argc, char **argv)
{
	long few = TOOL_TSAN ? 300 : 150, waits = waits_for(100, GORO_MILLISECOND, few);

	(void)argc, (void)argv;
	if (waits > few)
		FAIL("%ld waits of threads for 100 sleeps", waits);
	return 0;
}

TEST(a_sleep_wakes_one_thread)
{
	CHECK_EQ(goro_run(sleep_often, 0, NULL), 0);
}

static uint64_t threads_woken(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < goro_gomaxprocs(0); i++)
		sum += load_relaxed(&p_at(i)->count.thread_wakeups);
	return sum;
}

/* Nor does sysmon send for another thread when it happens to look as the one is about to
 * wake: that was every 20th time. On a busy machine that one may be late. */
GO_TEST_TIMEOUT(nobody_is_woken_beside_the_one_that_wakes_for_a_timer, 60)
{
	int in_a_row = 0;

	goro_gomaxprocs(2);
	while (in_a_row < 500) {
		uint64_t before = threads_woken();

		goro_sleep(GORO_MILLISECOND);
		in_a_row = threads_woken() == before ? in_a_row + 1 : 0;
	}
}

/* At longer intervals sysmon looks once after each sleep. */
static int sleep_now_and_then(int argc, char **argv)
{
	long few = 40, waits = waits_for(16, 40 * GORO_MILLISECOND, few);

	(void)argc, (void)argv;
	if (waits > few)
		FAIL("%ld waits of threads for 16 sleeps", waits);
	return 0;
}

TEST(a_sleep_now_and_then_wakes_sysmon_once)
{
	if (TOOL_TSAN)
		SKIP("the sanitizer's own thread wakes, too");
	CHECK_EQ(goro_run(sleep_now_and_then, 0, NULL), 0);
}

/* ------------------------------------------------- a keeper without a CPU */

static uint32_t let_go;

static void hold_thread(int sig)
{
	(void)sig;
	while (!load_relaxed(&let_go))
		usleep(1000);
}

/* The keeper, once it sleeps until a timer. */
static int keeper_thread(void)
{
	int tid = 0;

	while (!tid) {
		usleep(1000);
		lock_acquire(&sched.lock);
		if (sched.keeper && load_relaxed(&sched.keeper_until) != TIMER_NEVER)
			tid = load_relaxed(&sched.keeper->tid);
		lock_release(&sched.lock);
	}
	return tid;
}

static uint32_t slept;

static void sleep_some(int times)
{
	for (int i = 0; i < times; i++)
		goro_sleep(50 * GORO_MILLISECOND);
	store_relaxed(&slept, 1);
}

/* The keeper is held up as a thread is that gets no CPU: sysmon wakes another one. */
TEST(a_timer_is_seen_to_although_the_keeper_is_held_up)
{
	int tid = 0;

	if (TOOL_TSAN)
		SKIP("the sanitizer puts signals off");
	signal(SIGUSR1, hold_thread);
	goro_gomaxprocs(2);
	some_life();
	for (int i = 0; i < 2; i++)
		go(meet, 2);
	while (load_seqcst(&inside) < 2)
		usleep(1000);
	go(sleep_some, 6);
	usleep(170000);
	tid = keeper_thread();
	CHECK_EQ((int)syscall(SYS_tgkill, getpid(), tid, SIGUSR1), 0);
	while (!load_relaxed(&slept))
		usleep(1000);
	store_relaxed(&let_go, 1);
}
