/*
 * libc_lock_test.c - nothing in the runtime waits for a lock of libc's, whose
 * holder may be a goroutine that was stopped; and who makes threads, and has to,
 * holds up nobody meanwhile.
 *
 * malloc and what else takes such locks are replaced by functions that look at the
 * state of the calling thread first. pthread_create can be made to wait, as it
 * does when a goroutine was stopped in the middle of malloc.
 */
#include <goro.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "sched/runtime.h"
#include "test.h"

#if TOOL_ASAN || TOOL_TSAN

TEST(skipped) { SKIP("the sanitizer has malloc"); }

#elif !defined __GLIBC__

TEST(skipped) { SKIP("only glibc's malloc can be called by another name"); }

#else

static int violations;
static const char *first_violation;
static uint64_t calls;

/* In a goro_ call, in sysmon, in the handler: the state is RUNTIME in all of them. */
static void takes_a_lock(const char *what)
{
	struct m *mp = m_self();

	fetch_add_relaxed(&calls, 1);
	if (!mp || load_relaxed(&mp->state) != M_RUNTIME)
		return;
	if (fetch_add_relaxed(&violations, 1) == 0)
		store_relaxed(&first_violation, what);
}

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

void *malloc(size_t n)
{
	takes_a_lock("malloc");
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	takes_a_lock("calloc");
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	takes_a_lock("realloc");
	return __libc_realloc(p, n);
}

void free(void *p)
{
	if (p)
		takes_a_lock("free");
	__libc_free(p);
}

int dl_iterate_phdr(int (*fn)(struct dl_phdr_info *, size_t, void *), void *arg)
{
	static int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);

	takes_a_lock("dl_iterate_phdr");
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
	return real(fn, arg);
}

static bool threads_held;	/* nobody gets a new thread .. */
static int waiting;		/* .. and who tries, waits */

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	takes_a_lock("pthread_create");
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	if (load_seqcst(&threads_held)) {
		fetch_add_seqcst(&waiting, 1);
		while (load_seqcst(&threads_held))
			syscall(SYS_sched_yield);
		fetch_add_seqcst(&waiting, -1);
	}
	return real(thread, attr, fn, arg);
}

/* ----------------------------------------------------- everything at once */

static bool stop;
static int running;

static void hog(void)
{
	while (!load_relaxed(&stop))
		free(malloc(100));
	fetch_add_seqcst(&running, -1);
}

static void nothing(void *arg) { (void)arg; }
static void give_up(void *arg) { goro_panic("enough of %s", (const char *)arg); }

static void nap(void *arg)
{
	struct timespec t = { 0, 100000 };

	(void)arg;
	nanosleep(&t, NULL);
}

static int succeed(goro_ctx *ctx, void *arg)
{
	(void)ctx, (void)arg;
	return 0;
}

static void use_channels(void)
{
	goro_chan *c[8];
	struct goro_case cases[8];
	int v = 1;

	for (int i = 0; i < 8; i++) {
		c[i] = goro_chan_of(int, 1);
		cases[i] = GORO_RECV(c[i], &v);
	}
	goro_chan_send(c[5], &v);
	CHECK_EQ(goro_select_n(cases, 8, GORO_FOREVER), 5);
	CHECK_EQ(goro_select_n(cases, 8, goro_now() + 100000), -1);
	for (int i = 0; i < 8; i++)
		goro_chan_unref(c[i]);
}

static void use_time(void)
{
	goro_timer *t = goro_timer_make(50000);
	goro_ticker *k = goro_ticker_make(50000);

	goro_chan_recv(goro_timer_chan(t), NULL);
	goro_chan_recv(goro_ticker_chan(k), NULL);
	goro_sleep(20000);
	goro_timer_free(t);
	goro_ticker_free(k);
	goro_timer_free(goro_after_func(10000, nothing, NULL));
}

static void use_the_rest(void)
{
	goro_ctx *ctx = goro_ctx_with_timeout(goro_ctx_background(), 100000);
	goro_group *group = goro_group_make(ctx, 2);
	goro_pool *pool = goro_pool_make(2, 2);

	goro_set_name("a goroutine with a name");
	CHECK_CONTAINS(goro_try(give_up, "it"), "enough of it");
	for (int i = 0; i < 4; i++) {
		goro_group_go(group, succeed, NULL);
		goro_pool_submit(pool, nothing, NULL, GORO_FOREVER);
	}
	goro_group_wait(group);
	goro_pool_close(pool);
	goro_chan_recv(goro_ctx_done(ctx), NULL);
	goro_ctx_unref(ctx);
}

static goro_mutex lock;

static void use_everything(void)
{
	while (!load_relaxed(&stop)) {
		use_channels();
		use_time();
		use_the_rest();
		goro_mutex_lock(&lock);
		goro_gosched();
		goro_mutex_unlock(&lock);
		goro_blocking(nap, NULL);
		nap(NULL);
		goro_lock_os_thread();
		goro_gosched();
		goro_unlock_os_thread();
	}
	fetch_add_seqcst(&running, -1);
}

static int be_busy(int argc, char **argv)
{
	int64_t end = goro_now() + seconds(1);

	(void)argc, (void)argv;
	running = 4 + 8;
	for (int i = 0; i < 4; i++)
		go(hog);
	for (int i = 0; i < 8; i++)
		go(use_everything);
	for (int n = 1; goro_now() < end; n++) {
		goro_gomaxprocs(n % 4 + 1);
		goro_sleep(10 * GORO_MILLISECOND);
	}
	store_relaxed(&stop, true);
	AWAIT(load_seqcst(&running) == 0);
	return 0;
}

TEST(the_runtime_takes_no_lock_of_libcs)
{
	setenv("GORO_DEBUG", "slice=1000", 1);
	goro_run(be_busy, 0, NULL);
	CHECK(calls > 1000);
	if (violations)
		FAIL("%d calls in state RUNTIME, the first of %s", violations, first_violation);
}

/* ------------------------------------------------------- who makes threads */

static void spin(void)
{
	while (!load_relaxed(&stop))
		;
}

static bool held_it;

/* Like a goroutine inside malloc that is stopped there: until it runs again, no
 * thread can be made. It needs several turns. */
static void hold_threads(void)
{
	store_seqcst(&threads_held, true);
	for (int i = 0; i < 3; i++) {
		struct goro_stats s, t;

		goro_stats_read(&s);
		do
			goro_stats_read(&t);
		while (t.preemptions < s.preemptions + 3);
	}
	store_seqcst(&held_it, true);
	store_seqcst(&threads_held, false);
}

/* Each of them wants a thread of its own while it sleeps. */
static void sleep_in_kernel(void)
{
	struct timespec t = { 0, 2000000 };

	while (!load_relaxed(&stop))
		nanosleep(&t, NULL);
}

/* sysmon must not be the one who waits for the thread, nor the P that it is for:
 * then nobody would ever stop the hogs in favour of the one who holds the lock. The
 * P goes to a goroutine that brings its own thread. */
static void threads_are_held(int procs)
{
	goro_gomaxprocs(procs);
	for (int i = 0; i < 2 * procs; i++)
		go(spin);
	goro_sleep(50 * GORO_MILLISECOND);
	go(hold_threads);
	for (int i = 0; i < 10; i++)
		go(sleep_in_kernel);
	AWAIT(load_seqcst(&held_it));
	store_relaxed(&stop, true);
}

GO_TEST(a_goroutine_that_keeps_threads_from_being_made_goes_on_1) { threads_are_held(1); }
GO_TEST(a_goroutine_that_keeps_threads_from_being_made_goes_on_2) { threads_are_held(2); }

#endif
