/*
 * work_test.c - work sources: a goroutine that a source keeps is not forgotten.
 */
/* test: procs */
#include <goro.h>

#include "await.h"
#include "in_runtime.h"
#include "platform/os.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "test.h"
#include "sched/work.h"

/* A source that keeps parked goroutines: a list for each P, by the P's id. */
static struct g *kept[GOMAXPROCS_MAX];
static bool late;		/* what is kept cannot wait */
static bool by_flush;		/* only flush gives it back */
static int seen_to, taken, flushed, before_calls, drained, watched;

static struct work_source source;

static struct g *give_back(struct p *pp)
{
	struct g *gp = kept[pp->id];

	if (gp)
		kept[pp->id] = gp->link;
	if (!kept[pp->id])
		work_done(pp, &source);
	return gp;
}

static bool is_due(const struct p *pp)
{
	(void)pp;
	return load_relaxed(&late);
}

static void ready(struct m *mp, struct p *from)
{
	struct g *gp;

	while ((gp = give_back(from))) {
		gp->link = NULL;
		g_ready_in_order(mp, gp);
	}
}

static void see_to_due(struct m *mp)
{
	fetch_add_relaxed(&seen_to, 1);
	ready(mp, mp->p);
}

static struct g *take(struct m *mp)
{
	struct g *gp = load_relaxed(&by_flush) ? NULL : give_back(mp->p);

	if (!gp)
		return NULL;
	gp->link = NULL;
	fetch_add_relaxed(&taken, 1);
	return g_make_runnable(mp, gp) ? gp : NULL;
}

static void flush(struct m *mp)
{
	fetch_add_relaxed(&flushed, 1);
	ready(mp, mp->p);
}

static void before_call(struct m *mp)
{
	fetch_add_relaxed(&before_calls, 1);
	ready(mp, mp->p);
}

static void drain(struct m *mp, struct p *from, struct p *to)
{
	(void)to;
	fetch_add_relaxed(&drained, 1);
	ready(mp, from);
}

static int64_t watch(int64_t now)
{
	(void)now;
	fetch_add_relaxed(&watched, 1);
	return TIMER_NEVER;
}

static struct work_source source = {
	.due = is_due,
	.see_to_due = see_to_due,
	.take = take,
	.flush = flush,
	.before_call = before_call,
	.drain = drain,
	.watch = watch,
};

static void commit(struct m *mp, struct g *gp)
{
	gp->link = kept[mp->p->id];
	kept[mp->p->id] = gp;
	work_defer(mp->p, &source);
}

/* The goroutine waits for the source, and for nothing else. */
static void wait_for_source(void)
{
	struct m *mp = rt_enter_free();

	mp = park(mp, commit, NULL, WAIT_IO);
	rt_exit_free(mp);
}

static void with_source(void (*body)(void))
{
	work_register(&source);
	in_runtime(body, "");
}

/* ------------------------------------------------------------------- nothing else */

static void alone(void)
{
	for (int i = 0; i < 1000; i++)
		wait_for_source();
}

TEST(a_p_with_nothing_else_takes_it)
{
	with_source(alone);
	CHECK_EQ(taken, 1000);
	CHECK_EQ(flushed, 0);
}

TEST(or_flushes_it)
{
	by_flush = true;
	with_source(alone);
	CHECK_EQ(taken, 0);
	CHECK_EQ(flushed, 1000);
}

/* ---------------------------------------------------------------------- others run */

static bool stop;

static void yield_on(void)
{
	while (!load_relaxed(&stop))
		goro_gosched();
}

static void beside_others(void)
{
	for (int i = 0; i < 2 * goro_gomaxprocs(0); i++)
		go(yield_on);
	wait_for_source();
	AWAIT(load_relaxed(&watched) > 0);
	store_relaxed(&stop, true);
}

TEST(what_is_due_is_seen_to_although_the_queues_are_never_empty)
{
	late = true;
	with_source(beside_others);
	CHECK_EQ(seen_to, 1);
}

static void pass_on(goro_chan *from, goro_chan *to)
{
	while (!load_relaxed(&stop)) {
		goro_chan_recv(from, NULL);
		goro_chan_send(to, NULL);
	}
}

/* One P, and its goroutines only park. */
static void beside_a_ring(void)
{
	goro_chan *c[3];

	goro_gomaxprocs(1);
	for (int i = 0; i < 3; i++)
		c[i] = goro_chan_make(0, 1);
	for (int i = 0; i < 3; i++)
		go(pass_on, c[i], c[(i + 1) % 3]);
	goro_chan_send(c[0], NULL);
	wait_for_source();
	store_relaxed(&stop, true);
}

TEST(and_beside_goroutines_that_only_park)
{
	late = true;
	with_source(beside_a_ring);
	CHECK_EQ(seen_to, 1);
	CHECK_EQ(taken, 0);
}

/* -------------------------------------------------------------------- blocking calls */

static bool is_back;

static void comes_back(void)
{
	wait_for_source();
	store_relaxed(&is_back, true);
}

static void until_back(void *arg)
{
	(void)arg;
	while (!load_relaxed(&is_back))
		usleep(1000);
}

static void block(void)
{
	goro_gomaxprocs(1);
	go(comes_back);
	goro_gosched();
	goro_blocking(until_back, NULL);
}

TEST(before_a_blocking_call_it_is_seen_to)
{
	with_source(block);
	CHECK_EQ(before_calls, 1);
}

static void block_in_two_calls(void)
{
	goro_gomaxprocs(1);
	go(comes_back);
	goro_gosched();
	goro_syscall_enter();
	until_back(NULL);
	goro_syscall_exit();
}

TEST(and_before_a_call_that_is_announced)
{
	with_source(block_in_two_calls);
	CHECK_EQ(before_calls, 1);
}

static void block_unannounced(void)
{
	goro_gomaxprocs(1);
	go(comes_back);
	goro_gosched();
	until_back(NULL);
}

TEST(the_p_of_one_that_sleeps_goes_to_an_m_that_sees_to_it)
{
	late = true;
	with_source(block_unannounced);
	CHECK_EQ(before_calls, 0);
}

/* ------------------------------------------------------------------- fewer Ps */

static goro_waitgroup all;

static void wait_and_end(void)
{
	wait_for_source();
	goro_waitgroup_done(&all);
}

static void shrink(void)
{
	for (int i = 0; i < 200; i++) {
		goro_gomaxprocs(4);
		goro_waitgroup_add(&all, 4);
		for (int k = 0; k < 4; k++)
			go(wait_and_end);
		goro_gomaxprocs(1);
		goro_waitgroup_wait(&all);
	}
}

TEST(nothing_is_lost_when_a_p_goes_out_of_use)
{
	with_source(shrink);
}

/* With the world stopped: what is left with a P that goes out of use is drained. */
static void drain_one(void)
{
	struct m *mp = rt_enter();
	struct p *from = p_at(1);

	mp = world_stop(mp);
	work_defer(from, &source);
	mp = world_start(mp, 1);
	CHECK(!work_deferred(from));
	rt_exit(mp);
	CHECK_EQ(drained, 1);
}

static void drain_two(void)
{
	goro_gomaxprocs(2);
	drain_one();
}

TEST(a_p_that_goes_out_of_use_is_drained)
{
	with_source(drain_two);
}
