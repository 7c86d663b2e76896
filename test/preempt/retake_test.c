/*
 * retake_test.c - goroutines around a lock that the runtime knows nothing of: the one
 * that holds it is stopped, those who want it lose their Ps, and everybody gets on. (What
 * it costs is in convoy_test.c.)
 */
/* test: procs */
#include <goro.h>
#include <malloc.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "test.h"

enum { WORKERS = 8, TURNS = 20 };

static struct { _Alignas(64) uint64_t rounds; } worker[WORKERS];
static bool stop;
static void (*work)(void);

static FILE *file;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t guarded;

static void use_file(void)
{
	fprintf(file, "%s\n", "a line of some length, to be formatted under the lock");
}

static void use_malloc(void)
{
	void *volatile p = malloc(3000);	/* too large for the thread's own cache */

	free(p);
}

static void use_mutex(void)
{
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < 1000; i++)
		__asm__ volatile("" ::: "memory");
	guarded++;
	pthread_mutex_unlock(&mutex);
}

static void work_on(int i, goro_waitgroup *wg)
{
	while (!load_relaxed(&stop)) {
		work();
		store_relaxed(&worker[i].rounds, worker[i].rounds + 1);
	}
	goro_waitgroup_done(wg);
}

static uint64_t all_rounds(void)
{
	uint64_t n = 0;

	for (int i = 0; i < WORKERS; i++)
		n += load_relaxed(&worker[i].rounds);
	return n;
}

/* Each of them gets something done, again and again. */
static void everybody_gets_on(void)
{
	for (int turn = 0; turn < TURNS; turn++) {
		uint64_t before[WORKERS];

		for (int i = 0; i < WORKERS; i++)
			before[i] = load_relaxed(&worker[i].rounds);
		for (int i = 0; i < WORKERS; i++)
			while (load_relaxed(&worker[i].rounds) == before[i])
				goro_sleep(GORO_MILLISECOND);
	}
}

static int run_workers(int argc, char **argv)
{
	goro_waitgroup wg = { 0 };

	(void)argc, (void)argv;
	goro_waitgroup_add(&wg, WORKERS);
	for (int i = 0; i < WORKERS; i++)
		go(work_on, i, &wg);
	everybody_gets_on();
	store_relaxed(&stop, true);
	goro_waitgroup_wait(&wg);
	return 0;
}

/* A tenth of a slice: so many stops more. */
static void convoy(void (*fn)(void))
{
	setenv("GORO_DEBUG", "slice=1000", 1);
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 1);
#endif
	file = fopen("/dev/null", "w");
	CHECK(file);
	work = fn;
	CHECK_EQ(goro_run(run_workers, 0, NULL), 0);
	if (fn == use_mutex)
		CHECK_EQ(guarded, all_rounds());
}

TEST(around_a_file_everybody_gets_on)   { convoy(use_file); }
TEST(around_malloc_everybody_gets_on)   { convoy(use_malloc); }
TEST(around_a_mutex_everybody_gets_on)  { convoy(use_mutex); }
