/*
 * retake.c - a P whose goroutine blocks in the kernel, or runs for too long.
 *
 * sysmon looks at each P that has been in the same time slice for a while although a
 * goroutine waits for it. This file gathers what sysmon sees. A pure function decides
 * what to do (retake_decide.c), and this file does it. There are three cases:
 *
 *	- The M is in an announced call (goro_syscall_enter): sysmon takes the P.
 *	- The M sleeps in the kernel, unannounced: sysmon takes the P, without a signal,
 *	  so that no call of the program's fails with EINTR. A CPU clock that stands still
 *	  is only a hint, since the thread may wait for a CPU; /proc/self/task/TID/syscall
 *	  settles it. Where that cannot be read, sysmon takes the P on the hint: a thread
 *	  that is not on a CPU has no use for it. That thread never gets a signal, which
 *	  might restart a sleep with all its time.
 *	- The M runs: when its slice is over, sysmon asks it to give way, and sends the
 *	  preemption signal.
 *
 * A slice is SLICE_NS if only goroutines wait that have had their slice (in the global
 * queue). It is SLICE_SHORT_NS if a goroutine waits that was just started or woken (in
 * the P's own queues, or fresh in the global one), if a timer is due, or if the poller
 * has events; for events one P is enough.
 *
 * An M that does not answer the signal has no CPU itself: on a busy machine it would hold
 * the P without using it until the kernel runs it again. sysmon takes the P as from an M
 * that sleeps. A P may also be on its way to a thread that was woken for it and gets no
 * CPU: sysmon calls it back for a goroutine that just came (m_recall_p).
 *
 * After it took a P, sysmon looks again every LOOK_SOON_NS, since where one M blocks on a
 * lock others soon will, and each waits for a look. When QUICK_LOOKS looks have found
 * nothing to take, each interval is twice the one before. Rejected: forty quick looks
 * after each take. Where many goroutines block, sysmon then used so much CPU time that
 * the kernel let it wait for tens of milliseconds.
 *
 * An M whose P was taken goes on without one when its call returns. If it then computes
 * instead of entering the runtime, it is stopped, too, by the signal (chase).
 *
 * A goroutine that sleeps on a lock whose holder was stopped: see convoy.c.
 */
#include "preempt/retake.h"

#include "preempt/convoy.h"
#include "base/debug.h"
#include "sched/blockers.h"
#include "sched/netpoll.h"
#include "platform/os.h"
#include "preempt/preempt.h"
#include "preempt/retake_decide.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/work.h"

/* Stopped goroutines for each P that are many. A goroutine that has not begun then waits
 * for a whole slice, and slices are CPU time. */
#define STOPPED_MANY 2

/* Looks at intervals of LOOK_SOON_NS after one found a P to take, before they become
 * rarer. */
#define QUICK_LOOKS 8

/* A goroutine that has used up this many slices, and was never seen asleep, is not looked
 * at before its slice is over: a look costs a timer and two switches, 20 us on the
 * virtual machine where it was measured. */
#define STEADY_SLICES 3
/* The kernel's slice of its thread: longer than the usual one, so that a thread that
 * wakes, of any program, interrupts it more readily. */
#define STEADY_KERNEL_SLICE_NS 20000000

/* An M that used less CPU time than this between two looks may be asleep. */
#define CLOCK_STANDS_NS 2000

/* CPU time for which an M that lost its P may compute before it is stopped: a short
 * slice, as a goroutine has that just came. A request to a server takes less, with all
 * that a library does around its calls. A goroutine that is stopped needs a P to go on,
 * and sysmon again to lose it in its next call. */
#define CHASE_AFTER_NS SLICE_SHORT_NS
/* The same for one that slept on a lock: those that compete for it are stopped, but for
 * the one that is about to get it (convoy.c). */
#define CHASE_LOCK_NS  50000
/* There may be thousands of such Ms, and each look at one costs a system call. So in each
 * CHASE_EACH_NS that go by one is looked at, in turn, and at most CHASE_BATCH at once. */
#define CHASE_EACH_NS  10000
#define CHASE_BATCH    128
/* Ms passed over at a time that have a P, or no goroutine. */
#define CHASE_PASSED   1024

/* When the handler finds the goroutine inside libc it asks for another try, at most
 * PUT_OFF_MAX times. The next try comes after this time, and each later one after twice
 * the time before: 3.2 ms for all. (A goroutine that is hardly ever outside is
 * interrupted by each try in vain.) */
#define PUT_OFF_NS 50000

/* What sysmon saw of the slice that a P is in. */
static struct seen {
	uint64_t tick;		/* which slice, by p_slices */
	struct m *mp;		/* the M that had the P */
	int64_t at;		/* when the slice began, or sysmon first saw it */
	uint64_t switches;	/* count.switches when sysmon first saw the slice */
	int64_t cpu;		/* the M's CPU time at that moment; -1: not known */
	uint64_t looked_switches;	/* count.switches at the last look */
} seen[GOMAXPROCS_MAX];

static struct seen *seen_of(const struct p *pp)
{
	return &seen[pp->id];
}

int64_t retake_seen_at(const struct p *pp)
{
	return seen_of(pp)->at;
}

static int64_t look_ns = LOOK_NS;	/* to the next look, if none is needed before */
static int fruitless;		/* looks since the last one that took a P */
static int64_t chased_at;	/* the last look at Ms without a P */
static struct m *chased;	/* the next of sched.all_m to look at; NULL: the first */
static bool poller_served;	/* in this round sysmon made a P look at the poller */
static bool some_just_began;	/* some P has begun a slice since the last look */
static size_t fresh_left;	/* fresh goroutines no P was asked for this round */

/* A P will pick another goroutine: one fresh goroutine less waits, and the P looks at the
 * poller. */
static void served(void)
{
	poller_served = true;
	fresh_left -= fresh_left != 0;
}

/* mp was seen asleep, or begins anew. */
static void unsteady(struct m *mp)
{
	int tid = load_relaxed(&mp->tid);	/* 0: the thread has ended */

	if (mp->watch.steady >= STEADY_SLICES && tid != 0)
		os_thread_slice(tid, 0);
	mp->watch.steady = 0;
}

/* ------------------------------------------------------------ is it asleep? */

enum os_sleep retake_asleep(struct m *mp)
{
	uintptr_t lock;
	enum os_sleep sleeps = os_thread_asleep(load_relaxed(&mp->tid), &lock);

	if (sleeps) {
		mp->watch.lock = lock;
		unsteady(mp);
	}
	return sleeps;
}

/* Whether the M's CPU clock has not moved since the last look, if there was one. */
static bool clock_stands(struct m *mp)
{
	int64_t cpu = os_thread_cpu(load_relaxed(&mp->tid));
	bool stands = mp->watch.cpu_seen < 0 || cpu - mp->watch.cpu_seen < CLOCK_STANDS_NS;

	mp->watch.cpu_seen = cpu;
	return stands;
}

/* ------------------------------------------------------------- what is done */

/* Whether there is an M to run a P that is taken; otherwise asks the spawner for one. A
 * goroutine that brings its own M will do: it may hold the very lock that the spawner
 * waits for. */
static bool somebody_to_run_it(enum spare spare)
{
	if (load_relaxed(&sched.idle_m_n) > 0 || globq_has_bound())
		return true;
	if (load_relaxed(&sched.want_spare) < (uint32_t)spare)
		store_relaxed(&sched.want_spare, (uint32_t)spare);
	m_spawn();
	return false;
}

/* Whether mp's goroutine sleeps in a call that it did not announce, and not on a lock,
 * whose holder will run next. fn: its function. */
static TOOL_RACY bool blocks_in(const struct m *mp, enum os_sleep sleeps, void (**fn)(void))
{
	const struct g *gp = load_relaxed(&mp->curg);

	if (!gp || sleeps == OS_AWAKE || load_relaxed(&mp->state) != M_USER ||
	    (sleeps == OS_ASLEEP_ON_FUTEX && mp->watch.lock))
		return false;
	*fn = peek(&gp->fn);
	return true;
}

/* A goroutine that slept on a lock is not fresh when it has got the lock (m.slept): it
 * would preempt another goroutine after a short slice, which often holds the lock by
 * then. */
static bool take_and_hand_on(struct p *pp, struct m *mp, enum os_sleep sleeps, int64_t now)
{
	void (*fn)(void);
	bool blocks = blocks_in(mp, sleeps, &fn);

	store_relaxed(&mp->slept, sleeps == OS_ASLEEP);	/* before mp finds out */
	if (!somebody_to_run_it(sleeps ? SPARE_NEEDED : SPARE_WANTED) || !p_take(pp, sleeps != OS_AWAKE))
		return false;
	check(!load_relaxed(&pp->mp));
	served();
	mp->watch.cpu_seen = os_thread_cpu(load_relaxed(&mp->tid));
	count_up(sleeps ? &pp->count.handoffs : &pp->count.preemptions, 1);
	runq_stopped(pp);
	look_ns = LOOK_SOON_NS;
	fruitless = 0;
	if (blocks)
		blockers_saw(fn);
	if (sleeps != OS_ASLEEP_ON_FUTEX || !mp->watch.lock || !convoy_hand_on(pp, mp, now))
		p_handoff(pp);
	return true;
}

void retake_signal(struct m *mp, int64_t now)
{
	if (debug.asyncpreemptoff || exchange_acqrel(&mp->watch.signalled, 1) != 0)
		return;
	check(now >= mp->watch.signalled_at);
	mp->watch.signalled_at = now;
	if (!debug.nosteady && ++mp->watch.steady == STEADY_SLICES)
		os_thread_slice(load_relaxed(&mp->tid), STEADY_KERNEL_SLICE_NS);
	preempt_signal(mp);
}

/* Whether mp was signalled UNANSWERED_NS ago and has not come to the handler. */
static bool unanswered(const struct m *mp, int64_t now)
{
	return load_relaxed(&mp->watch.signalled) && now - mp->watch.signalled_at >= UNANSWERED_NS;
}

/* Needs no membarrier, as p_take does. At worst sysmon does not see the M's store of USER
 * yet, and the M, on its way out, does not see the request. Then the next look finds the
 * M in user code. */
static void ask_to_yield(struct m *mp, uint64_t tick, int64_t now)
{
	served();
	store_relaxed(&mp->over_tick, tick);
	/* release: the slice; pairs with border_gives_way */
	fetch_or_acqrel(&mp->attn, ATTN_SLICE);
	if (load_acquire(&mp->state) == M_USER && somebody_to_run_it(SPARE_WANTED) &&
	    !preempt_is_off(mp))
		retake_signal(mp, now);
}

/* Whether there are idle Ps, but no CPUs for them (wake). */
static bool only_cpus_are_short(void)
{
	return load_relaxed(&sched.idle_p_n) != 0 && !p_to_spare();
}

/* Starts an idle P for the goroutine that waits. */
static void another_p_instead(void)
{
	served();
	if (load_relaxed(&sched.spinning) == 0)
		wake_slow();
}

/* When the handler on mp is to get the next try that it asked for; 0: it asked for none.
 * */
static int64_t put_off_until(const struct m *mp)
{
	uint32_t tries = load_relaxed(&mp->watch.put_off);

	return tries ? mp->watch.signalled_at + (PUT_OFF_NS << (tries - 1)) : 0;
}

/* ------------------------------------------------------------------ the look */

/* Whether the running goroutine has made another ready and computes on. Of two that hand
 * over to each other one is next at most looks, too, but there are switches in between.
 * */
static bool next_stays(const struct p *pp, const struct runq_look *look)
{
	return look->next && look->switches == seen_of(pp)->looked_switches;
}

static bool many_stopped(void)
{
	size_t many = (size_t)load_relaxed(&sched.gomaxprocs) * STOPPED_MANY;

	return load_relaxed(&globq.bound.n) >= many;
}

/* Whether a goroutine waits that was just started or woken. A stopped goroutine keeps a
 * thread, and one that has not begun needs none. So with many stopped already, those that
 * have not begun can wait for a whole slice. */
static bool somebody_just_came(const struct p *pp)
{
	struct runq_look look = runq_look(pp);

	return look.woken || next_stays(pp, &look) || (look.started && !many_stopped());
}

/* Whether the poller has events, and no P is about to look by itself. */
static bool poller_waits(int64_t now)
{
	int64_t age = poller_served ? -1 : netpoll_pending(now);

	return age >= NETPOLL_GRACE_NS || (age >= 0 && !some_just_began);
}

/* How long the goroutine on pp may go on; TIMER_NEVER: no goroutine waits. */
static int64_t slice_of(const struct p *pp, int64_t now)
{
	int64_t whole = convoy_slice(pp, slice_ns());

	if (work_late(pp))
		return WORK_SLICE_NS < whole ? WORK_SLICE_NS : whole;
	if (somebody_just_came(pp) || load_relaxed(&pp->timers.min_when) <= now ||
	    work_due(pp) || poller_waits(now) || fresh_left != 0)
		return SLICE_SHORT_NS < whole ? SLICE_SHORT_NS : whole;
	return globq_length() != 0 || !runq_empty(pp) ? whole : TIMER_NEVER;
}

/* Whether the slice began when mp was woken for it. (If the M has changed since, that
 * slice is over, and the next has not begun.) */
static bool is_resumed(const struct p *pp, const struct m *mp, uint64_t tick)
{
	/* acquire: slice.mp and slice.at; pairs with store_release in p_slice_begin */
	return load_acquire(&pp->slice.tick) == tick && load_relaxed(&pp->slice.mp) == mp;
}

/* pp is on its way to a thread that was woken for it. If the thread gets no CPU, and a
 * goroutine that just came waits, another M is to have the P. */
static int64_t on_its_way(struct p *pp, int64_t now)
{
	struct m *to = load_acquire(&pp->sent.to);
	int64_t age = now - load_relaxed(&pp->sent.at);

	if (!to || load_relaxed(&to->next_p) != pp)
		return TIMER_NEVER;
	if (slice_of(pp, now) > SLICE_SHORT_NS)
		return LOOK_NS;
	if (age < UNANSWERED_NS)
		return UNANSWERED_NS - age;
	m_recall_p(to, pp);
	return LOOK_SOON_NS;
}

/* sysmon has not seen this slice of pp before. */
static void slice_seen(struct p *pp, struct m *mp, uint64_t tick, int64_t now)
{
	struct seen *s = seen_of(pp);
	bool resumed = is_resumed(pp, mp, tick);

	s->tick = tick;
	s->mp = mp;
	s->switches = load_relaxed(&pp->count.switches);
	s->cpu = only_cpus_are_short() || many_stopped() ? os_thread_cpu(load_relaxed(&mp->tid)) : -1;
	s->at = resumed ? load_relaxed(&pp->slice.at) : now;
	if (!resumed)
		unsteady(mp);
	mp->watch.cpu_seen = -1;
	store_relaxed(&mp->watch.put_off, 0);
}

/* What sysmon sees of pp and of mp, which has it, without a system call. */
static struct retake_view view_of(struct p *pp, struct m *mp, uint64_t tick, int64_t now)
{
	struct seen *s = seen_of(pp);
	bool convoy = convoy_watch(pp, mp, now);
	int64_t allowed = slice_of(pp, now);

	s->looked_switches = load_relaxed(&pp->count.switches);
	return (struct retake_view){
		.age = now - s->at,
		.allowed = allowed,
		.single = s->looked_switches == s->switches,
		.resumed = is_resumed(pp, mp, tick),
		.announced = P_STATUS_OF(load_acquire(&pp->status)) == P_SYSCALL,
		.user = load_acquire(&mp->state) == M_USER,
		.steady = mp->watch.steady >= STEADY_SLICES,
		.unanswered = unanswered(mp, now),
		.preempt_off = preempt_is_off(mp),
		.put_off = put_off_until(mp) - now,
		.convoy = convoy,
		.cpus_short = only_cpus_are_short(),
		.brisk = load_relaxed(&monitor.brisk),
		.many_stopped = many_stopped(),
		.look = look_ns,
	};
}

static enum retake_fact fact(bool is)
{
	return is ? FACT_YES : FACT_NO;
}

static void see_used(struct retake_view *v, const struct p *pp, const struct m *mp)
{
	int64_t before = seen_of(pp)->cpu;

	v->used_known = fact(before >= 0);
	if (before >= 0)
		v->used = os_thread_cpu(load_relaxed(&mp->tid)) - before;
}

/* Acts on pp, which mp has. Returns when to look again: ns from now. */
static int64_t look_at(struct p *pp, struct m *mp, uint64_t tick, int64_t now)
{
	struct retake_view v = view_of(pp, mp, tick, now);
	enum os_sleep sleeps = v.announced ? OS_ASLEEP : OS_AWAKE;

	for (;;) {
		struct retake_action act = retake_decide(&v);

		switch (act.what) {
		case RETAKE_SEE_CLOCK:
			check(v.clock_stands == FACT_UNKNOWN);
			v.clock_stands = fact(clock_stands(mp));
			continue;
		case RETAKE_SEE_ASLEEP:
			check(v.asleep == FACT_UNKNOWN);
			sleeps = retake_asleep(mp);
			v.asleep = fact(sleeps != OS_AWAKE);
			continue;
		case RETAKE_SEE_USED:
			check(v.used_known == FACT_UNKNOWN);
			see_used(&v, pp, mp);
			continue;
		case RETAKE_TAKE:
			check(!v.take_failed);
			if (take_and_hand_on(pp, mp, sleeps, now))
				return act.next;
			v.take_failed = true;
			continue;
		case RETAKE_ANOTHER_P:
			another_p_instead();
			return act.next;
		case RETAKE_PUT_OFF:
			convoy_slice_over(pp, tick);
			return act.next;
		case RETAKE_YIELD:
			convoy_slice_over(pp, tick);
			ask_to_yield(mp, tick, now);
			return act.next;
		case RETAKE_LEAVE:
			return act.next;
		}
	}
}

/* Looks at pp. Returns when to look again: ns from now. */
static int64_t look(struct p *pp, int64_t now)
{
	struct m *mp = load_acquire(&pp->mp);
	uint64_t tick = p_slices(pp);
	uint32_t status = load_acquire(&pp->status);

	if (!mp)
		return on_its_way(pp, now);
	if (status != P_RUNNING && P_STATUS_OF(status) != P_SYSCALL)
		return TIMER_NEVER;
	if (seen_of(pp)->tick != tick || seen_of(pp)->mp != mp)
		slice_seen(pp, mp, tick, now);
	return look_at(pp, mp, tick, now);
}

/* CPU time that mp may use without a P. */
static int64_t chase_after(const struct m *mp)
{
	return mp->watch.lock && !convoy_has_heir(mp) ? CHASE_LOCK_NS : CHASE_AFTER_NS;
}

/* mp goes on without a P: it is stopped if it computes for too long. True: it was. */
static bool chase_one(struct m *mp, int64_t now)
{
	int64_t cpu = os_thread_cpu(load_relaxed(&mp->tid));

	if (cpu - mp->watch.cpu_seen < chase_after(mp))
		return false;
	mp->watch.cpu_seen = cpu;
	if (retake_asleep(mp))
		return false;
	if (mp->watch.lock && !debug.noconvoy)
		store_relaxed(&mp->stop_where, STOP_FREE);
	retake_signal(mp, now);
	return true;
}

/* Looks at some of the Ms that compute without a P. Returns when to look again: ns from
 * now. */
static int64_t chase(int64_t now)
{
	int taken = load_relaxed(&sched.taken), looks, passed = 0;
	int64_t next = LOOK_NS;

	if (taken == 0)
		return TIMER_NEVER;
	looks = (int)soonest((now - chased_at) / CHASE_EACH_NS, CHASE_BATCH);
	looks = looks < taken ? looks : taken;
	if (looks == 0)
		return LOOK_NS;
	chased_at = now;
	for (; looks > 0 && passed < CHASE_PASSED; chased = chased->all_link) {
		/* acquire: pairs with store_release in m_alloc */
		if (!chased && !(chased = load_acquire(&sched.all_m)))
			break;
		if (!(load_acquire(&chased->attn) & ATTN_TAKEN) || load_relaxed(&chased->tid) == 0) {
			passed++;
			continue;
		}
		looks--;
		if (chase_one(chased, now))
			next = LOOK_AFTER_NS;
	}
	return next;
}

/* Whether some P has begun a slice since the last look. A goroutine that was just woken
 * often sends a request by a socket and waits for the answer: then its P looks at the
 * poller at once. If sysmon preempted a goroutine on another P to look there, two threads
 * would need a CPU in the midst of that, and the kernel may leave both on one CPU for a
 * millisecond. */
static bool any_just_began(void)
{
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++)
		if (load_acquire(&p_at(i)->mp) && p_slices(p_at(i)) != seen_of(p_at(i))->tick)
			return true;
	return false;
}

int64_t retake_look(int64_t now)
{
	int64_t next = TIMER_NEVER;

	poller_served = false;
	some_just_began = netpoll_pending(now) >= 0 && any_just_began();
	fresh_left = globq_fresh();
	if (++fruitless > QUICK_LOOKS)
		look_ns = soonest(2 * look_ns, LOOK_NS);
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++) {
		int64_t t = look(p_at(i), now);

		check(t > 0);
		if (t < next)
			next = t;
	}
	return soonest(next, chase(now));
}
