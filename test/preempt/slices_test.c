/*
 * slices_test.c - how processor time is shared out: among goroutines that never
 * stop by themselves, and between them and those that wake. Measurements of time,
 * as far as possible by the threads' CPU clocks, or beside a plain thread that
 * does the same, since the machine has other things to do too.
 */
/* test: serial */
/* test: long */
#define _GNU_SOURCE
#include <goro.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#include "platform/atomic.h"
#include "await.h"
#include "platform/cpus.h"
#include "sched/runtime.h"
#include "test.h"

static bool stop;

static int64_t clock_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * GORO_SECOND + t.tv_nsec;
}

static void hog(void)
{
	while (!load_relaxed(&stop))
		;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Sorts them and gives the value that percent of them are not above. */
static int64_t percentile(int64_t *ns, int n, int percent)
{
	qsort(ns, (size_t)n, sizeof *ns, by_value);
	return ns[(n - 1) * percent / 100];
}

static void only_in_release_builds(void)
{
	if (TOOL_ASAN || TOOL_TSAN || GORO_CHECKS)
		SKIP("times of slower builds mean nothing");
}

/* Once is enough: what others do to the machine can only make it worse. */
static void within(int attempts, bool (*measure)(int procs), int procs)
{
	only_in_release_builds();
	while (!measure(procs))
		if (--attempts == 0)
			FAIL("not once as it should be");
}

/* ------------------------------------------------------------------- shares */

enum { SHARERS = 4 };
static int64_t used[SHARERS];

/* Stays on its thread, whose CPU clock is therefore its own. */
static void use_share(int i, goro_waitgroup *wg)
{
	int64_t start = clock_now(CLOCK_THREAD_CPUTIME_ID);

	while (!load_relaxed(&stop))
		;
	used[i] = clock_now(CLOCK_THREAD_CPUTIME_ID) - start;
	goro_waitgroup_done(wg);
}

static bool equal_shares(int procs)
{
	int64_t least = INT64_MAX, most = 0;
	goro_waitgroup wg = { 0 };

	goro_gomaxprocs(procs);
	store_relaxed(&stop, false);
	goro_waitgroup_add(&wg, SHARERS);
	for (int i = 0; i < SHARERS; i++)
		go(use_share, i, &wg);
	goro_sleep(seconds(2));
	store_relaxed(&stop, true);
	goro_waitgroup_wait(&wg);
	for (int i = 0; i < SHARERS; i++) {
		least = used[i] < least ? used[i] : least;
		most = used[i] > most ? used[i] : most;
	}
	printf("%.1f to %.1f ms\n", (double)least / 1e6, (double)most / 1e6);
	return (double)most <= 1.2 * (double)least;
}

GO_TEST(hogs_on_one_p_get_equal_shares) { within(3, equal_shares, 1); }

/* ----------------------------------------------------------------- lateness */

enum { SLEEPS = 500, HOGS_A_P = 2 };

static void start_hogs(int procs, int n)
{
	goro_gomaxprocs(procs);
	store_relaxed(&stop, false);
	for (int i = 0; i < n; i++)
		go(hog);
	goro_sleep(20 * GORO_MILLISECOND);
}

static void end_hogs(void)
{
	store_relaxed(&stop, true);
	AWAIT(goro_num_goroutine() == 1);
}

static int64_t plain_late[SLEEPS];

/* The same sleeps in a plain thread: how late the machine is. */
static void *sleep_plainly(void *arg)
{
	struct timespec t = { 0, GORO_MILLISECOND };

	(void)arg;
	for (int i = 0; i < SLEEPS; i++) {
		int64_t start = clock_now(CLOCK_MONOTONIC);

		nanosleep(&t, NULL);
		plain_late[i] = clock_now(CLOCK_MONOTONIC) - start - GORO_MILLISECOND;
	}
	return NULL;
}

static bool judge(const char *what, int64_t *late)
{
	int64_t p50 = percentile(late, SLEEPS, 50), p99 = percentile(late, SLEEPS, 99);
	int64_t machine50 = percentile(plain_late, SLEEPS, 50);
	int64_t machine99 = percentile(plain_late, SLEEPS, 99);

	printf("%s late by %.3f ms (p50), %.3f (p99); a plain thread by %.3f, %.3f\n", what,
	       (double)p50 / 1e6, (double)p99 / 1e6, (double)machine50 / 1e6,
	       (double)machine99 / 1e6);
	/* Three threads are woken one after the other, each as late as the machine is. */
	return p50 <= GORO_MILLISECOND + 3 * machine50 &&
	       p99 <= 2 * GORO_MILLISECOND + 3 * machine99;
}

static bool sleep_beside_hogs(int procs)
{
	static int64_t late[SLEEPS];
	pthread_t thread;

	start_hogs(procs, HOGS_A_P * procs);
	CHECK(pthread_create(&thread, NULL, sleep_plainly, NULL) == 0);
	for (int i = 0; i < SLEEPS; i++) {
		int64_t start = goro_now();

		goro_sleep(GORO_MILLISECOND);
		late[i] = goro_now() - start - GORO_MILLISECOND;
	}
	pthread_join(thread, NULL);
	end_hogs();
	return judge("a sleep", late);
}

GO_TEST(a_sleep_beside_hogs_ends_in_time_on_1) { within(3, sleep_beside_hogs, 1); }
GO_TEST(a_sleep_beside_hogs_ends_in_time_on_2) { within(3, sleep_beside_hogs, 2); }

/* A thread that gets hardly any CPU: of the lowest class, where another computes. */
static void *compute_there(void *arg)
{
	CHECK(sched_setaffinity(0, sizeof(cpu_set_t), arg) == 0);
	hog();
	return NULL;
}

static void answer_from_there(goro_chan *ask, cpu_set_t *there, uint32_t *begun)
{
	goro_lock_os_thread();
	CHECK(sched_setaffinity(0, sizeof *there, there) == 0);
	CHECK(sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 }) == 0);
	store_relaxed(begun, 1);
	while (goro_chan_recv(ask, NULL))
		;
}

/* The P goes to that thread, and then there is somebody else to run. */
static bool sleep_beside_one_without_a_cpu(int procs)
{
	goro_chan *ask = goro_chan_make(0, 1);
	int64_t late[20], median;
	pthread_t thread;
	cpu_set_t all, there;
	uint32_t begun = 0;

	CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
	if (CPU_COUNT(&all) < 2)
		SKIP("there is but one CPU");
	CPU_ZERO(&there);
	for (int cpu = 0; CPU_COUNT(&there) == 0; cpu++)
		if (CPU_ISSET((size_t)cpu, &all))
			CPU_SET((size_t)cpu, &there);
	goro_gomaxprocs(procs);
	store_relaxed(&stop, false);
	CHECK(pthread_create(&thread, NULL, compute_there, &there) == 0);
	go(answer_from_there, ask, &there, &begun);
	AWAIT(load_relaxed(&begun));
	for (int i = 0; i < 20; i++) {
		int64_t start = goro_now();

		goro_chan_try_send(ask, NULL);
		goro_sleep(2 * GORO_MILLISECOND);
		late[i] = goro_now() - start - 2 * GORO_MILLISECOND;
	}
	goro_chan_close(ask);
	store_relaxed(&stop, true);
	pthread_join(thread, NULL);
	AWAIT(goro_num_goroutine() == 1);
	median = percentile(late, 20, 50);
	printf("late by %.3f ms (median)\n", (double)median / 1e6);
	return median < GORO_MILLISECOND / 2;
}

GO_TEST(a_thread_without_a_cpu_does_not_keep_its_p) { within(3, sleep_beside_one_without_a_cpu, 1); }

/* -------------------------------------------------------- over a socket */

static void echo(int fd)
{
	char c;

	while (goro_read(fd, &c, 1) == 1)
		CHECK_EQ(goro_write(fd, &c, 1), 1);
	goro_close(fd);
}

/* Each side waits for the other in the poller, beside the hogs. */
static bool ping_beside_hogs(int procs)
{
	static int64_t took[SLEEPS];
	pthread_t thread;
	char c = 'x';
	int fd[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) == 0);
	go(echo, fd[1]);
	start_hogs(procs, HOGS_A_P * procs);
	CHECK(pthread_create(&thread, NULL, sleep_plainly, NULL) == 0);
	for (int i = 0; i < SLEEPS; i++) {
		int64_t start;

		goro_sleep(GORO_MILLISECOND);
		start = goro_now();
		CHECK_EQ(goro_write(fd[0], &c, 1), 1);
		CHECK_EQ(goro_read(fd[0], &c, 1), 1);
		took[i] = goro_now() - start;
	}
	pthread_join(thread, NULL);
	goro_close(fd[0]);
	end_hogs();
	return judge("an answer over a socket", took);
}

GO_TEST(a_ping_over_a_socket_beside_hogs_is_answered_in_time_on_1) { within(3, ping_beside_hogs, 1); }
GO_TEST(a_ping_over_a_socket_beside_hogs_is_answered_in_time_on_2) { within(3, ping_beside_hogs, 2); }

/* ----------------------------------------------------- woken from outside */

struct asker {
	goro_chan *question, *answer;
	int64_t *took;
};

/* A plain thread, such as a library has for its callbacks. */
static void *ask(void *arg)
{
	struct asker *a = arg;
	struct timespec t = { 0, GORO_MILLISECOND };

	for (int i = 0; i < SLEEPS; i++) {
		int64_t start;

		nanosleep(&t, NULL);
		start = clock_now(CLOCK_MONOTONIC);
		goro_chan_send(a->question, &i);
		goro_chan_recv(a->answer, NULL);
		a->took[i] = clock_now(CLOCK_MONOTONIC) - start;
	}
	goro_chan_close(a->question);
	return NULL;
}

static bool answer_beside_hogs(int procs)
{
	static int64_t took[SLEEPS];
	struct asker a = { goro_chan_of(int, 0), goro_chan_of(int, 0), took };
	pthread_t thread, plain;
	int n;

	start_hogs(procs, HOGS_A_P * procs);
	CHECK(pthread_create(&plain, NULL, sleep_plainly, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, ask, &a) == 0);
	while (goro_chan_recv(a.question, &n))
		goro_chan_send(a.answer, &n);
	pthread_join(thread, NULL);
	pthread_join(plain, NULL);
	end_hogs();
	return judge("an answer to a thread", took);
}

GO_TEST(one_woken_by_a_thread_beside_hogs_runs_in_time_on_1) { within(3, answer_beside_hogs, 1); }
GO_TEST(one_woken_by_a_thread_beside_hogs_runs_in_time_on_2) { within(3, answer_beside_hogs, 2); }

static int64_t started_at, started_late[SLEEPS];
static int started;

static void note_start(void)
{
	int i = load_relaxed(&started);

	started_late[i] = clock_now(CLOCK_MONOTONIC) - started_at;
	store_release(&started, i + 1);
}

static void *start_some(void *arg)
{
	struct timespec t = { 0, GORO_MILLISECOND };

	(void)arg;
	for (int i = 0; i < SLEEPS; i++) {
		nanosleep(&t, NULL);
		started_at = clock_now(CLOCK_MONOTONIC);
		go(note_start);
		while (load_acquire(&started) != i + 1)
			usleep(50);
	}
	return NULL;
}

/* The main goroutine waits in the kernel: it is not one of those who wake. */
static bool start_beside(int procs, int n)
{
	pthread_t thread, plain;

	start_hogs(procs, n);
	store_relaxed(&started, 0);
	CHECK(pthread_create(&plain, NULL, sleep_plainly, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, start_some, NULL) == 0);
	pthread_join(thread, NULL);
	pthread_join(plain, NULL);
	end_hogs();
	return judge("a start", started_late);
}

static bool start_beside_hogs(int procs) { return start_beside(procs, HOGS_A_P * procs); }
static bool start_beside_one(int procs)  { return start_beside(procs, procs); }

GO_TEST(one_started_by_a_thread_beside_hogs_runs_in_time_on_1) { within(3, start_beside_hogs, 1); }
GO_TEST(one_started_by_a_thread_beside_hogs_runs_in_time_on_2) { within(3, start_beside_hogs, 2); }
/* Nobody waits: sysmon has nothing to look at for ten milliseconds at a time. */
GO_TEST(one_started_beside_a_single_hog_runs_in_time_on_1)     { within(3, start_beside_one, 1); }
GO_TEST(one_started_beside_a_single_hog_runs_in_time_on_2)     { within(3, start_beside_one, 2); }

/* --------------------------------------------------------------- throughput */

enum { WORKERS = 4, ROUNDS = 5 };

static void work(goro_waitgroup *wg)
{
	for (uint64_t i = 0; i < 600000000; i++)
		__asm__ volatile("");
	goro_waitgroup_done(wg);
}

static int work_main(int argc, char **argv)
{
	goro_waitgroup wg = { 0 };

	(void)argc, (void)argv;
	goro_waitgroup_add(&wg, WORKERS);
	for (int i = 0; i < WORKERS; i++)
		go(work, &wg);
	goro_waitgroup_wait(&wg);
	return 0;
}

static int64_t *work_cpu;	/* shared with the child */

static void work_child(void)
{
	int64_t start = clock_now(CLOCK_PROCESS_CPUTIME_ID);

	goro_run(work_main, 0, NULL);
	*work_cpu = clock_now(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* CPU time for a fixed amount of work, all of the runtime's own included. */
static int64_t cpu_for_work(const char *debug)
{
	struct test_output o;

	setenv("GORO_DEBUG", debug, 1);
	test_run_child(work_child, &o);
	CHECK_EQ(o.status, 0);
	return *work_cpu;
}

static void preemption_costs(const char *procs)
{
	int64_t with = INT64_MAX, without = INT64_MAX;

	only_in_release_builds();
	setenv("GORO_MAXPROCS", procs, 1);
	work_cpu = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(work_cpu != MAP_FAILED);
	for (int i = 0; i < ROUNDS; i++) {
		int64_t a = cpu_for_work(""), b = cpu_for_work("asyncpreemptoff=1");

		with = a < with ? a : with;
		without = b < without ? b : without;
	}
	printf("%.1f ms with preemption, %.1f without: %+.2f%%\n", (double)with / 1e6,
	       (double)without / 1e6, 100.0 * ((double)with / (double)without - 1));
	if ((double)with > 1.02 * (double)without)
		FAIL("preemption costs more than 2%%");
}

TEST(preemption_costs_little_on_1) { preemption_costs("1"); }
TEST(preemption_costs_little_on_2) { preemption_costs("2"); }

/* ------------------------------------------------------------------ threads */

static void compute_for(int64_t ns, goro_waitgroup *wg)
{
	int64_t end = clock_now(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_now(CLOCK_THREAD_CPUTIME_ID) < end)
		;
	goro_waitgroup_done(wg);
}

static uint64_t preemptions(void)
{
	struct goro_stats stats;

	goro_stats_read(&stats);
	return stats.preemptions;
}

/* The time that a hundred short tasks took, whose CPU time is 150 ms on each of two
 * Ps. */
static int64_t compute_short_tasks(void)
{
	int64_t start = clock_now(CLOCK_MONOTONIC);
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 100);
	for (int i = 0; i < 100; i++)
		go(compute_for, 3 * GORO_MILLISECOND, &wg);
	goro_waitgroup_wait(&wg);
	return clock_now(CLOCK_MONOTONIC) - start;
}

/* Each that is stopped keeps a thread: of a hundred short tasks few are stopped, since
 * most have not begun. Where others take the CPUs, short tasks outlast their slices. */
GO_TEST(short_tasks_do_not_make_threads)
{
	goro_gomaxprocs(2);
	for (int i = 0; i < 20; i++) {
		uint64_t before = preemptions();

		if (compute_short_tasks() > 250 * GORO_MILLISECOND)
			continue;
		CHECK(preemptions() - before < 40);
		return;
	}
	SKIP("there are not two CPUs to spare");
}

/* ------------------------------------------- more Ps than there are CPUs */

static uint32_t turns, turns_beyond;

/* For some microseconds, and the next. */
static void short_work(int cpus, int left, goro_waitgroup *wg)
{
	for (volatile int k = 0; k < 300; k++)
		;
	fetch_add_relaxed(&turns, 1);
	if (goro_gomaxprocs(0) - (int)load_relaxed(&sched.idle_p_n) > cpus)
		fetch_add_relaxed(&turns_beyond, 1);
	if (left > 0)
		go(short_work, cpus, left - 1, wg);
	else
		goro_waitgroup_done(wg);
}

/* Rounds, at the end of each of which threads run out of work and look whether there is
 * more: there is for another P, but no CPU. (Where that is taken all the same, it is 1 to
 * 3 of a thousand turns, as a rule. On a busy machine some see more in use because
 * threads lose their CPUs.) */
GO_TEST(short_work_takes_as_many_ps_as_there_are_cpus)
{
	int cpus = cpus_affinity();

	goro_gomaxprocs(cpus + 2);
	AWAIT(runtime_is_whole());
	for (int round = 0; round < SCALED(1000); round++) {
		goro_waitgroup wg = { 0 };

		goro_waitgroup_add(&wg, 20);
		for (int i = 0; i < 20; i++)
			go(short_work, cpus, 10 + 5 * i, &wg);
		goro_waitgroup_wait(&wg);
	}
	CHECK(turns_beyond < turns / 1000);
}
