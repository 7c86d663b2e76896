/*
 * convoy.c - locks whose holder has no P.
 *
 * A goroutine can be stopped anywhere, also where it holds a lock that the runtime
 * knows nothing of: of a FILE, of malloc, a pthread mutex. Whoever runs next and wants
 * that lock goes to sleep in the kernel, and loses its P for it (retake.c); so does the
 * next, and the one after that, until it is the holder's turn. And then it is not over:
 * all of them are awake one after the other, without a P, and compete for the lock with
 * the one that has it. Each of its unlocks is a system call then, and a thread that is
 * stopped because it runs without a P is as like as not the one that holds the lock.
 *
 * What can be seen from outside: that a thread sleeps on a lock, and on which
 * (os_thread_asleep). From this, on the P's side, in four steps:
 *
 *	A is stopped, with the lock. B is next, and soon asleep on it.
 *	1. B's P goes back to A, who was stopped there last: it is the likely holder. B
 *	   sleeps on, as A's heir.
 *	2. A unlocks and so wakes B; both want the lock from then on. If B gets it A falls
 *	   asleep on it. Found so, A loses its P to B, who goes on with it as if nothing
 *	   had been (p_give), and A is stopped: there, asleep, it does not hold the lock.
 *	3. Else A is stopped where it does not hold the lock, in the call that wakes B (or
 *	   about to sleep), and its P goes to B. It is asked at each look, and stopped
 *	   when it is found there.
 *	4. Others that sleep on the lock are stopped at once: for one that competes, the
 *	   rest may as well wait for their turn.
 *
 * Then nobody is left who competes. A signal does not hurt a sleep on a lock: it has no
 * timeout, the kernel makes the call again, and it finds the lock free, or not. Had the
 * thread been woken in between it is left alone: the wake was meant for it, and if it is
 * stopped with it everybody else sleeps on beside a free lock.
 *
 * All of it is a guess, and nothing is wrong if it is a wrong one: somebody runs out of
 * turn. With several Ps the holder may simply be running on another: then B's P goes to
 * the next in line. It takes some hundred microseconds, of which one hundred nobody has
 * the lock. So where a stop led to this, slices are longer, up to the usual one of
 * SLICE_NS.
 *
 * Rejected: to count locks, by standing in for libc's functions: those inside libc are
 * not called that way. To stop nobody inside libc: a lock may be held all the time.
 */
#include "convoy.h"

#include "debug.h"
#include "os.h"
#include "regs.h"
#include "retake.h"
#include "runq.h"
#include "runtime.h"
#include "unwind.h"

/* ------------------------------------------------------------- who is who */

/* It goes on without a P, and slept on this lock since it lost it. */
static bool competes(const struct m *mp, uintptr_t lock)
{
	return mp->lock == lock && load_acquire(&mp->attn) & ATTN_TAKEN &&
	       load_relaxed(&mp->tid) != 0;
}

/* One that has got the lock from mp, which sleeps on it: it is awake. */
static struct m *awake_competitor(const struct m *mp)
{
	if (load_relaxed(&sched.taken) <= 1)
		return NULL;
	for (struct m *to = load_acquire(&sched.all_m); to; to = to->all_link)
		if (to != mp && competes(to, mp->lock) && retake_asleep(to) == OS_AWAKE)
			return to;
	return NULL;
}

/* One that has a P and slept on the lock before is awake: it may hold it. */
static bool held_with_p(uintptr_t lock)
{
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++) {
		struct m *mp = load_acquire(&p_at(i)->mp);

		if (mp && mp->lock == lock && retake_asleep(mp) == OS_AWAKE)
			return true;
	}
	return false;
}

bool convoy_has_heir(const struct m *mp)
{
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); mp->lock && i < n; i++) {
		const struct convoy *c = &p_at(i)->convoy;

		if (c->holder && c->lock == mp->lock && load_relaxed(&p_at(i)->mp) == c->holder)
			return true;
	}
	return false;
}

static void begin(struct p *pp, struct m *holder, uintptr_t lock)
{
	pp->convoy.holder = holder;
	pp->convoy.lock = lock;
	pp->convoy.looks = 0;
	store_relaxed(&pp->heir, NULL);
}

static void end(struct p *pp)
{
	pp->convoy.holder = NULL;
	store_relaxed(&pp->heir, NULL);
}

/* ---------------------------------------------------------- sysmon's deeds */

/* Stops one that sleeps on a lock, if it still does when the signal comes. */
static void stop_sleeper(struct m *mp, int64_t now)
{
	if (load_relaxed(&mp->signalled))
		return;
	store_relaxed(&mp->stop_where, STOP_WAITING);
	retake_signal(mp, now);
}

static bool give(struct p *pp, struct m *to)
{
	bool given;

	lock_acquire(&sched.lock);
	given = !load_relaxed(&sched.stopping) && p_give(pp, to);
	lock_release(&sched.lock);
	return given;
}

/* Step 1. */
static bool hand_back(struct p *pp, const struct m *mp, int64_t now)
{
	struct g *gp = load_relaxed(&pp->stopped);
	bool there;

	if (!gp || now - pp->seen_at > CONVOY_SOON_NS || held_with_p(mp->lock))
		return false;
	lock_acquire(&sched.lock);
	there = !load_relaxed(&sched.stopping) && globq_take(gp);
	if (there)
		sched.idle_m_locked--;
	lock_release(&sched.lock);
	if (!there)
		return false;
	if (!pp->convoy.by_last_stop && pp->convoy.doublings < CONVOY_DOUBLINGS)
		pp->convoy.doublings++;
	pp->convoy.by_last_stop = true;
	begin(pp, gp->locked_m, mp->lock);
	count_up(&pp->count.thread_wakeups, 1);
	m_hand_p(gp->locked_m, pp);
	return true;
}

bool convoy_hand_on(struct p *pp, struct m *mp, int64_t now)
{
	struct m *to;

	if (debug.asyncpreemptoff)
		return false;
	if (!(to = awake_competitor(mp)) || !give(pp, to))
		return hand_back(pp, mp, now);
	begin(pp, to, mp->lock);	/* step 2 */
	stop_sleeper(mp, now);
	return true;
}

/* Step 4, and who is the heir: one that is awake, if there is one. */
static struct m *choose_heir(const struct p *pp, int64_t now)
{
	struct m *heir = NULL;
	bool heir_sleeps = true;

	for (struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link) {
		bool sleeps;

		if (!competes(mp, pp->convoy.lock))
			continue;
		sleeps = retake_asleep(mp) != OS_AWAKE;
		if (!heir || (heir_sleeps && !sleeps)) {
			heir = mp;
			heir_sleeps = sleeps;
		} else if (sleeps) {
			stop_sleeper(mp, now);
		}
	}
	return heir;
}

/* The first looks, and then every second, fourth and so on. */
static bool is_turn(int look)
{
	return look <= 4 || (look & (look - 1)) == 0;
}

bool convoy_watch(struct p *pp, struct m *mp, int64_t now)
{
	struct m *heir;

	if (!pp->convoy.holder)
		return false;
	if (pp->convoy.holder != mp || load_relaxed(&sched.taken) == 0 ||
	    ++pp->convoy.looks > CONVOY_LOOKS) {
		end(pp);
		return false;
	}
	if (!is_turn(pp->convoy.looks) || retake_asleep(mp) != OS_AWAKE)
		return true;
	heir = choose_heir(pp, now);
	store_relaxed(&pp->heir, heir);
	if (!heir)
		return false;
	fetch_or_acqrel(&mp->attn, ATTN_YIELD);	/* step 3 */
	retake_signal(mp, now);
	return true;
}

/* ------------------------------------------------------- on the M's thread */

/* A call that wakes says how many it woke; a write in between, to a FILE that is
 * locked, writes more than a byte. */
static bool is_at(enum stop_where where, const struct unwind_regs *regs)
{
	uintptr_t pc = regs->reg[UNWIND_PC];

	if (!os_is_readable(pc - 4))
		return false;		/* code that can only be executed, or ends here */
	return REGS_AT_SYSCALL(pc) ||	/* it sleeps: the call is made again */
	       (where == STOP_FREE && REGS_AFTER_SYSCALL(pc) && regs->reg[0] <= 1);
}

bool convoy_may_stop(struct m *mp, const struct unwind_regs *regs)
{
	enum stop_where where = (enum stop_where)load_relaxed(&mp->stop_where);

	if (!load_relaxed(&mp->stop_where))
		return true;
	store_relaxed(&mp->stop_where, STOP_ANYWHERE);
	if (is_at(where, regs))
		return true;
	count_up(&mp->put_off, 1);
	return where == STOP_FREE && load_relaxed(&mp->put_off) > PUT_OFF_MAX;
}

bool convoy_may_pass_on(const struct unwind_regs *regs)
{
	return is_at(STOP_FREE, regs);
}

void convoy_pass_on(struct m *mp)
{
	struct p *pp = mp->p;
	struct m *heir = load_relaxed(&pp->heir);

	if (!heir)
		return;
	store_relaxed(&pp->heir, NULL);
	lock_acquire(&sched.lock);
	if (!load_relaxed(&sched.stopping)) {
		p_unbind(mp);
		if (!p_give(pp, heir))
			p_bind(mp, pp);
	}
	lock_release(&sched.lock);
}

/* ------------------------------------------------------------------ slices */

int64_t convoy_slice(const struct p *pp, int64_t slice)
{
	int64_t longer = slice << pp->convoy.doublings;

	if (slice >= SLICE_NS)
		return slice;
	return longer < SLICE_NS ? longer : SLICE_NS;
}

void convoy_slice_over(struct p *pp, uint64_t tick)
{
	if (pp->convoy.over_tick == tick)
		return;		/* it was asked before, and put off */
	pp->convoy.over_tick = tick;
	if (!pp->convoy.by_last_stop && pp->convoy.doublings > 0)
		pp->convoy.doublings--;
	pp->convoy.by_last_stop = false;
}
