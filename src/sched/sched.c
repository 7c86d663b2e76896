/*
 * sched.c - who runs next, and the switch to it.
 *
 * Straight from goroutine to goroutine
 *
 * A goroutine that parks, yields or ends picks the next one itself, on its own stack,
 * from its P's queues, and switches straight to it. Only if the queues are empty does it
 * switch to the M's scheduler context (sched_loop, on the thread's own stack), which
 * looks everywhere and sleeps if need be.
 *
 * After the switch
 *
 * Some things must happen once the old stack is at rest: unlocking the channel that the
 * goroutine now waits on, queueing it, recycling a dead one. Before the switch another M
 * could run the goroutine while it still executes here. So the goroutine leaves them in
 * its M (after), and the new context does them first. Rest first, publish second. Two
 * kinds are published before: a goroutine that yields is queued, and the M that takes it
 * waits until it is at rest (set_running); one that has ended goes where only this thread
 * takes it from (g_ended_before_rest).
 *
 * Finding work
 *
 * An M with a P looks, in this order: its own timers; its own queues; the poller; what
 * was put off (work.h); the global queue; the other Ps' queues and timers (steal.c). An M
 * that looks at other Ps is "spinning". At most half as many Ms spin as Ps are busy,
 * since each takes a CPU. An M that has found nothing releases its P, stops counting as
 * spinning, and looks at all queues once more before it sleeps. That last look finds a
 * goroutine that was queued while this M still counted as spinning, so that its waker
 * woke nobody (see wake in runtime.h). A spinning M that finds work wakes another M if
 * there is more.
 *
 * Rejected: waking an M for each goroutine made ready (a wake costs much more than a
 * short goroutine, and most Ms find nothing); a central queue (every switch contends).
 */
#include "sched/runtime.h"

#include <goro.h>

#include "sched/alone.h"
#include "sched/blockers.h"
#include "sched/check.h"
#include "sched/cxx.h"
#include "sched/g.h"
#include "sched/latency.h"
#include "sched/linger.h"
#include "sched/netpoll.h"
#include "platform/os.h"
#include "sched/runq.h"
#include "sched/steal.h"
#include "sched/timers.h"
#include "sched/trace_hook.h"
#include "sched/work.h"

struct monitor monitor;
struct sched sched = { .lock = LOCK_INIT(RANK_SCHED) };
struct globq globq;
struct trace_hook trace_hook;

/* ------------------------------------------------------------- the switch */

/* Locks that threads without a P take need a locked instruction even while alone. */
static inline __attribute__((always_inline)) void unlock(struct lock *l)
{
	if (is_alone() && l->rank == RANK_CHAN)
		alone_lock_release(l);
	else
		lock_release(l);
}

/* mostly_unlock: after is park_unlock most of the time, and is inlined. */
static inline __attribute__((always_inline)) void after_run(struct m *mp, bool mostly_unlock)
{
	void (*after)(struct m *, struct g *) = mp->after.fn;
	struct g *old = mp->after.gp;

	if (!old)
		return;
	mp->after.gp = NULL;
	/* release: its context is whole; pairs with load_acquire in dump.c */
	store_release(&old->mp, NULL);
	if (after) {
		mp->after.fn = NULL;
		if (mostly_unlock && likely(after == park_unlock))
			unlock(mp->after.arg);
		else
			after(mp, old);
	}
	check_often(mp);
}

/* gp has yielded, and the kernel may have stopped its thread on the way to rest. */
static __attribute__((noinline, cold)) void wait_for_rest(struct g *gp)
{
	for (int i = 0; load_acquire(&gp->mp); i++)
		os_relax(i);
}

/* heeds: the caller has found a bit of sched.heed set, perhaps tracing. */
static inline __attribute__((always_inline)) void
set_running(struct m *mp, struct g *gp, bool inherit, bool heeds)
{
	struct p *pp = mp->p;

	/* acquire: the context that it left; pairs with store_release in after_run */
	if (unlikely(load_acquire(&gp->mp)))
		wait_for_rest(gp);
	check(gp->status == G_RUNNABLE);
	check(pp && pp->mp == mp);
	if (heeds)
		trace_go_start(mp, gp);
	if (heeds)
		blockers_begin(mp, gp);
	latency_run(pp, gp);
	store_relaxed(&gp->status, G_RUNNING);
	store_relaxed(&gp->mp, mp);
	store_relaxed(&mp->curg, gp);
	count_up(&pp->count.switches, 1);
	if (inherit)
		count_up(&pp->count.inherited, 1);
}

/* One load for all that a switch has to heed: see sched.heed. */
static inline bool heed(void)
{
	return unlikely(load_relaxed(&sched.heed));
}

/* Whether ASan is to be told of this switch. heeds: as in set_running. */
static inline __attribute__((always_inline)) bool tells_asan(bool heeds)
{
	return TOOL_ASAN || (heeds && unlikely(load_relaxed(&sched.program) & PROGRAM_ASAN));
}

void sched_arrive(struct m *mp)
{
	if (tells_asan(heed()))
		tool_asan_arrive(NULL);
	after_run(mp, false);
	*mp->errno_at = 0;
}

/* NULL: to the scheduler context. Returns gp's M when it runs again. */
static inline __attribute__((always_inline)) struct m *
switch_from(struct m *mp, struct g *gp, struct g *next, bool inherit, bool heeds)
{
	bool tells = tells_asan(heeds);
	void *fake;

	gp->saved_errno = *mp->errno_at;
	if (likely(next)) {
		set_running(mp, next, inherit, heeds);
		if (tells)
			tool_asan_leave(&fake, next->stack.lo, next->stack.hi);
		tool_switch_start(&gp->tool, &next->tool);
		mp = context_switch(&gp->context, &next->context, mp);
	} else {
		store_relaxed(&mp->curg, NULL);
		if (tells)
			tool_asan_leave(&fake, mp->thread_stack.lo, mp->thread_stack.hi);
		tool_switch_start(&gp->tool, &mp->tool);
		mp = context_switch(&gp->context, &mp->sched_context, mp);
	}
	if (tells)
		tool_asan_arrive(fake);
	after_run(mp, true);
	*mp->errno_at = gp->saved_errno;
	return mp;
}

/* More than C++ exceptions, which the function that switches keeps (cxx.c). */
static inline bool heed_more(void)
{
	return unlikely(load_relaxed(&sched.heed) & ~HEED_CXX);
}

/* Whether what there is to heed needs the scheduler context. */
static __attribute__((noinline, cold)) bool goes_to_loop(void)
{
	return load_relaxed(&sched.stopping) || netpoll_due();
}

/* The same for a goroutine that leaves; tells the trace that it does. */
static __attribute__((noinline, cold)) bool leaves_to_loop(struct m *mp, struct g *gp)
{
	if (load_relaxed(&gp->status) == G_WAITING)
		trace_go_block(mp, gp);
	return goes_to_loop();
}

/* NULL: only its own thread can run it; the scheduler context goes on with mp->pick. */
static inline __attribute__((always_inline)) struct g *if_movable(struct m *mp, struct g *next)
{
	if (next && unlikely(next->locked_m)) {
		mp->pick = next;
		return NULL;
	}
	return next;
}

/* Whether a timer or deferred work is due, which the scheduler context sees to. */
static __attribute__((noinline)) bool anything_due(struct m *mp)
{
	return timers_are_due(mp->p) || work_due(mp->p);
}

/* Runs what is due here. The caller holds no lock: a timer's function may take any. */
static __attribute__((noinline)) void see_to_due(struct m *mp)
{
	timers_run(mp, mp->p, 0);
	work_see_to_due(mp);
}

/* With a P. NULL: the scheduler context goes on, which also runs due timers: their
 * functions may take the lock that the leaver holds until its stack is at rest. */
static inline __attribute__((always_inline)) struct g *
pick_for_leaver(struct m *mp, struct p *pp, bool *inherit)
{
	struct g *next = NULL;

	if (runq_fair_turn(pp)) {
		if (anything_due(mp)) {
			pp->fair.in = 1;	/* the next pick is the fair one */
			return NULL;
		}
		next = runq_get_fair(pp);
	}
	if (likely(!next))
		next = runq_get_usual(pp, inherit);
	return if_movable(mp, next);
}

/* It was the oldest in a fair turn, or is the only one. NULL: it goes on. */
static __attribute__((noinline)) struct g *pick_other(struct m *mp, struct g *gp)
{
	bool inherit;
	struct g *next = runq_get(mp->p, &inherit);

	if (!next) {
		trace_go_start(mp, gp);
		latency_run(mp->p, gp);
		store_relaxed(&gp->status, G_RUNNING);
		count_up(&mp->p->count.switches, 1);	/* for steal.c */
		mp->after.gp = NULL;
		return NULL;
	}
	runq_put_woken(mp->p, gp);
	wake();		/* it was on no queue, and another P may have gone idle */
	return next;
}

/* yields: gp is not bound, and queued, so that it may be the next one itself. */
static inline __attribute__((always_inline)) struct m *
leave_to(struct m *mp, struct p *pp, struct g *gp, bool yields, bool to_loop, bool heeds)
{
	struct g *next = NULL;
	bool inherit = false;

	if (likely(pp) && !to_loop && (yields || likely(!gp->locked_m)))
		next = pick_for_leaver(mp, pp, &inherit);
	if (yields && unlikely(next == gp)) {
		if (!(next = pick_other(mp, gp)))
			return mp;
		next = if_movable(mp, next);
	}
	return switch_from(mp, gp, next, inherit && !yields, heeds);
}

/* The end of leave, where a bit of sched.heed is set. */
static __attribute__((noinline)) struct m *
leave_heeding(struct m *mp, struct p *pp, struct g *gp, bool yields)
{
	struct cxx_state exceptions;
	bool any = cxx_take(mp, &exceptions);

	mp = leave_to(mp, pp, gp, yields, heed_more() && leaves_to_loop(mp, gp), true);
	if (any)
		cxx_set(mp, exceptions);
	return mp;
}

static inline __attribute__((always_inline)) struct m *
leave(struct m *mp, struct p *pp, void (*after)(struct m *, struct g *), void *arg, bool yields)
{
	struct g *gp = mp->curg;

	check(gp->mp == mp && !mp->after.gp);
	mp->after.gp = gp;
	if (after) {
		mp->after.fn = after;
		mp->after.arg = arg;
	}
	if (heed())
		return leave_heeding(mp, pp, gp, yields);
	return leave_to(mp, pp, gp, yields, false, false);
}

struct m *sched_leave(struct m *mp, void (*after)(struct m *, struct g *), void *arg)
{
	return leave(mp, mp->p, after, arg, false);
}

/* What channels call most: one frame between the program's call and the switch. */
bool sched_await(struct m *mp, struct lock *l, enum wait_reason why)
{
	struct p *pp = mp->p;
	bool ok;

	check(lock_is_held(l));
	park_begin(mp->curg, why);
	if (likely(pp)) {
		count_up(&pp->count.parks, 1);
		mp = leave(mp, pp, park_unlock, l, false);
	} else {
		mp = foreign_park(mp, park_unlock, l);
	}
	ok = mp->curg->waiter.ok;
	rt_exit_free(mp);
	return ok;
}

static inline _Noreturn __attribute__((always_inline)) void exit_to_next(struct m *mp, bool heeds)
{
	struct g *gp = mp->curg, *next = NULL;
	bool inherit = false, tells = tells_asan(heeds);

	if (unlikely(mp->p->fair.in == 1))	/* in each fair turn */
		see_to_due(mp);
	if (likely(!mp->ending) && !(heeds && heed_more() && goes_to_loop()))
		next = if_movable(mp, runq_get(mp->p, &inherit));
	if (tells)
		tool_asan_end(gp->stack.lo, gp->stack.hi);
	if (unlikely(!g_ended_before_rest(mp->p, gp))) {
		mp->after.fn = g_ended;
		mp->after.gp = gp;
	}
	if (likely(next)) {
		set_running(mp, next, inherit, heeds);
		if (tells)
			tool_asan_leave(NULL, next->stack.lo, next->stack.hi);
		tool_switch_start(NULL, &next->tool);
		context_jump(&next->context, mp);
	}
	store_relaxed(&mp->curg, NULL);
	if (tells)
		tool_asan_leave(NULL, mp->thread_stack.lo, mp->thread_stack.hi);
	tool_switch_start(NULL, &mp->tool);
	context_jump(&mp->sched_context, mp);
}

static _Noreturn __attribute__((noinline)) void exit_heeding(struct m *mp)
{
	exit_to_next(mp, true);
}

_Noreturn __attribute__((used)) void sched_exit(struct m *mp)
{
	if (heed())
		exit_heeding(mp);
	exit_to_next(mp, false);
}

/* ---------------------------------------------------------------- yielding */

static void after_yield_global(struct m *mp, struct g *gp)
{
	(void)mp;
	lock_acquire(&sched.lock);
	globq_put(gp);
	lock_release(&sched.lock);
	wake();
}

/* Queued before the next is picked: else a thief could see no work and go to sleep. */
struct m *sched_yield_local(struct m *mp)
{
	struct g *gp = mp->curg;

	check(gp->status == G_RUNNING && mp->state == M_RUNTIME);
	if (unlikely(gp->locked_m || globq_length() != 0))
		return sched_yield_global(mp);
	g_set_runnable(mp->p, gp);
	runq_put_woken(mp->p, gp);
	linger();
	return leave(mp, mp->p, NULL, NULL, true);
}

void goro_gosched(void)
{
	struct m *mp = rt_enter_free();

	if (unlikely(mp->is_foreign))
		os_yield();
	else
		mp = sched_yield_local(mp);
	rt_exit_free(mp);
}

struct m *sched_yield_global(struct m *mp)
{
	g_set_runnable(mp->p, mp->curg);
	return sched_leave(mp, after_yield_global, NULL);
}

/* In one critical section: a P that went idle in between would not look there again. */
static void after_regain(struct m *mp, struct g *gp)
{
	struct p *pp;

	lock_acquire(&sched.lock);
	trace_go_back(mp, gp);
	pp = load_relaxed(&sched.stopping) ? NULL : p_idle_get();
	if (!pp)
		globq_put(gp);
	lock_release(&sched.lock);
	if (pp) {
		p_bind(mp, pp);
		mp->pick = gp;
	}
}

struct m *sched_regain(struct m *mp)
{
	check(!mp->p);
	store_relaxed(&mp->curg->status, G_RUNNABLE);
	return sched_leave(mp, after_regain, NULL);
}

/* ------------------------------------------------------------ finding work */

static struct g *take_global(struct p *pp)
{
	struct g *gp = NULL;

	if (globq_length() != 0) {
		lock_acquire(&sched.lock);
		gp = globq_get(pp, true);
		lock_release(&sched.lock);
		if (gp)
			pp->fair.global_served = true;
	}
	return gp;
}

static void spinning_start(struct m *mp)
{
	check(mp->p && !mp->spinning);
	mp->spinning = true;
	fetch_add_seqcst(&sched.spinning, 1);
	store_relaxed(&sched.need_spinning, 0);
}

/* Whether a goroutine is in the queues of any P except but, or in the global queue. */
static bool any_queued(const struct p *but)
{
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++)
		if (p_at(i) != but && !runq_empty(p_at(i)))
			return true;
	return globq_length() != 0;
}

void wake_for_queued(void)
{
	if (!p_to_spare())
		return;
	os_membarrier();	/* see wake */
	if (any_queued(NULL))
		wake();
}

void spinning_end(struct m *mp)
{
	bool hushed = timers_are_hushed(mp);

	check(mp->p && mp->spinning);
	mp->spinning = false;
	/* seqcst: before the look at the queues, and that for idle Ps in wake */
	fetch_add_seqcst(&sched.spinning, -1);
	fence_seqcst();
	if (!p_to_spare())
		return;
	os_membarrier();	/* see wake */
	if (any_queued(hushed ? mp->p : NULL))
		wake();
}

/* Work comes from busy Ps only; and their threads need a CPU more than a thief. */
static bool may_spin(struct m *mp)
{
	int idle = load_relaxed(&sched.idle_p_n), busy = load_relaxed(&sched.gomaxprocs) - idle;

	return mp->spinning || (busy > 1 && idle >= load_relaxed(&sched.unneeded_p) &&
	                        2 * load_relaxed(&sched.spinning) < busy);
}

/* The last look of an M that has released its P. True: it has a P again. It takes no P
 * that there is no CPU for; then the next M looks that is about to sleep
 * (need_spinning). */
static bool look_again(struct m *mp)
{
	struct p *pp = NULL;

	check(!mp->p && !mp->spinning);
	if (!any_queued(NULL))
		return false;
	lock_acquire(&sched.lock);
	if (!load_relaxed(&sched.stopping) && p_to_spare())
		pp = p_idle_get();
	else
		store_relaxed(&sched.need_spinning, 1);
	lock_release(&sched.lock);
	if (!pp)
		return false;
	p_bind(mp, pp);
	spinning_start(mp);
	return true;
}

/* sched.lock held. Whether an M that has made its P idle looks once more. One that was
 * not spinning need not while no P is in use or an M spins, which work would have
 * woken. */
static bool needs_last_look(const struct m *mp)
{
	/* seqcst: after idle_p_n++; pairs with the fence in spinning_end, between
	 * spinning-- and the look for idle Ps */
	return mp->spinning ||
	       (p_to_spare() && !all_idle() && load_seqcst(&sched.spinning) == 0);
}

/* Gives the P up and sleeps, unless work turns up. False: the thread is to end. */
static bool release_and_sleep(struct m *mp)
{
	bool looks;

	linger();
	lock_acquire(&sched.lock);
	if (load_relaxed(&sched.stopping) || globq_length() != 0) {
		lock_release(&sched.lock);
		return true;
	}
	if (!mp->spinning && load_relaxed(&sched.need_spinning)) {
		lock_release(&sched.lock);
		spinning_start(mp);
		return true;
	}
	p_idle_put(p_unbind(mp));
	looks = needs_last_look(mp);
	lock_release(&sched.lock);

	if (mp->spinning) {
		mp->spinning = false;
		/* seqcst: before look_again's look at the queues; see wake */
		fetch_add_seqcst(&sched.spinning, -1);
	}
	if (looks) {
		os_membarrier();
		if (look_again(mp))
			return true;
	}
	return m_stop(mp);
}

/* On the scheduler stack, with a P. NULL: the thread is to end. */
static struct g *find_runnable(struct m *mp, bool *inherit)
{
	for (;;) {
		struct g *gp;

		*inherit = false;
		if (load_relaxed(&sched.stopping)) {
			world_stop_here(mp);
			if (!mp->p && !m_stop(mp))
				return NULL;
			continue;
		}
		timers_run(mp, mp->p, 0);
		if (unlikely(netpoll_due()) && (gp = netpoll_look(mp)))
			return gp;
		work_see_to_due(mp);
		if ((gp = runq_get(mp->p, inherit)) || (gp = work_take(mp)) ||
		    (gp = netpoll_look_if_wanted(mp)) || (gp = work_flush(mp)) || (gp = take_global(mp->p)))
			return gp;
		if (may_spin(mp)) {
			bool woken = mp->spinning;

			if (!woken)
				spinning_start(mp);
			if ((gp = steal_work(mp, woken)))
				return gp;
			if (globq_length() != 0)
				continue;
		}
		if (!release_and_sleep(mp))
			return NULL;
	}
}

/* ------------------------------------------------------------------- loop */

/* The goroutine to run, with a P for it; NULL: the thread is to end. */
static struct g *next_goroutine(struct m *mp, bool *inherit)
{
	struct g *gp = mp->pick;

	*inherit = false;
	mp->pick = NULL;
	if (mp->locked_g) {
		check(!gp || gp == mp->locked_g);
		if (!gp)
			m_stop_locked(mp);
		return mp->locked_g;
	}
	for (;; gp = NULL) {
		if (!gp) {
			if (!mp->p && !m_stop(mp))
				return NULL;
			gp = find_runnable(mp, inherit);
			if (!gp)
				return NULL;
		}
		if (mp->spinning)
			spinning_end(mp);
		mp->fired = 0;
		if (likely(!gp->locked_m))
			return gp;
		m_hand_to_locked(mp, gp);
	}
}

void sched_loop(struct m *mp)
{
	for (;;) {
		struct g *gp;
		bool inherit, tells = tells_asan(true);
		void *fake;

		after_run(mp, false);
		gp = mp->ending ? NULL : next_goroutine(mp, &inherit);
		if (unlikely(mp->owes_poke))
			timers_tell(mp);
		if (!gp)
			return;
		set_running(mp, gp, inherit, true);
		if (tells)
			tool_asan_leave(&fake, gp->stack.lo, gp->stack.hi);
		tool_switch_start(&mp->tool, &gp->tool);
		context_switch(&mp->sched_context, &gp->context, mp);
		if (tells)
			tool_asan_arrive(fake);
	}
}
