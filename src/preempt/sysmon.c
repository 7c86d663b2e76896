/*
 * sysmon.c - the thread that watches the others.
 *
 * sysmon has no P and takes no libc lock. At every tick it looks for goroutines that have
 * run for their whole slice and asks them to give way (retake.c). It keeps the coarse
 * clock, follows the CPU quota and says when stacks are cold (scavenge.c). The tick is
 * SYSMON_TICK_MIN_NS while there is something to do. When there was nothing for a while,
 * it doubles up to SYSMON_TICK_MAX_NS, as in Go.
 *
 * When every P is idle sysmon lingers for a few ticks, to see to what is left: cold
 * stacks, a deadlock that was not yet certain. Then it sleeps until an M takes a P from
 * the idle list: an idle process makes no system calls. If the keeper is to wake for a
 * timer, sysmon sleeps until SYSMON_AFTER_KEEPER_NS after that at most, and wakes another
 * thread should the keeper get no CPU. With schedtrace on sysmon never sleeps like that:
 * as in Go, the lines come at their interval even when nothing runs.
 *
 * Getting a CPU
 *
 * A goroutine that wakes beside others that compute depends on sysmon, and sysmon on the
 * kernel, which may let it wait until a thread's kernel slice is over, for milliseconds,
 * even with a high niceness. Where the process may, sysmon therefore runs before all
 * ordinary threads (SCHED_RR, the lowest priority), and leaves what takes long to other
 * threads. Where the process may not, sysmon has at least a short kernel slice, and
 * sleeps for longer than it was awake.
 *
 * Its share
 *
 * Such a thread takes a CPU from the threads that it serves. In one program that is 1 or
 * 2 % of a CPU. Where many such programs share a few CPUs, a goroutine waits for a CPU
 * and not for sysmon, and while any goroutine waits sysmon looks: the sysmons of 32
 * programs on two CPUs took half of the time. So where CPUs are short sysmon rests for
 * longer, until it takes no more than one part in SYSMON_SHARE of what its process does
 * (weigh).
 */
#include "base/debug.h"
#include "reclaim/evacuate.h"
#include "sched/netpoll.h"
#include "platform/os.h"
#include "sched/deadlock.h"
#include "sched/init.h"
#include "preempt/retake.h"
#include "preempt/preempt.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/timers.h"
#include "reclaim/scavenge.h"
#include "sched/work.h"

/* The shortest and the longest tick, and the idle ticks before it doubles: all Go's. */
#define SYSMON_TICK_MIN_NS 20000
#define SYSMON_TICK_MAX_NS 10000000
#define SYSMON_QUIET_TICKS 50

/* While nothing runs sysmon looks this long after the keeper's time: what the keeper
 * starts does not concern it before that. */
#define SYSMON_AFTER_KEEPER_NS SLICE_SHORT_NS
/* How late the keeper may be before another M is woken. A thread takes up to 100 us from
 * a timer to a CPU. */
#define SYSMON_KEEPER_NS 200000
/* While timers are dense (timers_slack) sysmon looks this often whether any M fires
 * them. */
#define SYSMON_DENSE_NS 1000000

/* After a look sysmon rests for this many times the CPU time of the look. */
#define SYSMON_REST 2

/* "Its share": one part in SYSMON_SHARE of what the process uses, weighed every
 * SYSMON_WEIGH_NS if sysmon uses more than one part in SYSMON_WEIGH_LEAST of a CPU. CPUs
 * are short if SYSMON_CROWD threads for each want one. */
#define SYSMON_SHARE       8
#define SYSMON_WEIGH_NS    10000000
#define SYSMON_WEIGH_LEAST 400
#define SYSMON_CROWD       2

/* sysmon watches the poller only in a sleep of at least this length. */
#define SYSMON_WATCH_NS 250000

/* The Ps are brisk if together they switch once in BRISK_EACH_NS, over SYSMON_PACE_NS. */
#define BRISK_EACH_NS  20000
#define SYSMON_PACE_NS 500000

/* How often sysmon looks for another CPU quota, while something runs and while nothing
 * does. A look takes three system calls. */
#define QUOTA_CHECK_NS      1000000000LL
#define QUOTA_CHECK_IDLE_NS (4 * QUOTA_CHECK_NS)

/* How long a stack lies unused before its memory is given back, also where nothing
 * runs. */
#define STACK_COLD_NS      1000000000LL
#define STACK_COLD_IDLE_NS 200000000LL
/* When nothing has run for this long, the memory of all cold stacks is given back. */
#define SCAVENGE_IDLE_NS   20000000

/* How often sysmon tells evacuate.c that the program has run. */
#define EVACUATE_NOTICE_NS 100000000

struct hook *at_tick;

static struct note sysmon_note;

struct watch {
	int64_t tick;

	/* Resting. */
	int64_t cpu;		/* sysmon's CPU time before this look */
	int64_t rest;		/* after each look at the least: see "Its share" */
	int64_t weighed_at;
	int64_t own_cpu;	/* sysmon's CPU time at weighed_at */
	int64_t all_cpu;	/* the process's CPU time at weighed_at; 0: not known */

	int quiet;		/* ticks in a row without anything to do */
	int lingered;		/* ticks in a row with all Ps idle */
	int64_t looked_at;	/* timers that were due by then are seen to */
	int64_t unwatched_at;	/* no M has looked at the poller since; 0: one has */
	int64_t quota_at, aged_at, noticed_at;	/* when slow_duties last did each */

	/* The pace of all Ps. */
	uint64_t switches;	/* of all Ps, at the last tick */
	int64_t ran_at;		/* the last tick at which there were more than before */
	int64_t paced_at;	/* when the pace was last judged; 0: not yet */
	uint64_t paced_switches;	/* since paced_at */
};

static void sysmon_poke(void)
{
	netpoll_watch_note_wake(&sysmon_note);
}

static void sysmon_wake(void)
{
	check(lock_is_held(&sched.lock) && monitor.asleep);
	store_relaxed(&monitor.asleep, false);
	sysmon_poke();
}

static void sysmon_rouse(void)
{
	int64_t until = load_relaxed(&sched.sysmon_until);

	check(lock_is_held(&sched.lock) && monitor.asleep);
	if (until == TIMER_NEVER || until - os_now() > SYSMON_AFTER_KEEPER_NS)
		sysmon_wake();
	else
		store_relaxed(&monitor.asleep, false);	/* as in a tick */
}

static void sysmon_somebody_waits(void)
{
	if (!p_to_spare() &&
	    load_relaxed(&sched.sysmon_until) > os_now() + SLICE_SHORT_NS)
		sysmon_poke();
}

/* Whether nothing runs, and the keeper is on its way from its sleep. Another M would find
 * nothing to do, and stand in its way in the kernel's queues and in ours. */
static bool keeper_comes(int64_t now)
{
	int64_t late = now - load_seqcst(&sched.keeper_until);

	return all_idle() && late >= 0 && late < SYSMON_KEEPER_NS;
}

/* Sees to it that an M looks at timers that are due: an idle M, or the M with their P.
 * Returns how soon to look whether the keeper did; TIMER_NEVER: not needed. */
static int64_t timers_due(int64_t now)
{
	bool any = false;

	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++) {
		struct p *pp = p_at(i);
		struct m *mp = load_acquire(&pp->mp);

		if (load_relaxed(&pp->timers.min_when) > now)
			continue;
		any = true;
		if (mp)
			fetch_or_acqrel(&mp->attn, ATTN_TIMERS);
	}
	if (!any || load_relaxed(&sched.idle_p_n) == 0)
		return TIMER_NEVER;
	if (keeper_comes(now))
		return SYSMON_KEEPER_NS;
	fence_seqcst();
	if (load_relaxed(&sched.spinning) == 0)
		wake_slow();	/* whether there is a CPU or not */
	return TIMER_NEVER;
}

/* Whether the timers are the keeper's: while nothing runs. When it leaves, and timers are
 * due before the tick is over, it says so (sysmon_watch_timers). It leaves under
 * sched.lock: either it is seen to be gone here, or it sees until when sysmon sleeps. */
static bool keeper_watches(void)
{
	bool watches;

	if (!all_idle())
		return false;
	lock_acquire(&sched.lock);
	watches = all_idle() && sched.keeper && timers_earliest() >= load_seqcst(&sched.keeper_until);
	lock_release(&sched.lock);
	return watches;
}

/* In deep_sleep sysmon is woken by the M that takes the first P instead. */
static void sysmon_watch_timers(void)
{
	int64_t until = load_seqcst(&sched.sysmon_until);

	if (until != TIMER_NEVER && load_relaxed(&sched.timer_slack) == 0 && timers_earliest() < until)
		sysmon_poke();
}

/* Whether to watch the poller in the next sleep. A thread that makes a descriptor ready
 * then wakes sysmon, and may lose its CPU to it. After sysmon made a P pick another
 * goroutine it sleeps shortly, and leaves the poller to that P for a while. */
static bool is_to_watch(struct watch *w, int64_t now, int64_t until)
{
	if (!netpoll_unattended(now)) {
		w->unwatched_at = 0;
		return false;
	}
	if (w->unwatched_at == 0)
		w->unwatched_at = now;
	return until - now >= SYSMON_WATCH_NS || now - w->unwatched_at >= NETPOLL_LOAD_NS;
}

/* How long to rest after a look: longer than it took ("Getting a CPU"), by CPU time,
 * since sysmon may have been without a CPU. */
static int64_t rest_after_look(struct watch *w)
{
	int64_t cpu = os_thread_cpu(0), rest;

	if (cpu < w->cpu)
		cpu = w->cpu;	/* a sandbox denies the clock, which then reads 0 */
	rest = SYSMON_REST * (cpu - w->cpu);
	w->cpu = cpu;
	return rest > w->rest ? rest : w->rest;
}

/* The kernel adds up the process's time over all threads, so sysmon asks only while it
 * uses a noticeable part of a CPU itself. */
static void weigh(struct watch *w, int64_t now)
{
	int64_t own = w->cpu, all, own_before = w->own_cpu, all_before = w->all_cpu;
	bool heavy;

	if (now - w->weighed_at < SYSMON_WEIGH_NS || debug.noshare)
		return;
	heavy = (own - own_before) * SYSMON_WEIGH_LEAST >= now - w->weighed_at;
	all = heavy ? os_process_cpu() : 0;
	check(own >= own_before && w->rest > 0 && w->rest <= SYSMON_TICK_MAX_NS);
	w->weighed_at = now;
	w->own_cpu = own;
	w->all_cpu = all;
	if (heavy && all_before && (own - own_before) * SYSMON_SHARE > all - all_before &&
	    os_cpus_crowded(SYSMON_CROWD))
		w->rest = soonest(2 * w->rest, SYSMON_TICK_MAX_NS);
	else if (w->rest > SYSMON_TICK_MIN_NS)
		w->rest /= 2;
}

/* Sleeps for a tick, until the next timer or until poked. Stores when sysmon will look
 * before it reads the timers ("The keeper" in idle.c). Those due at the last look are
 * with the Ps. Dense timers are not looked at one by one. */
static void tick_sleep(struct watch *w)
{
	int64_t tick = w->tick, now = os_now(), until = now + tick, earliest;
	int64_t rest = rest_after_look(w);

	store_seqcst(&sched.sysmon_until, until);
	earliest = timers_earliest_after(w->looked_at);
	if (earliest < until && !keeper_watches()) {
		if (timers_slack(timers_earliest()) != 0 && earliest < now + SYSMON_DENSE_NS)
			earliest = now + SYSMON_DENSE_NS;
		until = soonest(until, earliest);
	}
	store_seqcst(&sched.sysmon_until, until);
	/* sysmon_until stays: else each timer in between would wake us. */
	if (until < now + rest)
		until = now + rest;
	check(rest > 0 && until > now);
	store_relaxed(&monitor.looks_at, until);
	if (is_to_watch(w, now, until))
		netpoll_watch_sleep(&sysmon_note, until - now);
	else
		note_sleep_for(&sysmon_note, until - now);
}

/* When sysmon is to look although no M tells it that a P is in use. sched.lock held. */
static int64_t after_keeper(void)
{
	int64_t until = load_seqcst(&sched.keeper_until);

	check(lock_is_held(&sched.lock));
	if (until == TIMER_NEVER)
		return until;
	return until + load_relaxed(&sched.timer_slack) + SYSMON_AFTER_KEEPER_NS;
}

/* Whether something is left to see to although nothing runs. */
static bool unfinished(void)
{
	return g_pool_cached_bytes() != 0 || deadlock_unsure();
}

/* Idle ticks of 10 ms after which even what is unfinished is left alone. */
#define LINGER_TICKS 100
/* The first of these: work that comes at shorter intervals does not wake sysmon. */
#define LINGER_FIRST_NS (2 * SYSMON_TICK_MAX_NS)

/* Whether the keeper sees to everything while sysmon sleeps until `until`. sched.lock
 * held. It does not see to
 *
 *	- timers that it will not look at in time. There may be no keeper, if there is no
 *	  M yet, and an M that started a timer may have left sysmon asleep because sysmon
 *	  was to look;
 *	- descriptors, while it does not wait in the poller. */
static bool keeper_sees_to_all(int64_t until)
{
	check(lock_is_held(&sched.lock));
	store_seqcst(&sched.sysmon_until, until);
	store_relaxed(&monitor.looks_at, until);
	return all_idle() && (!netpoll_on() || sched.keeper_polls) &&
	       timers_earliest() >= load_seqcst(&sched.keeper_until);
}

/* True: an M took a P from the idle list, or there is something to see to. False: the
 * keeper was to wake SYSMON_AFTER_KEEPER_NS ago. */
static bool deep_sleep(void)
{
	bool asleep, woken = true;
	int64_t until;

	lock_acquire(&sched.lock);
	check(!monitor.asleep);		/* only sysmon sets it */
	until = after_keeper();
	/* A keeper that fell asleep while no P was idle is to wait in the poller now. */
	if (netpoll_on() && !sched.keeper_polls && sched.keeper && all_idle())
		m_poke_locked();
	asleep = keeper_sees_to_all(until);
	store_relaxed(&monitor.asleep, asleep);
	lock_release(&sched.lock);
	if (!asleep)
		return true;
	if (until == TIMER_NEVER)
		note_sleep(&sysmon_note);
	else
		woken = note_sleep_for(&sysmon_note, until - os_now());
	if (!load_relaxed(&monitor.asleep))
		return woken;	/* the caller of sysmon_wake may still hold the lock */
	lock_acquire(&sched.lock);
	store_relaxed(&monitor.asleep, false);
	lock_release(&sched.lock);
	return woken;
}

/* look: how soon the Ps are to be looked at again. */
static void next_tick(struct watch *w, int64_t look)
{
	if (w->quiet++ < SYSMON_QUIET_TICKS) {
		w->tick = SYSMON_TICK_MIN_NS;
		return;
	}
	check(w->tick > 0 && w->tick <= LINGER_FIRST_NS);
	w->tick = soonest(look == TIMER_NEVER ? 2 * w->tick : look, SYSMON_TICK_MAX_NS);
}

/* Switches on all Ps since the last tick. */
static uint64_t count_switches(struct watch *w)
{
	uint64_t before = w->switches;

	w->switches = 0;
	check(m_self()->is_foreign && !m_self()->p);
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++)
		w->switches += load_relaxed(&p_at(i)->count.switches);
	return w->switches - before;
}

/* See p_for_events. When the Ps become slow, a keeper is to wait in the poller again. */
static void judge_pace(struct watch *w, uint64_t switches, int64_t now)
{
	bool brisk, was_brisk = load_relaxed(&monitor.brisk);
	int64_t ns = now - w->paced_at;

	check(ns >= 0);
	w->paced_switches += switches;
	if (ns < SYSMON_PACE_NS || debug.nobrisk)
		return;
	brisk = w->paced_at != 0 && w->paced_switches * BRISK_EACH_NS >= (uint64_t)ns;
	w->paced_at = now;
	w->paced_switches = 0;
	if (brisk == was_brisk)
		return;
	store_relaxed(&monitor.brisk, brisk);
	if (!brisk && netpoll_on() && !p_to_spare())
		m_poke_keeper();
}

/* Whether nothing has run for SCAVENGE_IDLE_NS. */
static bool was_idle(struct watch *w, uint64_t switches, int64_t now)
{
	if (switches != 0)
		w->ran_at = now;
	return w->lingered > 0 && now - w->ran_at >= SCAVENGE_IDLE_NS;
}

static void slow_duties(struct watch *w, int64_t now)
{
	uint64_t switches = count_switches(w);
	bool idle = was_idle(w, switches, now);

	judge_pace(w, switches, now);

	if (now - w->aged_at >= (idle ? STACK_COLD_IDLE_NS : STACK_COLD_NS)) {
		w->aged_at = now;
		g_pool_age();
	}
	scavenge_notice(idle);
	if (now - w->quota_at >= (all_idle() ? QUOTA_CHECK_IDLE_NS : QUOTA_CHECK_NS)) {
		w->quota_at = now;
		procs_follow_machine();
	}
	if (now - w->noticed_at >= EVACUATE_NOTICE_NS) {
		w->noticed_at = now;
		evacuate_notice();
	}
	hook_run(at_tick);
}

/* If no M has woken sysmon it goes on as after an idle tick: the timer's goroutine has
 * just begun. If that happens often sysmon lingers instead. */
static void sleep_and_begin_anew(struct watch *w)
{
	int64_t began = os_now();

	if (deep_sleep()) {
		*w = (struct watch){ .tick = SYSMON_TICK_MIN_NS, .quota_at = w->quota_at,
		                     .cpu = w->cpu, .rest = w->rest, .weighed_at = w->weighed_at,
		                     .own_cpu = w->own_cpu, .all_cpu = w->all_cpu };
		return;
	}
	w->tick = SYSMON_AFTER_KEEPER_NS;
	if (os_now() - began < LINGER_FIRST_NS)
		w->lingered = 0;
}

/* All Ps are idle: lingers, or sleeps. */
static void idle_tick(struct watch *w)
{
	w->tick = w->lingered == 0 ? LINGER_FIRST_NS : SYSMON_TICK_MAX_NS;
	w->quiet = SYSMON_QUIET_TICKS;
	if (w->lingered++ == 0 || (unfinished() && w->lingered < LINGER_TICKS) || debug.schedtrace > 0) {
		tick_sleep(w);
		if (deadlock_unsure()) {
			lock_acquire(&sched.lock);
			deadlock_check();
			lock_release(&sched.lock);
		}
		return;
	}
	evacuate_notice();
	sleep_and_begin_anew(w);
}

static void *sysmon_thread(void *arg)
{
	struct watch w = { .tick = SYSMON_TICK_MIN_NS, .rest = SYSMON_TICK_MIN_NS };

	(void)arg;
	m_make_spawner();	/* now: no goroutine can have been stopped yet, see m.c */
	foreign_attach(M_STACK_BYTES);	/* an M, so that it can stop the world */
	os_thread_name("goro-sysmon");
	os_thread_punctual();
	if (debug.nourgent || !os_thread_urgent(true))
		os_thread_slice(0, SYSMON_KERNEL_SLICE_NS);
	w.cpu = os_thread_cpu(0);
	for (;;) {
		int64_t now, look;

		if (all_idle()) {
			idle_tick(&w);
		} else {
			w.lingered = 0;
			tick_sleep(&w);
		}
		now = os_now();
		store_relaxed(&sched.coarse_now, now);
		w.looked_at = now - load_relaxed(&sched.timer_slack);
		look = timers_due(w.looked_at);
		look = soonest(look, work_watch(now));
		look = soonest(look, soonest(retake_look(now), netpoll_tick(now)));
		next_tick(&w, look);
		slow_duties(&w, now);
		weigh(&w, now);
	}
	return NULL;
}

static void sysmon_init(void)
{
	m_make_other(sysmon_thread, true);
}

HOOK(at_threads, 0, sysmon_init);

static void fill_monitor(void)
{
	monitor.wake = sysmon_wake;
	monitor.rouse = sysmon_rouse;
	monitor.poke = sysmon_poke;
	monitor.watch_timers = sysmon_watch_timers;
	monitor.somebody_waits = sysmon_somebody_waits;
}
AT_LOAD(fill_monitor);
