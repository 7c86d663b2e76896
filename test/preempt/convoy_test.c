/*
 * convoy_test.c - eight goroutines around one lock of libc's that is held nearly
 * all the time: preempting its holder must not make a convoy of the others.
 *
 * A goroutine that is stopped while it holds the lock makes every other that runs
 * block on it. What dissolves the convoy is in convoy.c; that nobody is left behind in
 * it, in retake_test.c.
 *
 * Measured against the same work without preemption, in a process each, by turns.
 */
/* test: serial */
/* test: long */
#include <goro.h>
#include <malloc.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "test.h"

enum { WORKERS = 8, ROUNDS = 3, ROUNDS_MAX = 10 };

#define SHARE 0.75		/* of the throughput without preemption */
#define RUN_NS   (400 * GORO_MILLISECOND)
#define STALL_NS (10 * GORO_MILLISECOND)	/* nobody gets anything done */
#define STARVE_NS (300 * GORO_MILLISECOND)	/* one of them gets nothing done */

static FILE *volatile file;	/* set in the child only */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t guarded[64];

static void use_file(void)
{
	for (int i = 0; i < 8; i++)
		fprintf(file, "%d %s\n", i, "a line of some length, to be formatted under the lock");
}

/* One block at a time, and of one size. With more, those who are stopped leave the heap
 * in a state in which malloc itself takes up to twice as long, for a single thread,
 * too. */
static void use_malloc(void)
{
	for (int i = 0; i < 16; i++) {
		/* too large for the thread's own cache */
		void *volatile p = malloc(3000);

		free(p);
	}
}

static void use_mutex(void)
{
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < 2000; i++)
		guarded[i % 64]++;
	pthread_mutex_unlock(&mutex);
}

/* ------------------------------------------------------------------ a run */

/* What a run of a child found out; shared with it. */
struct result {
	double rate;		/* rounds a second .. */
	int64_t stall;		/* .. the longest stretch without anybody's .. */
	int64_t starve;		/* .. and without some one's */
	int64_t machine;	/* the longest that a plain thread was held up */
};
static struct result *result;

static struct { _Alignas(64) uint64_t rounds; int64_t at, longest; } worker[WORKERS];
static int64_t any_at, any_longest;
static bool stop;
static void (*work)(void);

static int64_t clock_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * GORO_SECOND + t.tv_nsec;
}

/* Looks at what everybody has got done, and how long ago. In a plain thread. */
static void *observe(void *arg)
{
	uint64_t seen[WORKERS] = { 0 };
	int64_t before = clock_now(CLOCK_MONOTONIC);
	struct timespec tick = { 0, 200000 };

	(void)arg;
	any_at = before;
	for (int i = 0; i < WORKERS; i++)
		worker[i].at = before;
	while (!load_relaxed(&stop)) {
		int64_t now;
		bool any = false;

		nanosleep(&tick, NULL);
		now = clock_now(CLOCK_MONOTONIC);
		if (now - before > result->machine)
			result->machine = now - before;
		for (int i = 0; i < WORKERS; i++) {
			uint64_t n = load_relaxed(&worker[i].rounds);

			if (n != seen[i]) {
				seen[i] = n;
				worker[i].at = now;
				any = true;
			} else if (now - worker[i].at > worker[i].longest) {
				worker[i].longest = now - worker[i].at;
			}
		}
		if (any)
			any_at = now;
		else if (now - any_at > any_longest)
			any_longest = now - any_at;
		before = now;
	}
	return NULL;
}

static void work_on(int i, goro_waitgroup *wg)
{
	while (!load_relaxed(&stop)) {
		work();
		store_relaxed(&worker[i].rounds, worker[i].rounds + 1);
	}
	goro_waitgroup_done(wg);
}

/* The main goroutine sleeps in the kernel, so as not to be one that wakes. */
static int run_workers(int argc, char **argv)
{
	struct timespec t = { 0, RUN_NS };
	goro_waitgroup wg = { 0 };
	uint64_t rounds = 0;
	pthread_t observer;
	int64_t start, end;

	(void)argc, (void)argv;
	CHECK(pthread_create(&observer, NULL, observe, NULL) == 0);
	start = clock_now(CLOCK_MONOTONIC);
	goro_waitgroup_add(&wg, WORKERS);
	for (int i = 0; i < WORKERS; i++)
		go(work_on, i, &wg);
	goro_syscall_enter();
	nanosleep(&t, NULL);
	end = clock_now(CLOCK_MONOTONIC);
	for (int i = 0; i < WORKERS; i++) {
		rounds += load_relaxed(&worker[i].rounds);
		if (worker[i].longest > result->starve)
			result->starve = worker[i].longest;
	}
	store_relaxed(&stop, true);	/* or nobody might ever give us a P again */
	goro_syscall_exit();
	goro_waitgroup_wait(&wg);
	pthread_join(observer, NULL);
	result->stall = any_longest;
	result->rate = (double)rounds * 1e9 / (double)(end - start);
	return 0;
}

static void child(void)
{
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 1);
#endif
	file = fopen("/dev/null", "w");
	goro_run(run_workers, 0, NULL);
}

static struct result run(const char *debug, int procs)
{
	struct test_output o;
	char text[16];

	snprintf(text, sizeof text, "%d", procs);
	setenv("GORO_MAXPROCS", text, 1);
	setenv("GORO_DEBUG", debug, 1);
	*result = (struct result){ 0 };
	test_run_child(child, &o);
	CHECK_EQ(o.status, 0);
	return *result;
}

/* ---------------------------------------------------------------- the tests */

static double best(double a, double b)
{
	return a > b ? a : b;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* What came of the rounds so far, each at its best: others may use the machine, too. */
struct outcome {
	struct result with;
	double without;
};

static void another_round(struct outcome *o, int procs, const char *debug)
{
	struct result a = run(debug, procs), b = run("asyncpreemptoff=1", procs);

	o->with.rate = best(o->with.rate, a.rate);
	o->with.stall = least(o->with.stall, a.stall - a.machine);
	o->with.starve = least(o->with.starve, a.starve - a.machine);
	o->without = best(o->without, b.rate);
}

static bool good(const struct outcome *o)
{
	return o->with.rate >= SHARE * o->without && o->with.stall <= STALL_NS &&
	       o->with.starve <= STARVE_NS;
}

static void convoy(void (*fn)(void), int procs, const char *debug)
{
	struct outcome o = { .with = { .stall = INT64_MAX, .starve = INT64_MAX } };

	if (TOOL_ASAN || TOOL_TSAN || GORO_CHECKS)
		SKIP("times of slower builds mean nothing");
	work = fn;
	result = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(result != MAP_FAILED);
	for (int i = 0; i < ROUNDS || (i < ROUNDS_MAX && !good(&o)); i++)
		another_round(&o, procs, debug);
	printf("%.0f%% of the throughput without preemption; longest stall %.1f ms, starvation %.1f\n",
	       100 * o.with.rate / o.without, (double)o.with.stall / 1e6,
	       (double)o.with.starve / 1e6);
	if (o.with.rate < SHARE * o.without)
		FAIL("throughput falls to %.0f%%", 100 * o.with.rate / o.without);
	if (o.with.stall > STALL_NS)
		FAIL("nobody got anything done for %.1f ms", (double)o.with.stall / 1e6);
	if (o.with.starve > STARVE_NS)
		FAIL("one got nothing done for %.1f ms", (double)o.with.starve / 1e6);
}

#define SHORT_SLICES "slice=1000"
#define LONG_SLICES  "slice=10000"

TEST(a_file_on_1_with_long_slices)   { convoy(use_file, 1, LONG_SLICES); }
TEST(a_file_on_2_with_long_slices)   { convoy(use_file, 2, LONG_SLICES); }
TEST(a_file_on_4_with_long_slices)   { convoy(use_file, 4, LONG_SLICES); }
TEST(a_file_on_1_with_short_slices)  { convoy(use_file, 1, SHORT_SLICES); }
TEST(a_file_on_2_with_short_slices)  { convoy(use_file, 2, SHORT_SLICES); }
TEST(a_file_on_4_with_short_slices)  { convoy(use_file, 4, SHORT_SLICES); }
TEST(malloc_on_1_with_long_slices)   { convoy(use_malloc, 1, LONG_SLICES); }
TEST(malloc_on_2_with_long_slices)   { convoy(use_malloc, 2, LONG_SLICES); }
TEST(malloc_on_4_with_long_slices)   { convoy(use_malloc, 4, LONG_SLICES); }
TEST(malloc_on_1_with_short_slices)  { convoy(use_malloc, 1, SHORT_SLICES); }
TEST(malloc_on_2_with_short_slices)  { convoy(use_malloc, 2, SHORT_SLICES); }
TEST(malloc_on_4_with_short_slices)  { convoy(use_malloc, 4, SHORT_SLICES); }
TEST(a_mutex_on_1_with_long_slices)  { convoy(use_mutex, 1, LONG_SLICES); }
TEST(a_mutex_on_2_with_long_slices)  { convoy(use_mutex, 2, LONG_SLICES); }
TEST(a_mutex_on_4_with_long_slices)  { convoy(use_mutex, 4, LONG_SLICES); }
TEST(a_mutex_on_1_with_short_slices) { convoy(use_mutex, 1, SHORT_SLICES); }
TEST(a_mutex_on_2_with_short_slices) { convoy(use_mutex, 2, SHORT_SLICES); }
TEST(a_mutex_on_4_with_short_slices) { convoy(use_mutex, 4, SHORT_SLICES); }
