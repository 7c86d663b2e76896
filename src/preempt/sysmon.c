/*
 * sysmon.c - the thread that watches the others.
 *
 * It has no P and takes no libc lock. Every tick it looks for goroutines that
 * have run for their whole slice and asks them to give way at the end of their
 * runtime call; it keeps the coarse clock, follows the CPU quota and says when
 * stacks are cold (scavenge.c). The tick is 20 us while there is something to do and doubles up
 * to 10 ms when there was nothing for a while, as in Go.
 *
 * When every P is idle it lingers for a few ticks, to see to what is left over
 * (cold stacks, a deadlock that was not yet certain), and then sleeps until a P is
 * taken from the idle list: an idle process makes no system calls. If the keeper is
 * to wake for a timer, sysmon has an alarm of its own shortly after that, and is not
 * woken then. Most of those who wake for a timer are asleep again by the alarm: once one
 * has gone off for nothing, the keeper puts the next off (sysmon_put_off), until after the
 * next timer. A system call, and not a thread that wakes, is what it costs, and a
 * descriptor to begin with; and should the keeper get no CPU when its time comes, somebody
 * else is woken at the alarm. With schedtrace on sysmon never sleeps like that: as in Go,
 * the lines come at their interval even when nothing runs.
 *
 * Getting a CPU
 *
 * Who wakes beside those who compute depends on sysmon, and sysmon on the kernel, which
 * may let it wait until somebody's slice is over: 4 ms. (It gives a CPU to nobody who has
 * just had more than its share, and looks again only at its next tick; even a high
 * niceness does not help.) Where the process may, sysmon therefore runs before all ordinary
 * threads (SCHED_RR, the lowest priority), and leaves what takes long to others. (A sleep of
 * 1 ms beside two hogs a P, 2 Ps, 99th percentile: 0.3 ms late, and 3 without.) Where it
 * may not, it has at least a short slice, and sleeps for longer than it was awake.
 *
 * Its share
 *
 * Such a thread takes a CPU from those it is there for. In one program that is 1 or 2 in a
 * hundred. But where many programs like this one share a few CPUs, each gets little, what it has to
 * do waits for a CPU and not for sysmon, and while anything waits sysmon looks: 32 programs on two CPUs, and half of
 * the time went to their sysmons; built with a tool that makes each look expensive, all of it, for
 * minutes, since nobody else came to an end with anything. So where CPUs are short it does not take more than
 * an eighth of what its process does, by resting for longer (weigh).
 *
 * Whose CPU
 *
 * Such a thread wakes where it slept, whoever runs there, and stays there for good while
 * another CPU is idle: the kernel moves ordinary threads only. Each look then stops one of
 * our Ps for the timer and two switches (a thousand looks a second, 5 % of what a P could
 * do). So when it finds itself on the CPU of a running P it moves to one that has none, if
 * there is one for good: not where all are in use, and one's goroutine has just left it.
 */
#include "debug.h"
#include "evacuate.h"
#include "fd.h"
#include "netpoll.h"
#include "os.h"
#include "procs.h"
#include "retake.h"
#include "runq.h"
#include "runtime.h"
#include "scavenge.h"
#include "schedtrace.h"

static struct note sysmon_note;
static int alarm_fd = -1;	/* os_alarm_make's; -1: none yet, or none can be had */
static bool alarm_went_off;	/* once: the next had better be put off */
static uint32_t at_alarm;	/* sysmon sleeps there, or is about to */
static int sysmon_tid;
static int64_t last_look;

struct watch {
	bool urgent;		/* goes before all ordinary threads */
	int64_t tick;
	int64_t woke_at;
	bool long_look;		/* the last took long: this one's CPU time is counted, since .. */
	int64_t cpu_before;
	int64_t rest;		/* after each look at the least, for its share; it was weighed .. */
	int64_t weighed_at;
	int64_t own_cpu, all_cpu;	/* .. with these, its own and the process's; all_cpu 0: not known */
	int quiet;		/* ticks in a row without anything to do */
	int lingered;
	int64_t looked_at;	/* timers that were due by then are seen to */
	int64_t unwatched_at;	/* nobody has looked at the poller since then at the latest; 0: somebody has */
	int64_t quota_at, aged_at, noticed_at;
	int64_t moved_at;	/* to another CPU, or tried to */
	uint64_t switches;	/* of all Ps, at the last tick, .. */
	int64_t ran_at;		/* .. when there were last more than before */
	int64_t paced_at;	/* when it was last judged how quickly they switch; 0: not yet */
	uint64_t paced_switches;	/* .. since then */
};

/* At the alarm, or about to be. Where the program has closed it the thread gets a signal: it
 * makes another. */
static void set_alarm(int64_t when)
{
	if (os_alarm_set(load_relaxed(&alarm_fd), when) < 0)
		os_signal(load_relaxed(&sysmon_tid), SIG_PREEMPT);
}

void sysmon_poke(void)
{
	/* seqcst: see alarm_sleep */
	store_seqcst(&sysmon_note.word, 1);
	if (load_seqcst(&at_alarm))
		set_alarm(0);
	else
		netpoll_watch_note_wake(&sysmon_note);
}

void sysmon_wake(void)
{
	store_relaxed(&sched.sysmon_asleep, false);
	store_relaxed(&sched.sysmon_alarmed, false);
	sysmon_poke();
}

void sysmon_rouse(void)
{
	int64_t alarm = load_relaxed(&sched.sysmon_until);

	if (alarm == TIMER_NEVER || alarm - os_now() > SYSMON_ALARM_NS)
		sysmon_wake();
	else
		store_relaxed(&sched.sysmon_asleep, false);	/* it sleeps for a tick, as it were */
}

void sysmon_somebody_waits(void)
{
	if (!p_to_spare() &&
	    load_relaxed(&sched.sysmon_until) > os_now() + SLICE_SHORT_NS)
		sysmon_poke();
}

/* Nothing runs, and the keeper's sleep has just ended, or should have: it takes a while to come. Another
 * M would find nothing left to do, and stand in the way of those who are woken now, in the
 * kernel's queues and, since it counts as looking for work, in ours. */
static bool keeper_comes(int64_t now)
{
	int64_t late = now - load_seqcst(&sched.keeper_until);

	return all_idle() && late >= 0 && late < SYSMON_KEEPER_NS;
}

/* Sees to it that timers that are due are looked at: by an idle M, or by the M
 * that has their P. How soon to look whether the keeper did; TIMER_NEVER: it need not. */
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

/* While nothing runs the timers are the keeper's. When it leaves, for whatever it has to
 * do, and some are due before the tick is over, it says so (sysmon_watch_timers): it
 * leaves under sched.lock, so either it is seen to be gone here, or it sees until when
 * we sleep. */
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

/* Deep asleep it is woken by whoever takes the first P. */
void sysmon_watch_timers(void)
{
	int64_t until = load_seqcst(&sched.sysmon_until);

	if (until != TIMER_NEVER && load_relaxed(&sched.timer_slack) == 0 && timers_earliest() < until)
		sysmon_poke();
}

/* Whoever makes a descriptor ready that is watched wakes us, and gives its CPU up for it. We
 * sleep shortly when a P was just made to pick another goroutine. That may well write to a
 * socket and wait for the answer, and then its P looks at the poller itself. So it is
 * left to itself for a while. */
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

/* How long to rest after a look, at the least: longer than it was awake, see "Getting a CPU". Awake
 * for long, it may have been without a CPU, and that is no reason to rest for longer yet. Or there
 * are a thousand Ps to look at, and then a thread that goes before all others must not
 * do so most of the time. Its CPU time tells, which takes a system call, so it is asked for only after
 * another long look. */
static int64_t rest_after_look(struct watch *w, int64_t now)
{
	int64_t rest = SYSMON_REST * (now - w->woke_at);
	bool counted = w->long_look;

	w->long_look = rest > SYSMON_REST_MAX_NS;
	if (w->long_look) {
		rest = counted ? SYSMON_REST * (os_thread_cpu(0) - w->cpu_before) : 0;
		rest = rest > SYSMON_REST_MAX_NS ? rest : SYSMON_REST_MAX_NS;
	}
	return rest > w->rest ? rest : w->rest;
}

/* See "Its share". The kernel adds up the process's time over all of its threads, so that is
 * asked for only while there is reason to. */
static void weigh(struct watch *w, int64_t now)
{
	int64_t own, all, own_before = w->own_cpu, all_before = w->all_cpu;
	bool heavy;

	if (now - w->weighed_at < SYSMON_WEIGH_NS)
		return;
	own = os_thread_cpu(0);
	heavy = (own - own_before) * SYSMON_WEIGH_LEAST >= now - w->weighed_at;
	all = heavy ? os_process_cpu() : 0;
	w->weighed_at = now;
	w->own_cpu = own;
	w->all_cpu = all;
	if (heavy && all_before && (own - own_before) * SYSMON_SHARE > all - all_before &&
	    os_cpus_crowded(SYSMON_CROWD))
		w->rest = soonest(2 * w->rest, SYSMON_TICK_MAX_NS);
	else if (w->rest > SYSMON_TICK_MIN_NS)
		w->rest /= 2;
}

/* Sleeps for a tick, or until the next timer if that is earlier, or until poked.
 * Stores when it will look before it reads the timers: see "The keeper" in
 * idle.c. Timers that were due at the last look are with the Ps. Where
 * they are dense it does not look at each, but often enough to see that nobody does. */
static void tick_sleep(struct watch *w)
{
	int64_t tick = w->tick, now = os_now(), until = now + tick, earliest;
	int64_t rest = rest_after_look(w, now);

	store_seqcst(&sched.sysmon_until, until);
	earliest = timers_earliest_after(w->looked_at);
	if (earliest < until && !keeper_watches()) {
		if (timers_slack(timers_earliest()) != 0 && earliest < now + SYSMON_DENSE_NS)
			earliest = now + SYSMON_DENSE_NS;
		until = soonest(until, earliest);
	}
	store_seqcst(&sched.sysmon_until, until);
	/* Not in what others see: they would wake us for each timer in between. */
	if (until < now + rest)
		until = now + rest;
	if (is_to_watch(w, now, until))
		netpoll_watch_sleep(&sysmon_note, until - now);
	else
		note_sleep_for(&sysmon_note, until - now);
}

/* When to look although nobody says that a P is in use: the keeper does not. sched.lock
 * held, and the keeper's word may change: it is woken then if that is for long. */
static int64_t alarm_after_keeper(void)
{
	int64_t until = load_seqcst(&sched.keeper_until);

	return until == TIMER_NEVER ? until : until + load_relaxed(&sched.timer_slack) + SYSMON_ALARM_NS;
}

/* Something is left to see to although nothing runs. */
static bool unfinished(void)
{
	return g_pool_cached() != 0 || deadlock_unsure();
}

/* Idle ticks of 10 ms after which even what is unfinished is left alone. */
#define LINGER_TICKS 100
/* The first of them: what comes at shorter intervals does not wake sysmon each time. */
#define LINGER_FIRST_NS (2 * SYSMON_TICK_MAX_NS)

/* All that concerns us is the keeper's, if we look at alarm at the latest. sched.lock held.
 * Timers that the keeper will not look at in time are ours: there may be none (no M at
 * all yet), and who started them may have left it asleep because we were to look. So are
 * descriptors that nobody waits for in the poller. */
static bool keeper_sees_to_all(int64_t alarm)
{
	store_seqcst(&sched.sysmon_until, alarm);
	return all_idle() && (!netpoll_on() || sched.keeper_polls) &&
	       timers_earliest() >= load_seqcst(&sched.keeper_until);
}

/* Others wake us there by setting the alarm, whoever sets it last:
 *
 *	here                    sysmon_poke             sysmon_put_off
 *	at_alarm = 1            note = 1                alarm = later
 *	read note               read at_alarm           read note
 *	 1: do not sleep         1: alarm = at once      1: alarm = at once
 *
 * True: woken; false: it is time. */
static bool alarm_sleep(int64_t alarm)
{
	int fd = load_relaxed(&alarm_fd);

	if (os_alarm_set(fd, alarm) < 0) {
		store_relaxed(&alarm_fd, -1);	/* the program has closed it, or it is another */
		return note_sleep_for(&sysmon_note, alarm - os_now());
	}
	store_seqcst(&at_alarm, 1);
	if (load_seqcst(&sysmon_note.word) == 0)
		os_alarm_sleep(fd);
	store_seqcst(&at_alarm, 0);
	/* acquire: what the waker did; pairs with sysmon_poke */
	return exchange_acquire(&sysmon_note.word, 0) != 0;
}

void sysmon_put_off(void)
{
	int64_t old, alarm;

	if (!load_relaxed(&sched.sysmon_alarmed) || unfinished())
		return;
	lock_acquire(&sched.lock);
	old = load_relaxed(&sched.sysmon_until);
	alarm = alarm_after_keeper();
	if (!sched.sysmon_alarmed || sched.sysmon_asleep || alarm - old < LINGER_FIRST_NS ||
	    os_now() - load_relaxed(&last_look) > QUOTA_CHECK_IDLE_NS) {
		lock_release(&sched.lock);
		return;
	}
	if (keeper_sees_to_all(alarm)) {
		store_relaxed(&sched.sysmon_asleep, true);
		set_alarm(alarm);
		if (load_seqcst(&sysmon_note.word))
			set_alarm(0);
	} else {
		store_seqcst(&sched.sysmon_until, old);
	}
	lock_release(&sched.lock);
}

/* Sleeps until a P is in use again: true. False: until the alarm, or there was no sleep. */
static bool deep_sleep(void)
{
	bool asleep, alarmed, woken = true;
	int64_t alarm;

	if (load_relaxed(&alarm_fd) < 0 && alarm_went_off)
		store_relaxed(&alarm_fd, os_alarm_make());
	lock_acquire(&sched.lock);
	alarm = alarm_after_keeper();
	/* A keeper that went to sleep when no P was idle is to wait in the poller now. */
	if (netpoll_on() && !sched.keeper_polls && sched.keeper && all_idle())
		m_poke_locked();
	asleep = keeper_sees_to_all(alarm);
	alarmed = asleep && load_relaxed(&alarm_fd) >= 0 && alarm != TIMER_NEVER;
	store_relaxed(&sched.sysmon_asleep, asleep);
	store_relaxed(&sched.sysmon_alarmed, alarmed);
	lock_release(&sched.lock);
	if (!asleep)
		return true;
	if (alarmed)
		woken = alarm_sleep(alarm);
	else if (alarm == TIMER_NEVER)
		note_sleep(&sysmon_note);
	else
		woken = note_sleep_for(&sysmon_note, alarm - os_now());
	alarm_went_off |= !woken;
	if (!load_relaxed(&sched.sysmon_asleep) && !load_relaxed(&sched.sysmon_alarmed))
		return woken;	/* sysmon_wake, whose caller may still hold the lock */
	lock_acquire(&sched.lock);
	store_relaxed(&sched.sysmon_asleep, false);
	store_relaxed(&sched.sysmon_alarmed, false);
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
	w->tick = soonest(look == TIMER_NEVER ? 2 * w->tick : look, SYSMON_TICK_MAX_NS);
}

/* How many goroutines were given a P since the last look. */
static uint64_t count_switches(struct watch *w)
{
	uint64_t before = w->switches;

	w->switches = 0;
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++)
		w->switches += load_relaxed(&p_at(i)->count.switches);
	return w->switches - before;
}

/* See p_for_events. A keeper that left the poller to those who run is to wait there again when they
 * are slow. */
static void judge_pace(struct watch *w, uint64_t switches, int64_t now)
{
	bool brisk, was_brisk = load_relaxed(&sched.brisk);
	int64_t ns = now - w->paced_at;

	w->paced_switches += switches;
	if (ns < SYSMON_PACE_NS)
		return;
	brisk = w->paced_at != 0 && w->paced_switches * BRISK_EACH_NS >= (uint64_t)ns;
	w->paced_at = now;
	w->paced_switches = 0;
	if (brisk == was_brisk)
		return;
	store_relaxed(&sched.brisk, brisk);
	if (!brisk && netpoll_on() && !p_to_spare())
		m_poke_keeper();
}

/* Nothing has run for a while. */
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
	schedtrace_tick(now);
}

/* After the alarm it goes on as after an idle tick: whoever runs has just begun, or is
 * asleep again, and if that happens often it had better linger. */
static void sleep_and_begin_anew(struct watch *w)
{
	int64_t began = os_now();

	if (deep_sleep()) {
		*w = (struct watch){ .urgent = w->urgent, .tick = SYSMON_TICK_MIN_NS, .quota_at = w->quota_at,
		                     .rest = w->rest, .weighed_at = w->weighed_at, .own_cpu = w->own_cpu,
		                     .all_cpu = w->all_cpu };
		return;
	}
	w->tick = SYSMON_ALARM_NS;
	if (os_now() - began < LINGER_FIRST_NS)
		w->lingered = 0;
}

/* All Ps are idle: lingers, or sleeps. */
static void idle_tick(struct watch *w)
{
	w->tick = w->lingered == 0 ? LINGER_FIRST_NS : SYSMON_TICK_MAX_NS;
	w->quiet = SYSMON_QUIET_TICKS;
	if (w->lingered++ == 0 || (unfinished() && w->lingered < LINGER_TICKS) || schedtrace_on()) {
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

/* See "Whose CPU". */
static void keep_off(struct watch *w, int64_t now)
{
	struct os_cpus busy = { { 0 } };
	int here = os_cpu();
	bool in_the_way = false;

	if (!w->urgent || !os_many_cpus || now - w->moved_at < SYSMON_MOVE_NS || !procs_leave_a_cpu())
		return;
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++) {
		struct m *mp = load_acquire(&p_at(i)->mp);
		int cpu = mp ? load_relaxed(&mp->cpu) : -1;

		os_cpus_add(&busy, cpu);
		in_the_way |= cpu == here;
	}
	if (!in_the_way)
		return;
	w->moved_at = now;
	os_thread_leave_cpus(&busy);
}

static void *sysmon_thread(void *arg)
{
	struct watch w = { .tick = SYSMON_TICK_MIN_NS, .rest = SYSMON_TICK_MIN_NS };

	(void)arg;
	m_make_spawner();	/* now: nobody can have been stopped yet, see m.c */
	foreign_attach(M_STACK_BYTES);	/* an M, so that it can stop the world */
	os_thread_name("goro-sysmon");
	store_relaxed(&sysmon_tid, os_tid());
	os_thread_punctual();
	w.urgent = !debug.nourgent && os_thread_urgent(true);
	if (!w.urgent)
		os_thread_slice(0, SYSMON_KERNEL_SLICE_NS);
	for (;;) {
		int64_t now, look;

		if (all_idle()) {
			idle_tick(&w);
		} else {
			w.lingered = 0;
			tick_sleep(&w);
		}
		now = w.woke_at = os_now();
		if (w.long_look)
			w.cpu_before = os_thread_cpu(0);
		store_relaxed(&last_look, now);
		store_relaxed(&sched.coarse_now, now);
		w.looked_at = now - load_relaxed(&sched.timer_slack);
		look = timers_due(w.looked_at);
		look = soonest(look, soonest(retake_look(now), netpoll_tick(now)));
		next_tick(&w, soonest(look, fd_post_look(m_self(), now)));
		slow_duties(&w, now);
		keep_off(&w, now);
		weigh(&w, now);
	}
	return NULL;
}

void sysmon_init(void)
{
	m_make_other(sysmon_thread);
}
