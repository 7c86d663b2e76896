/*
 * cond_test.c - condition variables: which goroutine is woken, in what order, and that no
 * other can take the wake away.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>

#include "await.h"
#include "deadlock.h"
#include "ints.h"
#include "sched/linger.h"
#include "race.h"
#include "test.h"

_Static_assert(sizeof(goro_cond) == 32, "as promised");

struct room {
	goro_mutex m;
	goro_cond c;
	goro_chan *running, *awake;	/* of int */
	int exit;
};

static struct room room_make(int n)
{
	return (struct room){
		.running = goro_chan_of(int, (size_t)n),
		.awake = goro_chan_of(int, (size_t)n),
	};
}

static void signal_locked(struct room *r)
{
	goro_mutex_lock(&r->m);
	goro_cond_signal(&r->c);
	goro_mutex_unlock(&r->m);
}

static void wait_once(struct room *r, int id)
{
	goro_mutex_lock(&r->m);
	goro_chan_send(r->running, &id);
	goro_cond_wait(&r->c, &r->m);
	goro_chan_send(r->awake, &id);
	goro_mutex_unlock(&r->m);
}

GO_TEST(signal_wakes_one)
{
	struct room r = room_make(2);
	int n = 2;

	for (int i = 0; i < n; i++)
		go(wait_once, &r, i);
	for (int i = 0; i < n; i++)
		recv_int(r.running);
	while (n-- > 0) {
		CHECK_EQ(goro_chan_try_recv(r.awake, NULL), GORO_RECV_EMPTY);
		signal_locked(&r);
		recv_int(r.awake);
		CHECK_EQ(goro_chan_try_recv(r.awake, NULL), GORO_RECV_EMPTY);
	}
	goro_cond_signal(&r.c);
}

GO_TEST(signals_reach_those_who_waited_when_they_were_given)
{
	struct room r = room_make(100);

	for (int i = 0; i < 100; i++) {
		go(wait_once, &r, i);
		if (i > 0)
			CHECK_EQ(recv_int(r.awake), i - 1);
		recv_int(r.running);
		signal_locked(&r);
	}
	CHECK_EQ(recv_int(r.awake), 99);
}

GO_TEST(the_longest_waiter_is_woken_first)
{
	struct room r = room_make(50);

	for (int i = 0; i < 50; i++) {
		go(wait_once, &r, i);
		recv_int(r.running);
		goro_mutex_lock(&r.m);	/* it has unlocked: it waits */
		goro_mutex_unlock(&r.m);
	}
	for (int i = 0; i < 50; i++) {
		goro_cond_signal(&r.c);
		CHECK_EQ(recv_int(r.awake), i);
	}
}

/* On one P; unless one of them is preempted. */
static bool broadcast_wakes_in_order(int n)
{
	struct room r = room_make(n);
	bool in_order = true;

	for (int i = 0; i < n; i++) {
		go(wait_once, &r, i);
		recv_int(r.running);
		goro_mutex_lock(&r.m);	/* it has unlocked: it waits */
		goro_mutex_unlock(&r.m);
	}
	goro_cond_broadcast(&r.c);
	for (int i = 0; i < n; i++)
		in_order = recv_int(r.awake) == i && in_order;
	return in_order;
}

GO_TEST(a_broadcast_wakes_the_longest_waiter_first)
{
	goro_gomaxprocs(1);
	for (int tries = 10; !broadcast_wakes_in_order(20);)
		CHECK(--tries > 0);
}

static void wait_until_exit(struct room *r, int id)
{
	goro_mutex_lock(&r->m);
	while (!r->exit) {
		goro_chan_send(r->running, &id);
		goro_cond_wait(&r->c, &r->m);
		goro_chan_send(r->awake, &id);
	}
	goro_mutex_unlock(&r->m);
}

GO_TEST_TIMEOUT(broadcast_wakes_everybody_once, 120)
{
	enum { N = 200 };
	struct room r = room_make(N);
	int rounds = SCALED(N);

	for (int i = 0; i < N; i++)
		go(wait_until_exit, &r, i);
	for (int round = 0; round < rounds; round++) {
		bool seen[N] = { false };

		for (int i = 0; i < N; i++)
			recv_int(r.running);
		CHECK_EQ(goro_chan_try_recv(r.awake, NULL), GORO_RECV_EMPTY);
		goro_mutex_lock(&r.m);
		r.exit = round == rounds - 1;
		goro_cond_broadcast(&r.c);
		goro_mutex_unlock(&r.m);
		for (int i = 0; i < N; i++) {
			int id = recv_int(r.awake);

			CHECK(!seen[id]);
			seen[id] = true;
		}
	}
	CHECK_EQ(goro_chan_try_recv(r.running, NULL), GORO_RECV_EMPTY);
	goro_cond_broadcast(&r.c);
}

/* ------------------------------------------------------------------- passing it on */

struct relay {
	goro_mutex m;
	goro_cond c;
	int x;
	goro_waitgroup wg;
};

static void relay_first(struct relay *r)
{
	goro_mutex_lock(&r->m);
	r->x = 1;
	goro_cond_wait(&r->c, &r->m);
	CHECK_EQ(r->x, 2);
	r->x = 3;
	goro_cond_signal(&r->c);
	goro_mutex_unlock(&r->m);
	goro_waitgroup_done(&r->wg);
}

static void relay_second(struct relay *r)
{
	goro_mutex_lock(&r->m);
	while (r->x != 1) {
		goro_mutex_unlock(&r->m);
		goro_gosched();
		goro_mutex_lock(&r->m);
	}
	r->x = 2;
	goro_cond_signal(&r->c);
	goro_mutex_unlock(&r->m);
	goro_waitgroup_done(&r->wg);
}

static void relay_third(struct relay *r)
{
	goro_mutex_lock(&r->m);
	while (r->x < 2) {
		goro_mutex_unlock(&r->m);
		goro_gosched();
		goro_mutex_lock(&r->m);
	}
	if (r->x == 2) {
		goro_cond_wait(&r->c, &r->m);
		CHECK_EQ(r->x, 3);
	}
	goro_mutex_unlock(&r->m);
	goro_waitgroup_done(&r->wg);
}

GO_TEST(a_signal_is_not_taken_by_who_waits_later)
{
	for (int i = 0; i < SCALED(1000); i++) {
		struct relay r = { .x = 0 };

		goro_waitgroup_add(&r.wg, 3);
		go(relay_first, &r);
		go(relay_second, &r);
		go(relay_third, &r);
		goro_waitgroup_wait(&r.wg);
	}
}

struct theft {
	goro_mutex m;
	goro_cond c;
	goro_chan *ch;
	bool done;
	goro_waitgroup wg;
};

static void first_waiter(struct theft *t)
{
	goro_mutex_lock(&t->m);
	goro_chan_send(t->ch, NULL);
	goro_cond_wait(&t->c, &t->m);
	goro_mutex_unlock(&t->m);
	goro_chan_send(t->ch, NULL);
	goro_waitgroup_done(&t->wg);
}

static void broadcaster(struct theft *t)
{
	goro_cond_broadcast(&t->c);
	goro_waitgroup_done(&t->wg);
}

static void late_waiter(struct theft *t)
{
	goro_mutex_lock(&t->m);
	while (!t->done)
		goro_cond_wait(&t->c, &t->m);
	goro_mutex_unlock(&t->m);
	goro_waitgroup_done(&t->wg);
}

GO_TEST(a_broadcast_is_not_taken_by_who_waits_later)
{
	for (int i = 0; i < SCALED(1000); i++) {
		struct theft t = { .ch = goro_chan_make(0, 0) };

		goro_waitgroup_add(&t.wg, 3);
		go(first_waiter, &t);
		goro_chan_recv(t.ch, NULL);
		goro_mutex_lock(&t.m);		/* now it is in its wait */
		goro_mutex_unlock(&t.m);
		go(broadcaster, &t);
		go(late_waiter, &t);
		goro_chan_recv(t.ch, NULL);
		goro_mutex_lock(&t.m);
		t.done = true;
		goro_mutex_unlock(&t.m);
		goro_cond_broadcast(&t.c);
		goro_waitgroup_wait(&t.wg);
		goro_chan_unref(t.ch);
	}
}

/* ---------------------------------------------------------------- a bounded buffer */

struct buffer {
	goro_mutex m;
	goro_cond not_full, not_empty;
	int count, total;
	int loops;
	goro_waitgroup wg;
};

enum { CAPACITY = 3 };

static void produce(struct buffer *b)
{
	for (int i = 0; i < b->loops; i++) {
		goro_mutex_lock(&b->m);
		while (b->count == CAPACITY)
			goro_cond_wait(&b->not_full, &b->m);
		b->count++;
		goro_cond_signal(&b->not_empty);
		goro_mutex_unlock(&b->m);
	}
	goro_waitgroup_done(&b->wg);
}

static void consume(struct buffer *b)
{
	for (int i = 0; i < b->loops; i++) {
		goro_mutex_lock(&b->m);
		while (b->count == 0)
			goro_cond_wait(&b->not_empty, &b->m);
		b->count--;
		b->total++;
		goro_mutex_unlock(&b->m);
		goro_cond_signal(&b->not_full);
	}
	goro_waitgroup_done(&b->wg);
}

static void *produce_thread(void *b)
{
	produce(b);
	return NULL;
}

static void *consume_thread(void *b)
{
	consume(b);
	return NULL;
}

GO_TEST_TIMEOUT(threads_and_goroutines_together, 120)
{
	struct buffer b = { .loops = SCALED(3000) };
	pthread_t t[2];

	goro_waitgroup_add(&b.wg, 10);
	pthread_create(&t[0], NULL, produce_thread, &b);
	pthread_create(&t[1], NULL, consume_thread, &b);
	for (int i = 0; i < 4; i++) {
		go(produce, &b);
		go(consume, &b);
	}
	goro_waitgroup_wait(&b.wg);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	CHECK_EQ(b.total, 5 * b.loops);
	CHECK_EQ(b.count, 0);
}

/* ------------------------------------------------------------------------- the end */

struct event {
	goro_mutex m;
	goro_cond c;
	bool happened;
};

static void happen(struct event *e, bool locked)
{
	goro_mutex_lock(&e->m);
	e->happened = true;
	if (locked)
		goro_cond_signal(&e->c);
	else
		goro_cond_broadcast(&e->c);
	goro_mutex_unlock(&e->m);
}

GO_TEST_TIMEOUT(freed_by_who_was_woken, 120)
{
	for (int i = 0; i < SCALED(20000); i++) {
		struct event *e = calloc(1, sizeof *e);

		linger_round(i);
		go(happen, e, i % 2);
		goro_mutex_lock(&e->m);
		while (!e->happened)
			goro_cond_wait(&e->c, &e->m);
		goro_mutex_unlock(&e->m);
		memset(e, 0xa5, sizeof *e);
		free(e);
	}
}

/* Signals without the mutex, which it only needs to know that the other waits:
 * then signalling is the last thing it does with either. */
static void signal_who_waits(struct event *e, bool one)
{
	goro_mutex_lock(&e->m);
	goro_mutex_unlock(&e->m);
	if (one)
		goro_cond_signal(&e->c);
	else
		goro_cond_broadcast(&e->c);
}

GO_TEST_TIMEOUT(freed_by_who_was_woken_without_the_mutex, 120)
{
	for (int i = 0; i < SCALED(20000); i++) {
		struct event *e = calloc(1, sizeof *e);

		linger_round(i / 2);
		goro_mutex_lock(&e->m);
		go(signal_who_waits, e, i % 2);
		goro_cond_wait(&e->c, &e->m);
		goro_mutex_unlock(&e->m);
		memset(e, 0xa5, sizeof *e);
		free(e);
	}
}

static void signal_in_thread(void *e, int who, int round)
{
	(void)who;
	signal_who_waits(e, round % 2);
}

TEST_TIMEOUT(freed_by_the_thread_that_was_woken, 120)
{
	race_begin(1, signal_in_thread);
	for (int i = 0; i < race.rounds; i++) {
		struct event *e = calloc(1, sizeof *e);

		linger_round(i / 2);
		goro_mutex_lock(&e->m);
		race_start(e);
		goro_cond_wait(&e->c, &e->m);
		goro_mutex_unlock(&e->m);
		memset(e, 0xa5, sizeof *e);
		free(e);
		race_finish();
	}
	race_end();
}

static int wait_alone(int argc, char **argv)
{
	struct event e = { .happened = false };

	(void)argc; (void)argv;
	goro_mutex_lock(&e.m);
	goro_cond_wait(&e.c, &e.m);
	return 0;
}

TEST(waiting_for_nobody_is_a_deadlock)
{
	struct test_output o;

	check_deadlock(wait_alone, &o);
	CHECK_CONTAINS(o.err, "[sync.Cond.Wait]:\ngoro_cond_wait");
}
