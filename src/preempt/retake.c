/*
 * retake.c - a P whose goroutine blocks in the kernel, or runs for too long.
 *
 * sysmon looks at a P that has been in the same time slice for a while although
 * somebody waits for it. There are three things to find:
 *
 *	- The M is in an announced call (goro_syscall_enter): the P is taken.
 *	- The M sleeps in the kernel, unannounced: the P is taken, without a
 *	  signal, so that no call of the program's fails with EINTR. A CPU clock
 *	  that stands still is only a hint (it may wait for a CPU);
 *	  /proc/self/task/TID/syscall settles it. Where that cannot be read the P
 *	  is taken on the hint: a thread that is not on a CPU has no use for it, and
 *	  never gets a signal, which might restart a sleep with all its time.
 *	- It runs: when its slice is over it is asked to give way, and sent the
 *	  preemption signal.
 *
 * The slice is 10 ms if only others like it wait (in the global queue), and 1 ms
 * if somebody does who was just started or woken (the P's own queues, and the fresh
 * in the global one), or a timer is due, or the poller has events (one P is enough
 * for those).
 *
 * A thread that does not answer the signal has no CPU itself: on a busy machine it
 * would hold the P without using it until the kernel gets round to it. The P is
 * taken from it as from one that sleeps.
 *
 * A P may also be on its way to a thread that was woken for it and gets no CPU: it is
 * called back for somebody who just came.
 *
 * After a P was taken the next looks come every 50 us, since where one M blocks on
 * a lock others soon will, and each waits for a look; when some have found nothing
 * to take, they come half as often each time. (Forty of them after each made sysmon
 * use a fifth of a CPU where many goroutines block, and the kernel, to be fair, then
 * let it wait for tens of milliseconds.)
 *
 * An M whose P was taken goes on without one when its call returns. If it then
 * computes instead of entering the runtime, it is stopped too, by the signal
 * ("chase").
 *
 * What is done about one that sleeps on a lock, which its holder may have been stopped
 * with, is in convoy.c.
 */
#include "retake.h"

#include "convoy.h"
#include "debug.h"
#include "fd.h"
#include "netpoll.h"
#include "os.h"
#include "preempt.h"
#include "runq.h"
#include "runtime.h"

static int64_t look_ns = LOOK_NS;	/* until the next, if all goes on as it does */
static int fruitless;		/* looks since one found a P to take */
static int64_t chased_at;
static bool poller_served;	/* in this round a P was made to look at the poller */
static bool some_just_began;	/* a slice, since the last look */
static size_t fresh_left;	/* who just came and no P was asked for yet, this round */

/* A P will pick another goroutine: one of those who wait is seen to. */
static void served(void)
{
	poller_served = true;
	fresh_left -= fresh_left != 0;
}

static void unsteady(struct m *mp)
{
	int tid = load_relaxed(&mp->tid);	/* 0: it has ended */

	if (mp->steady >= STEADY_SLICES && tid != 0)
		os_thread_slice(tid, 0);
	mp->steady = 0;
}

/* ------------------------------------------------------------ is it asleep? */

enum os_sleep retake_asleep(struct m *mp)
{
	uintptr_t lock;
	enum os_sleep sleeps = os_thread_asleep(load_relaxed(&mp->tid), &lock);

	if (sleeps) {
		mp->lock = lock;
		unsteady(mp);
	}
	return sleeps;
}

/* Its CPU clock has not moved since the last look, if there was one. */
static bool clock_stands(struct m *mp)
{
	int64_t cpu = os_thread_cpu(load_relaxed(&mp->tid));
	bool stands = mp->cpu_seen < 0 || cpu - mp->cpu_seen < CLOCK_STANDS_NS;

	mp->cpu_seen = cpu;
	return stands;
}

/* ---------------------------------------------------------------- the deeds */

/* True if there is an M to run a P that is taken; else one is asked for. A G
 * that brings its own M will do: it may hold the very lock that the spawner
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

/* One that waits for a lock is not fresh when it has got it: it would make another
 * give way after 1 ms, who as like as not holds the lock by then. */
static bool take_and_hand_on(struct p *pp, struct m *mp, enum os_sleep sleeps, int64_t now)
{
	store_relaxed(&mp->slept, sleeps == OS_ASLEEP);	/* before it can find out */
	if (!somebody_to_run_it(sleeps ? SPARE_NEEDED : SPARE_WANTED) || !p_take(pp, sleeps != OS_AWAKE))
		return false;
	served();
	mp->cpu_seen = os_thread_cpu(load_relaxed(&mp->tid));
	count_up(sleeps ? &pp->count.handoffs : &pp->count.preemptions, 1);
	runq_stopped(pp);
	look_ns = LOOK_SOON_NS;
	fruitless = 0;
	if (sleeps != OS_ASLEEP_ON_FUTEX || !mp->lock || !convoy_hand_on(pp, mp, now))
		p_handoff(pp);
	return true;
}

void retake_signal(struct m *mp, int64_t now)
{
	if (debug.asyncpreemptoff || exchange_acqrel(&mp->signalled, 1) != 0)
		return;
	mp->signalled_at = now;
	if (++mp->steady == STEADY_SLICES)
		os_thread_slice(load_relaxed(&mp->tid), STEADY_KERNEL_SLICE_NS);
	preempt_signal(mp);
}

/* It was signalled a while ago and has not come to the handler: it has no CPU. */
static bool unanswered(const struct m *mp, int64_t now)
{
	return load_relaxed(&mp->signalled) && now - mp->signalled_at >= UNANSWERED_NS;
}

/* Without the membarrier that p_take needs: at worst the M's store of USER is not
 * seen yet and neither is the request by the M, on its way out; then the next look
 * finds it in user code. */
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

/* Ps are left, only no CPUs for them (wake). */
static bool only_cpus_are_short(void)
{
	return load_relaxed(&sched.idle_p_n) != 0 && !p_to_spare();
}

/* One goroutine has had the whole slice, and a CPU: who waits gets a P of its own, and the
 * kernel divides the CPUs. That is tried once. */
static bool another_p_instead(const struct p *pp, const struct m *mp, int64_t age, int64_t slice)
{
	if (!only_cpus_are_short() || age >= 2 * slice ||
	    load_relaxed(&pp->count.switches) != pp->tick_switches || pp->tick_cpu < 0 ||
	    os_thread_cpu(load_relaxed(&mp->tid)) - pp->tick_cpu < age / 2)
		return false;
	served();
	if (load_relaxed(&sched.spinning) == 0)
		wake_slow();
	return true;
}

/* It seems to run for long because it waits for a CPU, among others that do not: it is left
 * alone for some slices. See p_for_events. */
static bool lacks_cpu(const struct p *pp, const struct m *mp, int64_t age)
{
	return load_relaxed(&sched.brisk) && only_cpus_are_short() && age < LACKS_CPU_SLICES * SLICE_SHORT_NS &&
	       pp->tick_cpu >= 0 && os_thread_cpu(load_relaxed(&mp->tid)) - pp->tick_cpu < age / 4;
}

/* When one that asked for another try is to get it. */
static int64_t put_off_until(const struct m *mp)
{
	uint32_t tries = load_relaxed(&mp->put_off);

	return tries ? mp->signalled_at + (PUT_OFF_NS << (tries - 1)) : 0;
}

/* ------------------------------------------------------------------ the look */

/* The running goroutine has made another ready and computes on. Of a pair that hand over to
 * each other one is mostly next, too, at any look, but not without a switch since the last. */
static bool next_stays(const struct p *pp, const struct runq_look *look)
{
	return look->next && look->switches == pp->looked_switches;
}

/* Who is stopped keeps a thread, and who has not begun needs none: with many stopped
 * already, those can wait for a whole slice. (The demo's blocking calls
 * beside a hundred short tasks: 60 threads, and 258 without this.) */
static bool somebody_just_came(const struct p *pp)
{
	struct runq_look look = runq_look(pp);
	size_t many = (size_t)load_relaxed(&sched.gomaxprocs) * STOPPED_MANY;

	return look.woken || next_stays(pp, &look) ||
	       (look.started && load_relaxed(&sched.bound.n) < many);
}

/* The poller has events, and no P is about to look by itself. */
static bool poller_waits(int64_t now)
{
	int64_t age = poller_served ? -1 : netpoll_pending(now);

	return age >= NETPOLL_GRACE_NS || (age >= 0 && !some_just_began);
}

/* How long the goroutine on pp may go on: TIMER_NEVER if nobody waits. */
static int64_t slice_of(const struct p *pp, int64_t now)
{
	int64_t whole = convoy_slice(pp, slice_ns());

	if (somebody_just_came(pp) || load_relaxed(&pp->timers.min_when) <= now ||
	    load_relaxed(&pp->untried_due) || poller_waits(now) ||
	    fresh_left != 0)
		return SLICE_SHORT_NS < whole ? SLICE_SHORT_NS : whole;
	return globq_length() != 0 || !runq_empty(pp) ? whole : TIMER_NEVER;
}

/* The slice began when mp was woken for it. (One whose M has changed is over: the next
 * has not begun.) */
static bool is_resumed(const struct p *pp, const struct m *mp, uint64_t tick)
{
	/* acquire: begun_m and begun_at; pairs with store_release in p_slice_begin */
	return load_acquire(&pp->begun_tick) == tick && load_relaxed(&pp->begun_m) == mp;
}

/* It has used its slices up, one after the other, and was never found asleep: it need
 * not be looked at before the next is over. */
static bool is_steady(const struct m *mp)
{
	return mp->steady >= STEADY_SLICES;
}

/* pp is on its way to a thread that was woken for it. If that gets no CPU, and somebody who
 * just came waits, another is to have the P. */
static int64_t on_its_way(struct p *pp, int64_t now)
{
	struct m *to = load_acquire(&pp->sent_to);
	int64_t age = now - load_relaxed(&pp->sent_at);

	if (!to || load_relaxed(&to->next_p) != pp)
		return TIMER_NEVER;
	if (slice_of(pp, now) > SLICE_SHORT_NS)
		return LOOK_NS;
	if (age < UNANSWERED_NS)
		return UNANSWERED_NS - age;
	m_recall_p(to, pp);
	return LOOK_SOON_NS;
}

/* When to look again at pp: ns from now. */
static int64_t look_at(struct p *pp, int64_t now)
{
	struct m *mp = load_acquire(&pp->mp);
	uint64_t tick = p_slices(pp);
	uint32_t status = load_acquire(&pp->status);
	enum os_sleep sleeps;
	int64_t slice, age, wait;
	bool convoy, resumed;

	if (!mp)
		return on_its_way(pp, now);
	if (status != P_RUNNING && P_STATUS_OF(status) != P_SYSCALL)
		return TIMER_NEVER;
	if (pp->seen_tick != tick || pp->seen_m != mp) {
		pp->seen_tick = tick;
		pp->seen_m = mp;
		pp->tick_switches = load_relaxed(&pp->count.switches);
		pp->tick_cpu = only_cpus_are_short() ? os_thread_cpu(load_relaxed(&mp->tid)) : -1;
		pp->seen_at = is_resumed(pp, mp, tick) ? load_relaxed(&pp->begun_at) : now;
		if (!is_resumed(pp, mp, tick))
			unsteady(mp);
		mp->cpu_seen = -1;
		store_relaxed(&mp->put_off, 0);
	}
	fd_guess_watch(pp, now);
	convoy = convoy_watch(pp, mp, now);
	slice = slice_of(pp, now);
	pp->looked_switches = load_relaxed(&pp->count.switches);
	if (slice == TIMER_NEVER)
		return convoy ? LOOK_SOON_NS : TIMER_NEVER;
	age = now - pp->seen_at;
	if (P_STATUS_OF(status) == P_SYSCALL) {
		if (age >= SYSCALL_GRACE_NS)
			take_and_hand_on(pp, mp, OS_ASLEEP, now);
		return LOOK_SOON_NS;
	}
	resumed = is_resumed(pp, mp, tick);
	if (resumed && age < LOOK_EARLY_NS && !is_steady(mp))
		return LOOK_EARLY_NS - age;
	if ((resumed || age >= LOOK_SOON_NS) && (convoy || clock_stands(mp)) &&
	    load_acquire(&mp->state) == M_USER && (sleeps = retake_asleep(mp)) &&
	    take_and_hand_on(pp, mp, sleeps, now))
		return LOOK_SOON_NS;
	slice -= soonest(SLICE_NEARLY_NS, slice / 10);
	if (age < slice)
		return soonest(convoy ? LOOK_SOON_NS : look_ns, slice - age);
	if (lacks_cpu(pp, mp, age))
		return LOOK_NS / 2;
	if (load_acquire(&mp->state) == M_USER) {
		sleeps = retake_asleep(mp);
		if (sleeps || unanswered(mp, now)) {
			take_and_hand_on(pp, mp, sleeps, now);
			return LOOK_SOON_NS;
		}
	}
	if (another_p_instead(pp, mp, age, slice))
		return LOOK_NS;
	convoy_slice_over(pp, tick);
	wait = put_off_until(mp) - now;
	if (wait > 0)
		return soonest(wait, convoy ? LOOK_SOON_NS : wait);
	ask_to_yield(mp, tick, now);
	if (preempt_is_off(mp))
		return LOOK_NS;
	return is_steady(mp) ? UNANSWERED_NS : LOOK_AFTER_NS;
}

/* Ms that run on without a P: stopped once they have computed for a while. */
static int64_t chase(int64_t now)
{
	int taken = load_relaxed(&sched.taken);
	int64_t next = LOOK_NS;

	if (taken == 0)
		return TIMER_NEVER;
	if (now - chased_at < taken * CHASE_EACH_NS)
		return LOOK_NS;
	chased_at = now;
	for (struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link) {
		int64_t cpu;

		if (!(load_acquire(&mp->attn) & ATTN_TAKEN) || load_relaxed(&mp->tid) == 0)
			continue;
		cpu = os_thread_cpu(load_relaxed(&mp->tid));
		if (cpu - mp->cpu_seen < (convoy_has_heir(mp) ? CHASE_HEIR_NS : CHASE_AFTER_NS))
			continue;
		mp->cpu_seen = cpu;
		if (retake_asleep(mp))
			continue;
		if (mp->lock)
			store_relaxed(&mp->stop_where, STOP_FREE);
		retake_signal(mp, now);
		next = LOOK_AFTER_NS;
	}
	return next;
}

/* Some P has begun a slice since the last look. Who has just been woken often asks something
 * of another, by a socket, and waits for the answer: then its P looks at the poller at once. Were
 * another made to look, by stopping somebody who computes, two threads would come for
 * the CPUs in the midst of it, and the kernel may leave both on one for a millisecond. */
static bool any_just_began(void)
{
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++)
		if (load_acquire(&p_at(i)->mp) && p_slices(p_at(i)) != p_at(i)->seen_tick)
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
		int64_t t = look_at(p_at(i), now);

		if (t < next)
			next = t;
	}
	return soonest(next, chase(now));
}
