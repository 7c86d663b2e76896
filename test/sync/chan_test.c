/*
 * chan_test.c - channels. docs/go-tests.md says which of Go's own tests
 * each of these answers to.
 */
/* test: procs */
/* test: leaks */
#include "sync/chan.h"

#include <pthread.h>

#include "await.h"
#include "ints.h"
#include "test.h"

/* ----------------------------------------------------------------- helpers */

static goro_chan *make(size_t elem_size, size_t capacity)
{
	goro_chan *c = goro_chan_make(elem_size, capacity);

	CHECK(c);
	return c;
}

static void send_ints(goro_chan *c, int from, int to)
{
	for (int i = from; i < to; i++)
		goro_chan_send(c, &i);
}

static void recv_into(goro_chan *c, goro_chan *out)
{
	int v = -1;

	if (!goro_chan_recv(c, &v))
		CHECK_EQ(v, 0);
	goro_chan_send(out, &v);
}

/* Some goroutine or thread waits on c to receive, or to send. */
#define AWAIT_RECEIVER(c) AWAIT(!waitq_empty(&(c)->recvq))
#define AWAIT_SENDER(c)   AWAIT(!waitq_empty(&(c)->sendq))

static void try_close(void *c)
{
	goro_chan_close(c);
}

static void try_send_int(void *c)
{
	send_int(c, 1);
}

static void try_try_send_int(void *c)
{
	int v = 1;

	goro_chan_try_send(c, &v);
}

/* ---------------------------------------------------------------- one alone */

GO_TEST(len_and_cap)
{
	for (size_t cap = 0; cap < 20; cap++) {
		goro_chan *c = make(sizeof(int), cap);

		CHECK_EQ(goro_chan_len(c), 0);
		CHECK_EQ(goro_chan_cap(c), cap);
		for (size_t i = 0; i < cap; i++) {
			send_int(c, (int)i);
			CHECK_EQ(goro_chan_len(c), i + 1);
		}
		goro_chan_unref(c);
	}
	CHECK_EQ(goro_chan_len(NULL), 0);
	CHECK_EQ(goro_chan_cap(NULL), 0);
}

static void make_too_many(void *arg)
{
	(void)arg;
	goro_chan_make(1 << 20, SIZE_MAX / 1024);
}

static void make_too_large(void *arg)
{
	(void)arg;
	goro_chan_make(SIZE_MAX / 2, 0);
}

GO_TEST(size_out_of_range_panics)
{
	CHECK_STR(goro_try(make_too_many, NULL), "makechan: size out of range");
	CHECK_STR(goro_try(make_too_large, NULL), "makechan: invalid channel element type");
}

GO_TEST(no_memory_is_null)
{
	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("the sanitizer ends the process");
	CHECK(!goro_chan_make(1, SIZE_MAX / 4));
}

GO_TEST(try_does_not_wait)
{
	for (size_t cap = 0; cap < 10; cap++) {
		goro_chan *c = make(sizeof(int), cap);
		int v = 7;

		CHECK_EQ(goro_chan_try_recv(c, &v), GORO_RECV_EMPTY);
		CHECK_EQ(v, 7);
		for (size_t i = 0; i < cap; i++)
			CHECK(goro_chan_try_send(c, &v));
		CHECK(!goro_chan_try_send(c, &v));
		for (size_t i = 0; i < cap; i++)
			CHECK_EQ(goro_chan_try_recv(c, NULL), GORO_RECV_OK);
		CHECK_EQ(goro_chan_try_recv(c, NULL), GORO_RECV_EMPTY);
		goro_chan_unref(c);
	}
	CHECK(!goro_chan_try_send(NULL, NULL));
	CHECK_EQ(goro_chan_try_recv(NULL, NULL), GORO_RECV_EMPTY);
}

GO_TEST(closed_gives_what_is_left_then_zero)
{
	for (int cap = 0; cap < 50; cap++) {
		goro_chan *c = make(sizeof(int), (size_t)cap);
		int v;

		send_ints(c, 0, cap);
		goro_chan_close(c);
		for (int i = 0; i < cap; i++)
			CHECK_EQ(recv_int(c), i);
		for (int i = 0; i < 3; i++) {
			v = 5;
			CHECK(!goro_chan_recv(c, &v));
			CHECK_EQ(v, 0);
			v = 5;
			CHECK_EQ(goro_chan_try_recv(c, &v), GORO_RECV_CLOSED);
			CHECK_EQ(v, 0);
			CHECK(!goro_chan_recv(c, NULL));
		}
		goro_chan_unref(c);
	}
}

GO_TEST(misuse_panics_with_gos_words)
{
	for (size_t cap = 0; cap < 2; cap++) {
		goro_chan *c = make(sizeof(int), cap);

		goro_chan_close(c);
		CHECK_STR(goro_try(try_close, c), "close of closed channel");
		CHECK_STR(goro_try(try_send_int, c), "send on closed channel");
		CHECK_STR(goro_try(try_try_send_int, c), "send on closed channel");
		CHECK_STR(goro_try(try_close, NULL), "close of nil channel");
		goro_chan_unref(c);
	}
}

/* Every byte of an element of n arrives, and none beside it is touched. */
static void check_element(size_t n, size_t cap)
{
	goro_chan *c = make(n, cap);
	unsigned char *out = malloc(n + 1), *in = malloc(n + 2);

	for (size_t i = 0; i < n + 1; i++)
		out[i] = (unsigned char)(i * 7 + n);
	memset(in, 0xee, n + 2);
	for (size_t i = 0; i < 2 * cap; i++) {
		goro_chan_send(c, out);
		CHECK(goro_chan_recv(c, in + 1));
	}
	if (cap == 0) {
		go(goro_chan_send, c, out);
		CHECK(goro_chan_recv(c, in + 1));
	}
	CHECK(memcmp(in + 1, out, n) == 0);
	CHECK_EQ(in[0], 0xee);
	CHECK_EQ(in[n + 1], 0xee);
	goro_chan_close(c);
	CHECK(!goro_chan_recv(c, in + 1));
	for (size_t i = 1; i <= n; i++)
		CHECK_EQ(in[i], 0);
	CHECK_EQ(in[n + 1], 0xee);
	goro_chan_unref(c);
	free(out);
	free(in);
}

GO_TEST(elements_of_any_size)
{
	static const size_t sizes[] = { 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33,
	                                63, 64, 65, 100, 1000, 1023, 4096, 4097, 65535, 65536 };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t cap = 0; cap < 4; cap++)
			check_element(sizes[i], cap);
}

GO_TEST(elements_of_no_size)
{
	goro_chan *c = make(0, 3), *unbuffered = make(0, 0);

	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < 3; i++)
			goro_chan_send(c, NULL);
		CHECK(!goro_chan_try_send(c, NULL));
		CHECK_EQ(goro_chan_len(c), 3);
		for (size_t i = 0; i < 3; i++)
			CHECK(goro_chan_recv(c, NULL));
		CHECK_EQ(goro_chan_try_recv(c, NULL), GORO_RECV_EMPTY);
	}
	go(goro_chan_send, unbuffered, NULL);
	CHECK(goro_chan_recv(unbuffered, NULL));
	goro_chan_unref(unbuffered);
	goro_chan_unref(c);
}

/* ------------------------------------------------------------------ waiting */

GO_TEST(receive_from_empty_waits)
{
	for (size_t cap = 0; cap < 10; cap++) {
		goro_chan *c = make(sizeof(int), cap), *out = make(sizeof(int), 2);

		go(recv_into, c, out);
		AWAIT_RECEIVER(c);
		CHECK_EQ(goro_chan_len(out), 0);
		send_int(c, 3);
		CHECK_EQ(goro_chan_len(c), 0); /* handed over, not buffered */
		CHECK_EQ(recv_int(out), 3);
		goro_chan_unref(c);
		goro_chan_unref(out);
	}
}

static void send_and_tell(goro_chan *c, int v, goro_chan *told)
{
	send_int(c, v);
	send_int(told, v);
}

GO_TEST(send_to_full_waits)
{
	for (int cap = 0; cap < 10; cap++) {
		goro_chan *c = make(sizeof(int), (size_t)cap), *told = make(sizeof(int), 1);

		send_ints(c, 0, cap);
		go(send_and_tell, c, cap, told);
		AWAIT_SENDER(c);
		CHECK_EQ(goro_chan_len(told), 0);
		CHECK(!goro_chan_try_send(c, &cap));
		for (int i = 0; i <= cap; i++)
			CHECK_EQ(recv_int(c), i); /* the waiting one comes last */
		CHECK_EQ(recv_int(told), cap);
		goro_chan_unref(c);
		goro_chan_unref(told);
	}
}

GO_TEST(try_meets_who_waits)
{
	for (int cap = 0; cap < 2; cap++) {
		goro_chan *c = make(sizeof(int), (size_t)cap), *out = make(sizeof(int), 1);
		int v = 123;

		go(recv_into, c, out);
		AWAIT_RECEIVER(c);
		CHECK(goro_chan_try_send(c, &v));
		CHECK_EQ(recv_int(out), 123);

		send_ints(c, 0, cap);
		go(send_and_tell, c, 234, out);
		AWAIT_SENDER(c);
		for (int i = 0; i <= cap; i++)
			CHECK_EQ(goro_chan_try_recv(c, &v), GORO_RECV_OK);
		CHECK_EQ(v, 234);
		CHECK_EQ(recv_int(out), 234);
		goro_chan_unref(c);
		goro_chan_unref(out);
	}
}

GO_TEST(close_wakes_all_receivers)
{
	for (size_t cap = 0; cap < 3; cap++) {
		goro_chan *c = make(sizeof(int), cap), *out = make(sizeof(int), 0);

		for (int i = 0; i < 10; i++)
			go(recv_into, c, out);
		AWAIT_RECEIVER(c);
		goro_chan_close(c);
		for (int i = 0; i < 10; i++)
			CHECK_EQ(recv_int(out), 0);
		goro_chan_unref(c);
		goro_chan_unref(out);
	}
}

static void send_expecting_close(goro_chan *c, goro_chan *told)
{
	const char *message = goro_try(try_send_int, c);

	send_int(told, message && !strcmp(message, "send on closed channel"));
}

GO_TEST(close_makes_waiting_senders_panic)
{
	for (int cap = 0; cap < 3; cap++) {
		goro_chan *c = make(sizeof(int), (size_t)cap), *told = make(sizeof(int), 0);

		send_ints(c, 0, cap);
		for (int i = 0; i < 10; i++)
			go(send_expecting_close, c, told);
		AWAIT_SENDER(c);
		goro_chan_close(c);
		for (int i = 0; i < 10; i++)
			CHECK_EQ(recv_int(told), 1);
		for (int i = 0; i < cap; i++)
			CHECK_EQ(recv_int(c), i);
		CHECK(!goro_chan_recv(c, NULL));
		goro_chan_unref(c);
		goro_chan_unref(told);
	}
}

static void recv_nil(void)
{
	goro_chan_recv(NULL, NULL);
}

static void send_nil(void)
{
	goro_chan_send(NULL, NULL);
}

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

GO_TEST(waits_are_named_as_in_go)
{
	goro_chan *c = make(sizeof(int), 0), *full = make(sizeof(int), 0);

	go(recv_nil);
	AWAIT(dump_shows("[chan receive (nil chan)"));
	go(send_nil);
	AWAIT(dump_shows("[chan send (nil chan)"));
	go(goro_chan_recv, c, NULL);
	AWAIT(dump_shows("[chan receive]"));
	go(send_int, full, 1);
	AWAIT(dump_shows("[chan send]"));
}

/* -------------------------------------------------------------------- order */

GO_TEST(values_come_in_order)
{
	for (size_t cap = 0; cap < 40; cap++) {
		goro_chan *c = make(sizeof(int), cap);

		go(send_ints, c, 0, 300);
		for (int i = 0; i < 300; i++)
			CHECK_EQ(recv_int(c), i);
		goro_chan_unref(c);
	}
}

static goro_chan *in_turn_next;

static void recv_in_turn(goro_chan *c, int turn)
{
	CHECK_EQ(recv_int(c), turn);
	send_int(in_turn_next, turn);
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

GO_TEST(who_waits_longest_is_served_first)
{
	goro_chan *c = make(sizeof(int), 0);

	in_turn_next = make(sizeof(int), 20);
	for (int i = 0; i < 20; i++) {
		go(recv_in_turn, c, i);
		AWAIT(queue_length(c, &c->recvq) == i + 1);
	}
	for (int i = 0; i < 20; i++)
		send_int(c, i);
	for (int i = 0; i < 20; i++)
		recv_int(in_turn_next);
	for (int i = 0; i < 20; i++) {
		go(send_int, c, i);
		AWAIT(queue_length(c, &c->sendq) == i + 1);
	}
	for (int i = 0; i < 20; i++)
		CHECK_EQ(recv_int(c), i);
	goro_chan_unref(c);
	goro_chan_unref(in_turn_next);
}

static void fifo_link(goro_chan *ch, int value, goro_chan *in, goro_chan *out)
{
	recv_int(in);
	CHECK_EQ(recv_int(ch), value);
	send_int(out, 1);
	goro_chan_unref(in);
}

GO_TEST(a_chain_receives_in_order)
{
	goro_chan *ch = make(sizeof(int), 10), *in = make(sizeof(int), 0), *start = in;

	for (int i = 0; i < 10; i++) {
		goro_chan *out = make(sizeof(int), 0);

		go(fifo_link, ch, i, in, out);
		in = out;
	}
	send_int(start, 0);
	send_ints(ch, 0, 10);
	recv_int(in);
	goro_chan_unref(in);
	goro_chan_unref(ch);
}

/* --------------------------------------------------------------------- many */

enum { MANY_L = 1000, MANY_P = 4 };

static void count_into(goro_chan *c, int *seen)
{
	for (int i = 0; i < MANY_L; i++)
		__atomic_fetch_add(&seen[recv_int(c)], 1, __ATOMIC_RELAXED);
}

static void count_and_done(goro_chan *c, int *seen, goro_waitgroup *wg)
{
	count_into(c, seen);
	goro_waitgroup_done(wg);
}

GO_TEST(many_lose_and_double_nothing)
{
	for (size_t cap = 0; cap < 20; cap += 1 + cap / 4) {
		goro_chan *c = make(sizeof(int), cap);
		goro_waitgroup wg = { 0 };
		int seen[MANY_L] = { 0 };

		goro_waitgroup_add(&wg, MANY_P);
		for (int p = 0; p < MANY_P; p++) {
			go(send_ints, c, 0, MANY_L);
			go(count_and_done, c, seen, &wg);
		}
		goro_waitgroup_wait(&wg);
		for (int i = 0; i < MANY_L; i++)
			CHECK_EQ(seen[i], MANY_P);
		goro_chan_unref(c);
	}
}

/* Work comes in one channel and goes out by another, through many workers, each
 * of which yields now and then. */
enum { WORKERS = 23, ITEMS = 10000 };

static void worker(goro_chan *in, goro_chan *out, goro_waitgroup *wg)
{
	int v;

	while (goro_chan_recv(in, &v)) {
		if (v % 3 == 0)
			goro_gosched();
		goro_chan_send(out, &v);
	}
	goro_waitgroup_done(wg);
}

static void feed(goro_chan *in, goro_chan *out, goro_waitgroup *wg)
{
	static const int primes[] = { 2, 3, 7, 31, 61, 127, 251 };

	for (int i = 0; i < SCALED(ITEMS); i++)
		send_int(in, primes[i % 7]);
	goro_chan_close(in);
	goro_waitgroup_wait(wg);
	goro_chan_close(out);
}

GO_TEST(many_workers_between_two_channels)
{
	goro_chan *in = make(sizeof(int), 1), *out = make(sizeof(int), 0);
	goro_waitgroup wg = { 0 };
	int v, n = 0;
	long sum = 0, expect = 0;

	goro_waitgroup_add(&wg, WORKERS);
	for (int i = 0; i < WORKERS; i++)
		go(worker, in, out, &wg);
	go(feed, in, out, &wg);
	while (goro_chan_recv(out, &v)) {
		sum += v;
		n++;
	}
	for (int i = 0; i < SCALED(ITEMS); i++)
		expect += (const int[]){ 2, 3, 7, 31, 61, 127, 251 }[i % 7];
	CHECK_EQ(n, SCALED(ITEMS));
	CHECK_EQ(sum, expect);
	goro_chan_unref(in);
	goro_chan_unref(out);
}

static void pass_on(goro_chan *left, goro_chan *right)
{
	int v = recv_int(right);

	goro_chan_unref(right);
	send_int(left, v + 1);
	goro_chan_unref(left);
}

GO_TEST(a_daisy_chain)
{
	const int n = SCALED(10000);
	goro_chan *leftmost = make(sizeof(int), 0), *left = leftmost, *right = left;

	for (int i = 0; i < n; i++) {
		right = make(sizeof(int), 0);
		goro_chan_ref(right);
		go(pass_on, i == 0 ? goro_chan_ref(left) : left, right);
		left = right;
	}
	send_int(right, 0);
	goro_chan_unref(right);
	CHECK_EQ(recv_int(leftmost), n);
	goro_chan_unref(leftmost);
}

static void generate(goro_chan *out)
{
	for (int i = 2;; i++)
		send_int(out, i);
}

static void filter(goro_chan *in, goro_chan *out, int prime)
{
	for (;;) {
		int i = recv_int(in);

		if (i % prime != 0)
			send_int(out, i);
	}
}

GO_TEST(a_prime_sieve)
{
	static const int primes[] = { 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53,
	                              59, 61, 67, 71, 73, 79, 83, 89, 97 };
	goro_chan *c = make(sizeof(int), 0);

	go(generate, c);
	for (size_t i = 0; i < sizeof primes / sizeof *primes; i++) {
		goro_chan *next = make(sizeof(int), 0);
		int prime = recv_int(c);

		CHECK_EQ(prime, primes[i]);
		go(filter, c, next, prime);
		c = next;
	}
}

/* ------------------------------------------------------------ tries, raced */

static void recv_ready(goro_chan *c, goro_chan *done)
{
	CHECK(goro_chan_try_recv(c, NULL) != GORO_RECV_EMPTY);
	send_int(done, 1);
}

/* At every moment c has a value or is closed. */
GO_TEST(try_receive_never_misses_a_ready_channel)
{
	goro_chan *done = make(sizeof(int), 0);

	for (int i = 0; i < SCALED(10000); i++) {
		goro_chan *c = make(sizeof(int), 1);

		send_int(c, 1);
		go(recv_ready, c, done);
		goro_chan_close(c);
		goro_chan_recv(c, NULL);
		recv_int(done);
		goro_chan_unref(c);
	}
	goro_chan_unref(done);
}

static void flip_full(goro_chan *c, goro_chan *done)
{
	int v;

	for (int i = 0; i < SCALED(20000); i++) {
		send_int(c, i);
		CHECK_EQ(goro_chan_try_recv(c, &v), GORO_RECV_OK);
		CHECK_EQ(v, i);
	}
	send_int(done, 1);
}

/* One value in a channel with room for two: never full, whatever the moment. */
GO_TEST(try_send_never_misses_room)
{
	goro_chan *done = make(sizeof(int), 0), *mine[4];

	for (int i = 0; i < 4; i++) {
		mine[i] = make(sizeof(int), 2);
		go(flip_full, mine[i], done);
	}
	for (int i = 0; i < 4; i++)
		recv_int(done);
	for (int i = 0; i < 4; i++)
		goro_chan_unref(mine[i]);
	goro_chan_unref(done);
}

/* ---------------------------------------------------------------- lifetimes */

/* In each of these the last reference goes the moment a call shows that its caller needs
 * the channel no more, while the call on the other side may not have returned. */

static void send_one(goro_chan *c)
{
	send_int(c, 42);
}

GO_TEST(freed_when_the_value_is_received)
{
	for (int i = 0; i < SCALED(20000); i++) {
		goro_chan *c = make(sizeof(int), i % 3 == 0);

		go(send_one, c);
		CHECK_EQ(recv_int(c), 42);
		goro_chan_unref(c);
	}
}

static void close_one(goro_chan *c)
{
	goro_chan_close(c);
}

GO_TEST(freed_when_the_close_is_received)
{
	for (int i = 0; i < SCALED(20000); i++) {
		goro_chan *c = make(sizeof(int), 0);

		go(close_one, c);
		if (i % 2) {
			CHECK(!goro_chan_recv(c, NULL));
		} else {
			AWAIT(goro_chan_try_recv(c, NULL) == GORO_RECV_CLOSED);
		}
		goro_chan_unref(c);
	}
}

/* The sender waits; the receiver takes the value and frees; the sender's call
 * returns then. */
GO_TEST(freed_under_a_sender_that_waited)
{
	for (int i = 0; i < SCALED(5000); i++) {
		goro_chan *c = make(sizeof(int), 0);

		go(send_one, c);
		AWAIT_SENDER(c);
		CHECK_EQ(recv_int(c), 42);
		goro_chan_unref(c);
	}
}

static void recv_and_free(goro_chan *c, goro_waitgroup *wg)
{
	while (goro_chan_recv(c, NULL))
		;
	goro_chan_unref(c);
	goro_waitgroup_done(wg);
}

GO_TEST(freed_by_the_last_of_many)
{
	for (int i = 0; i < SCALED(2000); i++) {
		goro_chan *c = make(sizeof(int), (size_t)i % 4);
		goro_waitgroup wg = { 0 };

		goro_waitgroup_add(&wg, 4);
		for (int j = 0; j < 4; j++)
			go(recv_and_free, goro_chan_ref(c), &wg);
		send_ints(c, 0, 5);
		goro_chan_close(c);
		goro_chan_unref(c);
		goro_waitgroup_wait(&wg);
	}
}

GO_TEST(dropped_under_one_who_waits_forever)
{
	goro_chan *c = make(sizeof(int), 0), *r = make(sizeof(int), 0);

	go(send_one, c);
	AWAIT_SENDER(c);
	goro_chan_unref(c);
	go(goro_chan_recv, r, NULL);
	AWAIT_RECEIVER(r);
	goro_chan_unref(r);
	for (int i = 0; i < 1000; i++)
		goro_chan_unref(make(sizeof(int), 0)); /* would take its memory */
	AWAIT(dump_shows("[chan receive]"));
}

/* ------------------------------------------------------------ plain threads */

static void *thread_echo(void *arg)
{
	goro_chan **c = arg;
	int v;

	while (goro_chan_recv(c[0], &v)) {
		v *= 2;
		goro_chan_send(c[1], &v);
	}
	goro_chan_close(c[1]);
	return NULL;
}

static void check_echo(size_t cap)
{
	goro_chan *c[2] = { make(sizeof(int), cap), make(sizeof(int), cap) };
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, thread_echo, c), 0);
	for (int i = 0; i < SCALED(500); i++) {
		send_int(c[0], i);
		CHECK_EQ(recv_int(c[1]), 2 * i);
	}
	goro_chan_close(c[0]);
	CHECK(!goro_chan_recv(c[1], NULL));
	pthread_join(t, NULL);
	goro_chan_unref(c[0]);
	goro_chan_unref(c[1]);
}

GO_TEST(thread_and_goroutine)
{
	for (size_t cap = 0; cap < 3; cap++)
		check_echo(cap);
}

TEST(thread_and_thread)
{
	for (size_t cap = 0; cap < 3; cap++)
		check_echo(cap);
}

static void *thread_recv_close(void *c)
{
	CHECK(!goro_chan_recv(c, NULL));
	goro_chan_unref(c);
	return NULL;
}

static void *thread_send_close(void *c)
{
	CHECK_STR(goro_try(try_send_int, c), "send on closed channel");
	goro_chan_unref(c);
	return NULL;
}

TEST(close_wakes_threads)
{
	goro_chan *r = make(sizeof(int), 0), *s = make(sizeof(int), 0);
	pthread_t t[8];

	for (int i = 0; i < 8; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, i % 2 ? thread_send_close : thread_recv_close,
		                        goro_chan_ref(i % 2 ? s : r)), 0);
	AWAIT(queue_length(r, &r->recvq) == 4 && queue_length(s, &s->sendq) == 4);
	goro_chan_close(r);
	goro_chan_unref(r);
	goro_chan_close(s);
	goro_chan_unref(s);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
}

static void *thread_free(void *arg)
{
	goro_chan **c = arg;

	for (int i = 0; i < SCALED(2000); i++) {
		goro_chan *one;

		CHECK(goro_chan_recv(*c, &one));
		CHECK_EQ(recv_int(one), 42);
		goro_chan_unref(one);
	}
	return NULL;
}

/* A channel goes over a channel, and is freed by the thread that gets it. */
GO_TEST(freed_by_a_thread)
{
	goro_chan *c = make(sizeof(goro_chan *), 4);
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, thread_free, &c), 0);
	for (int i = 0; i < SCALED(2000); i++) {
		goro_chan *one = make(sizeof(int), 0);

		goro_chan_send(c, &one);
		send_int(one, 42);
	}
	pthread_join(t, NULL);
	goro_chan_unref(c);
}
