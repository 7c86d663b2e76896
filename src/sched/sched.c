/*
 * sched.c - who runs next, and the switch to it.
 *
 * Straight from goroutine to goroutine
 *
 * A goroutine that parks, yields or ends looks for the next one itself, on its
 * own stack, in its P's queues; if there is one it switches straight to it. Only
 * when there is none does it switch to the M's scheduler context (sched_loop,
 * on the thread's own stack), which looks everywhere and sleeps if need be.
 *
 * After the switch
 *
 * What must happen once the old stack is at rest, such as unlocking the channel
 * that the goroutine now waits on, queueing it, or recycling a dead one, cannot
 * happen before the switch: another M could take the goroutine up while it is
 * still running here. It is left in the M (after_fn) and is the first thing that
 * the new context does. Rest first, publish second. Two are queued before: one that
 * yields, and whoever takes it up waits until it is at rest; and one that has ended, where
 * nobody but this thread takes it up (g_ended_before_rest).
 *
 * Finding work
 *
 * An M with a P looks, in this order: its own timers; its own queues; the poller; the
 * reads that were put off (fd_guess.c); the global queue, where those are that had
 * their slice; the other Ps' queues and timers (steal.c). An M that looks at the
 * others' is "spinning"; at most half as many spin as Ps are busy, since each costs a CPU.
 * A spinning M goes on for about as long as waking it would take. Then it
 * releases its P, stops counting as spinning, and looks at all queues once more
 * before it sleeps. That last look closes the race with a goroutine that was
 * queued while this M still counted as spinning, for which nobody was woken
 * (see wake in runtime.h). When a spinning M finds work it wakes another, so that
 * there is a looking M as long as there is work to be found.
 *
 * Rejected: waking an M for each goroutine made ready (each costs 20 us, most
 * find nothing); a central queue (every switch contends).
 */
#include "runtime.h"

#include <goro.h>

#include "cxx.h"
#include "fd.h"
#include "g.h"
#include "latency.h"
#include "linger.h"
#include "netpoll.h"
#include "os.h"
#include "runq.h"
#include "steal.h"
#include "trace.h"

struct sched sched = { .lock = LOCK_INIT(RANK_SCHED) };

/* ------------------------------------------------------------- the switch */

/* mostly_unlock: that is what there is to do, most of the time; here without a call. */
static inline __attribute__((always_inline)) void after_run(struct m *mp, bool mostly_unlock)
{
	void (*after)(struct m *, struct g *) = mp->after_fn;
	struct g *old = mp->after_g;

	if (!old)
		return;
	mp->after_g = NULL;
	/* release: its context is whole; pairs with load_acquire in dump.c */
	store_release(&old->mp, NULL);
	if (after) {
		mp->after_fn = NULL;
		if (mostly_unlock && likely(after == park_unlock))
			lock_release(mp->after_arg);
		else
			after(mp, old);
	}
}

/* One that yields is on its P's queue a little before its stack is at rest. Its
 * thread holds no lock and waits for nobody on the way, but the kernel may have
 * stopped it: let it run. */
static __attribute__((noinline, cold)) void wait_for_rest(struct g *gp)
{
	for (int i = 0; load_acquire(&gp->mp); i++)
		os_relax(i);
}

static inline __attribute__((always_inline)) void set_running(struct m *mp, struct g *gp, bool inherit)
{
	struct p *pp = mp->p;

	/* acquire: the context that it left; pairs with store_release in after_run */
	if (unlikely(load_acquire(&gp->mp)))
		wait_for_rest(gp);
	check(gp->status == G_RUNNABLE || gp->status == G_RUNNABLE_TIMED);
	check(pp && pp->mp == mp);
	latency_run(pp, gp);
	store_relaxed(&gp->status, G_RUNNING);
	store_relaxed(&gp->mp, mp);
	store_relaxed(&mp->curg, gp);
	count_up(&pp->count.switches, 1);
	if (inherit)
		count_up(&pp->count.inherited, 1);
}

void sched_arrive(struct m *mp)
{
	tool_switch_finish(&mp->curg->tool);
	after_run(mp, false);
	*mp->errno_at = 0;
}

/* From gp, at rest from here on, to the M's next: its pick on this stack, or
 * whatever the scheduler context finds. Returns when gp runs again. */
static inline __attribute__((always_inline)) struct m *switch_from(struct m *mp, struct g *gp, struct g *next, bool inherit)
{
	gp->saved_errno = *mp->errno_at;
	if (likely(next)) {
		set_running(mp, next, inherit);
		tool_switch_start(&gp->tool, &next->tool);
		mp = context_switch(&gp->context, &next->context, mp);
	} else {
		store_relaxed(&mp->curg, NULL);
		tool_switch_start(&gp->tool, &mp->tool);
		mp = context_switch(&gp->context, &mp->sched_context, mp);
	}
	tool_switch_finish(&gp->tool);
	after_run(mp, true);
	*mp->errno_at = gp->saved_errno;
	return mp;
}

/* What sched.heed is for: one look for all of it. */
static inline bool heed(void)
{
	return unlikely(load_relaxed(&sched.heed));
}

/* .. and there is more than C++ exceptions. */
static inline bool heed_more(void)
{
	return unlikely(load_relaxed(&sched.heed) & ~HEED_CXX);
}

/* .. if there is anything: only the scheduler context sees to it. C++ exceptions (cxx.c) the
 * goroutine itself does, in the function that switches. */
static __attribute__((noinline, cold)) bool goes_to_loop(void)
{
	return load_relaxed(&sched.stopping) || netpoll_due();
}

/* The same, of one that leaves. */
static __attribute__((noinline, cold)) bool leaves_to_loop(struct m *mp, struct g *gp)
{
	if (trace_on() && load_relaxed(&gp->status) == G_WAITING)
		trace_go_block(mp, gp);
	return goes_to_loop();
}

/* The next in our own queues, if it can be switched to from here. One that is
 * locked to another thread is left for the scheduler context. */
static inline __attribute__((always_inline)) struct g *pick_local(struct m *mp, bool *inherit)
{
	struct g *next;

	next = runq_get(mp->p, inherit);
	if (next && unlikely(next->locked_m)) {
		mp->pick = next;
		return NULL;
	}
	return next;
}

/* Every so many picks it is time to look at the timers first. */
static inline bool timers_turn(const struct m *mp)
{
	return unlikely(mp->p->fair_in == 1);
}

/* .. and at what the scheduler context alone sees to. */
static __attribute__((noinline)) bool anything_due(struct m *mp)
{
	store_relaxed(&mp->cpu, os_cpu());
	return timers_are_due(mp->p) || load_relaxed(&mp->p->untried_due) || fd_posts_due(mp->p);
}

/* .. or who holds no lock. */
static __attribute__((noinline)) void see_to_due(struct m *mp)
{
	store_relaxed(&mp->cpu, os_cpu());
	timers_run(mp, mp->p, 0);
	if (load_relaxed(&mp->p->untried_due))
		fd_guess_late(mp);
	if (fd_posts_due(mp->p))
		fd_post_flush(mp);
}

/* The next for one that leaves, to be switched to from here. NULL: the scheduler context is
 * to see to it. The M has a P.
 *
 * A goroutine that leaves may hold a lock, of what it waits for, until its stack
 * is at rest; and timers that fire may need that one. So if some are due they are
 * left for the scheduler context, which comes to them after the unlock. */
static inline __attribute__((always_inline)) struct g *
pick_for_leaver(struct m *mp, struct p *pp, struct g *gp, bool *inherit)
{
	struct g *next = NULL;

	if (unlikely(gp->locked_m))
		return NULL;
	if (runq_fair_turn(pp)) {
		if (anything_due(mp)) {
			pp->fair_in = 1;	/* it is still that turn's */
			return NULL;
		}
		next = runq_get_fair(pp);
	}
	if (likely(!next))
		next = runq_get_usual(pp, inherit);
	if (next && unlikely(next->locked_m)) {
		mp->pick = next;
		return NULL;
	}
	return next;
}

/* As the end of leave, where there is something to heed. */
static __attribute__((noinline)) struct m *leave_heeding(struct m *mp, struct p *pp, struct g *gp)
{
	struct cxx_state exceptions;
	bool any = cxx_take(mp, &exceptions), inherit = false;
	struct g *next = NULL;

	if (likely(pp) && !(heed_more() && leaves_to_loop(mp, gp)))
		next = pick_for_leaver(mp, pp, gp, &inherit);
	mp = switch_from(mp, gp, next, inherit);
	if (any)
		cxx_set(mp, exceptions);
	return mp;
}

static inline __attribute__((always_inline)) struct m *
leave(struct m *mp, struct p *pp, void (*after)(struct m *, struct g *), void *arg)
{
	struct g *gp = mp->curg, *next = NULL;
	bool inherit = false;

	mp->after_fn = after;
	mp->after_g = gp;
	mp->after_arg = arg;
	if (heed())
		return leave_heeding(mp, pp, gp);
	if (likely(pp))
		next = pick_for_leaver(mp, pp, gp, &inherit);
	return switch_from(mp, gp, next, inherit);
}

struct m *sched_leave(struct m *mp, void (*after)(struct m *, struct g *), void *arg)
{
	return leave(mp, mp->p, after, arg);
}

/* What a channel does most: one frame from the call of the program's to the switch. Only a
 * plain thread has no P here. */
bool sched_await(struct m *mp, struct lock *l, enum wait_reason why)
{
	struct p *pp = mp->p;
	bool ok;

	park_begin(mp->curg, why);
	if (likely(pp)) {
		count_up(&pp->count.parks, 1);
		mp = leave(mp, pp, park_unlock, l);
	} else {
		mp = foreign_park(mp, park_unlock, l);
	}
	ok = mp->curg->waiter.ok;
	rt_exit_free(mp);
	return ok;
}

_Noreturn __attribute__((used)) void sched_exit(struct m *mp)
{
	struct g *gp = mp->curg, *next = NULL;
	bool inherit = false;

	if (timers_turn(mp))
		see_to_due(mp);
	if (likely(!mp->ending) && !(heed() && heed_more() && goes_to_loop()))
		next = pick_local(mp, &inherit);
	if (unlikely(!g_ended_before_rest(mp->p, gp))) {
		mp->after_fn = g_ended;
		mp->after_g = gp;
	}
	if (likely(next)) {
		set_running(mp, next, inherit);
		tool_switch_start(NULL, &next->tool);
		context_jump(&next->context, mp);
	}
	store_relaxed(&mp->curg, NULL);
	tool_switch_start(NULL, &mp->tool);
	context_jump(&mp->sched_context, mp);
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

/* One that yields was its own next: it was the turn of the oldest (runq_get_fair), or
 * there is no other. NULL: it is to go on. */
static __attribute__((noinline)) struct g *pick_other(struct m *mp, struct g *gp)
{
	bool inherit;
	struct g *next = runq_get(mp->p, &inherit);

	if (!next) {
		if (trace_on())
			trace_go_start(mp, gp);
		store_relaxed(&gp->status, G_RUNNING);
		count_up(&mp->p->count.switches, 1);	/* for steal.c */
		return NULL;
	}
	runq_put_woken(mp->p, gp);
	wake();		/* it was on no queue, and another P may have gone idle */
	return next;
}

/* Queued already. Switches to the next, or to the scheduler context if to_loop. */
static inline __attribute__((always_inline)) struct m *
yield_queued_to(struct m *mp, struct g *gp, bool to_loop)
{
	bool inherit = false;
	struct g *next;

	next = to_loop ? NULL : pick_local(mp, &inherit);
	if (unlikely(next == gp) && !(next = pick_other(mp, gp)))
		return mp;
	if (next && unlikely(next->locked_m)) {
		mp->pick = next;
		next = NULL;
	}
	mp->after_g = gp;
	return switch_from(mp, gp, next, false);
}

static __attribute__((noinline)) struct m *yield_queued_heeding(struct m *mp, struct g *gp)
{
	struct cxx_state exceptions;
	bool any = cxx_take(mp, &exceptions);

	mp = yield_queued_to(mp, gp, heed_more() && goes_to_loop());
	if (any)
		cxx_set(mp, exceptions);
	return mp;
}

/* Queued already, and the next is to be picked. It may be itself, if there is no other. */
static inline __attribute__((always_inline)) struct m *yield_queued(struct m *mp, struct g *gp)
{
	linger();
	return heed() ? yield_queued_heeding(mp, gp) : yield_queued_to(mp, gp, false);
}

/* Queued first, and then the next is picked: so its P's queue is not seen empty while
 * it is on its way to rest, and nobody goes to sleep for want of it who would have to be
 * woken. Whoever takes it waits until it is at rest (set_running). */
struct m *sched_yield_local(struct m *mp)
{
	struct g *gp = mp->curg;

	if (unlikely(gp->locked_m || globq_length() != 0))
		return sched_yield_global(mp);
	latency_ready(mp->p, gp);
	if (timers_turn(mp))
		see_to_due(mp);
	runq_put_woken(mp->p, gp);
	return yield_queued(mp, gp);
}

struct m *sched_go_second(struct m *mp)
{
	struct g *gp = mp->curg;

	latency_ready(mp->p, gp);
	runq_put_woken(mp->p, gp);
	return yield_queued(mp, gp);
}

/*
 * The quick way of a yield
 *
 * Most yields meet nothing unusual: the goroutine goes to the end of the woken, and the
 * first of them is the next; or there is nobody else. That is one function without a call
 * in it. Where it turns out that there is more to do it leaves for one of the slow ones below,
 * which end the call of the program's in its place.
 */
static __attribute__((noinline)) void gosched_slow(struct m *mp)
{
	if (unlikely(mp->is_foreign))
		os_yield();
	else
		mp = sched_yield_local(mp);
	rt_exit_free(mp);
}

static __attribute__((noinline, cold)) void gosched_enter_slow(struct m *mp)
{
	gosched_slow(rt_enter_free_slow(mp));
}

/* Queued, but somebody was faster to take the next. */
static __attribute__((noinline, cold)) void gosched_queued(struct m *mp)
{
	rt_exit_free(yield_queued(mp, mp->curg));
}

/* The next is chosen, and there is something special about it. */
static __attribute__((noinline, cold)) void gosched_to(struct m *mp, struct g *next)
{
	if (next->locked_m) {
		mp->pick = next;
		next = NULL;
	}
	mp->after_g = mp->curg;
	rt_exit_free(switch_from(mp, mp->curg, next, false));
}

/* Back, and the one before has left something to do. */
static __attribute__((noinline)) void gosched_back(struct m *mp)
{
	after_run(mp, true);
	*mp->errno_at = mp->curg->saved_errno;
	rt_exit_free(mp);
}

static inline __attribute__((always_inline)) void gosched_quickly(struct m *mp)
{
	struct p *pp = mp->p;
	struct g *gp = mp->curg, *next;
	uint32_t h, t;

	if (unlikely(!pp || gp->locked_m || !runq_only_woken(pp) || pp->fair_in == 1 ||
	             pp->latency_in == 1)) {
		gosched_slow(mp);
		return;
	}
	pp->fair_in--;
	/* acquire: as in ring_push; the tail is our own */
	h = load_acquire(&pp->woken.head);
	t = pp->woken.tail;
	if (h == t) {		/* nobody else */
		count_up(&pp->count.switches, 1);	/* for steal.c */
		if (unlikely(!rt_try_exit(mp)))
			rt_exit_free_slow(mp);
		return;
	}
	if (unlikely(t - h >= GORO_RUNQ_CAP)) {
		gosched_slow(mp);
		return;
	}
	pp->latency_in--;
	next = load_relaxed(&pp->woken.slot[h % GORO_RUNQ_CAP]);
	/* release: as in latency_ready and ring_push */
	store_release(&gp->status, G_RUNNABLE);
	store_relaxed(&pp->woken.slot[t % GORO_RUNQ_CAP], gp);
	store_release(&pp->woken.tail, t + 1);
	if (likely(runq_alone())) {
		store_relaxed(&pp->woken.head, h + 1);
	} else if (unlikely(!cas_acqrel(&pp->woken.head, &h, h + 1))) {
		gosched_queued(mp);
		return;
	}
	/* acquire: as in set_running */
	if (unlikely((uintptr_t)load_acquire(&next->mp) | (uintptr_t)next->locked_m) ||
	    unlikely(load_relaxed(&next->status) != G_RUNNABLE)) {
		gosched_to(mp, next);
		return;
	}
	gp->saved_errno = *mp->errno_at;
	mp->after_g = gp;
	store_relaxed(&next->status, G_RUNNING);
	store_relaxed(&next->mp, mp);
	store_relaxed(&mp->curg, next);
	count_up(&pp->count.switches, 1);
	tool_switch_start(&gp->tool, &next->tool);
	mp = context_switch(&gp->context, &next->context, mp);
	tool_switch_finish(&gp->tool);
	next = mp->after_g;	/* who ran before */
	if (unlikely(!next || mp->after_fn)) {
		gosched_back(mp);
		return;
	}
	mp->after_g = NULL;
	/* release: as in after_run */
	store_release(&next->mp, NULL);
	*mp->errno_at = gp->saved_errno;
	if (unlikely(!rt_try_exit(mp)))
		rt_exit_free_slow(mp);
}

/* A program with C++ in it, where that is all that is unusual, goes the quick way as well. */
static __attribute__((noinline)) void gosched_unusual(struct m *mp)
{
	if (load_relaxed(&sched.unusual) == HEED_CXX && likely(!cxx_any(mp)))
		gosched_quickly(mp);
	else
		gosched_slow(mp);
}

void goro_gosched(void)
{
	struct m *mp = m_self();

	if (unlikely(!rt_try_enter(mp)))
		gosched_enter_slow(mp);
	else if (unlikely(load_relaxed(&sched.unusual)))
		gosched_unusual(mp);
	else
		gosched_quickly(mp);
}

struct m *sched_yield_global(struct m *mp)
{
	latency_ready(mp->p, mp->curg);
	return sched_leave(mp, after_yield_global, NULL);
}

/* The idle P is looked for and the goroutine queued under one lock: a P that
 * goes idle in between would not look at the queue again. */
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
			pp->global_served = true;
	}
	return gp;
}

static void spinning_start(struct m *mp)
{
	mp->spinning = true;
	fetch_add_seqcst(&sched.spinning, 1);
	store_relaxed(&sched.need_spinning, 0);
}

/* Any P, but this one, with something in its queues? */
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

static bool others_seem_idle(void)
{
	return load_relaxed(&sched.idle_p_n) == load_relaxed(&sched.gomaxprocs) - 1;
}

/* Whether ours is the only P in use. Then there is no need for a barrier: what others have
 * queued before they became idle is gone, or in the global queue, which whoever comes
 * after the lock sees; and who gets a P after it, or queues something there, sees what we stored
 * before it. */
static bool others_are_idle(void)
{
	bool idle;

	if (!others_seem_idle())
		return false;
	lock_acquire(&sched.lock);
	idle = others_seem_idle();
	lock_release(&sched.lock);
	return idle;
}

void spinning_end(struct m *mp)
{
	bool hushed = timers_are_hushed(mp);

	check(mp->p);
	mp->spinning = false;
	/* seqcst: before the look at the queues, and that for idle Ps in wake */
	fetch_add_seqcst(&sched.spinning, -1);
	fence_seqcst();
	if (!p_to_spare())
		return;
	if (!others_are_idle())
		os_membarrier();	/* see wake */
	if (any_queued(hushed ? mp->p : NULL))
		wake();
}

/* With all other Ps idle there is nobody from whom there could be work to come, and with more
 * at work than there are CPUs its own is better left to them. */
static bool may_spin(struct m *mp)
{
	int idle = load_relaxed(&sched.idle_p_n), busy = load_relaxed(&sched.gomaxprocs) - idle;

	return mp->spinning || (busy > 1 && idle >= load_relaxed(&sched.unneeded_p) &&
	                        2 * load_relaxed(&sched.spinning) < busy);
}

/* Reads that were put off, now that there is nothing else. */
static struct g *take_untried(struct m *mp)
{
	if (likely(!mp->p->untried))
		return NULL;
	fd_guess_flush(mp);
	return runq_get(mp->p, &(bool){ false });
}

/* The last look of an M that was spinning and has released its P. True: it has
 * a P again and is to look again. As in wake, not with a P that there is no CPU for: that
 * would be a third thread where two have enough to do. Who sleeps next looks first. */
static bool look_again(struct m *mp)
{
	struct p *pp = NULL;

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

/* Gives the P up and sleeps, unless work turns up at the last moment. Returns
 * with a P, or false when the thread is to end. */
static bool release_and_sleep(struct m *mp)
{
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
	lock_release(&sched.lock);

	if (mp->spinning) {
		mp->spinning = false;
		/* seqcst: before look_again's look at the queues; see wake */
		fetch_add_seqcst(&sched.spinning, -1);
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
		store_relaxed(&mp->cpu, os_cpu());
		if (load_relaxed(&sched.stopping)) {
			world_stop_here(mp);
			if (!mp->p && !m_stop(mp))
				return NULL;
			continue;
		}
		if (unlikely(mp->p->folds)) {
			mp->p->folds = false;
			steal_doze(mp, os_now());
		}
		timers_run(mp, mp->p, 0);
		if (unlikely(netpoll_due()) && (gp = netpoll_look(mp)))
			return gp;
		if (unlikely(load_relaxed(&mp->p->untried_due)))
			fd_guess_late(mp);
		if (unlikely(fd_posts_due(mp->p)))
			fd_post_flush(mp);
		if ((gp = runq_get(mp->p, inherit)))
			return gp;
		if (fd_posts(mp->p)) {
			fd_post_flush(mp);
			continue;
		}
		if ((gp = fd_guess_try(mp)) ||
		    (gp = netpoll_look_if_wanted(mp)) || (gp = take_untried(mp)) || (gp = take_global(mp->p)))
			return gp;
		if (mp->p->trial.from)
			steal_dry(mp->p, os_now());
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
		bool inherit;

		after_run(mp, false);
		gp = mp->ending ? NULL : next_goroutine(mp, &inherit);
		if (unlikely(mp->owes_poke))
			timers_tell(mp);
		if (!gp)
			return;
		set_running(mp, gp, inherit);
		tool_switch_start(&mp->tool, &gp->tool);
		context_switch(&mp->sched_context, &gp->context, mp);
		tool_switch_finish(&mp->tool);
	}
}
