/*
 * check_test.c - builds with checks find a scheduler whose structures do not fit
 * together.
 */
#include <goro.h>
#include <stdlib.h>
#include <unistd.h>

#include "sched/check.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "stack/stack.h"
#include "test.h"

#if GORO_CHECKS

enum { PS = 4 };

/* What the child spoils, in state RUNTIME with sched.lock held. */
static void (*spoil)(struct p *pp);

static void wait_for_ever(goro_chan *c)
{
	goro_chan_recv(c, NULL);
}

static void nothing(void) {}

/* A program with dead and waiting goroutines. All Ps but one are idle, and no thread
 * looks for work: what a test puts into queues is run by no other. */
static void prepare(goro_chan *c)
{
	goro_gomaxprocs(PS);
	for (int i = 0; i < 100; i++)
		go(wait_for_ever, c);
	for (int i = 0; i < 1000; i++) {
		go(nothing);
		goro_gosched();
	}
	while (load_relaxed(&sched.idle_p_n) < PS - 1 || load_relaxed(&sched.spinning) != 0)
		goro_sleep(1000000);
}

static struct g *new_g(enum g_status status)
{
	struct g *gp;

	CHECK_EQ(stack_take(stack_default_class, &gp, 1), 1u);
	gp->stack_class = (uint8_t)stack_default_class;
	gp->status = (uint16_t)status;
	return gp;
}

static int look(int argc, char **argv)
{
	struct m *mp;
	struct p *pp;

	(void)argc, (void)argv;
	prepare(goro_chan_of(int, 0));
	mp = rt_enter();
	pp = mp->p;
	lock_acquire(&sched.lock);
	spoil(pp);
	p_check(pp);
	runq_check(pp);
	sched_check();
	lock_release(&sched.lock);
	_exit(0);
}

/* Some of the goroutines have no stack that could be walked. */
static void run_look(void)
{
	setenv("GORO_TRACEBACK", "none", 1);
	goro_run(look, 0, NULL);
}

static void finds(void (*how)(struct p *), const char *message)
{
	struct test_output o;

	if (TOOL_TSAN && message)
		SKIP("to the sanitizer what the test spoils is a race");
	spoil = how;
	test_run_child(run_look, &o);
	CHECK_EQ(o.status, message ? 2 : 0);
	if (message)
		CHECK_CONTAINS(o.err, message);
}

#define SPOIL(name, ...) static void name(struct p *pp) { (void)pp; __VA_ARGS__ }

/* ---------------------------------------------------------------- a P's queues */

/* Sound: all kinds of queues hold something. */
static void fill(struct p *pp)
{
	runq_put_started(pp, new_g(G_RUNNABLE));
	runq_put_woken(pp, new_g(G_RUNNABLE));
	runq_put_next(pp, new_g(G_RUNNABLE));
	for (int i = 0; i < 3; i++) {
		struct g *gp = new_g(G_RUNNABLE);

		gp->locked_m = i ? m_self() : NULL;
		globq_put(gp);
		globq_put_fresh(new_g(G_RUNNABLE));
	}
}

#define SLOT(q, i) (pp->q.slot[(uint32_t)(i) % GORO_RUNQ_CAP])
SPOIL(nothing_is_spoilt, fill(pp);)
SPOIL(started_is_null, fill(pp); SLOT(started, pp->started.tail - 1) = NULL;)
SPOIL(started_is_dead, fill(pp); SLOT(started, pp->started.tail - 1)->status = G_DEAD;)
SPOIL(started_is_too_long, pp->started.tail += GORO_RUNQ_CAP + 2;)
SPOIL(claim_is_too_large, pp->started.word |= (uint64_t)GORO_RUNQ_CAP << 16;)
SPOIL(woken_is_null, fill(pp); SLOT(woken, pp->woken.tail - 1) = NULL;)
SPOIL(woken_waits, fill(pp); SLOT(woken, pp->woken.tail - 1)->status = G_WAITING;)
SPOIL(woken_is_too_long, pp->woken.head -= GORO_RUNQ_CAP + 1;)
SPOIL(next_runs, fill(pp); pp->runnext->status = G_RUNNING;)
SPOIL(fair_pick_is_overdue, pp->fair.in = 0;)

TEST(a_sound_scheduler_passes)
{
	finds(nothing_is_spoilt, NULL);
}

TEST(queues_hold_runnable_goroutines)
{
	finds(started_is_null, "deque_check: ");
	finds(started_is_dead, "deque_check: runnable");
	finds(started_is_too_long, "deque_check: n <= ");
	finds(claim_is_too_large, "deque_check: d_claim");
	finds(woken_is_null, "ring_check: ");
	finds(woken_waits, "ring_check: runnable");
	finds(woken_is_too_long, "ring_check: r->tail - head <= ");
	finds(next_runs, "runq_check: runnable");
	finds(fair_pick_is_overdue, "runq_check: pp->fair.in");
}

/* A thief that took a goroutine may run it while the owner looks. */
TEST(a_stolen_goroutine_is_no_longer_the_queues)
{
	struct p *pp = calloc(1, sizeof *pp);
	struct g *gs = calloc(2, sizeof *gs), *out[2];

	pp->fair.in = 1;
	for (int i = 0; i < 2; i++) {
		gs[i].status = G_RUNNABLE;
		runq_put_woken(pp, &gs[i]);
	}
	CHECK_EQ(runq_check(pp), 3u);
	CHECK_EQ(ring_take(&pp->woken, out, 1), 1u);
	out[0]->status = G_RUNNING;
	CHECK_EQ(runq_check(pp), 2u);
}

/* ------------------------------------------------------------------------ a P */

SPOIL(idle_but_owned, pp->status = P_IDLE;)
SPOIL(dead_but_owned, pp->status = P_DEAD;)
SPOIL(no_such_status, pp->status = 77;)
SPOIL(owned_by_another, pp->mp->p = NULL;)
SPOIL(in_another_ms_call, pp->status = P_SYSCALL_OF(pp->mp) + (1 << 8);)
SPOIL(unknown_source, pp->deferred |= UINT32_C(1) << 31;)
SPOIL(ids_run_over, pp->ids.next = pp->ids.end + 1;)
SPOIL(ids_not_taken, pp->ids.end = pp->ids.next = sched.id_next + 2;)
SPOIL(no_latency_pick, pp->latency_in = 0;)
SPOIL(too_many_dead, pp->gfree_n = P_GFREE_MAX + 1;)
SPOIL(dead_one_lives, pp->gfree[pp->gfree_n++] = new_g(G_WAITING);)
SPOIL(dead_twice, pp->gfree[0] = pp->gfree[1] = new_g(G_DEAD); pp->gfree_n = 2;)
SPOIL(dead_of_another_size, struct g *gp = new_g(G_DEAD); gp->stack_class++; pp->gfree[0] = gp;
      pp->gfree_n = 1;)
SPOIL(inherited_too_often, pp->count.inherited = pp->count.switches + 1;)

TEST(a_p_belongs_to_one_m_or_none)
{
	finds(idle_but_owned, "check_status: !mp");
	finds(dead_but_owned, "check_status: !mp");
	finds(no_such_status, "a P of status 77");
	finds(owned_by_another, "check_status: !mp || ");
	finds(in_another_ms_call, "check_status: mp && status == ");
}

TEST(a_ps_own_things_are_in_order)
{
	finds(unknown_source, "p_check: (load_relaxed(&pp->deferred)");
	finds(ids_run_over, "p_check: pp->ids.next <= ");
	finds(ids_not_taken, "p_check: pp->ids.end <= ");
	finds(no_latency_pick, "p_check: pp->latency_in");
	finds(too_many_dead, "check_dead_gs: pp->gfree_n");
	finds(dead_one_lives, "check_dead_gs: gp && ");
	finds(dead_twice, "check_dead_gs: i == 0 || ");
	finds(dead_of_another_size, "check_dead_gs: gp->stack_class");
	finds(inherited_too_often, "p_check: pp->count.inherited");
}

/* ------------------------------------------------------------------ the lists */

/* Ps that wait for a thread, as m_start_unlock leaves them. */
static struct p *need_one(void)
{
	struct p *pp = p_idle_get();

	CHECK(pp != NULL);
	store_relaxed(&pp->status, P_RUNNING);
	pp->spawn_spinning = false;
	pp->link = sched.need_m;
	sched.need_m = pp;
	sched.need_m_n++;
	return pp;
}

/* An idle M, as idle_put leaves it. */
static struct m *idle_one(void)
{
	struct m *mp = calloc(1, sizeof *mp);

	mp->idle.link = sched.idle_m;
	mp->idle.at = &sched.idle_m;
	if (mp->idle.link)
		mp->idle.link->idle.at = &mp->idle.link;
	sched.idle_m = mp;
	sched.idle_m_n++;
	sched.m_n++;
	return mp;
}

SPOIL(an_m_idles_and_a_p_waits, idle_one(); need_one();)
SPOIL(idle_p_not_counted, sched.idle_p_n--;)
SPOIL(idle_p_missing, sched.idle_p = sched.idle_p->link;)
SPOIL(idle_p_twice, sched.idle_p->link = sched.idle_p;)
SPOIL(idle_p_runs, sched.idle_p->status = P_RUNNING;)
SPOIL(idle_p_has_work, sched.idle_p->runnext = new_g(G_RUNNABLE);)
SPOIL(idle_m_not_counted, idle_one(); sched.idle_m_n--;)
SPOIL(idle_m_badly_linked, idle_one()->idle.at = NULL;)
SPOIL(idle_m_has_p, idle_one()->p = pp;)
SPOIL(idle_m_spins, idle_one()->spinning = true;)
SPOIL(keeper_awake, sched.keeper = m_self();)
SPOIL(no_keeper_polls, sched.keeper = NULL; sched.keeper_polls = true;)
SPOIL(too_many_sleep, sched.idle_m_locked = sched.m_n + 1;)
SPOIL(too_many_start, sched.m_starting = sched.m_n + 1;)
SPOIL(need_m_not_counted, need_one(); sched.need_m_n++;)
SPOIL(need_m_is_idle, need_one()->status = P_IDLE;)
SPOIL(need_m_spins_uncounted, need_one()->spawn_spinning = true; sched.spinning = 0;)
SPOIL(p_of_another_id, p_at(PS - 1)->id = 0;)
SPOIL(p_in_use_is_dead, p_idle_get()->status = P_DEAD;)
SPOIL(alone_with_many, sched.alone = true;)
SPOIL(unneeded_is_old, sched.unneeded_p++;)
SPOIL(stopped_with_idle_ps, sched.stopping = 1;)

TEST(idle_ps_are_on_their_list)
{
	finds(idle_p_not_counted, "check_idle_ps: n < ");
	finds(idle_p_missing, "check_idle_ps: n == ");
	finds(idle_p_twice, "check_idle_ps: n < ");
	finds(idle_p_runs, "check_idle_ps: load_relaxed(&pp->status) == P_IDLE");
	finds(idle_p_has_work, "check_status: !mp && ");
}

TEST(idle_ms_are_on_their_list)
{
	finds(an_m_idles_and_a_p_waits, NULL);
	finds(idle_m_not_counted, "check_idle_ms: n < ");
	finds(idle_m_badly_linked, "check_idle_ms: mp->idle.at == ");
	finds(idle_m_has_p, "check_idle_ms: !mp->p");
	finds(idle_m_spins, "check_idle_ms: !mp->p");
	finds(keeper_awake, "check_idle_ms: !sched.keeper");
	finds(no_keeper_polls, "check_idle_ms: sched.keeper || ");
	finds(too_many_sleep, "check_idle_ms: sched.idle_m_n + sched.idle_m_locked");
	finds(too_many_start, "check_idle_ms: sched.m_starting");
}

TEST(ps_that_wait_for_a_thread_are_on_their_list)
{
	finds(need_m_not_counted, "check_need_m: n == ");
	finds(need_m_is_idle, "check_need_m: load_relaxed(&pp->status)");
	finds(need_m_spins_uncounted, "check_need_m: spinning <= ");
}

TEST(ps_beyond_the_number_are_dead)
{
	finds(p_of_another_id, "check_all_ps: p_at(i)->id == ");
	finds(p_in_use_is_dead, "check_all_ps: dead == ");
	finds(alone_with_many, "check_all_ps: !load_relaxed(&sched.alone)");
	finds(unneeded_is_old, "procs_check: ");
	finds(stopped_with_idle_ps, "world_check: ");
}

/* ----------------------------------------------------------- the global queue */

SPOIL(global_not_counted, fill(pp); globq.usual.n--; globq.queued--;)
SPOIL(global_sum_is_wrong, fill(pp); globq.queued++;)
SPOIL(global_one_waits, fill(pp); globq.fresh.head->status = G_WAITING;)
SPOIL(bound_to_nobody, fill(pp); globq.bound.head->locked_m = NULL;)
SPOIL(out_of_turn, fill(pp); globq.bound.head->queue_seq = globq.queue_seq;)
SPOIL(turn_not_given, fill(pp); globq.bound.tail->queue_seq += 100;)
SPOIL(tail_is_lost, fill(pp); globq.fresh.tail = NULL;)

/* A P's queue that is moved leaves a batch. */
static void leave_batch(struct p *pp)
{
	runq_put_woken(pp, new_g(G_RUNNABLE));
	runq_put_woken(pp, new_g(G_RUNNABLE));
	runq_drain(pp);
}

SPOIL(a_batch_is_left, leave_batch(pp);)
SPOIL(batch_not_counted, leave_batch(pp); globq.usual.n++; globq.queued++;)
SPOIL(batch_is_lost, leave_batch(pp); globq.usual.last_batch = NULL;)

TEST(the_global_queue_is_counted_and_in_order)
{
	finds(a_batch_is_left, NULL);
	finds(global_not_counted, "gqueue_check: ");
	finds(global_sum_is_wrong, "globq_check: sum");
	finds(global_one_waits, "list_check: load_relaxed(&gp->status)");
	finds(bound_to_nobody, "list_check: !bound");
	finds(out_of_turn, "list_check: !last");
	finds(turn_not_given, "list_check: gp->queue_seq");
	finds(tail_is_lost, "list_check: gp || ");
	finds(batch_not_counted, "gqueue_check: ");
	finds(batch_is_lost, "batches_check: b || ");
}

/* ----------------------------------------------------------------- now and then */

static void (*spoil_later)(struct p *);

/* Switches until a look ends the process. That may take a while, for which it must not
 * end by itself. */
static int operate(int argc, char **argv)
{
	struct m *mp;

	(void)argv;
	prepare(goro_chan_of(int, 0));
	mp = rt_enter();
	spoil_later(mp->p);
	rt_exit(mp);
	while (argc == 0) {		/* for ever */
		go(nothing);
		goro_gosched();
	}
	return 0;
}

static void run_operate(void)
{
	goro_run(operate, 0, NULL);
}

static void comes_upon(void (*how)(struct p *), const char *message)
{
	struct test_output o;

	if (TOOL_TSAN)
		SKIP("to the sanitizer what the test spoils is a race");
	spoil_later = how;
	test_run_child(run_operate, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, message);
}

SPOIL(counts_are_wrong, pp->count.steals += 1000000;)
SPOIL(fewer_are_needed, fetch_add_relaxed(&sched.unneeded_p, 1);)

TEST(switches_look_now_and_then)
{
	comes_upon(counts_are_wrong, "p_check: pp->count.steals");
	comes_upon(fewer_are_needed, "procs_check: ");
}

#else

TEST(a_build_without_checks_has_none) {}

#endif
