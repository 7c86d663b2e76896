/*
 * sema_test.c - sleeping on addresses: order, and many of them.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>

#include "await.h"
#include "sync/sema.h"
#include "test.h"

static void acquire(uint32_t *addr, enum sema_place place)
{
	struct m *mp = rt_enter();

	mp = sema_acquire(mp, addr, place, WAIT_SEMACQUIRE);
	rt_exit(mp);
}

static void release(uint32_t *addr, uint32_t n)
{
	struct m *mp = rt_enter();

	sema_release(mp, addr, n);
	rt_exit(mp);
}

static uint32_t sleepers(uint32_t *addr)
{
	struct m *mp = rt_enter();
	uint32_t n = sema_sleepers(addr);

	rt_exit(mp);
	return n;
}

/* ---------------------------------------------------------------- the basics */

static void hammer(uint32_t *s, int loops, goro_waitgroup *wg)
{
	while (loops-- > 0) {
		acquire(s, SEMA_LAST);
		release(s, 1);
	}
	goro_waitgroup_done(wg);
}

GO_TEST(units_are_neither_lost_nor_made)
{
	goro_waitgroup wg = { { 0 } };
	uint32_t s = 1;

	goro_waitgroup_add(&wg, 10);
	for (int i = 0; i < 10; i++)
		go(hammer, &s, 1000, &wg);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(s, 1);
}

static void *hammer_thread(void *s)
{
	for (int i = 0; i < 1000; i++) {
		acquire(s, SEMA_LAST);
		release(s, 1);
	}
	return NULL;
}

GO_TEST(threads_and_goroutines_together)
{
	goro_waitgroup wg = { { 0 } };
	pthread_t t[2];
	uint32_t s = 1;

	goro_waitgroup_add(&wg, 2);
	for (int i = 0; i < 2; i++) {
		pthread_create(&t[i], NULL, hammer_thread, &s);
		go(hammer, &s, 1000, &wg);
	}
	goro_waitgroup_wait(&wg);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(s, 1);
}

GO_TEST(units_wait_for_those_on_their_way)
{
	uint32_t s = 0;

	release(&s, 3);
	CHECK_EQ(s, 3);
	for (int i = 0; i < 3; i++)
		acquire(&s, SEMA_LAST);
	CHECK_EQ(s, 0);
}

/* ----------------------------------------------------------------------- order */

static int order[64], order_taken, order_n;
static uint32_t order_sema;

static void note_turn(int id, enum sema_place place, goro_waitgroup *wg)
{
	acquire(&order_sema, place);
	order[fetch_add_seqcst(&order_taken, 1)] = id;
	fetch_add_seqcst(&order_n, 1);
	goro_waitgroup_done(wg);
}

static void sleep_in_order(int first, int n, enum sema_place place, goro_waitgroup *wg)
{
	for (int i = 0; i < n; i++) {
		uint32_t before = sleepers(&order_sema);

		go(note_turn, first + i, place, wg);
		AWAIT(sleepers(&order_sema) == before + 1);
	}
}

GO_TEST(first_come_first_served_but_for_those_put_first)
{
	static const int want[] = { 11, 10, 0, 1, 2, 3 };
	goro_waitgroup wg = { { 0 } };

	goro_waitgroup_add(&wg, 6);
	sleep_in_order(0, 4, SEMA_LAST, &wg);
	sleep_in_order(10, 2, SEMA_FIRST, &wg);
	for (int i = 0; i < 6; i++) {
		release(&order_sema, 1);
		AWAIT(load_seqcst(&order_n) == i + 1);
		CHECK_EQ(order[i], want[i]);
	}
	goro_waitgroup_wait(&wg);
}

GO_TEST(releasing_many_takes_the_first_ones)
{
	goro_waitgroup wg = { { 0 } };

	goro_waitgroup_add(&wg, 6);
	sleep_in_order(0, 6, SEMA_LAST, &wg);
	release(&order_sema, 2);
	AWAIT(load_seqcst(&order_n) == 2);
	CHECK_EQ(order[0] + order[1], 0 + 1);
	CHECK_EQ(sleepers(&order_sema), 4);
	release(&order_sema, 6);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(order_sema, 2);
}

/* ----------------------------------------------------------------------- many */

struct many {
	uint8_t *woken;
	goro_waitgroup wg;
};

static void sleep_once(struct many *m, uint32_t *addr, size_t i)
{
	acquire(addr, SEMA_LAST);
	m->woken[i]++;
	goro_waitgroup_done(&m->wg);
}

static void start_sleepers(struct many *m, uint32_t **addr, size_t n)
{
	m->woken = calloc(n, 1);
	goro_waitgroup_add(&m->wg, (int)n);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(go(sleep_once, m, addr[i], i), 0);
}

static void wake_all(struct many *m, uint32_t **addr, size_t n)
{
	for (size_t i = 0; i < n; i++)
		release(addr[i], 1);
	goro_waitgroup_wait(&m->wg);
	for (size_t i = 0; i < n; i++) {
		CHECK_EQ(m->woken[i], 1);
		CHECK_EQ(*addr[i], 0);
	}
	free(m->woken);
}

/* n addresses; all in one bucket if the hash of sema.c puts them there. */
static uint32_t **make_addresses(size_t n, bool collide)
{
	size_t words = collide ? n * 300 + 4096 : n;
	uint32_t *memory = calloc(words, sizeof *memory), **addr = calloc(n, sizeof *addr);
	size_t at = 0;

	for (size_t i = 0; i < words && at < n; i++)
		if (!collide || (uintptr_t)&memory[i] * UINT64_C(0x9e3779b97f4a7c15) >> 56 == 7)
			addr[at++] = &memory[i];
	CHECK_EQ(at, n);
	return addr;
}

static void shuffle(uint32_t **addr, size_t n)
{
	uint32_t random = 1;

	for (size_t i = n - 1; i > 0; i--) {
		size_t j;
		uint32_t *t = addr[i];

		random = random * 1664525 + 1013904223;
		j = (random >> 8) % (i + 1);
		addr[i] = addr[j];
		addr[j] = t;
	}
}

static void many_addresses(bool collide)
{
	size_t n = (size_t)SCALED(10000);
	uint32_t **addr = make_addresses(n, collide);
	struct many m = { .woken = NULL };
	int64_t start = goro_now();

	start_sleepers(&m, addr, n);
	for (size_t i = 0; i < n; i++)
		AWAIT(sleepers(addr[i]) == 1);
	shuffle(addr, n);
	wake_all(&m, addr, n);
	/* A walk past all of them for each would take many times as long. */
	CHECK(goro_now() - start < seconds(10));
}

GO_TEST(ten_thousand_addresses)
{
	many_addresses(false);
}

GO_TEST(ten_thousand_addresses_in_one_bucket)
{
	many_addresses(true);
}

/* All sleepers of the first address, then all of the second, in one bucket. */
GO_TEST(two_crowds_in_one_bucket)
{
	size_t n = (size_t)SCALED(10000);
	uint32_t **two = make_addresses(2, true);
	uint32_t **addr = calloc(n, sizeof *addr);
	struct many m = { .woken = NULL };

	for (size_t i = 0; i < n; i++)
		addr[i] = two[i < n / 2];
	start_sleepers(&m, addr, n);
	AWAIT(sleepers(two[0]) + sleepers(two[1]) == n);
	wake_all(&m, addr, n);
}

/* Addresses that come and go in any order, several sleepers to some of them. */
GO_TEST(the_tree_keeps_its_order)
{
	enum { ADDRESSES = 64 };
	uint32_t **addr = make_addresses(ADDRESSES, true);
	uint32_t asleep[ADDRESSES] = { 0 }, random = 7;
	size_t next = 0, n = (size_t)SCALED(5000);
	struct many m = { .woken = calloc(n, 1) };

	goro_waitgroup_add(&m.wg, (int)n);
	while (next < n) {
		unsigned i;

		random = random * 1664525 + 1013904223;
		i = random >> 26;
		if (random & 0x1000 && asleep[i] > 0) {
			asleep[i]--;
			release(addr[i], 1);
		} else {
			asleep[i]++;
			go(sleep_once, &m, addr[i], next++);
			AWAIT(sleepers(addr[i]) == asleep[i]);
		}
		CHECK_EQ(sleepers(addr[i]), asleep[i]);
	}
	for (int i = 0; i < ADDRESSES; i++)
		release(addr[i], asleep[i]);
	goro_waitgroup_wait(&m.wg);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(m.woken[i], 1);
}
