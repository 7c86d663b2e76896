/*
 * chan_check_test.c - builds with checks find a channel that breaks an invariant.
 */
#include <goro.h>

#include "sync/chan.h"
#include "test.h"

static void (*spoil)(goro_chan *c);

static void nothing(goro_chan *c) { (void)c; }

static void wait_for_one(goro_chan *c)
{
	goro_chan_recv(c, NULL);
}

static void wait_for_any(goro_chan *c, goro_chan *silent)
{
	goro_select(GORO_RECV(c, NULL), GORO_RECV(silent, NULL));
}

/* A goroutine waits on c by itself and one in a select, and then c is spoilt. */
static goro_chan *spoilt(void)
{
	goro_chan *c = goro_chan_of(int, 2), *silent = goro_chan_of(int, 0);

	go(wait_for_one, c);
	go(wait_for_any, c, silent);
	while (!c->recvq.first || c->recvq.first == c->recvq.last)
		goro_gosched();
	spoil(c);
	return c;
}

static int look(int argc, char **argv)
{
	goro_chan *c = spoilt();
	struct m *mp = rt_enter();

	(void)argc, (void)argv;
	lock_acquire(&c->lock);
#if GORO_CHECKS
	chan_check(c);
#endif
	lock_release(&c->lock);
	rt_exit(mp);
	return 0;
}

/* More than CHAN_CHECK_PERIOD operations. */
static int operate(int argc, char **argv)
{
	goro_chan *c = spoilt();
	int v = 0;

	(void)argc, (void)argv;
	for (int i = 0; i < 64; i++) {
		goro_chan_try_send(c, &v);
		goro_chan_try_recv(c, &v);
	}
	return 0;
}

static int (*program)(int, char **);

static void run(void)
{
	goro_run(program, 0, NULL);
}

static struct test_output output_of(int (*what)(int, char **), void (*how)(goro_chan *))
{
	struct test_output o;

	program = what;
	spoil = how;
	test_run_child(run, &o);
	return o;
}

TEST(a_sound_channel_passes)
{
	CHECK_EQ(output_of(look, nothing).status, 0);
	CHECK_EQ(output_of(operate, nothing).status, 0);
}

#if GORO_CHECKS

static void too_many(goro_chan *c) { c->count = c->capacity + 1; }
static void between_elements(goro_chan *c) { c->recv_at = 1; }
static void waiting_beside_elements(goro_chan *c) { c->count = 1; }
static void unlinked(goro_chan *c) { c->recvq.last = NULL; }
static void closed_with_waiters(goro_chan *c) { c->closed = true; }
static void selects_lost(goro_chan *c) { c->selects = 0; }

static void finds(int (*what)(int, char **), void (*how)(goro_chan *), const char *message)
{
	struct test_output o = output_of(what, how);

	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, message);
}

TEST(each_broken_invariant_is_found)
{
	finds(look, too_many, "chan_check: ");
	finds(look, between_elements, "chan_check: ");
	finds(look, waiting_beside_elements, "chan_check: c->count == 0 || !receivers.live");
	finds(look, closed_with_waiters, "chan_check: !c->closed");
	finds(look, selects_lost, "chan_check: senders.selects");
	finds(look, unlinked, "count_queue: q->last == prev");
}

TEST(operations_look_now_and_then)
{
	finds(operate, between_elements, "chan_check: ");
}

#endif
