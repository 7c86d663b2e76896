/*
 * steal.c - looking for work in the queues of other Ps, and what is worth taking.
 *
 * What is worth taking
 *
 * A goroutine that moves to another CPU pays for it: the cache lines of its stack and its
 * data follow, and from then on each message to those that it talks to goes from one CPU
 * to another. So a thief takes only what would wait where it is:
 *
 *	- the oldest started or the oldest woken, if it has been the oldest for
 *	  STEAL_AFTER_NS;
 *	- the oldest woken, if the P runs the woken so slowly that the last of them
 *	  would wait for longer than that;
 *	- runnext, if the P has not switched for STEAL_AFTER_NS.
 *
 * An owner that wrote down a time with each start and each wake would look at the clock
 * each time. So a thief notes in the P what it saw, and when (struct p_steal): what is
 * still there at a later look has waited since. All thieves share the notes of a P, and
 * write them without order; a torn note makes a thief take something a little early or
 * late.
 *
 * Spinning and dozing
 *
 * A spinning M looks for SPIN_BEFORE_SLEEP_NS, or until nothing has moved for
 * SPIN_QUIET_NS, with growing pauses, since each look takes a cache line from the P that
 * it looks at. When it has found nothing, but some P gets through its work quickly, it
 * does not go to sleep: that P would wake it again at once, by a system call. One M dozes
 * instead: it looks every DOZE_NS, and counts as spinning so that nobody wakes another M,
 * until there is something worth taking or nothing moves any more.
 *
 * One CPU
 *
 * On a machine with one CPU the thief runs, so the owner does not, and the thief takes
 * whatever there is. The same holds where the kernel has put a woken thread on the CPU of
 * its waker (steal_in_place).
 *
 * Rejected: taking whatever there is (ping-pong and prodcons take 1.2 times as long,
 * select 1.5 times: GORO_DEBUG=nowaited=1); taking half whenever there are many (a batch
 * of a hundred short goroutines is done before half of it has moved). A thief takes
 * whatever there is on trial only: steal_trial.c.
 */
#include "sched/steal.h"

#include "base/debug.h"
#include "platform/os.h"
#include "sched/netpoll.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/timers.h"

/* Ps that have had neither work nor a switch for this long will not have any soon. */
#define SPIN_QUIET_NS 5000
/* About what it takes to wake a thread. */
#define DOZE_NS 50000

/* ------------------------------------------------------------ what was seen */

/* Whether the same thing (0: none) has been there for STEAL_AFTER_NS. */
static bool has_waited(struct steal_note *s, uint64_t what, int64_t now)
{
	if (what == 0 || load_relaxed(&s->what) != what) {
		store_relaxed(&s->what, what);
		store_relaxed(&s->at, now);
		return false;
	}
	return now - load_relaxed(&s->at) >= STEAL_AFTER_NS;
}

static void watch_anew(struct p_steal *seen, uint32_t head, int64_t now)
{
	store_relaxed(&seen->woken.what, head);
	store_relaxed(&seen->woken.at, now);
}

/* Whether the last of count woken will wait for longer than STEAL_AFTER_NS, at the rate
 * at which they left during this watch. A watch is judged at its end: a P whose thread
 * the kernel stopped for a moment would seem slow in between. head: the oldest's
 * position. */
static bool is_slow(struct p *from, uint32_t head, uint32_t count, int64_t now)
{
	struct p_steal *seen = &from->steal;
	int64_t watched = now - load_relaxed(&seen->woken.at);
	int64_t left = (uint32_t)(head - (uint32_t)load_relaxed(&seen->woken.what));

	if (count == 0 || watched > 4 * STEAL_AFTER_NS) {
		watch_anew(seen, head, now);
		return false;
	}
	if (watched < STEAL_AFTER_NS)
		return false;
	watch_anew(seen, head, now);
	return count * (left > 0 ? watched / left : watched) > STEAL_AFTER_NS;
}

/* ------------------------------------------------------------------ a look */

/* Of a pair that hands over, the same one is seen at every second look. */
static uint64_t next_and_switches(const struct runq_look *look)
{
	return (uint64_t)(uintptr_t)look->next ^ look->switches << 48;
}

static struct g *steal_on_trial(struct p *pp, struct p *from, int64_t now, uint64_t stale)
{
	struct g *gp = runq_steal(pp, from, true, true, false, stale);

	if (gp)
		trial_begin(pp, from, now);
	return gp;
}

struct g *steal_from(struct p *pp, struct p *from, int64_t now)
{
	struct p_steal *seen = &from->steal;
	struct runq_look look = runq_look(from);
	/* At each look all of these are called, since each keeps a note. */
	bool started = has_waited(&seen->started, look.started ? look.started_head + 1u : 0, now);
	bool woken = is_slow(from, look.woken_head, look.woken, now);
	bool next = has_waited(&seen->next, look.next ? next_and_switches(&look) : 0, now);
	uint64_t stale = has_waited(&seen->claim, look.claim, now) ? look.claim : 0;
	bool loaded = trial_is_wanted(from, look.started > 0 || look.woken > 0, now);
	struct g *gp;

	if (!os_many_cpus || debug.nowaited)
		return runq_steal(pp, from, true, true, true, stale);
	if (!started && !woken && !next)
		return loaded ? steal_on_trial(pp, from, now, stale) : NULL;
	gp = runq_steal(pp, from, started, woken, next, stale);
	if (woken)	/* what was stolen does not count as having left by itself */
		watch_anew(seen, load_relaxed(&from->woken.head), now);
	return gp;
}

/* Whether the P has work, or has switched since the last look. */
static bool is_moving(struct p *from)
{
	uint64_t switches = load_relaxed(&from->count.switches);
	bool moved = load_relaxed(&from->steal.switches) != switches;

	if (moved)
		store_relaxed(&from->steal.switches, switches);
	return moved || !runq_empty(from);
}

/* One look at each of the others, from a random one on. */
static struct g *look_around(struct m *mp, int64_t now, bool *moving)
{
	int n = load_relaxed(&sched.gomaxprocs), at = (int)(m_random(mp) % (unsigned)n);

	*moving = false;
	for (int i = 0; i < n; i++) {
		struct p *from = p_at((at + i) % n);
		struct g *gp;

		if (from == mp->p)
			continue;
		if ((gp = steal_from(mp->p, from, now)))
			return gp;
		if (timers_run(mp, from, 0) && (gp = runq_get(mp->p, &(bool){ false })))
			return gp;
		*moving |= is_moving(from);
	}
	return NULL;
}

/* Sleeps for DOZE_NS, or until the next timer. */
static void doze(struct m *mp, int64_t now)
{
	int64_t ns = timers_earliest() - now;

	if (ns > DOZE_NS)
		ns = DOZE_NS;
	if (ns > 0)
		note_sleep_for(&mp->park, ns);
}

struct g *steal_in_place(struct m *mp)
{
	struct p *from = mp->woken.by;

	mp->woken.by = NULL;
	if (!from || from == mp->p || mp->woken.cpu != os_cpu())
		return NULL;
	return runq_steal(mp->p, from, true, true, true, 0);
}

struct g *steal_work(struct m *mp, bool woken)
{
	int64_t now = os_now(), end = os_many_cpus ? now + SPIN_BEFORE_SLEEP_NS : now;
	int64_t moved_at = now;
	struct g *gp;
	int pause = 16;

	check(mp->spinning && mp->p);
	trial_look(mp->p, now);
	if (runq_alone())
		return NULL;
	if (woken && (gp = steal_in_place(mp)))
		return gp;
	for (;; now = os_now()) {
		bool moving;

		if ((gp = look_around(mp, now, &moving)))
			return gp;
		if (load_relaxed(&sched.stopping) || globq_length() != 0)
			return NULL;
		if (moving)
			moved_at = now;
		if (now < end && now - moved_at < SPIN_QUIET_NS) {
			for (int i = 0; i < pause; i++)
				cpu_relax();
			if (pause < 256)
				pause *= 2;
		} else if (moving && os_many_cpus && !debug.nodoze &&
		           load_relaxed(&sched.spinning) == 1) {
			doze(mp, now);
			if ((gp = netpoll_look_if_wanted(mp)))
				return gp;
		} else {
			return NULL;
		}
	}
}
