/*
 * world.c - stopping the world, and the number of Ps.
 *
 * The world is stopped when the stopper owns every P. It need not wait for user code: an
 * M in user code does not touch its P, so the stopper takes the P (p_take), and the M
 * gets in line at its next entry. The stopper asks an M inside the runtime to yield
 * (ATTN_YIELD), and the M gives its P up on its way out. So a stop takes no longer than
 * one membarrier and the longest runtime call, whatever the goroutines do.
 *
 * Invariant: while sched.stopping is set no P changes to P_RUNNING except the
 * stopper's own.
 */

#include "base/debug.h"
#include "base/mem.h"
#include "platform/os.h"
#include "sched/alone.h"
#include "sched/check.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/trace_hook.h"
#include "sched/work.h"

static struct {
	struct lock lock;	/* held from stop to start */
	struct note all_stopped;
	int wait;		/* Ps still running; under sched.lock */
	int64_t started_at;	/* the last start of the world; under world.lock */
} world = { .lock = LOCK_INIT(RANK_WORLD) };

/* How long to wait for Ms in the runtime before trying to take Ps again. */
#define STOP_RETRY_NS 50000
/* The least time between a start of the world and the next stop. */
#define RUN_BETWEEN_NS 100000

#if GORO_CHECKS
/* While the world is to stop, each P that still runs is waited for; and so is one whose
 * status still says P_STOPPED since the last start, on its way to an M. */
void world_check(void)
{
	int running = 0;

	if (!load_relaxed(&sched.stopping))
		return;
	for (int i = 0; i < sched.gomaxprocs; i++)
		running += load_relaxed(&p_at(i)->status) != P_STOPPED;
	check(running <= world.wait && world.wait <= sched.gomaxprocs);
	check(!sched.idle_p && !sched.need_m);
}
#endif

/* sched.lock held. */
void world_p_stopped(struct p *pp)
{
	check(lock_is_held(&sched.lock) && load_relaxed(&sched.stopping));
	check(!pp->mp && world.wait > 0);
	store_relaxed(&pp->status, P_STOPPED);
	if (--world.wait == 0)
		note_wake(&world.all_stopped);
}

void world_stop_here(struct m *mp)
{
	if (mp->spinning) {
		mp->spinning = false;
		fetch_add_seqcst(&sched.spinning, -1);
	}
	lock_acquire(&sched.lock);
	if (!load_relaxed(&sched.stopping)) {
		lock_release(&sched.lock);
		return;		/* the world goes on already: keep the P */
	}
	world_p_stopped(p_unbind(mp));
	lock_release(&sched.lock);
}

/* One that waits for another stop yields, and so stops with the rest. */
static struct m *world_lock(struct m *mp)
{
	if (mp->is_foreign) {
		lock_acquire(&world.lock);
		return mp;
	}
	while (!lock_try(&world.lock))
		mp = sched_yield_local(mp);
	return mp;
}

/* Waking a thread takes longer than stopping it: stops in a row would leave no time to
 * run. */
static void let_it_run(void)
{
	int64_t ran = os_now() - world.started_at;

	if (ran < RUN_BETWEEN_NS)
		os_sleep(RUN_BETWEEN_NS - ran);
}

/* sched.lock held. Ps that no M runs are the stopper's at once. */
static void stop_idle(void)
{
	struct p *pp;

	check(lock_is_held(&sched.lock) && load_relaxed(&sched.stopping));
	while ((pp = p_idle_get())) {
		store_relaxed(&pp->status, P_STOPPED);
		world.wait--;
	}
	while ((pp = need_m_take())) {
		if (pp->spawn_spinning)
			fetch_add_seqcst(&sched.spinning, -1);
		store_relaxed(&pp->status, P_STOPPED);
		world.wait--;
	}
}

/* Not the stopper, which would then give way to each goroutine that computes. */
static void ask_to_yield(const struct m *stopper)
{
	for (int i = 0; i < sched.gomaxprocs; i++) {
		struct m *mp = load_acquire(&p_at(i)->mp);

		if (mp && mp != stopper)
			fetch_or_acqrel(&mp->attn, ATTN_YIELD);
	}
}

/* Takes the Ps of Ms in user code. */
static void take_all(struct p *own)
{
	for (int i = 0; i < sched.gomaxprocs; i++) {
		struct p *pp = p_at(i);

		if (pp == own || load_acquire(&pp->status) == P_STOPPED || !p_take(pp, true))
			continue;
		lock_acquire(&sched.lock);
		world_p_stopped(pp);
		lock_release(&sched.lock);
	}
}

struct m *world_stop(struct m *mp)
{
	return world_stop_for(mp, "unknown");
}

struct m *world_stop_for(struct m *mp, const char *why)
{
	bool done;

	mp = world_lock(mp);
	let_it_run();
	if (mp->p)
		trace_world_stop(mp, why);
	lock_acquire(&sched.lock);
	store_seqcst(&sched.stopping, 1);
	world.wait = sched.gomaxprocs;
	store_relaxed(&world.all_stopped.word, 0);
	if (mp->p) {
		store_relaxed(&mp->p->status, P_STOPPED);
		world.wait--;
	}
	stop_idle();
	done = world.wait == 0;
	lock_release(&sched.lock);

	while (!done) {
		ask_to_yield(mp);
		take_all(mp->p);
		done = note_sleep_for(&world.all_stopped, STOP_RETRY_NS);
	}
	return mp;
}

/* ------------------------------------------------------- the number of Ps */

/* sched.lock held. The array is replaced: other threads read it without a lock. */
static void make_ps(int n)
{
	struct p **all;

	check(lock_is_held(&sched.lock));
	if (n <= sched.all_p_n)
		return;
	all = mem_alloc((size_t)n * sizeof(*all));
	if (!all)
		throw("out of memory for processors");
	for (int i = 0; i < n; i++) {
		all[i] = i < sched.all_p_n ? p_at(i) : p_make(i);
		if (!all[i])
			throw("out of memory for processors");
	}
	/* release: the array is whole; pairs with load_acquire in p_at */
	store_release(&sched.all_p, all);
	/* release: of the array too; pairs with load_acquire in counts_sum */
	store_release(&sched.all_p_n, n);
}

void world_make(int procs)
{
	lock_acquire(&sched.lock);
	make_ps(procs);
	store_release(&sched.gomaxprocs, procs);
	procs_changed();
	for (int i = procs - 1; i >= 0; i--)
		p_idle_put(p_at(i));
	lock_release(&sched.lock);
}

/* sched.lock held. Its counters stay, as part of the totals, and its dead goroutines. */
static void retire(struct p *pp)
{
	check(load_relaxed(&pp->status) == P_STOPPED);
	runq_drain(pp);
	check(timers_count(&pp->timers) == 0 && !work_deferred(pp));
	store_relaxed(&pp->status, P_DEAD);
}

/* sched.lock held, world stopped. Ps with work go to *busy, others but own become
 * idle. */
static void sort_ps(struct p *own, struct p **busy)
{
	for (int i = sched.gomaxprocs - 1; i >= 0; i--) {
		struct p *pp = p_at(i);

		if (pp == own)
			continue;
		if (p_has_work(pp)) {
			pp->link = *busy;
			*busy = pp;
		} else {
			p_idle_put(pp);
		}
	}
}

struct m *world_start(struct m *mp, int procs)
{
	struct p *busy = NULL;

	check(lock_is_held(&world.lock) && load_relaxed(&sched.stopping) && world.wait == 0);
	for (int i = procs; i < sched.gomaxprocs; i++) {
		timers_move(&p_at(i)->timers, &p_at(0)->timers);
		work_drain(mp, p_at(i), p_at(0));
	}
	lock_acquire(&sched.lock);
	make_ps(procs);
	for (int i = procs; i < sched.gomaxprocs; i++)
		retire(p_at(i));
	if (procs < sched.gomaxprocs)
		m_idle_reconsider();
	store_release(&sched.gomaxprocs, procs);
	if (procs > 1)
		store_relaxed(&sched.alone, false);
	procs_changed();
	if (mp->p && mp->p->id >= procs) {
		p_unbind(mp);
		p_bind(mp, p_at(0));
	}
	if (mp->p)
		store_relaxed(&mp->p->status, P_RUNNING);
	store_seqcst(&sched.stopping, 0);
	sort_ps(mp->p, &busy);
	lock_release(&sched.lock);

	while (busy) {
		struct p *pp = busy;

		busy = pp->link;
		lock_acquire(&sched.lock);
		m_start_unlock(pp, false);
	}
	if (mp->p)
		trace_world_start(mp);
	world.started_at = os_now();
	lock_release(&world.lock);
	fence_seqcst();
	wake();
	return mp;
}

extern char __libc_single_threaded __attribute__((weak));	/* glibc 2.32 and newer */

void alone_begin(void)
{
	bool only_thread = &__libc_single_threaded && __libc_single_threaded;

	store_relaxed(&sched.alone, only_thread && sched.gomaxprocs == 1 && !debug.noalone);
}

void alone_end(struct m *mp)
{
	if (!is_alone())
		return;
	check(mp->state == M_RUNTIME);
	mp = world_stop(mp);
	store_relaxed(&sched.alone, false);
	world_start(mp, sched.gomaxprocs);
}
