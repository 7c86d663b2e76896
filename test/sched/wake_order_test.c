/*
 * wake_order_test.c - goroutines that become runnable together begin in order: of the
 * times of their timers, or in which they came to wait.
 *
 * All of it on one P, which another goroutine holds until all are runnable.
 */
#include <goro.h>

#include "platform/atomic.h"
#include "await.h"
#include "base/config.h"
#include "test.h"

/* FEW fit into a P's queue, beside the goroutine of the test itself. MANY do not, and are
 * few enough to begin before the kernel stops the thread. */
enum {
	FEW = GORO_RUNQ_CAP < 50 ? GORO_RUNQ_CAP - 1 : 50,
	MANY = GORO_RUNQ_CAP < 50 ? 50 : 2 * GORO_RUNQ_CAP + 50,
};

static int n;		/* how many in this test */

static int order[MANY], came;

static void record(int i)
{
	order[fetch_add_relaxed(&came, 1)] = i;
}

static void record_arg(void *arg)
{
	record((int)(intptr_t)arg);
}

static bool is_in_order(void)
{
	for (int i = 0; i < n; i++)
		if (order[i] != i)
			return false;
	return true;
}

/* The kernel may stop the thread just when a goroutine is about to note that it came, and
 * then sysmon lets others go on. That is rare: one try of five is enough. */
static void check_order_of(void (*scenario)(void), int how_many)
{
	n = how_many;
	if (TOOL_TSAN || (TOOL_ASAN && n == MANY))
		SKIP("what others do in a moment takes longer than a slice");
	goro_gomaxprocs(1);
	for (int tries = 5; tries > 0; tries--) {
		store_relaxed(&came, 0);
		scenario();
		AWAIT(load_relaxed(&came) == n && goro_num_goroutine() == 1);
		if (is_in_order())
			return;
	}
	for (int i = 0; i < n; i++)
		printf("%d%s", order[i], i < n - 1 ? ", " : "\n");
	FAIL("not in order");
}

static void check_order(void (*scenario)(void)) { check_order_of(scenario, FEW); }
static void check_many(void (*scenario)(void))  { check_order_of(scenario, MANY); }

/* ------------------------------------------------------------------ timers */

static int64_t first_at;

/* More than passes from until() to the start of the timer. */
static int64_t apart(void)
{
	return test_emulated() ? 400000 : 10000;
}

/* Enough to make all timers. */
static int64_t ahead(void)
{
	return (test_emulated() ? 200 : 20) * GORO_MILLISECOND + n * (test_emulated() ? 500 : 50) * GORO_MICROSECOND;
}

static void set_first(void)
{
	first_at = goro_now() + ahead();
}

/* Of a machine that is slower than that the try is lost. */
static int64_t until(int i)
{
	int64_t ns = first_at + i * apart() - goro_now();

	return ns > 0 ? ns : 1;
}

/* Holds the P until all timers are due. */
static void hold_until_due(void)
{
	goro_preempt_disable();
	while (goro_now() < first_at + n * apart())
		;
	goro_preempt_enable();
}

/* The i that is started as the k-th: not in the order of times. */
static int shuffled(int k)
{
	return k % 2 ? k / 2 : n - 1 - k / 2;
}

static void functions_of_timers(void)
{
	goro_timer *t[MANY];

	set_first();
	for (int k = 0; k < n; k++)
		t[k] = goro_after_func(until(shuffled(k)), record_arg, (void *)(intptr_t)shuffled(k));
	hold_until_due();
	AWAIT(load_relaxed(&came) == n);
	for (int k = 0; k < n; k++)
		goro_timer_free(t[k]);
}

static void receive_and_record(goro_chan *c, int i)
{
	goro_chan_recv(c, NULL);
	record(i);
}

/* Runs the one that was started last until it waits. */
static void let_it_wait(void)
{
	goro_gosched();
}

static void channels_of_timers(void)
{
	goro_timer *t[MANY];

	set_first();
	for (int k = 0; k < n; k++) {
		t[k] = goro_timer_make(until(shuffled(k)));
		go(receive_and_record, goro_timer_chan(t[k]), shuffled(k));
		let_it_wait();
	}
	hold_until_due();
	AWAIT(load_relaxed(&came) == n);
	for (int k = 0; k < n; k++)
		goro_timer_free(t[k]);
}

static void channels_of_tickers(void)
{
	goro_ticker *t[MANY];

	set_first();
	for (int k = 0; k < n; k++) {
		t[k] = goro_ticker_make(until(shuffled(k)));
		go(receive_and_record, goro_ticker_chan(t[k]), shuffled(k));
		let_it_wait();
	}
	hold_until_due();
	AWAIT(load_relaxed(&came) == n);
	for (int k = 0; k < n; k++)
		goro_ticker_free(t[k]);
}

static void sleep_and_record(int i)
{
	goro_sleep(until(i));
	record(i);
}

static void sleepers(void)
{
	set_first();
	for (int k = 0; k < n; k++) {
		go(sleep_and_record, shuffled(k));
		let_it_wait();
	}
	hold_until_due();
}

static void all_kinds(void)
{
	goro_timer *t[MANY];

	set_first();
	for (int k = 0; k < n; k++) {
		int i = shuffled(k);

		t[k] = NULL;
		if (i % 3 == 0) {
			t[k] = goro_after_func(until(i), record_arg, (void *)(intptr_t)i);
		} else if (i % 3 == 1) {
			t[k] = goro_timer_make(until(i));
			go(receive_and_record, goro_timer_chan(t[k]), i);
			let_it_wait();
		} else {
			go(sleep_and_record, i);
			let_it_wait();
		}
	}
	hold_until_due();
	AWAIT(load_relaxed(&came) == n);
	for (int k = 0; k < n; k++)
		goro_timer_free(t[k]);
}

GO_TEST(functions_of_timers_begin_in_the_order_of_their_times) { check_order(functions_of_timers); }
GO_TEST(channels_of_timers_receive_in_the_order_of_their_times) { check_order(channels_of_timers); }
GO_TEST(channels_of_tickers_receive_in_the_order_of_their_times) { check_order(channels_of_tickers); }
GO_TEST(sleeps_end_in_the_order_of_their_times)                { check_order(sleepers); }
GO_TEST(timers_and_sleeps_end_in_one_order)                    { check_order(all_kinds); }

/* --------------------------------------------------- channels and contexts */

static void start_receivers(goro_chan *c)
{
	for (int i = 0; i < n; i++) {
		go(receive_and_record, c, i);
		let_it_wait();
	}
}

static void receivers_of_a_close(void)
{
	goro_chan *c = goro_chan_of(int, 0);

	start_receivers(c);
	goro_chan_close(c);
	AWAIT(load_relaxed(&came) == n);
	goro_chan_unref(c);
}

static void select_and_record(goro_chan *c, int i)
{
	goro_select(GORO_RECV(NULL, NULL), GORO_RECV(c, NULL));
	record(i);
}

static void selects_of_a_close(void)
{
	goro_chan *c = goro_chan_of(int, 0);

	for (int i = 0; i < n; i++) {
		go(select_and_record, c, i);
		let_it_wait();
	}
	goro_chan_close(c);
	AWAIT(load_relaxed(&came) == n);
	goro_chan_unref(c);
}

static void waiters_of_a_context(void)
{
	goro_ctx *c = goro_ctx_with_cancel(goro_ctx_background());

	start_receivers(goro_ctx_done(c));
	goro_ctx_cancel(c);
	AWAIT(load_relaxed(&came) == n);
	goro_ctx_unref(c);
}

static void cancel_children(bool by_deadline)
{
	goro_ctx *parent = by_deadline ? goro_ctx_with_timeout(goro_ctx_background(), ahead())
	                               : goro_ctx_with_cancel(goro_ctx_background());
	goro_ctx *child[MANY];

	set_first();
	for (int i = 0; i < n; i++) {
		child[i] = goro_ctx_with_cancel(parent);
		go(receive_and_record, goro_ctx_done(child[i]), i);
		let_it_wait();
	}
	if (by_deadline)
		hold_until_due();
	else
		goro_ctx_cancel(parent);
	AWAIT(load_relaxed(&came) == n);
	for (int i = 0; i < n; i++)
		goro_ctx_unref(child[i]);
	goro_ctx_unref(parent);
}

static void children_of_a_cancel(void)   { cancel_children(false); }
static void children_of_a_deadline(void) { cancel_children(true); }

static void functions_of_a_context(void)
{
	goro_ctx *c = goro_ctx_with_cancel(goro_ctx_background());
	goro_ctx_func *f[MANY];

	for (int i = 0; i < n; i++)
		f[i] = goro_ctx_after_func(c, record_arg, (void *)(intptr_t)i);
	goro_ctx_cancel(c);
	AWAIT(load_relaxed(&came) == n);
	for (int i = 0; i < n; i++)
		goro_ctx_func_stop(f[i]);
	goro_ctx_unref(c);
}

GO_TEST(a_close_wakes_in_the_order_of_receives)       { check_order(receivers_of_a_close); }
GO_TEST(a_close_wakes_in_the_order_of_selects)        { check_order(selects_of_a_close); }
GO_TEST(a_cancel_wakes_in_the_order_of_waits)         { check_order(waiters_of_a_context); }
GO_TEST(a_cancel_reaches_children_in_their_order)     { check_order(children_of_a_cancel); }
GO_TEST(a_deadline_reaches_children_in_their_order)   { check_order(children_of_a_deadline); }
GO_TEST(functions_of_a_context_begin_in_their_order)  { check_order(functions_of_a_context); }

/* ------------------------------------------------------------------- sync */

static goro_mutex mutex;
static goro_cond cond;
static bool may_go_on;

static void wait_cond_and_record(int i)
{
	goro_mutex_lock(&mutex);
	while (!may_go_on)
		goro_cond_wait(&cond, &mutex);
	record(i);
	goro_mutex_unlock(&mutex);
}

static void a_broadcast(void)
{
	may_go_on = false;
	for (int i = 0; i < n; i++) {
		go(wait_cond_and_record, i);
		let_it_wait();
	}
	goro_mutex_lock(&mutex);
	may_go_on = true;
	goro_mutex_unlock(&mutex);
	goro_cond_broadcast(&cond);
}

static void wait_and_record(goro_waitgroup *wg, int i)
{
	goro_waitgroup_wait(wg);
	record(i);
}

static void a_waitgroup(void)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 1);
	for (int i = 0; i < n; i++) {
		go(wait_and_record, &wg, i);
		let_it_wait();
	}
	goro_waitgroup_done(&wg);
	AWAIT(load_relaxed(&came) == n);
}

static void read_and_record(goro_rwmutex *m, int i)
{
	goro_rwmutex_rlock(m);
	record(i);
	goro_rwmutex_runlock(m);
}

static void write_once(goro_rwmutex *m)
{
	goro_rwmutex_lock(m);
	goro_rwmutex_unlock(m);
}

static void release_readers(bool another_writer)
{
	goro_rwmutex m = { 0 };

	goro_rwmutex_lock(&m);
	for (int i = 0; i < n; i++) {
		go(read_and_record, &m, i);
		let_it_wait();
		if (another_writer && i == n / 2) {
			go(write_once, &m);
			let_it_wait();
		}
	}
	goro_rwmutex_unlock(&m);
	AWAIT(load_relaxed(&came) == n && goro_num_goroutine() == 1);
}

static void readers(void)               { release_readers(false); }
static void readers_before_writer(void) { release_readers(true); }

static void acquire_and_record(goro_sema *s, int i)
{
	goro_sema_acquire(s, 1, GORO_FOREVER);
	record(i);
}

static void a_semaphore(void)
{
	goro_sema s;

	goro_sema_init(&s, n);
	goro_sema_acquire(&s, n, GORO_FOREVER);
	for (int i = 0; i < n; i++) {
		go(acquire_and_record, &s, i);
		let_it_wait();
	}
	goro_sema_release(&s, n);
	AWAIT(load_relaxed(&came) == n);
}

GO_TEST(a_broadcast_wakes_in_the_order_of_waits)            { check_order(a_broadcast); }
GO_TEST(a_waitgroup_wakes_in_the_order_of_waits)            { check_order(a_waitgroup); }
GO_TEST(readers_go_on_in_their_order)                       { check_order(readers); }
GO_TEST(readers_go_on_in_their_order_beside_another_writer) { check_order(readers_before_writer); }
GO_TEST(a_semaphore_is_given_in_the_order_of_calls)         { check_order(a_semaphore); }

/* ----------------------------------------------- more than a P's queue holds */

GO_TEST(functions_of_many_timers_begin_in_their_order)  { check_many(functions_of_timers); }
GO_TEST(many_channels_of_timers_receive_in_their_order) { check_many(channels_of_timers); }
GO_TEST(many_sleeps_end_in_their_order)                 { check_many(sleepers); }
GO_TEST(a_close_wakes_many_in_the_order_of_receives)    { check_many(receivers_of_a_close); }
GO_TEST(a_close_wakes_many_in_the_order_of_selects)     { check_many(selects_of_a_close); }
GO_TEST(a_cancel_wakes_many_in_the_order_of_waits)      { check_many(waiters_of_a_context); }
GO_TEST(a_waitgroup_wakes_many_in_the_order_of_waits)   { check_many(a_waitgroup); }
GO_TEST(a_cancel_reaches_many_children_in_their_order)  { check_many(children_of_a_cancel); }
GO_TEST(a_deadline_reaches_many_children_in_their_order) { check_many(children_of_a_deadline); }
GO_TEST(many_functions_of_a_context_begin_in_their_order) { check_many(functions_of_a_context); }
GO_TEST(a_broadcast_wakes_many_in_the_order_of_waits)   { check_many(a_broadcast); }
GO_TEST(many_readers_go_on_in_their_order)              { check_many(readers); }
GO_TEST(a_semaphore_is_given_to_many_in_the_order_of_calls) { check_many(a_semaphore); }
