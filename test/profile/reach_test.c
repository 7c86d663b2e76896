/*
 * reach_test.c - goroutines that wait for objects which nothing can reach.
 *
 * A pointer that a test is done with must be gone from registers and from the used parts
 * of stacks and heap. So functions that make channels run in a goroutine that ends, or
 * end deeper on the stack than the frames that scan.
 */
/* test: procs */

#include <goro.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "base/debug.h"
#include "await.h"
#include "profile/profile.h"
#include "reclaim/evacuate.h"
#include "test.h"

/* Under sanitizers leaks are missed: freed memory, and the sanitizer's, has pointers. */
#define NEEDS_CLEAN_MEMORY() \
	do { \
		if (TOOL_ASAN || TOOL_TSAN) \
			SKIP("the sanitizer keeps copies of pointers"); \
	} while (0)

/* Clears what earlier calls have left where the next frames will lie. */
__attribute__((noinline)) static void scrub(void)
{
	volatile char over[4096];

	for (size_t i = 0; i < sizeof over; i++)
		over[i] = 0;
}

static size_t lost(void)
{
	scrub();
	return profile_goroutineleak_dump(NULL);
}

/* Are n goroutines lost soon? An idle thread's registers and frames may have the channel
 * for a while. */
static bool lost_soon(size_t n)
{
	scrub();
	for (int i = 0; i < 50; i++) {
		if (lost() == n)
			return true;
		goro_sleep(GORO_MILLISECOND);
	}
	return false;
}

/* Lets all others come to rest. */
static void settle(size_t waiting)
{
	struct goro_stats s;

	do {
		goro_sleep(GORO_MILLISECOND);
		goro_stats_read(&s);
	} while (s.waiting < waiting);
}

static int many;

SEEN static void receives(goro_chan *c)
{
	goro_chan_recv(c, NULL);
	NO_TAIL_CALL();
}

SEEN static void sends(goro_chan *c)
{
	goro_chan_send(c, &(char){ 0 });
	NO_TAIL_CALL();
}

static goro_chan *chan(void)
{
	return goro_chan_make(1, 0);
}

/* Runs fn in a goroutine of its own, and waits for the end of that. */
static goro_chan *apart_done;

static void apart_run(void (*fn)(void))
{
	fn();
	goro_chan_close(apart_done);
}

static void apart(void (*fn)(void))
{
	goro_chan *done = apart_done = chan();

	go(apart_run, fn);
	goro_chan_recv(done, NULL);
	goro_chan_unref(done);
	apart_done = NULL;
}

/* ----------------------------------------------------------------- found */

SEEN static void leave_receiver(void)
{
	go(receives, chan());
	NO_TAIL_CALL();
}

GO_TEST(one_on_a_channel_nobody_knows)
{
	NEEDS_CLEAN_MEMORY();
	CHECK_EQ(lost(), 0);
	apart(leave_receiver);
	settle(1);
	CHECK(lost_soon(1));
}

static void leave_sender(void)
{
	go(sends, chan());
}

static void receives_by_select(goro_chan *a, goro_chan *b)
{
	goro_select(GORO_RECV(a, NULL), GORO_RECV(b, NULL));
}

static void leave_select(void)
{
	go(receives_by_select, chan(), chan());
}

static void receives_by_wide_select(goro_chan *a, goro_chan *b)
{
	goro_select(GORO_RECV(a, NULL), GORO_RECV(b, NULL), GORO_RECV(a, NULL), GORO_RECV(b, NULL),
	            GORO_RECV(a, NULL), GORO_RECV(b, NULL));
}

static void leave_wide_select(void)
{
	go(receives_by_wide_select, chan(), chan());
}

static void receives_nil(void)
{
	goro_chan_recv(NULL, NULL);
}

static void leave_nil(void)
{
	go(receives_nil);
}

static void selects_nothing(void)
{
	goro_select_n(NULL, 0, GORO_FOREVER);
}

static void leave_no_cases(void)
{
	go(selects_nothing);
}

static void waits_for_group(void)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 1);
	goro_waitgroup_wait(&wg);
}

static void leave_group(void)
{
	go(waits_for_group);
}

static void locks_twice(void)
{
	goro_mutex m = { 0 };

	goro_mutex_lock(&m);
	goro_mutex_lock(&m);
}

static void leave_mutex(void)
{
	go(locks_twice);
}

static void waits_for_condition(void)
{
	goro_mutex m = { 0 };
	goro_cond c = { 0 };

	goro_mutex_lock(&m);
	goro_cond_wait(&c, &m);
}

static void leave_cond(void)
{
	go(waits_for_condition);
}

static void waits_for_units(void)
{
	goro_sema s;

	goro_sema_init(&s, 0);
	goro_sema_acquire(&s, 1, GORO_FOREVER);
}

static void leave_sema(void)
{
	go(waits_for_units);
}

static void drop(void *c)
{
	goro_chan_unref(c);
}

static void receives_and_drops(goro_chan *c)
{
	goro_defer(drop, c);
	goro_chan_recv(c, NULL);
}

static void leave_deferring(void)
{
	go(receives_and_drops, chan());
}

static void leave_pool(void)
{
	goro_pool_make(1, 4);
}

GO_TEST(all_ways_to_wait)
{
	static void (*const leave[])(void) = {
		leave_receiver, leave_sender, leave_select, leave_wide_select, leave_nil, leave_no_cases,
		leave_group, leave_mutex, leave_cond, leave_sema, leave_deferring, leave_pool,
	};
	enum { N = sizeof leave / sizeof *leave };
	char *text = NULL;
	size_t n, hidden = 0;

	NEEDS_CLEAN_MEMORY();
	for (int i = 0; i < N; i++) {
		apart(leave[i]);
		settle((size_t)i + 1);
		/* A stale pointer may hide one: "What this cannot do" in reach.c. */
		if (!lost_soon((size_t)i + 1 - hidden) && ++hidden > 1)
			FAIL("way %d is not found: %zu", i, lost());
	}
	FILE *f = open_memstream(&text, &n);
	CHECK(profile_goroutineleak_dump(f) >= N - 1);
	fclose(f);
	CHECK_CONTAINS(text, " [chan receive]:\n");
	CHECK_CONTAINS(text, " [sync.WaitGroup.Wait]:\n");
	CHECK_CONTAINS(text, "receives(...)");
	CHECK_CONTAINS(text, "created by leave_receiver");
}

/* Each of two goroutines has what the other waits for, and nothing else has it. */
static void receives_holding(goro_chan *a, goro_chan *b)
{
	goro_chan_recv(a, NULL);
	goro_chan_send(b, &(char){ 0 });
}

static void leave_cycle(void)
{
	goro_chan *a = chan(), *b = chan();

	go(receives_holding, a, b);
	go(receives_holding, b, a);
}

GO_TEST(a_cycle)
{
	NEEDS_CLEAN_MEMORY();
	apart(leave_cycle);
	settle(2);
	CHECK(lost_soon(2));
}

/* A parent waits for a child, which waits for a channel that nothing reaches. */
static void waits_for_child(goro_waitgroup *wg, goro_chan *c)
{
	goro_chan_recv(c, NULL);
	goro_waitgroup_done(wg);
}

static void parent_of_lost(void)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 1);
	go(waits_for_child, &wg, chan());
	goro_waitgroup_wait(&wg);
}

static void leave_family(void)
{
	go(parent_of_lost);
}

GO_TEST(a_parent_of_one_that_is_lost)
{
	NEEDS_CLEAN_MEMORY();
	apart(leave_family);
	settle(2);
	CHECK(lost_soon(2));
}

/* What is buffered in a channel that nothing reaches is not reached, either. */
static void leave_buffered(void)
{
	goro_chan *full = goro_chan_of(goro_chan *, 1), *c = chan();

	goro_chan_send(full, &c);
	go(receives, c);
	go(sends, full);
}

GO_TEST(a_channel_in_a_lost_channel)
{
	NEEDS_CLEAN_MEMORY();
	apart(leave_buffered);
	settle(2);
	CHECK(lost_soon(2));
}

/* --------------------------------------------------------------- not blamed */

static goro_chan *global;

static void keep_in_global(void)
{
	global = chan();
	go(receives, global);
}

GO_TEST(reached_from_a_global)
{
	apart(keep_in_global);
	settle(1);
	CHECK_EQ(lost(), 0);
	if (TOOL_ASAN || TOOL_TSAN)
		return;
	global = NULL;
	CHECK(lost_soon(1));
}

/* Without descriptors nothing can be scanned. One or two are too few. */
GO_TEST(nobody_is_blamed_where_descriptors_run_out)
{
	int fd = 0, last = -1;

	apart(keep_in_global);
	settle(1);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 64, 64 });
	while ((fd = dup(1)) >= 0)
		last = fd;
	CHECK_EQ(lost(), 0);
	close(last);
	CHECK_EQ(lost(), 0);
	close(last - 1);
	CHECK_EQ(lost(), 0);
}

struct holder {
	int64_t something;
	goro_chan *c;
};

static struct holder *volatile hidden_holder;	/* complemented: only the heap has c */

static void keep_in_heap(void)
{
	struct holder *h = malloc(sizeof *h);

	h->c = chan();
	go(receives, h->c);
	hidden_holder = (struct holder *)~(uintptr_t)h;
}

GO_TEST(reached_from_the_heap)
{
	apart(keep_in_heap);
	settle(1);
	CHECK_EQ(lost(), 0);
}

GO_TEST(reached_from_the_callers_stack)
{
	goro_chan *volatile c = chan();

	go(receives, c);
	settle(1);
	CHECK_EQ(lost(), 0);
	goro_chan_close(c);
}

static void sleeps_with(goro_chan *c)
{
	goro_sleep(40 * GORO_SECOND);
	goro_chan_close(c);
}

static void keep_in_sleeper(void)
{
	goro_chan *c = chan();

	go(receives, c);
	go(sleeps_with, c);
}

GO_TEST(reached_from_one_that_sleeps)
{
	apart(keep_in_sleeper);
	settle(2);
	CHECK_EQ(lost(), 0);
}

/* A goroutine that has not run yet has only its arguments. */
static void yields_to_nobody(goro_chan *c)
{
	goro_chan_close(c);
}

GO_TEST(reached_from_one_that_has_not_begun)
{
	apart(keep_in_global);
	settle(1);
	go(yields_to_nobody, global);
	global = NULL;
	CHECK_EQ(lost(), 0);
}

/* The chain: asleep -> b, whose waiter has a. */
static void keep_in_chain(void)
{
	goro_chan *a = chan(), *b = chan();

	go(receives, a);
	go(receives_holding, b, a);
	go(sleeps_with, b);
}

GO_TEST(reached_from_one_that_is_reached)
{
	apart(keep_in_chain);
	settle(3);
	CHECK_EQ(lost(), 0);
}

static uint32_t registers_ready, registers_stop;

/* The channel is in one register, and nowhere else: the thread runs. */
static void spins_with(goro_chan *c)
{
	uintptr_t hidden = ~(uintptr_t)c;

	store_relaxed(&registers_ready, 1);
#if defined(__x86_64__)
	__asm__ volatile("movq %0, %%rbx\n\t"
	                 "notq %%rbx\n\t"
	                 "movq $0, %0\n"
	                 "1:\tpause\n\t"
	                 "cmpl $0, (%1)\n\t"
	                 "je 1b\n\t"
	                 "movq %%rbx, %0"
	                 : "+r"(hidden) : "r"(&registers_stop) : "rbx", "memory", "cc");
#else
	__asm__ volatile("mvn x19, %0\n\t"
	                 "mov %0, #0\n"
	                 "1:\tyield\n\t"
	                 "ldr w20, [%1]\n\t"
	                 "cbz w20, 1b\n\t"
	                 "mov %0, x19"
	                 : "+r"(hidden) : "r"(&registers_stop) : "x19", "x20", "memory", "cc");
#endif
	goro_chan_close((goro_chan *)hidden);
}

static void keep_in_register(void)
{
	goro_chan *c = chan();

	go(receives, c);
	goro_sleep(5 * GORO_MILLISECOND);
	go(spins_with, c);
}

GO_TEST(reached_from_a_register)
{
	uint64_t mark = goro_leak_mark();

	apart(keep_in_register);
	settle(1);
	AWAIT(load_relaxed(&registers_ready));
	for (int i = 0; i < 20; i++)
		CHECK_EQ(lost(), 0);
	store_relaxed(&registers_stop, 1);
	CHECK_EQ(goro_leak_check(mark, seconds(50), stderr), 0);
}

static void *thread_with(void *arg)
{
	goro_chan *c = arg;

	store_relaxed(&registers_ready, 1);
	while (!load_relaxed(&registers_stop))
		;
	goro_chan_close(c);
	return NULL;
}

static pthread_t thread;

static void keep_in_thread(void)
{
	goro_chan *c = chan();

	go(receives, c);
	pthread_create(&thread, NULL, thread_with, c);
}

/* A plain thread that computes; and one that sleeps in a call. */
GO_TEST(reached_from_a_plain_thread)
{
	apart(keep_in_thread);
	settle(1);
	AWAIT(load_relaxed(&registers_ready));
	for (int i = 0; i < 20; i++)
		CHECK_EQ(lost(), 0);
	store_relaxed(&registers_stop, 1);
	pthread_join(thread, NULL);
}

static int block_on[2];

static void blocks_with(goro_chan *c)
{
	char byte;

	goro_gosched();
	if (read(block_on[0], &byte, 1) < 0)	/* not goro_read: the thread sleeps */
		return;
	goro_chan_close(c);
}

static void keep_in_call(void)
{
	goro_chan *c = chan();

	go(receives, c);
	go(blocks_with, c);
}

GO_TEST(reached_from_one_in_a_blocking_call)
{
	uint64_t mark = goro_leak_mark();

	CHECK_EQ(pipe(block_on), 0);
	apart(keep_in_call);
	settle(1);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(lost(), 0);
		goro_sleep(GORO_MILLISECOND);
	}
	CHECK_EQ(write(block_on[1], "x", 1), 1);
	CHECK_EQ(goro_leak_check(mark, seconds(50), stderr), 0);
}

static void closes(void *c)
{
	goro_chan_close(c);
}

static void keep_in_timer(void)
{
	goro_chan *c = chan();

	go(receives, c);
	goro_after_func(50 * GORO_SECOND, closes, c);
}

GO_TEST(reached_from_a_timer)
{
	apart(keep_in_timer);
	settle(1);
	CHECK_EQ(lost(), 0);
}

static goro_ticker *ticker;

static void keep_in_ticker(void)
{
	ticker = goro_ticker_make(50 * GORO_SECOND);
	go(receives, goro_chan_ref(goro_ticker_chan(ticker)));
}

static void free_ticker(void)
{
	goro_ticker_free(ticker);
	ticker = NULL;
}

/* Freeing it closes nothing, and leaves no pointer in the memory that was the
 * ticker's. */
GO_TEST(lost_with_a_ticker)
{
	NEEDS_CLEAN_MEMORY();
	apart(keep_in_ticker);
	settle(1);
	CHECK_EQ(lost(), 0);
	apart(free_ticker);
	CHECK(lost_soon(1));
}

static goro_ctx *ctx;

static void waits_until_done(goro_ctx *c)
{
	goro_chan_recv(goro_ctx_done(c), NULL);
}

static void keep_in_context(void)
{
	ctx = goro_ctx_with_timeout(goro_ctx_background(), 50 * GORO_SECOND);
	go(waits_until_done, ctx);
}

static void make_context(void)
{
	ctx = goro_ctx_with_cancel(goro_ctx_background());
	go(waits_until_done, ctx);
}

static void make_child(void)
{
	goro_ctx *child = goro_ctx_with_cancel(ctx);

	go(waits_until_done, child);
}

/* Only the context has the channel, and nothing has the context. */
GO_TEST(lost_with_a_context)
{
	NEEDS_CLEAN_MEMORY();
	apart(make_context);
	settle(1);
	CHECK_EQ(lost(), 0);
	ctx = NULL;
	CHECK(lost_soon(1));
}

/* The end of a context ends the contexts below it. */
GO_TEST(reached_from_the_context_above)
{
	ctx = goro_ctx_with_cancel(goro_ctx_background());
	apart(make_child);
	settle(1);
	CHECK_EQ(lost(), 0);
}

static goro_ctx_func *func;

static void keep_in_func(void)
{
	make_context();
	func = goro_ctx_after_func(ctx, free, NULL);
	ctx = NULL;
}

/* A function that is to run at the end of a context has a pointer to the context. */
GO_TEST(reached_from_a_function_of_a_context)
{
	apart(keep_in_func);
	settle(1);
	CHECK_EQ(lost(), 0);
	goro_ctx_func_stop(func);
}

static void keep_with_timer_only(void)
{
	make_context();
	ctx = NULL;
	go(waits_until_done, goro_ctx_with_timeout(goro_ctx_background(), 50 * GORO_SECOND));
}

/* A timer ends one context; nothing can end the other. */
GO_TEST(reached_from_the_timer_of_a_context)
{
	NEEDS_CLEAN_MEMORY();
	apart(keep_with_timer_only);
	settle(2);
	CHECK(lost_soon(1));
}

GO_TEST(reached_from_a_context)
{
	apart(keep_in_context);
	settle(1);
	CHECK_EQ(lost(), 0);
}

static goro_mutex shared_lock;
static goro_cond shared_cond;
static goro_rwmutex shared_rw;

static void locks(void)
{
	goro_mutex_lock(&shared_lock);
}

static void waits_for_shared(void)
{
	goro_mutex own = { 0 };

	goro_mutex_lock(&own);
	goro_cond_wait(&shared_cond, &own);
}

static void reads(void)
{
	goro_rwmutex_rlock(&shared_rw);
}

GO_TEST(reached_without_a_pointer)
{
	goro_mutex_lock(&shared_lock);
	goro_rwmutex_lock(&shared_rw);
	go(locks);
	go(waits_for_shared);
	go(reads);
	settle(3);
	CHECK_EQ(lost(), 0);
}

/* The group is on the parent's stack, and the children have a pointer to it. */
static void child(goro_waitgroup *wg)
{
	goro_sleep(40 * GORO_SECOND);
	goro_waitgroup_done(wg);
}

struct job {
	int64_t before[5];
	goro_waitgroup wg;
};

static void child_of_job(struct job *j)
{
	goro_sleep(40 * GORO_SECOND);
	goro_waitgroup_done(&j->wg);
}

static void parent(void)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 1);
	go(child, &wg);
	goro_waitgroup_wait(&wg);
}

static void parent_by_job(void)
{
	struct job j = { .before = { 0 } };

	goro_waitgroup_add(&j.wg, 1);
	go(child_of_job, &j);
	goro_waitgroup_wait(&j.wg);
}

GO_TEST(a_parent_that_waits_for_its_children)
{
	go(parent);
	go(parent_by_job);
	settle(4);
	CHECK_EQ(lost(), 0);
}

/* A goroutine that waits for a descriptor, or with a deadline, is no leak. */
static void waits_a_while(goro_chan *c)
{
	goro_select_until(goro_now() + 50 * GORO_SECOND, GORO_RECV(c, NULL), GORO_RECV(c, NULL));
}

static void waits_for_bytes(void)
{
	char byte;

	goro_read(block_on[0], &byte, 1);
}

static void leave_those_who_can(void)
{
	go(waits_a_while, chan());
	go(waits_for_bytes);
}

GO_TEST(those_who_wait_for_the_outside)
{
	CHECK_EQ(pipe(block_on), 0);
	apart(leave_those_who_can);
	settle(2);
	CHECK_EQ(lost(), 0);
}

/* ------------------------------------------------------------------- in all */

static uint32_t busy_stop;

static void ping(goro_chan *a, goro_chan *b)
{
	char x = 0;

	while (!load_relaxed(&busy_stop)) {
		goro_chan_send(a, &x);
		goro_chan_recv(b, &x);
	}
	goro_chan_close(a);
}

static void pong(goro_chan *a, goro_chan *b)
{
	char x;

	while (goro_chan_recv(a, &x))
		goro_chan_send(b, &x);
}

/* No goroutine of a busy program is reported. */
GO_TEST_TIMEOUT(nobody_is_blamed_in_a_busy_program, 120)
{
	enum { N = 20 };
	uint64_t mark = goro_leak_mark();

	for (int i = 0; i < N; i++) {
		goro_chan *a = chan(), *b = chan();

		go(ping, a, b);
		go(pong, a, b);
	}
	for (int i = 0; i < SCALED(100); i++) {
		size_t n = lost();

		if (n)
			FAIL("%zu, the %dth time", n, i);
	}
	store_relaxed(&busy_stop, 1);
	CHECK_EQ(goro_leak_check(mark, seconds(50), stderr), 0);
}

static goro_chan **kept;

static void keep_many(void)
{
	kept = calloc((size_t)many, sizeof *kept);
	for (int i = 0; i < many; i++)
		go(receives, kept[i] = chan());
}

/* The stacks that are scanned come back only if the thread that brings them is not
 * held. */
GO_TEST(stacks_that_are_evacuated)
{
	store_relaxed(&debug.evacuate, 1);
	AWAIT(evacuate_threads() || !evacuate_works());
	if (!evacuate_works())
		SKIP("no stack can be evacuated here");
	many = SCALED(20000);
	apart(keep_many);
	settle((size_t)many);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(lost(), 0);
}

GO_TEST_TIMEOUT(a_hundred_thousand, 120)
{
	int64_t began;
	size_t n;

	many = SCALED(100000);
	apart(keep_many);
	settle((size_t)many);
	began = goro_now();
	CHECK_EQ(lost(), 0);
	dprintf(1, "%d live: %lld us\n", many, (long long)(goro_now() - began) / 1000);
	if (TOOL_ASAN || TOOL_TSAN)
		return;
	memset(kept, 0, (size_t)many * sizeof *kept);
	began = goro_now();
	n = lost();
	dprintf(1, "%zu lost: %lld us\n", n, (long long)(goro_now() - began) / 1000);
	CHECK(n >= (size_t)many * 9 / 10);
	/* The last ones may have left pointers, and the whole stack of a thread without a
	 * CPU is scanned. */
	AWAIT(lost() >= (size_t)many - 9);
}
