/*
 * select_test.c - select. docs/go-tests.md says which of Go's own tests
 * each of these answers to.
 */
/* test: procs */
/* test: leaks */
#include "sync/chan.h"

#include <math.h>
#include <pthread.h>

#include "await.h"
#include "ints.h"
#include "test.h"

/* ----------------------------------------------------------------- helpers */

static goro_chan *make(size_t capacity)
{
	goro_chan *c = goro_chan_of(int, capacity);

	CHECK(c);
	return c;
}

static goro_chan *make_closed(void)
{
	goro_chan *c = make(0);

	goro_chan_close(c);
	return c;
}

static int queue_length(goro_chan *c, const struct waitq *q)
{
	struct m *mp = rt_enter();
	int n = 0;

	lock_acquire(&c->lock);
	for (const struct waiter *w = q->first; w; w = w->next)
		n++;
	lock_release(&c->lock);
	rt_exit(mp);
	return n;
}

/* Waiters of selects that wait on c. */
static int selects_on(goro_chan *c)
{
	struct m *mp = rt_enter();
	int n;

	lock_acquire(&c->lock);
	n = (int)c->selects;
	lock_release(&c->lock);
	rt_exit(mp);
	return n;
}

#define AWAIT_RECEIVER(c) AWAIT(!waitq_empty(&(c)->recvq))
#define AWAIT_SENDER(c)   AWAIT(!waitq_empty(&(c)->sendq))

static bool dump_shows(const char *text)
{
	char *all = NULL;
	size_t n;
	FILE *f = open_memstream(&all, &n);
	bool found;

	goro_dump(f);
	fclose(f);
	found = strstr(all, text);
	free(all);
	return found;
}

/* ------------------------------------------------------- what can go, goes */

GO_TEST(default_when_none_is_ready)
{
	goro_chan *a = make(0), *b = make(1), *full = make(1);
	int v = 9;

	send_int(full, 1);
	CHECK_EQ(goro_select_n(NULL, 0, GORO_NOW), -1);
	CHECK_EQ(goro_select_until(GORO_NOW, GORO_RECV(NULL, &v)), -1);
	CHECK_EQ(goro_select_until(GORO_NOW, GORO_SEND(NULL, &v)), -1);
	CHECK_EQ(goro_select_until(GORO_NOW, GORO_RECV(a, &v)), -1);
	CHECK_EQ(goro_select_until(GORO_NOW, GORO_SEND(a, &v)), -1);
	CHECK_EQ(goro_select_until(GORO_NOW, GORO_SEND(a, &v), GORO_RECV(a, &v)), -1);
	CHECK_EQ(goro_select_until(GORO_NOW, GORO_RECV(a, &v), GORO_RECV(b, &v), GORO_SEND(full, &v)), -1);
	CHECK_EQ(goro_select_until(-5, GORO_RECV(a, &v), GORO_RECV(b, &v)), -1);
	CHECK_EQ(goro_select_until(goro_now(), GORO_RECV(a, &v), GORO_RECV(b, &v)), -1);
	CHECK_EQ(v, 9);
	CHECK_EQ(goro_chan_len(full), 1);
	goro_chan_unref(a);
	goro_chan_unref(b);
	goro_chan_unref(full);
}

GO_TEST(a_ready_case_goes_at_once)
{
	goro_chan *a = make(0), *b = make(1);
	bool ok = false;
	int v = 7;

	CHECK_EQ(goro_select(GORO_RECV(a, &v), GORO_SEND(b, &v)), 1);
	CHECK_EQ(goro_chan_len(b), 1);
	v = 0;
	CHECK_EQ(goro_select(GORO_SEND(b, &v), GORO_RECV(a, &v), GORO_RECV_OKP(b, &v, &ok)), 2);
	CHECK_EQ(v, 7);
	CHECK(ok);
	CHECK_EQ(goro_select(GORO_SEND(b, &v)), 0);
	CHECK_EQ(goro_select_until(GORO_NOW, GORO_SEND(b, &v)), -1);
	ok = false;
	CHECK_EQ(goro_select(GORO_RECV_OKP(b, NULL, &ok)), 0);
	CHECK(ok);
	goro_chan_unref(a);
	goro_chan_unref(b);
}

GO_TEST(closed_is_ready)
{
	goro_chan *closed = make_closed(), *a = make(0);
	bool ok = true;
	int v = 7;

	CHECK_EQ(goro_select(GORO_RECV(closed, NULL)), 0);
	CHECK_EQ(goro_select(GORO_RECV_OKP(closed, &v, &ok)), 0);
	CHECK(!ok);
	CHECK_EQ(v, 0);
	v = 7, ok = true;
	CHECK_EQ(goro_select(GORO_RECV(a, &v), GORO_RECV_OKP(closed, &v, &ok)), 1);
	CHECK(!ok);
	CHECK_EQ(v, 0);
	CHECK_EQ(goro_select_until(GORO_NOW, GORO_RECV(a, NULL), GORO_RECV(closed, NULL)), 1);
	goro_chan_unref(a);
	goro_chan_unref(closed);
}

static void select_send_one(void *c)
{
	int v = 1;

	goro_select(GORO_SEND(c, &v));
}

static goro_chan *silent;	/* no goroutine ever sends on it */

static void select_send_of_two(void *c)
{
	int v = 1;

	goro_select(GORO_SEND(c, &v), GORO_RECV(silent, &v));
}

static void select_send_now(void *c)
{
	int v = 1;

	goro_select_until(GORO_NOW, GORO_SEND(c, &v), GORO_RECV(NULL, &v));
}

static void select_send_wide(void *c)
{
	int v = 1;

	goro_select(GORO_SEND(c, &v), GORO_RECV(silent, &v), GORO_RECV(silent, &v),
	            GORO_RECV(silent, &v), GORO_RECV(silent, &v), GORO_RECV(silent, &v));
}

static void (*const closed_senders[])(void *) = {
	select_send_one, select_send_of_two, select_send_now, select_send_wide,
};

GO_TEST(send_on_closed_panics)
{
	goro_chan *c = make_closed();

	silent = make(0);
	for (size_t i = 0; i < sizeof closed_senders / sizeof *closed_senders; i++)
		CHECK_STR(goro_try(closed_senders[i], c), "send on closed channel");
	goro_chan_unref(c);
}

static void expect_panic(void (*fn)(void *), goro_chan *c, goro_chan *told)
{
	const char *message = goro_try(fn, c);

	send_int(told, message && !strcmp(message, "send on closed channel"));
}

GO_TEST(waiting_send_panics_at_close)
{
	goro_chan *told = make(0);

	silent = make(0);
	for (size_t i = 0; i < sizeof closed_senders / sizeof *closed_senders; i++) {
		goro_chan *c;

		if (closed_senders[i] == select_send_now)
			continue;
		c = make(0);
		go(expect_panic, closed_senders[i], c, told);
		AWAIT_SENDER(c);
		goro_chan_close(c);
		CHECK_EQ(recv_int(told), 1);
		goro_chan_unref(c);
	}
	goro_chan_unref(told);
}

GO_TEST(only_the_chosen_case_is_touched)
{
	goro_chan *a = make(1), *b = make(1);
	int x = 1, y = 2;
	bool ok = true;

	send_int(b, 42);
	CHECK_EQ(goro_select(GORO_RECV_OKP(a, &x, &ok), GORO_RECV(b, &y)), 1);
	CHECK_EQ(x, 1);
	CHECK(ok);
	CHECK_EQ(y, 42);
	goro_chan_unref(a);
	goro_chan_unref(b);
}

/* ------------------------------------------------------------------ waiting */

static void wait_two(goro_chan *a, goro_chan *b, goro_chan *told)
{
	int v = -1;
	bool ok = true;
	int i = goro_select(GORO_RECV_OKP(a, &v, &ok), GORO_RECV_OKP(b, &v, &ok));

	send_int(told, i * 100 + (ok ? v : -v - 1));
}

GO_TEST(a_waiting_select_is_served)
{
	for (size_t cap = 0; cap < 2; cap++) {
		goro_chan *a = make(cap), *b = make(cap), *told = make(0);

		for (int i = 0; i < 100; i++) {
			go(wait_two, a, b, told);
			AWAIT_RECEIVER(b);
			send_int(i % 2 ? a : b, 7);
			CHECK_EQ(recv_int(told), i % 2 ? 7 : 107);
			CHECK(waitq_empty(&a->recvq) && waitq_empty(&b->recvq));
		}
		go(wait_two, a, b, told);
		AWAIT_RECEIVER(a);
		goro_chan_close(b);
		CHECK_EQ(recv_int(told), 99);
		goro_chan_unref(a);
		goro_chan_unref(b);
		goro_chan_unref(told);
	}
}

/* Three ways to receive meet three ways to send. */
static void recv1(goro_chan *c)
{
	goro_chan_recv(c, NULL);
}

static void recv2(goro_chan *c)
{
	goro_select(GORO_RECV(c, NULL));
}

static void recv3(goro_chan *c)
{
	goro_chan *c2 = make(0);

	goro_select(GORO_RECV(c, NULL), GORO_RECV(c2, NULL));
	goro_chan_unref(c2);
}

static void send1(goro_chan *c)
{
	send_int(c, 1);
}

static void send2(goro_chan *c)
{
	int v = 1;

	goro_select(GORO_SEND(c, &v));
}

static void send3(goro_chan *c)
{
	goro_chan *c2 = make(0);
	int v = 1;

	goro_select(GORO_SEND(c, &v), GORO_SEND(c2, &v));
	goro_chan_unref(c2);
}

GO_TEST(every_send_meets_every_receive)
{
	static void (*const receivers[])(goro_chan *) = { recv1, recv2, recv3 };
	static void (*const senders[])(goro_chan *) = { send1, send2, send3 };

	for (int i = 0; i < 36; i++) {
		goro_chan *c = make(0);

		if (i % 2) {
			go(receivers[i / 2 % 3], c);
			if (i < 18)
				AWAIT_RECEIVER(c);
			senders[i / 2 / 3 % 3](c);
		} else {
			go(senders[i / 2 / 3 % 3], c);
			if (i < 18)
				AWAIT_SENDER(c);
			receivers[i / 2 % 3](c);
		}
		goro_chan_unref(c);
	}
}

static void no_cases(void)
{
	goro_select_n(NULL, 0, GORO_FOREVER);
	FAIL("a select without cases returned");
}

static void nil_cases(void)
{
	int v = 0;

	goro_select(GORO_RECV(NULL, &v), GORO_SEND(NULL, &v));
	FAIL("a select of nil channels returned");
}

static void self_select(goro_chan *c)
{
	int v = 0;

	goro_select(GORO_SEND(c, &v), GORO_RECV(c, &v));
	FAIL("a select met itself");
}

GO_TEST(waits_are_named_as_in_go)
{
	goro_chan *c = make(0);

	go(no_cases);
	AWAIT(dump_shows("[select (no cases)"));
	go(nil_cases);
	AWAIT(dump_shows("[select]") || dump_shows("[select,"));
	go(self_select, c);
	AWAIT_RECEIVER(c);
	for (int i = 0; i < 100; i++)
		goro_gosched();
}

static void nil_and_one(goro_chan *c, goro_chan *told)
{
	int v = -1;

	CHECK_EQ(goro_select(GORO_RECV(NULL, &v), GORO_RECV(c, &v), GORO_SEND(NULL, &v)), 1);
	send_int(told, v);
}

GO_TEST(nil_cases_do_not_matter)
{
	goro_chan *c = make(0), *told = make(0);

	go(nil_and_one, c, told);
	send_int(c, 5);
	CHECK_EQ(recv_int(told), 5);
	goro_chan_unref(c);
	goro_chan_unref(told);
}

static void wait_duplicates(goro_chan *c, goro_chan *d, goro_chan *told)
{
	int v[3];

	send_int(told, v[goro_select(GORO_RECV(c, &v[0]), GORO_RECV(d, &v[1]), GORO_RECV(c, &v[2]))]);
}

GO_TEST(a_channel_may_appear_twice)
{
	goro_chan *c = make(0), *d = make(0), *told = make(0);

	for (int i = 0; i < 100; i++) {
		goro_chan *from = i % 3 ? c : d;

		go(wait_duplicates, c, d, told);
		AWAIT(queue_length(c, &c->recvq) == 2);
		send_int(from, i);
		CHECK_EQ(recv_int(told), i);
		CHECK(waitq_empty(&c->recvq) && waitq_empty(&d->recvq));
	}
	goro_chan_unref(c);
	goro_chan_unref(d);
	goro_chan_unref(told);
}

/* A select leaves its place in the middle, at the start and at the end of a
 * channel's queue, and the others keep theirs. */
static void leave_queue(goro_chan *c, goro_chan *way_out, goro_chan *told)
{
	CHECK_EQ(goro_select(GORO_RECV(c, NULL), GORO_RECV(way_out, NULL)), 1);
	send_int(told, 0);
}

GO_TEST(losing_cases_leave_the_queue)
{
	for (int place = 0; place < 3; place++) {
		goro_chan *c = make(0), *way_out = make(0), *told = make(3);

		for (int i = 0; i < 3; i++) {
			if (i == place)
				go(leave_queue, c, way_out, told);
			else
				go(recv1, c);
			AWAIT(queue_length(c, &c->recvq) == i + 1);
		}
		send_int(way_out, 1);
		recv_int(told);
		CHECK_EQ(queue_length(c, &c->recvq), 2);
		send_int(c, 1);
		send_int(c, 1);
		CHECK(waitq_empty(&c->recvq));
		goro_chan_unref(c);
		goro_chan_unref(way_out);
		goro_chan_unref(told);
	}
}

/* --------------------------------------------------------------------- wide */

static void wait_wide(goro_chan **c, size_t n, goro_chan *told)
{
	struct goro_case *cases = calloc(n, sizeof *cases);
	int v = -1, i;

	for (size_t k = 0; k < n; k++)
		cases[k] = GORO_RECV(c[k], &v);
	i = goro_select_n(cases, n, GORO_FOREVER);
	free(cases);
	CHECK_EQ(v, i);
	send_int(told, i);
}

static void check_wide(size_t n)
{
	goro_chan **c = calloc(n, sizeof *c), *told = make(0);

	for (size_t k = 0; k < n; k++)
		c[k] = k % 7 == 3 ? NULL : make(k % 2);
	for (int round = 0; round < 10; round++) {
		size_t k = (size_t)round * 31 % n;

		k += k % 7 == 3 ? 1 : 0;
		k %= n;
		if (!c[k])
			continue;
		go(wait_wide, c, n, told);
		if (round % 2)
			AWAIT_RECEIVER(c[k]);
		send_int(c[k], (int)k);
		CHECK_EQ(recv_int(told), k);
	}
	for (size_t k = 0; k < n; k++) {
		CHECK(!c[k] || waitq_empty(&c[k]->recvq));
		goro_chan_unref(c[k]);
	}
	goro_chan_unref(told);
	free(c);
}

GO_TEST(any_number_of_cases)
{
	for (size_t n = 1; n < 12; n++)
		check_wide(n);
	check_wide(64);
	check_wide(65);
	check_wide(200);
	check_wide(SCALED(20000));
}

/* ----------------------------------------------------------------- fairness */

/* The sum of squares for n equally likely outcomes exceeds this once in a
 * million runs (Wilson and Hilferty's approximation, z = 4.75). */
static double chi_square_limit(int n)
{
	double k = n - 1, a = 2 / (9 * k);

	return k * pow(1 - a + 4.75 * sqrt(a), 3);
}

static void check_uniform(const int *seen, int n, int total)
{
	double expect = (double)total / n, sum = 0;

	for (int i = 0; i < n; i++)
		sum += (seen[i] - expect) * (seen[i] - expect) / expect;
	if (sum > chi_square_limit(n))
		FAIL("chi square %g of %d outcomes", sum, n);
}

enum { DRAWS = 20000 };

/* Of n cases those in the mask are ready. */
static void check_draws(size_t n, unsigned mask)
{
	struct goro_case cases[16];
	goro_chan *closed = make_closed(), *never = make(0), *room = make(DRAWS);
	int seen[16] = { 0 }, ready[16], v = 1, m = 0;

	for (size_t i = 0; i < n; i++)
		cases[i] = !(mask >> i & 1) ? GORO_RECV(never, NULL)
		           : i % 2 ? GORO_RECV(closed, NULL) : GORO_SEND(room, &v);
	for (int i = 0; i < DRAWS; i++)
		seen[goro_select_n(cases, n, i % 2 ? GORO_FOREVER : GORO_NOW)]++;
	for (size_t i = 0; i < n; i++) {
		if (mask >> i & 1)
			ready[m++] = seen[i];
		else
			CHECK_EQ(seen[i], 0);
	}
	check_uniform(ready, m, DRAWS);
	goro_chan_unref(closed);
	goro_chan_unref(never);
	goro_chan_unref(room);
}

GO_TEST(ready_cases_are_equally_likely)
{
	check_draws(2, 0x3);
	check_draws(3, 0x7);
	check_draws(4, 0xf);
	check_draws(4, 0x3);
	check_draws(4, 0xe);
	check_draws(7, 0x7f);
	check_draws(16, 0xffff);
	check_draws(16, 0xa5a5);
	check_draws(16, 0x8001);
}

static void keep_sending(goro_chan *c, goro_chan *done)
{
	int v = 1;

	while (goro_select(GORO_SEND(c, &v), GORO_RECV(done, NULL)) == 0)
		;
	goro_chan_unref(c);
	goro_chan_unref(done);
}

/* Two senders that are always about to send: neither is passed over. */
GO_TEST(no_busy_channel_is_passed_over)
{
	goro_chan *c1 = make(SCALED(10000) + 1), *c2 = make(SCALED(10000) + 1);
	goro_chan *out1 = make(0), *out2 = make(0), *done = make(0);
	int trials = SCALED(10000), n1 = 0, n2 = 0, v = 1;

	for (int i = 0; i < trials + 1; i++) {
		send_int(c1, 1);
		send_int(c2, 2);
	}
	go(keep_sending, goro_chan_ref(out1), goro_chan_ref(done));
	go(keep_sending, goro_chan_ref(out2), goro_chan_ref(done));
	for (int i = 0; i < trials; i++) {
		if (goro_select(GORO_RECV(c1, &v), GORO_RECV(c2, &v)) == 0)
			n1++;
		else
			n2++;
	}
	CHECK_EQ(n1 + n2, trials);
	check_uniform((int[]){ n1, n2 }, 2, trials);
	/* How often depends on when the senders get to run, too: only that. */
	for (n1 = n2 = 0; n1 < trials / 20 || n2 < trials / 20;) {
		if (goro_select(GORO_RECV(out1, &v), GORO_RECV(out2, &v)) == 0)
			n1++;
		else
			n2++;
	}
	goro_chan_close(done);
	goro_chan_unref(done);
	goro_chan_unref(c1);
	goro_chan_unref(c2);
	goro_chan_unref(out1);
	goro_chan_unref(out2);
}

static void send_bits(goro_chan *c, int n)
{
	const int zero = 0, one = 1;

	for (int i = 0; i < n; i++)
		goro_select(GORO_SEND(c, &zero), GORO_SEND(c, &one));
	goro_chan_close(c);
}

GO_TEST(bits_from_a_select_are_random)
{
	for (size_t cap = 0; cap < 50; cap += 7) {
		goro_chan *c = make(cap);
		int seen[2] = { 0 }, v;

		go(send_bits, c, 2000);
		while (goro_chan_recv(c, &v))
			seen[v]++;
		check_uniform(seen, 2, 2000);
		goro_chan_unref(c);
	}
}

/* --------------------------------------------------------- one moment, raced */

static void expect_one_ready(goro_chan *a, goro_chan *b, goro_chan *told)
{
	send_int(told, goro_select_until(GORO_NOW, GORO_RECV(a, NULL), GORO_RECV(b, NULL)));
}

/* a is ready; then b; then a no longer is. At every moment one of them is, so
 * the select never takes the default. */
static void check_one_moment(bool by_close)
{
	goro_chan *told = make(1);

	for (int i = 0; i < SCALED(20000); i++) {
		goro_chan *a = make(1), *b = make(by_close ? 0 : 1);

		send_int(a, 1);
		go(expect_one_ready, a, b, told);
		if (by_close)
			goro_chan_close(b);
		else
			send_int(b, 1);
		goro_chan_try_recv(a, NULL);
		CHECK(recv_int(told) >= 0);
		goro_chan_unref(a);
		goro_chan_unref(b);
	}
	goro_chan_unref(told);
}

GO_TEST(default_only_if_none_was_ready_at_one_moment)
{
	check_one_moment(false);
}

GO_TEST(default_only_if_none_was_closed_at_one_moment)
{
	check_one_moment(true);
}

static void self_selecter(goro_chan *c, int me, bool unbuffered, goro_waitgroup *wg)
{
	for (int i = 0; i < 1000; i++) {
		int v = -1, got;

		if (me == 0 || i % 2 == 0)
			got = goro_select(GORO_SEND(c, &me), GORO_RECV(c, &v)) == 1;
		else
			got = goro_select(GORO_RECV(c, &v), GORO_SEND(c, &me)) == 0;
		if (got && unbuffered)
			CHECK(v != me);
	}
	goro_waitgroup_done(wg);
}

GO_TEST(nobody_receives_from_itself)
{
	for (size_t cap = 0; cap <= 10; cap += 10) {
		goro_chan *c = make(cap);
		goro_waitgroup wg = { 0 };

		goro_waitgroup_add(&wg, 2);
		go(self_selecter, c, 0, cap == 0, &wg);
		go(self_selecter, c, 1, cap == 0, &wg);
		goro_waitgroup_wait(&wg);
		goro_chan_unref(c);
	}
}

/* ------------------------------------------------------------------- stress */

enum { STRESS_N = 20000 };

static void stress_send(goro_chan *c, goro_waitgroup *wg)
{
	for (int i = 0; i < SCALED(STRESS_N); i++)
		goro_chan_send(c, &i);
	goro_waitgroup_done(wg);
}

static void stress_recv(goro_chan *c, goro_waitgroup *wg)
{
	for (int i = 0; i < SCALED(STRESS_N); i++)
		CHECK_EQ(recv_int(c), i);
	goro_waitgroup_done(wg);
}

/* Both sides at once by select over four channels, each until all have had
 * their number. */
static void stress_select(goro_chan **all, bool is_send, goro_waitgroup *wg)
{
	goro_chan *c[4];
	int n[4] = { 0 }, left = 4;

	memcpy(c, all, sizeof c);
	while (left > 0) {
		struct goro_case cases[4];
		int v = -1, i;

		for (int k = 0; k < 4; k++)
			cases[k] = is_send ? GORO_SEND(c[k], &n[k]) : GORO_RECV(c[k], &v);
		i = goro_select_n(cases, 4, GORO_FOREVER);
		CHECK(is_send || v >= 0);
		if (++n[i] == SCALED(STRESS_N)) {
			c[i] = NULL;
			left--;
		}
	}
	goro_waitgroup_done(wg);
}

/* Channels 0 and 1 carry the plain pairs' values in order beside the selects'. */
GO_TEST(plain_and_select_mixed)
{
	goro_chan *c[4] = { make(0), make(0), make(2), make(3) };
	goro_chan *p[4] = { make(0), make(0), make(2), make(3) };
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 10);
	for (int i = 0; i < 4; i++) {
		go(stress_send, p[i], &wg);
		go(stress_recv, p[i], &wg);
	}
	go(stress_select, c, true, &wg);
	go(stress_select, c, false, &wg);
	goro_waitgroup_wait(&wg);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(goro_chan_len(c[i]), 0);
		goro_chan_unref(c[i]);
		goro_chan_unref(p[i]);
	}
}

static void select_sender(int n, goro_chan *c1, goro_chan *c2, goro_chan *c3, goro_chan *c4)
{
	for (int i = 0; i < n; i++)
		goro_select(GORO_SEND(c1, &i), GORO_SEND(c2, &i), GORO_SEND(c3, &i),
		            GORO_SEND(c4, &i));
	goro_chan_close(c1);
	goro_chan_close(c2);
	goro_chan_close(c3);
	goro_chan_close(c4);
}

static void mux(goro_chan *out, goro_chan *in, goro_chan *done)
{
	int v;

	while (goro_chan_recv(in, &v))
		goro_chan_send(out, &v);
	goro_chan_unref(in);
	send_int(done, 1);
}

static void close_after(goro_chan *out, goro_chan *done, int n)
{
	for (int i = 0; i < n; i++)
		recv_int(done);
	goro_chan_close(out);
}

GO_TEST(one_select_feeds_many_without_doubles)
{
	const int n = SCALED(100000);
	goro_chan *c[4], *out = make(0), *done = make(0);
	char *seen = calloc((size_t)n, 1);
	int v, got = 0;

	for (int i = 0; i < 4; i++) {
		c[i] = make(0);
		go(mux, out, c[i], done);
	}
	go(select_sender, n, c[0], c[1], c[2], c[3]);
	go(close_after, out, done, 4);
	while (goro_chan_recv(out, &v)) {
		CHECK(!seen[v]++);
		got++;
	}
	CHECK_EQ(got, n);
	free(seen);
	goro_chan_unref(out);
	goro_chan_unref(done);
}

/* Many send to one select at once. One succeeds, the others find no receiver. */
enum { SHOOTERS = 8 };

static void shoot(goro_chan *c, goro_chan *go_ahead, goro_chan *hit)
{
	int v = 1;

	goro_chan_recv(go_ahead, NULL);
	send_int(hit, goro_chan_try_send(c, &v));
}

GO_TEST(woken_once)
{
	goro_chan *told = make(0), *hit = make(SHOOTERS);

	for (int round = 0; round < SCALED(3000); round++) {
		goro_chan *c[SHOOTERS], *go_ahead = make(0);
		int hits = 0;

		for (int i = 0; i < SHOOTERS; i++) {
			c[i] = make(0);
			go(shoot, c[i], go_ahead, hit);
		}
		go(wait_two, c[0], c[1], told);
		AWAIT_RECEIVER(c[0]);
		goro_chan_close(go_ahead);
		for (int i = 0; i < SHOOTERS; i++)
			hits += recv_int(hit);
		while (hits == 0)
			hits += goro_chan_try_send(c[0], &(int){ 1 });
		CHECK_EQ(hits, 1);
		CHECK_EQ(recv_int(told) % 100, 1);
		for (int i = 0; i < SHOOTERS; i++)
			goro_chan_unref(c[i]);
		goro_chan_unref(go_ahead);
	}
	goro_chan_unref(told);
	goro_chan_unref(hit);
}

/* --------------------------------------------------------- a shared channel */

static void wait_done(goro_chan *own, goro_chan *done, goro_waitgroup *wg)
{
	goro_select(GORO_RECV(own, NULL), GORO_RECV(done, NULL));
	goro_waitgroup_done(wg);
}

/* CPU seconds to let n goroutines wait on a channel each and on a shared one,
 * and to wake them in an order that takes them from the middle of its queue. */
static double time_shared_done(int n)
{
	goro_chan **own = calloc((size_t)n, sizeof *own), *done = make(0);
	goro_waitgroup wg = { 0 };
	clock_t start;

	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++) {
		own[i] = make(0);
		go(wait_done, own[i], done, &wg);
	}
	AWAIT(selects_on(done) == n);
	start = clock();
	for (int i = 0; i < n / 2; i++)
		goro_chan_close(own[(long)i * 7919 % (n / 2) * 2]);
	AWAIT(selects_on(done) == n / 2);
	goro_chan_close(done);
	goro_waitgroup_wait(&wg);
	start = clock() - start;
	for (int i = 0; i < n; i++)
		goro_chan_unref(own[i]);
	goro_chan_unref(done);
	free(own);
	return (double)start / CLOCKS_PER_SEC;
}

/* Ten times as many take ten times as long, not a hundred times. All have had their
 * stacks before: the first touch of one, and with ASan of its shadow, would be most of
 * what is measured. */
GO_TEST_TIMEOUT(a_hundred_thousand_on_one_channel, 120)
{
	int n = SCALED(100000);
	double few, many;

	time_shared_done(n);
	few = time_shared_done(n / 10);
	many = time_shared_done(n);
	/* TSan has fibers to look after */
	if (!TOOL_TSAN && many > 50 * few + 0.1)
		FAIL("%d take %g s, %d take %g s", n / 10, few, n, many);
}

/* ---------------------------------------------------------------- lifetimes */

static void send_or_done(goro_chan *c, goro_chan *done)
{
	int v = 42;

	goro_select(GORO_SEND(c, &v), GORO_RECV(done, NULL));
}

/* Having the value shows that the select is over: both channels go at once,
 * whether it waited or not. */
GO_TEST(losing_channels_freed_when_the_value_is_received)
{
	for (int i = 0; i < SCALED(20000); i++) {
		goro_chan *c = make(i % 3 == 0), *done = make(0);

		go(send_or_done, c, done);
		if (i % 2)
			AWAIT(goro_chan_len(c) > 0 || !waitq_empty(&c->sendq));
		CHECK_EQ(recv_int(c), 42);
		if (i % 4 < 2) {
			goro_chan_unref(c);
			goro_chan_unref(done);
		} else {
			goro_chan_unref(done);
			goro_chan_unref(c);
		}
	}
}

static void wait_dropped(goro_chan *own, goro_chan *dropped, goro_chan *told)
{
	CHECK_EQ(goro_select(GORO_RECV(dropped, NULL), GORO_RECV(own, NULL),
	                     GORO_RECV(dropped, NULL)), 1);
	send_int(told, 1);
}

GO_TEST(dropped_while_a_select_waits)
{
	for (int round = 0; round < 10; round++) {
		goro_chan *own = make(0), *dropped = make(0), *told = make(0);

		for (int i = 0; i < 10; i++)
			go(wait_dropped, own, dropped, told);
		AWAIT(queue_length(own, &own->recvq) == 10);
		goro_chan_unref(dropped);
		for (int i = 0; i < 5; i++)
			send_int(own, 1);
		goro_chan_close(own);
		goro_chan_unref(own);
		for (int i = 0; i < 10; i++)
			recv_int(told);
		goro_chan_unref(told);
	}
}

static void wait_either(goro_chan *a, goro_chan *b, goro_chan *told)
{
	int v;

	goro_select(GORO_RECV(a, &v), GORO_RECV(b, &v));
	send_int(told, v);
}

/* The select has been claimed through a and has not run yet when a sender passes over its
 * waiter in b's queue and drops b. */
GO_TEST(dropped_after_its_waiter_was_passed_over)
{
	goro_chan *told = make(0);

	for (int i = 0; i < SCALED(5000); i++) {
		goro_chan *a = make(0), *b = make(0);
		int v = 2;

		go(wait_either, a, b, told);
		AWAIT_RECEIVER(b);
		send_int(a, 1);
		CHECK(!goro_chan_try_send(b, &v));
		goro_chan_unref(b);
		goro_chan_unref(a);
		CHECK_EQ(recv_int(told), 1);
	}
	goro_chan_unref(told);
}

static void drop_wide(goro_chan **c, goro_chan *told)
{
	struct goro_case cases[8];

	for (int i = 0; i < 8; i++)
		cases[i] = GORO_RECV(c[i], NULL);
	send_int(told, goro_select_n(cases, 8, GORO_FOREVER));
}

GO_TEST(dropped_while_a_wide_select_waits)
{
	for (int round = 0; round < SCALED(1000); round++) {
		goro_chan *c[8], *told = make(0);

		for (int i = 0; i < 8; i++)
			c[i] = make(0);
		go(drop_wide, c, told);
		AWAIT_RECEIVER(c[7]);
		goro_chan_close(c[round % 8]);
		for (int i = 0; i < 8; i++)
			goro_chan_unref(c[i]);
		CHECK_EQ(recv_int(told), round % 8);
		goro_chan_unref(told);
	}
}

/* ---------------------------------------------------------------- deadlines */

static void check_deadline(size_t n, goro_chan **c)
{
	struct goro_case cases[8];
	int64_t deadline = goro_now() + 2 * GORO_MILLISECOND;

	for (size_t i = 0; i < n; i++)
		cases[i] = GORO_RECV(c[i], NULL);
	CHECK_EQ(goro_select_n(cases, n, deadline), -1);
	CHECK(goro_now() >= deadline);
	for (size_t i = 0; i < n; i++)
		CHECK(!c[i] || (waitq_empty(&c[i]->recvq) && c[i]->selects == 0));
}

static void check_deadlines(void)
{
	goro_chan *c[8];

	for (int i = 0; i < 8; i++)
		c[i] = i == 1 ? NULL : make(0);
	for (size_t n = 0; n <= 8; n++)
		check_deadline(n, c);
	for (int i = 0; i < 8; i++)
		goro_chan_unref(c[i]);
}

GO_TEST(a_deadline_comes)
{
	check_deadlines();
}

TEST(a_deadline_comes_to_a_thread)
{
	check_deadlines();
}

GO_TEST(a_value_comes_before_the_deadline)
{
	goro_chan *a = make(0), *b = make(0);
	int v;

	for (int i = 0; i < 100; i++) {
		go(send_int, a, i);
		CHECK_EQ(goro_select_until(goro_now() + 100 * GORO_SECOND, GORO_RECV(b, &v),
		                           GORO_RECV(a, &v)), 1);
		CHECK_EQ(v, i);
	}
	goro_chan_unref(a);
	goro_chan_unref(b);
}

static void send_until_told(goro_chan *c, goro_chan *stop, goro_chan *told)
{
	int sent = 0, v = 1;

	while (goro_chan_try_recv(stop, NULL) == GORO_RECV_EMPTY) {
		if (goro_chan_try_send(c, &v))
			sent++;
		else if (sent % 8 == 0)
			goro_gosched();
	}
	send_int(told, sent);
}

/* Values and deadlines race for a select; each wakes it once, and what was sent
 * was received. */
GO_TEST(deadlines_and_values_race)
{
	goro_chan *c = make(0), *never = make(0), *stop = make(0), *told = make(0);
	int got = 0, v = 0;

	go(send_until_told, c, stop, told);
	for (int i = 0; i < SCALED(1000); i++) {
		int64_t deadline = goro_now() + i % 50 * GORO_MICROSECOND;

		got += goro_select_until(deadline, GORO_RECV(never, &v), GORO_RECV(c, &v)) == 1;
	}
	goro_chan_close(stop);
	CHECK_EQ(recv_int(told), got);
	goro_chan_unref(c);
	goro_chan_unref(never);
	goro_chan_unref(stop);
	goro_chan_unref(told);
}

/* ------------------------------------------------------------ plain threads */

static void *thread_select(void *arg)
{
	goro_chan **c = arg;
	int sum = 0, v;
	bool ok;

	for (;;) {
		int i = goro_select(GORO_RECV_OKP(c[0], &v, &ok), GORO_RECV_OKP(c[1], &v, &ok));

		if (!ok)
			break;
		sum += v * (i + 1);
	}
	goro_chan_send(c[2], &sum);
	return NULL;
}

static void check_threads(void)
{
	goro_chan *c[3] = { make(0), make(1), make(0) };
	pthread_t t[2];
	int sum = 0, expect = 0, n = SCALED(1000);

	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, thread_select, c), 0);
	for (int i = 0; i < n; i++) {
		int which = goro_select(GORO_SEND(c[0], &i), GORO_SEND(c[1], &i));

		expect += i * (which + 1);
	}
	while (goro_chan_len(c[1]) > 0)
		goro_gosched();
	goro_chan_close(c[0]);
	for (int i = 0; i < 2; i++)
		sum += recv_int(c[2]);
	CHECK_EQ(sum, expect);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 3; i++)
		goro_chan_unref(c[i]);
}

GO_TEST(threads_and_goroutine)
{
	check_threads();
}

TEST(threads_and_thread)
{
	check_threads();
}
