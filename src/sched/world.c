/*
 * world.c - stopping the world, and the number of Ps.
 *
 * The world is stopped when the one who stops it owns every P. It need not wait
 * for user code: an M in user code does not touch its P, so the P is taken from
 * it (p_take) and the M gets in line at its next entry. An M inside the runtime
 * is asked to yield (ATTN_YIELD) and gives its P up on its way out, within
 * microseconds. So a stop takes no longer than one membarrier and the longest
 * runtime call, whatever the goroutines do.
 *
 * Invariant: while sched.stopping is set no P changes to P_RUNNING except the
 * stopper's own.
 */
#include "world.h"

#include "fd.h"
#include "mem.h"
#include "os.h"
#include "procs.h"
#include "runq.h"
#include "runtime.h"
#include "trace.h"

static struct {
	struct lock lock;	/* held from stop to start */
	struct note all_stopped;
	int wait;		/* Ps still running; sched.lock */
	int64_t started_at;	/* the last time it went on; world.lock */
} world = { .lock = LOCK_INIT(RANK_WORLD) };

/* How long to wait for Ms in the runtime before trying to take Ps again. */
#define RETRY_NS 50000
/* Between a start of the world and the next stop there is at least this. */
#define RUN_BETWEEN_NS 100000

/* sched.lock held. */
void world_p_stopped(struct p *pp)
{
	check(load_relaxed(&sched.stopping));
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
		return;		/* it goes on already: keep the P */
	}
	world_p_stopped(p_unbind(mp));
	lock_release(&sched.lock);
}

/* One stop at a time. Waiting for the other must not hold up its stop, so a
 * goroutine yields, and thereby stops with the rest. */
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

/* One stop right after the other would leave nobody any time to run: waking a
 * thread takes longer than stopping it again. */
static void let_it_run(void)
{
	int64_t ran = os_now() - world.started_at;

	if (ran < RUN_BETWEEN_NS)
		os_sleep(RUN_BETWEEN_NS - ran);
}

/* sched.lock held. Those that nobody runs are ours at once. */
static void stop_idle(void)
{
	struct p *pp;

	while ((pp = p_idle_get())) {
		store_relaxed(&pp->status, P_STOPPED);
		world.wait--;
	}
	while ((pp = sched.need_m)) {
		sched.need_m = pp->link;
		sched.need_m_n--;
		if (pp->spawn_spinning)
			fetch_add_seqcst(&sched.spinning, -1);
		store_relaxed(&pp->status, P_STOPPED);
		world.wait--;
	}
}

static void ask_to_yield(void)
{
	for (int i = 0; i < sched.gomaxprocs; i++) {
		struct m *mp = load_acquire(&p_at(i)->mp);

		if (mp)
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
	if (trace_on() && mp->p)
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
		ask_to_yield();
		take_all(mp->p);
		done = note_sleep_for(&world.all_stopped, RETRY_NS);
	}
	return mp;
}

/* ------------------------------------------------------- the number of Ps */

/* The array is replaced, not grown in place: others read it without a lock. */
static void make_ps(int n)
{
	struct p **all;

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

/* sched.lock held. A P that is no longer used gives its goroutines away. Its
 * counters stay, as part of the totals, and its dead goroutines for its return. */
static void retire(struct p *pp)
{
	runq_drain(pp);
	store_relaxed(&pp->status, P_DEAD);
}

/* sched.lock held, world stopped. Puts the Ps with work in *busy, the others
 * among the idle, except own. */
static void sort_ps(struct p *own, struct p **busy)
{
	for (int i = sched.gomaxprocs - 1; i >= 0; i--) {
		struct p *pp = p_at(i);

		if (pp == own)
			continue;
		if (runq_empty(pp) && !pp->untried && !fd_posts(pp)) {
			p_idle_put(pp);
		} else {
			pp->link = *busy;
			*busy = pp;
		}
	}
}

struct m *world_start(struct m *mp, int procs)
{
	struct p *busy = NULL;

	for (int i = procs; i < sched.gomaxprocs; i++) {
		timers_move(p_at(i), p_at(0));
		fd_guess_move(p_at(i), p_at(0));
		fd_post_drain(mp, p_at(i));
	}
	lock_acquire(&sched.lock);
	make_ps(procs);
	for (int i = procs; i < sched.gomaxprocs; i++)
		retire(p_at(i));
	if (procs < sched.gomaxprocs)
		m_idle_reconsider();
	store_release(&sched.gomaxprocs, procs);
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
	if (trace_on() && mp->p)
		trace_world_start(mp);
	world.started_at = os_now();
	lock_release(&world.lock);
	fence_seqcst();
	wake();
	return mp;
}
