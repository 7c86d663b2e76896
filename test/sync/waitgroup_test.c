/*
 * waitgroup_test.c - waiting for groups: barriers, many waiters, misuse, and that
 * a group may go out of scope as soon as it has been waited for.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "base/config.h"
#include "deadlock.h"
#include "sched/linger.h"
#include "race.h"
#include "test.h"

_Static_assert(sizeof(goro_waitgroup) == 16, "as promised");

static uint32_t waiters_of(goro_waitgroup *wg)
{
	return (uint32_t)load_relaxed(&wg->opaque[0]);
}

/* --------------------------------------------------------------------- waiting */

struct barrier {
	goro_waitgroup ready, go_on;
	goro_chan *exited;
};

static void pass_barrier(struct barrier *b)
{
	goro_waitgroup_done(&b->ready);
	goro_waitgroup_wait(&b->go_on);
	goro_chan_send(b->exited, NULL);
}

static void one_barrier(struct barrier *b)
{
	enum { N = 16 };

	b->exited = goro_chan_make(0, N);
	goro_waitgroup_add(&b->ready, N);
	goro_waitgroup_add(&b->go_on, N);
	for (int i = 0; i < N; i++)
		go(pass_barrier, b);
	goro_waitgroup_wait(&b->ready);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(goro_chan_try_recv(b->exited, NULL), GORO_RECV_EMPTY);
		goro_waitgroup_done(&b->go_on);
	}
	for (int i = 0; i < N; i++)
		goro_chan_recv(b->exited, NULL);
	goro_chan_unref(b->exited);
}

GO_TEST(a_barrier_holds_and_opens_again_and_again)
{
	struct barrier b = { .exited = NULL };

	for (int i = 0; i < 8; i++)
		one_barrier(&b);
}

static void wait_and_say(goro_waitgroup *wg, goro_chan *gone_on, int i)
{
	goro_waitgroup_wait(wg);
	goro_chan_send(gone_on, &i);
}

/* On one P, in the order in which they came; unless one is preempted. */
static bool go_on_in_order(int n)
{
	goro_chan *gone_on = goro_chan_of(int, (size_t)n);
	goro_waitgroup wg = { 0 };
	bool in_order = true;

	goro_waitgroup_add(&wg, 1);
	for (int i = 0; i < n; i++) {
		go(wait_and_say, &wg, gone_on, i);
		AWAIT(waiters_of(&wg) == (uint32_t)i + 1);
	}
	goro_waitgroup_done(&wg);
	for (int i = 0, who; i < n; i++) {
		goro_chan_recv(gone_on, &who);
		in_order = in_order && who == i;
	}
	goro_chan_unref(gone_on);
	return in_order;
}

GO_TEST(waiters_go_on_in_the_order_in_which_they_came)
{
	goro_gomaxprocs(1);
	for (int n = 2; n <= 20 && n < GORO_RUNQ_CAP; n++)
		for (int tries = 10; !go_on_in_order(n);)
			CHECK(--tries > 0);
}

GO_TEST(nothing_to_wait_for)
{
	goro_waitgroup wg = { { 0 } };

	goro_waitgroup_wait(&wg);
	goro_waitgroup_add(&wg, 3);
	goro_waitgroup_add(&wg, -2);
	goro_waitgroup_done(&wg);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(wg.opaque[0], 0);
}

static void count_and_done(int *n, goro_waitgroup *wg)
{
	fetch_add_relaxed(n, 1);
	goro_waitgroup_done(wg);
}

/* On the heap, and freed at once: it is not touched once wait has returned. */
GO_TEST_TIMEOUT(freed_as_soon_as_wait_returns, 120)
{
	for (int i = 0; i < SCALED(20000); i++) {
		goro_waitgroup *wg = calloc(1, sizeof *wg);
		int n = 0;

		linger_round(i);
		goro_waitgroup_add(wg, 2);
		go(count_and_done, &n, wg);
		go(count_and_done, &n, wg);
		if (i % 3 == 0)
			goro_gosched();
		goro_waitgroup_wait(wg);
		CHECK_EQ(load_relaxed(&n), 2);
		memset(wg, 0xa5, sizeof *wg);
		free(wg);
	}
}

static void done_in_thread(void *wg, int who, int round)
{
	(void)who, (void)round;
	goro_waitgroup_done(wg);
}

TEST_TIMEOUT(freed_by_a_thread_as_soon_as_wait_returns, 120)
{
	race_begin(2, done_in_thread);
	for (int i = 0; i < race.rounds; i++) {
		goro_waitgroup *wg = calloc(1, sizeof *wg);

		linger_round(i);
		goro_waitgroup_add(wg, 2);
		race_start(wg);
		goro_waitgroup_wait(wg);
		memset(wg, 0xa5, sizeof *wg);
		free(wg);
		race_finish();
	}
	race_end();
}

/* -------------------------------------------------------------------- many waiters */

static void wait_and_count(goro_waitgroup *gate, int *n, goro_waitgroup *out)
{
	goro_waitgroup_wait(gate);
	fetch_add_relaxed(n, 1);
	goro_waitgroup_done(out);
}

static void *wait_as_thread(void *gate)
{
	goro_waitgroup_wait(gate);
	return NULL;
}

GO_TEST(all_waiters_are_woken_goroutines_and_threads)
{
	int n = 0, many = SCALED(20000);
	goro_waitgroup gate = { { 0 } }, out = { { 0 } };
	pthread_t t[3];

	goro_waitgroup_add(&gate, 1);
	goro_waitgroup_add(&out, many);
	for (int i = 0; i < many; i++)
		CHECK_EQ(go(wait_and_count, &gate, &n, &out), 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, wait_as_thread, &gate);
	AWAIT(waiters_of(&gate) == (uint32_t)many + 3);
	CHECK_EQ(load_relaxed(&n), 0);
	goro_waitgroup_done(&gate);
	goro_waitgroup_wait(&out);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(n, many);
	CHECK_EQ(gate.opaque[0], 0);
	CHECK_EQ(gate.opaque[1], 0);
}

/* Waiters that arrive just while the counter reaches zero. */
static void arrive_while_it_opens(int round, int waiters)
{
	goro_waitgroup gate = { { 0 } }, out = { { 0 } };
	int n = 0;

	linger_round(round);
	goro_waitgroup_add(&gate, 1);
	goro_waitgroup_add(&out, waiters);
	for (int k = 0; k < waiters; k++)
		go(wait_and_count, &gate, &n, &out);
	go(count_and_done, &n, &gate);
	for (int k = 0; k < round % 8; k++)
		goro_gosched();
	goro_waitgroup_wait(&gate);
	goro_waitgroup_wait(&out);
	CHECK_EQ(n, waiters + 1);
	CHECK_EQ(gate.opaque[0], 0);
	CHECK_EQ(gate.opaque[1], 0);
}

GO_TEST_TIMEOUT(waiters_arrive_while_the_gate_opens, 120)
{
	for (int i = 0; i < SCALED(10000); i++)
		arrive_while_it_opens(i, 8);
}

/* ------------------------------------------- more waiters than are woken at a time */

#define A_LOT (4 * GORO_RUNQ_CAP)
#define ENOUGH (GORO_RUNQ_CAP + 4)

GO_TEST_TIMEOUT(a_lot_arrive_while_the_gate_opens, 120)
{
	for (int i = 0; i < SCALED(200); i++)
		arrive_while_it_opens(i, A_LOT);
}

/* When the gate opens, all have counted themselves, the first is on the list and the
 * others are on their way there. The goroutine that comes to the end of the list wakes
 * these. */
static void *pass_the_gate(void *arg)
{
	struct barrier *b = arg;

	goro_waitgroup_wait(&b->go_on);
	goro_waitgroup_done(&b->ready);
	return NULL;
}

GO_TEST_TIMEOUT(those_late_to_a_long_list_are_seen_to, 120)
{
	enum { THREADS = 4 };

	for (int i = 0; i < SCALED(40); i++) {
		struct barrier b = { .exited = NULL };
		goro_waitgroup out = { { 0 } };
		pthread_t t[THREADS];
		int n = 0;

		goro_waitgroup_add(&b.go_on, 1);
		goro_waitgroup_add(&b.ready, THREADS);
		goro_waitgroup_add(&out, A_LOT);
		for (int k = 0; k < A_LOT; k++)
			go(wait_and_count, &b.go_on, &n, &out);
		AWAIT(waiters_of(&b.go_on) == A_LOT);
		store_relaxed(&debug.linger, 200);
		for (int k = 0; k < THREADS; k++)
			pthread_create(&t[k], NULL, pass_the_gate, &b);
		AWAIT(waiters_of(&b.go_on) > A_LOT);
		goro_waitgroup_done(&b.go_on);
		goro_waitgroup_wait(&b.ready);
		goro_waitgroup_wait(&out);
		store_relaxed(&debug.linger, 0);
		for (int k = 0; k < THREADS; k++)
			pthread_join(t[k], NULL);
		CHECK_EQ(n, A_LOT);
		CHECK_EQ(b.go_on.opaque[1], 0);
	}
}

static void wait_locked(goro_waitgroup *gate, int *n, goro_waitgroup *out)
{
	goro_lock_os_thread();
	wait_and_count(gate, n, out);
	goro_unlock_os_thread();
}

static void start_waiters(int n, void (*fn)(goro_waitgroup *, int *, goro_waitgroup *),
                          goro_waitgroup *gate, int *count, goro_waitgroup *out)
{
	uint32_t before = waiters_of(gate);

	goro_waitgroup_add(out, n);
	for (int i = 0; i < n; i++)
		CHECK_EQ(go(fn, gate, count, out), 0);
	AWAIT(waiters_of(gate) == before + (uint32_t)n);
}

/* The latest are plain threads and goroutines locked to their
 * threads. So are the very first, some of which are all that is left at the end. */
GO_TEST_TIMEOUT(woken_by_turns_with_threads_among_them, 120)
{
	enum { LOCKED = GORO_RUNQ_CAP / 4 + 4, THREADS = 4 };
	goro_waitgroup gate = { { 0 } }, out = { { 0 } };
	pthread_t t[2 * THREADS];
	int n = 0;

	goro_waitgroup_add(&gate, 1);
	for (int i = 0; i < 2 * THREADS; i++) {
		uint32_t before = waiters_of(&gate);

		if (i == THREADS) {
			start_waiters(4, wait_locked, &gate, &n, &out);
			start_waiters(A_LOT, wait_and_count, &gate, &n, &out);
			start_waiters(LOCKED, wait_locked, &gate, &n, &out);
			before = waiters_of(&gate);
		}
		pthread_create(&t[i], NULL, wait_as_thread, &gate);
		AWAIT(waiters_of(&gate) == before + 1);
	}
	goro_waitgroup_done(&gate);
	goro_waitgroup_wait(&out);
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(n, 4 + A_LOT + LOCKED);
}

GO_TEST_TIMEOUT(a_lot_who_are_all_locked_to_threads, 120)
{
	goro_waitgroup gate = { { 0 } }, out = { { 0 } };
	int n = 0;

	goro_waitgroup_add(&gate, 1);
	start_waiters(ENOUGH, wait_locked, &gate, &n, &out);
	goro_waitgroup_done(&gate);
	goro_waitgroup_wait(&out);
	CHECK_EQ(n, ENOUGH);
}

static void *open_gate(void *gate)
{
	goro_waitgroup_done(gate);
	return NULL;
}

GO_TEST(a_lot_are_woken_by_a_thread)
{
	goro_waitgroup gate = { { 0 } }, out = { { 0 } };
	pthread_t t;
	int n = 0;

	goro_waitgroup_add(&gate, 1);
	start_waiters(A_LOT, wait_and_count, &gate, &n, &out);
	pthread_create(&t, NULL, open_gate, &gate);
	goro_waitgroup_wait(&out);
	pthread_join(t, NULL);
	CHECK_EQ(n, A_LOT);
}

static void wait_and_last_frees(goro_waitgroup *gate, int *n, goro_waitgroup *out)
{
	goro_waitgroup_wait(gate);
	if (fetch_add_acqrel(n, 1) == A_LOT - 1) {
		memset(gate, 0xa5, sizeof *gate);
		free(gate);
	}
	goro_waitgroup_done(out);
}

GO_TEST_TIMEOUT(freed_by_the_last_of_a_lot, 120)
{
	for (int i = 0; i < SCALED(100); i++) {
		goro_waitgroup *gate = calloc(1, sizeof *gate), out = { { 0 } };
		int n = 0;

		linger_round(i);
		goro_waitgroup_add(gate, 1);
		start_waiters(A_LOT, wait_and_last_frees, gate, &n, &out);
		goro_waitgroup_done(gate);
		goro_waitgroup_wait(&out);
		CHECK_EQ(n, A_LOT);
	}
}

/* All are made ready, so that each gets a thread while those before it compute. */
static void wait_and_compute(goro_waitgroup *gate, int *n, goro_waitgroup *out)
{
	goro_waitgroup_wait(gate);
	fetch_add_relaxed(n, 1);
	while (load_relaxed(n) < ENOUGH)
		;
	goro_waitgroup_done(out);
}

GO_TEST_TIMEOUT(a_lot_who_wait_for_each_other_without_a_call, 120)
{
	goro_waitgroup gate = { { 0 } }, out = { { 0 } };
	int n = 0;

	if (TOOL_TSAN || TOOL_ASAN || test_emulated())
		SKIP("each takes a thread, which takes a sanitizer or an emulator long");
	goro_waitgroup_add(&gate, 1);
	start_waiters(ENOUGH, wait_and_compute, &gate, &n, &out);
	goro_waitgroup_done(&gate);
	goro_waitgroup_wait(&out);
	CHECK_EQ(n, ENOUGH);
}

GO_TEST(lies_where_it_wants)
{
	struct { char c; goro_waitgroup wg; } x = { .c = 1 };
	int n = 0;

	goro_waitgroup_add(&x.wg, 1);
	go(count_and_done, &n, &x.wg);
	goro_waitgroup_wait(&x.wg);
	CHECK_EQ(n, 1);
}

/* ------------------------------------------------------------------------- misuse */

static void done_too_often(void *wg)
{
	goro_waitgroup_add(wg, 1);
	goro_waitgroup_done(wg);
	goro_waitgroup_done(wg);
}

GO_TEST(a_counter_below_zero_panics)
{
	goro_waitgroup wg = { { 0 } };

	CHECK_STR(goro_try(done_too_often, &wg), "sync: negative WaitGroup counter");
}

static void add_one(void *wg)
{
	goro_waitgroup_add(wg, 1);
}

/* The moment between the last Done and the end of the Waits, held still. */
GO_TEST(adding_while_waiters_leave_panics)
{
	goro_waitgroup wg = { { 1 /* waiter, counter zero */ } };

	CHECK_STR(goro_try(add_one, &wg),
	          "sync: WaitGroup misuse: Add called concurrently with Wait");
}

static void wait_it(void *wg)
{
	goro_waitgroup_wait(wg);
}

static void try_to_wait(goro_waitgroup *wg, int *panicked, goro_waitgroup *out)
{
	const char *message = goro_try(wait_it, wg);

	if (message) {
		CHECK_STR(message, "sync: WaitGroup is reused before previous Wait has returned");
		*panicked = 1;
	}
	goro_waitgroup_done(out);
}

/* On one P the waiter cannot run between the two calls. */
GO_TEST(using_it_again_before_the_wait_is_over_panics)
{
	int panicked = 0;

	goro_gomaxprocs(1);
	while (!panicked) {
		goro_waitgroup wg = { { 0 } }, out = { { 0 } };

		goro_waitgroup_add(&out, 1);
		goro_waitgroup_add(&wg, 1);
		go(try_to_wait, &wg, &panicked, &out);
		AWAIT(waiters_of(&wg) == 1);
		goro_waitgroup_done(&wg);
		goro_waitgroup_add(&wg, 1);
		goro_waitgroup_wait(&out);
	}
}

static int wait_alone(int argc, char **argv)
{
	goro_waitgroup wg = { { 0 } };

	(void)argc; (void)argv;
	goro_waitgroup_add(&wg, 1);
	goro_waitgroup_wait(&wg);
	return 0;
}

TEST(waiting_for_nobody_is_a_deadlock)
{
	struct test_output o;

	check_deadlock(wait_alone, &o);
	CHECK_CONTAINS(o.err, "[sync.WaitGroup.Wait]:\ngoro_waitgroup_wait");
}
