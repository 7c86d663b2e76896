/*
 * local_test.c - goroutine-local storage: private, kept across switches, cleared
 * up by destructors.
 */
/* test: procs */
/* test: leaks */
#include <goro.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "test.h"

static int destroyed;

static void count_destroy(void *value)
{
	fetch_add_seqcst(&destroyed, (int)(intptr_t)value);
}

/* A key is never freed, so all keys stay reachable from here: no leak. */
static goro_key *make_key(void (*destroy)(void *))
{
	static goro_key *keys[64];
	static int n;

	CHECK(n < 64);
	return keys[n++] = goro_key_make(destroy);
}

static void *word(intptr_t n)
{
	return (void *)n;
}

GO_TEST(a_value_never_set_is_null)
{
	goro_key *k = make_key(NULL);

	CHECK(goro_local_get(k) == NULL);
	goro_local_set(k, NULL);
	CHECK(goro_local_get(k) == NULL);
}

GO_TEST(keys_are_independent_and_the_last_value_counts)
{
	enum { KEYS = 20 };
	goro_key *k[KEYS];

	for (int i = 0; i < KEYS; i++)
		k[i] = make_key(NULL);
	for (int round = 1; round <= 3; round++) {
		for (int i = 0; i < KEYS; i++)
			goro_local_set(k[i], word(round * 100 + i));
		for (int i = KEYS - 1; i >= 0; i--)
			CHECK(goro_local_get(k[i]) == word(round * 100 + i));
	}
	goro_local_set(k[3], NULL);
	CHECK(goro_local_get(k[3]) == NULL);
	CHECK(goro_local_get(k[4]) == word(304));
}

static void keep_own(goro_key *k, int me, goro_waitgroup *wg)
{
	CHECK(goro_local_get(k) == NULL);
	for (int i = 0; i < 100; i++) {
		goro_local_set(k, word(me * 1000 + i));
		goro_gosched();
		CHECK(goro_local_get(k) == word(me * 1000 + i));
	}
	goro_local_set(k, word(1));
	goro_waitgroup_done(wg);
}

GO_TEST(each_goroutine_has_its_own_value)
{
	goro_key *k = make_key(count_destroy);
	goro_waitgroup wg = { 0 };

	goro_local_set(k, word(5));
	goro_waitgroup_add(&wg, 500);
	for (int i = 1; i <= 500; i++)
		go(keep_own, k, i, &wg);
	goro_waitgroup_wait(&wg);
	CHECK(goro_local_get(k) == word(5));
	AWAIT(load_seqcst(&destroyed) == 500);
}

static void set_and_end(goro_key *k, int how)
{
	goro_local_set(k, word(1));
	if (how == 1)
		goro_goexit();
	if (how == 2)
		goro_local_set(k, NULL);
}

GO_TEST(destructors_run_for_values_that_are_set)
{
	goro_key *k = make_key(count_destroy);

	go(set_and_end, k, 0);
	AWAIT(load_seqcst(&destroyed) == 1);
	go(set_and_end, k, 1);
	AWAIT(load_seqcst(&destroyed) == 2);
	go(set_and_end, k, 2);
	AWAIT(goro_num_goroutine() == 1);
	CHECK_EQ(load_seqcst(&destroyed), 2);
}

static goro_key *again_key;
static int again_left;

static void set_again(void *value)
{
	fetch_add_seqcst(&destroyed, 1);
	if (fetch_add_seqcst(&again_left, -1) > 0)
		goro_local_set(again_key, value);
}

static void set_again_key(void)
{
	goro_local_set(again_key, word(1));
}

GO_TEST(a_destructor_may_set_the_value_again)
{
	again_key = make_key(set_again);
	again_left = 2;
	go(set_again_key);
	AWAIT(load_seqcst(&destroyed) == 3);
	AWAIT(goro_num_goroutine() == 1);
	CHECK_EQ(load_seqcst(&destroyed), 3);
}

GO_TEST(a_destructor_that_always_sets_the_value_again_is_given_up)
{
	again_key = make_key(set_again);
	again_left = 1 << 30;
	go(set_again_key);
	AWAIT(goro_num_goroutine() == 1);
	CHECK(load_seqcst(&destroyed) >= 2);
	CHECK(load_seqcst(&destroyed) <= 100);
}

static goro_key *other_key;

static void use_runtime(void *value)
{
	for (int i = 0; i < 100; i++)
		goro_gosched();
	goro_local_set(other_key, value);
	goro_chan_send(value, &(int){ 1 });
}

static void set_channel(goro_key *k, goro_chan *c)
{
	goro_local_set(k, c);
}

GO_TEST(a_destructor_may_park_and_set_other_keys)
{
	goro_key *k = make_key(use_runtime);
	goro_chan *c = goro_chan_of(int, 0);

	other_key = make_key(NULL);
	for (int i = 0; i < 10; i++)
		go(set_channel, k, c);
	for (int i = 0; i < 10; i++)
		CHECK(goro_chan_recv(c, NULL));
	goro_chan_unref(c);
}

static void check_clean(goro_key *k, goro_waitgroup *wg)
{
	CHECK(goro_local_get(k) == NULL);
	goro_local_set(k, word(1));
	goro_waitgroup_done(wg);
}

GO_TEST(a_new_goroutine_on_an_old_stack_has_no_values)
{
	goro_key *k = make_key(NULL);

	for (int i = 0; i < 200; i++) {
		goro_waitgroup wg = { 0 };

		goro_waitgroup_add(&wg, 5);
		for (int j = 0; j < 5; j++)
			go(check_clean, k, &wg);
		goro_waitgroup_wait(&wg);
	}
}

static void *thread_with_value(void *arg)
{
	CHECK(goro_local_get(arg) == NULL);
	goro_local_set(arg, word(1));
	CHECK(goro_local_get(arg) == word(1));
	return NULL;
}

TEST(plain_threads_have_values_and_destructors_too)
{
	goro_key *k = make_key(count_destroy);
	pthread_t t;

	goro_local_set(k, word(1000));
	for (int i = 1; i <= 20; i++) {
		pthread_create(&t, NULL, thread_with_value, k);
		pthread_join(t, NULL);
		CHECK_EQ(load_seqcst(&destroyed), i);
	}
	CHECK(goro_local_get(k) == word(1000));
}

static void *thread_sets_again(void *arg)
{
	goro_local_set(arg, word(1));
	return NULL;
}

TEST(a_plain_thread_s_destructor_that_sets_again_is_given_up)
{
	pthread_t t;

	again_key = make_key(set_again);
	again_left = 1 << 30;
	pthread_create(&t, NULL, thread_sets_again, again_key);
	pthread_join(t, NULL);
	CHECK(load_seqcst(&destroyed) >= 2);
	CHECK(load_seqcst(&destroyed) <= 100);
}
