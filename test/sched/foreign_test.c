/*
 * foreign_test.c - plain threads, that the program made itself, use channels and
 * waitgroups as goroutines do.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>

#include "await.h"
#include "sched/runtime.h"
#include "test.h"

static void start_thread(pthread_t *t, void *(*f)(void *), void *arg)
{
	if (pthread_create(t, NULL, f, arg) != 0)
		FAIL("cannot make a thread");
}

/* ------------------------------------------------------------------ traffic */

enum { THREADS = 50 };

struct traffic {
	goro_chan *to, *from;
	goro_waitgroup wg;
	int each;
	int64_t sum;
};

static void *send_from_thread(void *arg)
{
	struct traffic *t = arg;

	for (int i = 1; i <= t->each; i++)
		goro_chan_send(t->to, &i);
	goro_waitgroup_done(&t->wg);
	return NULL;
}

static void pass_on(struct traffic *t)
{
	int n;

	while (goro_chan_recv(t->to, &n))
		goro_chan_send(t->from, &n);
	goro_waitgroup_done(&t->wg);
}

static void *receive_in_thread(void *arg)
{
	struct traffic *t = arg;
	int64_t sum = 0;
	int n;

	while (goro_chan_recv(t->from, &n))
		sum += n;
	fetch_add_seqcst(&t->sum, sum);
	return NULL;
}

static struct traffic shared;

static void run_traffic(size_t capacity)
{
	pthread_t sender[THREADS], receiver[THREADS];

	shared = (struct traffic){ .each = SCALED(200) };
	shared.to = goro_chan_of(int, capacity);
	shared.from = goro_chan_of(int, capacity);
	for (int i = 0; i < THREADS; i++)
		go(pass_on, &shared);
	goro_waitgroup_add(&shared.wg, THREADS);
	for (int i = 0; i < THREADS; i++) {
		start_thread(&receiver[i], receive_in_thread, &shared);
		start_thread(&sender[i], send_from_thread, &shared);
	}
	goro_waitgroup_wait(&shared.wg);
	goro_waitgroup_add(&shared.wg, THREADS);	/* now for those who pass on */
	goro_chan_close(shared.to);
	goro_waitgroup_wait(&shared.wg);
	goro_chan_close(shared.from);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(sender[i], NULL);
		pthread_join(receiver[i], NULL);
	}
	CHECK_EQ(shared.sum, (int64_t)THREADS * shared.each * (shared.each + 1) / 2);
}

TEST(many_threads_and_goroutines_pass_values)
{
	run_traffic(0);
}

TEST(many_threads_and_goroutines_pass_values_through_a_buffer)
{
	run_traffic(7);
}

static void answer(goro_chan *in, goro_chan *out)
{
	int n;

	while (goro_chan_recv(in, &n)) {
		n++;
		goro_chan_send(out, &n);
	}
	goro_chan_close(out);
}

TEST(a_thread_and_a_goroutine_take_turns)
{
	goro_chan *a = goro_chan_of(int, 0), *b = goro_chan_of(int, 0);
	int n = 0;

	go(answer, a, b);
	for (int i = 1; i <= SCALED(5000); i++) {
		goro_chan_send(a, &n);
		CHECK(goro_chan_recv(b, &n));
		CHECK_EQ(n, i);
	}
	goro_chan_close(a);
	CHECK(!goro_chan_recv(b, &n));
}

static void *receive_until_closed(void *arg)
{
	intptr_t n = 0;

	while (goro_chan_recv(arg, NULL))
		n++;
	return (void *)n;
}

TEST(close_wakes_threads)
{
	goro_chan *c = goro_chan_of(int, 0);
	pthread_t t[20];

	for (int i = 0; i < 20; i++)
		start_thread(&t[i], receive_until_closed, c);
	while (load_seqcst(&sched.plain.parked) < 20)
		usleep(100);
	goro_chan_close(c);
	for (int i = 0; i < 20; i++)
		pthread_join(t[i], NULL);
}

static void work_a_while(goro_waitgroup *wg)
{
	for (int i = 0; i < 100; i++)
		goro_gosched();
	goro_waitgroup_done(wg);
}

static void *wait_in_thread(void *arg)
{
	goro_waitgroup_wait(arg);
	return NULL;
}

TEST(threads_wait_for_goroutines)
{
	pthread_t t[10];
	goro_waitgroup wg = { 0 };

	for (int round = 0; round < 20; round++) {
		goro_waitgroup_add(&wg, 50);
		for (int i = 0; i < 10; i++)
			start_thread(&t[i], wait_in_thread, &wg);
		for (int i = 0; i < 50; i++)
			go(work_a_while, &wg);
		for (int i = 0; i < 10; i++)
			pthread_join(t[i], NULL);
	}
}

static void *errno_in_thread(void *arg)
{
	for (int i = 0; i < 100; i++) {
		errno = 1000 + i;
		goro_chan_send(arg, &i);
		CHECK_EQ(errno, 1000 + i);
	}
	return NULL;
}

TEST(errno_of_a_thread_is_kept)
{
	goro_chan *c = goro_chan_of(int, 0);
	pthread_t t;

	start_thread(&t, errno_in_thread, c);
	for (int i = 0; i < 100; i++)
		CHECK(goro_chan_recv(c, NULL));
	pthread_join(t, NULL);
}

/* ------------------------------------------------------------- thread's end */

static void *send_one(void *arg)
{
	goro_chan_send(arg, &(int){ 1 });
	return NULL;
}

/* Threads come and go; their Ms are used again. */
static void short_threads(int n, goro_chan *c)
{
	pthread_t t;

	for (int i = 0; i < n; i++) {
		start_thread(&t, send_one, c);
		CHECK(goro_chan_recv(c, NULL));
		pthread_join(t, NULL);
	}
}

static int ms_made(void)
{
	int n;

	lock_acquire(&sched.lock);
	n = sched.m_next_id;
	lock_release(&sched.lock);
	return n;
}

TEST(two_thousand_short_threads_leave_nothing)
{
	goro_chan *c = goro_chan_of(int, 0);
	int before;

	short_threads(20, c);
	before = ms_made();
	short_threads(SCALED(2000), c);
	CHECK(ms_made() <= before + 4);
}

static void hold_a_p_and_park(goro_waitgroup *wg, goro_chan *c, int *in, int n)
{
	CHECK(goro_id() != 0);
	fetch_add_seqcst(in, 1);
	SPIN_UNTIL(load_seqcst(in) >= n);
	goro_chan_recv(c, NULL);
	CHECK(goro_id() != 0);
	goro_waitgroup_done(wg);
}

/* An M that stood for a plain thread is an ordinary one in its next life. */
TEST(the_m_of_an_ended_thread_runs_goroutines)
{
	goro_chan *c = goro_chan_of(int, 0);
	goro_waitgroup wg = { 0 };
	pthread_t t[10];
	int in = 0, n = 8;

	goro_gomaxprocs(1);
	for (int i = 0; i < 10; i++)
		start_thread(&t[i], send_one, c);
	for (int i = 0; i < 10; i++)
		CHECK(goro_chan_recv(c, NULL));
	for (int i = 0; i < 10; i++)
		pthread_join(t[i], NULL);
	goro_gomaxprocs(n);
	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		go(hold_a_p_and_park, &wg, c, &in, n);
	for (int i = 0; i < n; i++)
		goro_chan_send(c, &i);
	goro_waitgroup_wait(&wg);
}

static void end_locked(goro_waitgroup *wg)
{
	goro_lock_os_thread();
	goro_waitgroup_done(wg);
}

/* And one that ran goroutines may stand for a plain thread. */
TEST(the_m_of_an_ended_goroutine_s_thread_serves_a_plain_thread)
{
	goro_chan *c = goro_chan_of(int, 0);
	goro_waitgroup wg = { 0 };

	for (int i = 0; i < 20; i++) {
		goro_waitgroup_add(&wg, 2);
		go(end_locked, &wg);
		go(end_locked, &wg);
		goro_waitgroup_wait(&wg);
		short_threads(5, c);
	}
}

static pthread_key_t key;

static void send_at_end(void *arg)
{
	goro_chan_send(arg, &(int){ 2 });
}

static void *set_key(void *arg)
{
	goro_chan_send(arg, &(int){ 1 });
	pthread_setspecific(key, arg);
	return NULL;
}

TEST(a_thread_may_call_in_its_destructors)
{
	goro_chan *c = goro_chan_of(int, 0);
	pthread_t t;
	int n;

	goro_gosched();		/* the runtime's own key comes first */
	pthread_key_create(&key, send_at_end);
	for (int i = 0; i < 20; i++) {
		start_thread(&t, set_key, c);
		CHECK(goro_chan_recv(c, &n) && n == 1);
		CHECK(goro_chan_recv(c, &n) && n == 2);
		pthread_join(t, NULL);
	}
}

/* ----------------------------------------------------------------- deadlock */

static struct test_output o;

static void *sleep_and_send(void *arg)
{
	usleep(300000);
	goro_chan_send(arg, &(int){ 5 });
	return NULL;
}

static int receive_one(int argc, char **argv)
{
	int n = 0;

	(void)argc;
	goro_chan_recv((goro_chan *)argv, &n);
	return n;
}

static void thread_sleeps_and_sends(void)
{
	goro_chan *c = goro_chan_of(int, 0);
	pthread_t t;
	int status;

	start_thread(&t, sleep_and_send, c);
	status = goro_run(receive_one, 0, (char **)c);
	pthread_join(t, NULL);
	exit(status);
}

TEST(no_deadlock_while_a_thread_may_yet_send)
{
	test_run_child(thread_sleeps_and_sends, &o);
	CHECK_EQ(o.status, 5);
	CHECK_STR(o.err, "");
}

static void *receive_in_vain(void *arg)
{
	goro_chan_recv(arg, NULL);
	return NULL;
}

static void all_threads_parked(void)
{
	goro_chan *c = goro_chan_of(int, 0), *d = goro_chan_of(int, 0);
	pthread_t t;

	start_thread(&t, receive_in_vain, d);
	exit(goro_run(receive_one, 0, (char **)c));
}

static void call(void (*program)(void))
{
	program();
}

static void ends_in_deadlock(void (*program)(void))
{
	test_needs_deadlocks();
	test_run_anew(call, program, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "fatal error: all goroutines are asleep - deadlock!\n");
}

static void shows_main(void)
{
	CHECK_CONTAINS(o.err, "deadlock!\n\ngoroutine 1 [chan receive]:\n");
}

TEST(deadlock_when_every_thread_is_parked)
{
	ends_in_deadlock(all_threads_parked);
	shows_main();
}

static void *use_and_sleep(void *arg)
{
	goro_gosched();
	usleep(1500000);	/* until the runtime has gone to sleep too */
	return arg;
}

static void last_thread_ends(void)
{
	pthread_t t;

	start_thread(&t, use_and_sleep, NULL);
	exit(goro_run(receive_one, 0, (char **)goro_chan_of(int, 0)));
}

TEST(deadlock_when_the_last_thread_has_ended)
{
	ends_in_deadlock(last_thread_ends);
	shows_main();
}

static void *park_late(void *arg)
{
	usleep(1500000);
	goro_chan_recv(arg, NULL);
	return NULL;
}

static void last_thread_parks(void)
{
	pthread_t t;

	start_thread(&t, park_late, goro_chan_of(int, 0));
	exit(goro_run(receive_one, 0, (char **)goro_chan_of(int, 0)));
}

TEST(deadlock_when_the_last_thread_parks)
{
	ends_in_deadlock(last_thread_parks);
	shows_main();
}

static void only_plain_threads(void)
{
	goro_chan_recv(goro_chan_of(int, 0), NULL);
}

TEST(deadlock_without_any_goroutine)
{
	ends_in_deadlock(only_plain_threads);
}

/* ------------------------------------------------------- state of its own that it
 * leaves */

static void *be_clean_and_leave_state(void *arg)
{
	const struct g *gp;

	goro_gosched();
	gp = m_self()->curg;
	CHECK_EQ(gp->preempt_off, 0);
	CHECK_EQ(gp->lock_depth, 0);
	CHECK_STR(gp->name, "");
	goro_set_name("a thread");
	goro_preempt_disable();
	goro_lock_os_thread();
	return arg;
}

TEST(a_thread_leaves_nothing_to_the_next_one)
{
	for (int i = 0; i < 20; i++) {
		pthread_t t;

		start_thread(&t, be_clean_and_leave_state, NULL);
		pthread_join(t, NULL);
	}
}
