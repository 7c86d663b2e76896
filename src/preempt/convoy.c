/*
 * convoy.c - locks whose holder has no P.
 *
 * A goroutine can be preempted anywhere, also where it holds a lock that the runtime
 * knows nothing of: of a FILE, of malloc, a pthread mutex. The next goroutine on the P
 * that wants that lock sleeps in the kernel, and loses its P for it (retake.c). So does
 * the one after it, until it is the holder's turn. Then all of them wake one after the
 * other, without a P, and compete for the lock with the goroutine that holds it. Each
 * unlock is a system call, and a thread that is stopped because it runs without a P is
 * often the one that holds the lock.
 *
 * sysmon can see that a thread sleeps on a lock, and on which (os_thread_asleep). From
 * this it acts in four steps. A is preempted while it holds the lock. B runs next on the
 * same P, and soon sleeps on the lock.
 *
 *	1. B's P goes back to A, which was stopped there last and so is the likely holder.
 *	   B sleeps on, as A's heir.
 *	2. A unlocks and so wakes B. Both want the lock from then on. If B gets it, A
 *	   falls asleep on it. When sysmon finds A asleep, A's P goes to B, which goes on
 *	   with it without noticing (p_give), and A is stopped: asleep, it does not hold
 *	   the lock.
 *	3. Otherwise A is stopped where it does not hold the lock: in the call that wakes
 *	   B, or where it is about to sleep. sysmon signals A at each look, and the
 *	   handler stops A when it finds it there. A's P goes to B.
 *	4. Other goroutines that sleep on the lock are stopped at once: while one
 *	   competes, the rest can as well wait for their turns.
 *
 * A signal does not hurt a sleep on a lock: it has no timeout, the kernel makes the call
 * again, and the call finds the lock free, or not. A thread that an unlock has woken in
 * between is left alone: if it were stopped, the wake would be lost, and all other
 * threads would sleep on beside a free lock.
 *
 * All of this is a guess, and a wrong one does no harm: a goroutine runs out of turn.
 * With several Ps the holder may be running on another P; then B's P goes to the next in
 * line. Where preempting led to a convoy, slices become longer, up to SLICE_NS, since in
 * one hundredth of a convoy's time nobody has the lock.
 *
 * Rejected: to count locks, by functions of our own in place of libc's (locks inside libc
 * are not taken by way of those); never to stop a goroutine inside libc (it may hold a
 * lock all the time).
 */
#include "preempt/convoy.h"

#include "base/debug.h"
#include "base/hook.h"
#include "platform/os.h"
#include "unwind/regs.h"
#include "preempt/retake.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "unwind/unwind.h"

/* One that sleeps on a lock so soon in its slice waits for the one stopped before it. */
#define CONVOY_SOON_NS 300000
/* Looks, LOOK_SOON_NS apart, before sysmon leaves those that compete to themselves. */
#define CONVOY_LOOKS 40
/* How often a slice is doubled at most: SLICE_SHORT_NS then is longer than SLICE_NS. */
#define CONVOY_DOUBLINGS 4

/* What sysmon knows of a lock that goroutines compete for on a P. sysmon's. */
static struct convoy {
	struct m *holder;	/* believed to hold the lock; NULL: no convoy */
	uintptr_t lock;		/* its address */
	int looks;		/* at the holder, since the convoy began */
	unsigned doublings;	/* of the slice, since preempting lately led to convoys */
	bool by_last_stop;	/* the last preemption led to a convoy */
	uint64_t over_tick;	/* the last slice that came to its end, by p_slices */
} convoys[GOMAXPROCS_MAX];

static struct convoy *convoy_of(const struct p *pp)
{
	return &convoys[pp->id];
}

/* ------------------------------------------------------------- who is who */

/* Whether mp goes on without a P, and has slept on this lock since it lost its P. */
static bool competes(const struct m *mp, uintptr_t lock)
{
	return mp->watch.lock == lock && load_acquire(&mp->attn) & ATTN_TAKEN &&
	       load_relaxed(&mp->tid) != 0;
}

/* The M that has got the lock, while mp sleeps on it: a competitor that is awake. */
static struct m *awake_competitor(const struct m *mp)
{
	if (load_relaxed(&sched.taken) <= 1)
		return NULL;
	for (struct m *to = load_acquire(&sched.all_m); to; to = to->all_link)
		if (to != mp && competes(to, mp->watch.lock) && retake_asleep(to) == OS_AWAKE)
			return to;
	return NULL;
}

/* Whether an M with a P that slept on the lock before is awake: it may hold the lock. */
static bool held_with_p(uintptr_t lock)
{
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++) {
		struct m *mp = load_acquire(&p_at(i)->mp);

		if (mp && mp->watch.lock == lock && retake_asleep(mp) == OS_AWAKE)
			return true;
	}
	return false;
}

bool convoy_has_heir(const struct m *mp)
{
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); mp->watch.lock && i < n; i++) {
		const struct convoy *c = convoy_of(p_at(i));

		if (c->holder && c->lock == mp->watch.lock && load_relaxed(&p_at(i)->mp) == c->holder)
			return true;
	}
	return false;
}

static void begin(struct p *pp, struct m *holder, uintptr_t lock)
{
	struct convoy *c = convoy_of(pp);

	check(lock != 0 && !holder->is_foreign);
	c->holder = holder;
	c->lock = lock;
	c->looks = 0;
	store_relaxed(&pp->heir, NULL);
}

static void end(struct p *pp)
{
	convoy_of(pp)->holder = NULL;
	store_relaxed(&pp->heir, NULL);
}

/* ---------------------------------------------------------- sysmon acts */

/* Stops mp, which sleeps on a lock, if it still sleeps when the signal comes. */
static void stop_sleeper(struct m *mp, int64_t now)
{
	if (load_relaxed(&mp->watch.signalled))
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
	struct convoy *c = convoy_of(pp);
	bool there;

	if (!gp || now - retake_seen_at(pp) > CONVOY_SOON_NS || held_with_p(mp->watch.lock))
		return false;
	lock_acquire(&sched.lock);
	there = !load_relaxed(&sched.stopping) && globq_take(gp);
	if (there)
		sched.idle_m_locked--;
	check(!there || (gp->locked_m != mp && gp->locked_m->locked_g == gp));
	lock_release(&sched.lock);
	if (!there)
		return false;
	if (!c->by_last_stop && c->doublings < CONVOY_DOUBLINGS)
		c->doublings++;
	check(c->doublings <= CONVOY_DOUBLINGS);
	c->by_last_stop = true;
	begin(pp, gp->locked_m, mp->watch.lock);
	count_up(&pp->count.thread_wakeups, 1);
	m_hand_p(gp->locked_m, pp);
	return true;
}

bool convoy_hand_on(struct p *pp, struct m *mp, int64_t now)
{
	struct m *to;

	check(!load_relaxed(&pp->mp) && mp->watch.lock);
	if (debug.asyncpreemptoff || debug.noconvoy)
		return false;
	if (!(to = awake_competitor(mp)) || !give(pp, to))
		return hand_back(pp, mp, now);
	begin(pp, to, mp->watch.lock);	/* step 2 */
	stop_sleeper(mp, now);
	return true;
}

/* Step 4. The heir: a competitor that is awake, if there is one. */
static struct m *choose_heir(const struct p *pp, int64_t now)
{
	struct m *heir = NULL;
	bool heir_sleeps = true;

	for (struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link) {
		bool sleeps;

		if (!competes(mp, convoy_of(pp)->lock))
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

/* The first four looks, and then the 8th, 16th and so on. */
static bool is_turn(int look)
{
	return look <= 4 || (look & (look - 1)) == 0;
}

bool convoy_watch(struct p *pp, struct m *mp, int64_t now)
{
	struct convoy *c = convoy_of(pp);
	struct m *heir;

	check(!c->holder || (c->lock && c->looks <= CONVOY_LOOKS));
	if (!c->holder)
		return false;
	if (c->holder != mp || load_relaxed(&sched.taken) == 0 || ++c->looks > CONVOY_LOOKS) {
		end(pp);
		return false;
	}
	if (!is_turn(c->looks) || retake_asleep(mp) != OS_AWAKE)
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

/* Whether the thread stands where it does not hold the lock. A call that wakes returns
 * how many threads it woke, 0 or 1. Another call in between, such as a write to a FILE
 * that is locked, returns more. */
static bool is_at(enum stop_where where, const struct unwind_regs *regs)
{
	uintptr_t pc = regs->reg[UNWIND_PC];

	if (!os_is_readable(pc - 4))
		return false;	/* code that cannot be read, or begins here */
	return REGS_AT_SYSCALL(pc) ||	/* the thread slept: the call is made again */
	       (where == STOP_FREE && REGS_AFTER_SYSCALL(pc) && regs->reg[0] <= 1);
}

bool convoy_may_stop(struct m *mp, const struct unwind_regs *regs)
{
	enum stop_where where = (enum stop_where)load_relaxed(&mp->stop_where);

	check(mp == m_self());
	if (!load_relaxed(&mp->stop_where))
		return true;
	store_relaxed(&mp->stop_where, STOP_ANYWHERE);
	if (is_at(where, regs))
		return true;
	count_up(&mp->watch.put_off, 1);
	return where == STOP_FREE && load_relaxed(&mp->watch.put_off) > PUT_OFF_MAX;
}

bool convoy_may_pass_on(const struct unwind_regs *regs)
{
	return is_at(STOP_FREE, regs);
}

/* mp is about to wait for its turn: its P goes to the heir, if there is one. sysmon may
 * have named mp itself, where the P came to it while sysmon looked. */
static void convoy_pass_on(struct m *mp)
{
	struct p *pp = mp->p;
	struct m *heir = load_relaxed(&pp->heir);

	check(mp == m_self() && pp->mp == mp);
	if (!heir)
		return;
	store_relaxed(&pp->heir, NULL);
	if (heir == mp)
		return;
	lock_acquire(&sched.lock);
	if (!load_relaxed(&sched.stopping)) {
		p_unbind(mp);
		if (!p_give(pp, heir))
			p_bind(mp, pp);
	}
	lock_release(&sched.lock);
}

FILL(turn_pass_on, convoy_pass_on);

/* ------------------------------------------------------------------ slices */

int64_t convoy_slice(const struct p *pp, int64_t slice)
{
	int64_t longer = slice << convoy_of(pp)->doublings;

	if (slice >= SLICE_NS)
		return slice;
	return longer < SLICE_NS ? longer : SLICE_NS;
}

void convoy_slice_over(struct p *pp, uint64_t tick)
{
	struct convoy *c = convoy_of(pp);

	if (c->over_tick == tick)
		return;		/* put off by the handler, and asked again */
	c->over_tick = tick;
	check(c->doublings <= CONVOY_DOUBLINGS);
	if (!c->by_last_stop && c->doublings > 0)
		c->doublings--;
	c->by_last_stop = false;
}
