/*
 * steal.c - looking for work in the queues of other Ps, and what is worth taking.
 *
 * What is worth taking
 *
 * A goroutine that moves to another CPU pays for it: its stack and what it works
 * on have to come after it. And it parts from those it talks to, for whom each
 * word then goes from one CPU to the other. So what is about to run where it is
 * stays there, and a thief takes only what would otherwise wait:
 *
 *	- the oldest started or the oldest woken, if it has been the oldest for
 *	  STEAL_AFTER_NS;
 *	- the oldest woken, too, if at the rate at which its P gets through them
 *	  those that wait need longer than that. (Where many wait at once, as for one wait
 *	  group, the rate of the last watch will do: 200,000 who compute for 0.13 us each, 0.28
 *	  us and 0.24.)
 *	- runnext, if its P has not switched for as long;
 *	- anything, on trial, of a P at which somebody waited at most of the looks
 *	  for STEAL_LOADED_NS.
 *
 * A thief cannot know how long something waits without the owner writing a time
 * beside it, which would cost each start and wake a look at the clock. So thieves
 * note what they saw, and when, in the P they looked at ("seen"): what is still
 * there at a later look has waited since. Any thief may go on from any other's
 * notes. Notes are words written without order; a torn one makes a thief take
 * something a little early or late.
 *
 * On trial
 *
 * A P that always has somebody waiting and gets through them quickly may have two
 * pairs that talk to each other, and a second P would do twice as much: the one of
 * a pair that moves draws the other after it. Or it may have five that all talk to
 * one, and a second P would only take it away from the first all the time. It
 * cannot be told which, so it is tried, and measured: if both together do not
 * switch a quarter more often than the one did alone, the thief's queues go back
 * by way of the global queue ("fold"), and the next try comes after twice the time. Else
 * it comes after half of it, where the same work is there again. A yield counts as a switch
 * although there is nobody else: who yields and yields would seem to do nothing as soon
 * as it has a P to itself. (Two who yield, on two Ps, together for a millisecond and then anew:
 * 4.4 ns a yield, and 10.3 when all times were fixed and trials took a millisecond, most of them over the
 * end of what they measured. The sieve: an eighth less.)
 *
 * A thief that has nothing left of what it took has its answer early; if at once, it took
 * it for nothing.
 *
 * Spinning and dozing
 *
 * An M looks for SPIN_BEFORE_SLEEP_NS, or until nothing has moved for SPIN_QUIET_NS, with
 * growing pauses, since each look takes a cache line from the P looked at. When it
 * has then found nothing, but some P
 * gets through its work quickly, it is not sent to sleep: that P would wake it
 * again at once, by a system call, for the next thing that it makes ready. One M
 * dozes instead: a look every DOZE_NS, counted as spinning so that nobody wakes
 * another, until there is something worth taking or nothing moves any more.
 *
 * It also dozes when it was woken for nothing twice within DOZE_IN_VAIN_NS: where one
 * goroutine starts another every 0.1 ms and waits for it, each start is a system call to
 * wake a thread, and that thread's going to sleep again a barrier that interrupts who is at
 * work (wake). (20,000 locks and unlocks by a goroutine that is started for them: 5.7 ns each,
 * and 4.9 with this, as on one P.)
 *
 * On a single CPU all of this is different: the thief is running, so the owner is
 * not, and it takes whatever there is. So it is where the kernel has put a thread in the place of the
 * one that has just woken it, though another CPU may be idle (steal_in_place).
 *
 * Rejected: taking whatever there is (two goroutines that talk are torn apart
 * again and again: ping-pong with two Ps 103 ns, now 59); taking half by counting
 * only (a batch of a hundred short goroutines is done before half of it has
 * moved).
 */
#include "steal.h"

#include "netpoll.h"
#include "os.h"
#include "runq.h"
#include "runtime.h"

/* ------------------------------------------------------------ what was seen */

/* Whether the same thing (0: none) has been there for STEAL_AFTER_NS. */
static bool has_waited(struct seen *s, uint64_t what, int64_t now)
{
	if (what == 0 || load_relaxed(&s->what) != what) {
		store_relaxed(&s->what, what);
		store_relaxed(&s->at, now);
		return false;
	}
	return now - load_relaxed(&s->at) >= STEAL_AFTER_NS;
}

static void watch_anew(struct p *from, uint32_t head, int64_t now)
{
	store_relaxed(&from->seen_woken.what, head);
	store_relaxed(&from->seen_woken.at, now);
}

/* Whether so many will wait for longer than STEAL_AFTER_NS, judged by how long each took that
 * left while the P was watched last: for about as long, and with somebody waiting at each look.
 * A few are judged at the end of a watch only: a P that the kernel stopped for a moment would
 * seem slow for as long again. Positions run freely. */
static bool is_slow(struct p *from, uint32_t head, uint32_t count, int64_t now)
{
	int64_t watched = now - load_relaxed(&from->seen_woken.at);
	int64_t left = (uint32_t)(head - (uint32_t)load_relaxed(&from->seen_woken.what));

	if (count == 0 || watched > 4 * STEAL_AFTER_NS) {
		store_relaxed(&from->seen_each, 0);
		watch_anew(from, head, now);
		return false;
	}
	if (watched >= STEAL_AFTER_NS) {
		store_relaxed(&from->seen_each, left > 0 ? watched / left : watched);
		watch_anew(from, head, now);
	} else if (count < STEAL_MANY) {
		return false;
	}
	return count * load_relaxed(&from->seen_each) > STEAL_AFTER_NS;
}

/* Events in a time, a millisecond. */
static uint64_t rate(uint64_t n, int64_t ns)
{
	return ns > 0 ? n * 1000000 / (uint64_t)ns : 0;
}

/* How long a P is looked at before a trial. */
static int64_t load_wait(const struct p *from)
{
	int64_t wait = load_relaxed(&from->load_wait);

	return wait ? wait : STEAL_LOADED_NS;
}

/* How many looks tell something; fewer where it is known to be of use. One that dozes has
 * twice as many. */
static uint64_t looks_needed(int64_t wait)
{
	return wait < STEAL_LOADED_NS ? (uint64_t)(wait / (2 * DOZE_NS)) : STEAL_LOADED_LOOKS;
}

/* Whether somebody waited at most of the looks of the last while; and how often the
 * P switched in it. */
static bool is_loaded(struct p *from, bool any, uint64_t switches, int64_t now, uint64_t *per_ms)
{
	struct seen *s = &from->seen_load;
	uint64_t looks = load_relaxed(&s->what) + (1ull << 32) + any;
	int64_t since = now - load_relaxed(&s->at);
	bool loaded;

	if (since < load_wait(from)) {
		store_relaxed(&s->what, looks);
		return false;
	}
	*per_ms = rate(switches - load_relaxed(&from->seen_load_switches), since);
	loaded = 2 * (uint32_t)looks > looks >> 32 && looks >> 32 >= looks_needed(load_wait(from));
	store_relaxed(&s->what, 0);
	store_relaxed(&s->at, now);
	store_relaxed(&from->seen_load_switches, switches);
	return loaded;
}

/* ---------------------------------------------------------------- on trial */

static uint64_t switches_of(const struct p *pp, const struct p *from)
{
	return load_relaxed(&pp->count.switches) + load_relaxed(&from->count.switches);
}

/* What comes is not to be measured together with what was. */
static void look_anew(struct p *from, int64_t now)
{
	store_relaxed(&from->seen_load.what, 0);
	store_relaxed(&from->seen_load.at, now);
	store_relaxed(&from->seen_load_switches, load_relaxed(&from->count.switches));
}

static void trial_begin(struct p *pp, struct p *from, int64_t now, uint64_t per_ms)
{
	pp->trial = (struct trial){ .from = from, .at = now, .before = per_ms,
	                            .switches = switches_of(pp, from) };
}

/* It is over: whether it was for nothing. */
static bool trial_end(struct p *pp, int64_t now)
{
	struct trial t = pp->trial;
	bool failed = now - t.at < STEAL_TRIAL_MIN_NS ||
	              4 * rate(switches_of(pp, t.from) - t.switches, now - t.at) < 5 * t.before;
	int64_t wait = failed ? 2 * load_wait(t.from) : load_wait(t.from) / 2;

	if (wait > STEAL_LOADED_MAX_NS)
		wait = STEAL_LOADED_MAX_NS;
	if (wait < STEAL_LOADED_MIN_NS)
		wait = STEAL_LOADED_MIN_NS;
	store_relaxed(&t.from->load_wait, wait);
	store_relaxed(&pp->load_wait, wait);	/* it may be the other way about next time */
	look_anew(t.from, now);
	pp->trial.from = NULL;
	return failed;
}

bool steal_failed(struct p *pp, int64_t now)
{
	return now - pp->trial.at >= STEAL_TRIAL_NS && trial_end(pp, now);
}

void steal_dry(struct p *pp, int64_t now)
{
	trial_end(pp, now);
}

/* ------------------------------------------------------------------ a look */

struct g *steal_from(struct p *pp, struct p *from, int64_t now)
{
	struct runq_look look = runq_look(from);
	bool any = look.started > 0 || look.woken > 0;
	/* Each is asked at each look: they keep notes. */
	bool started = has_waited(&from->seen_started, look.started ? look.started_head + 1u : 0, now);
	bool woken = is_slow(from, look.woken_head, look.woken, now);
	bool next = has_waited(&from->seen_next,
	                       look.next ? (uint64_t)(uintptr_t)look.next ^ look.switches << 48 : 0, now);
	uint64_t stale = has_waited(&from->seen_claim, look.claim, now) ? look.claim : 0;
	uint64_t per_ms = 0;
	bool loaded = is_loaded(from, any, look.switches, now, &per_ms);
	struct g *gp;

	if (!os_many_cpus)
		return runq_steal(pp, from, true, true, true, stale);
	if (started || woken || next) {
		gp = runq_steal(pp, from, started, woken, next, stale);
		if (woken)	/* those who were taken have not left by themselves */
			watch_anew(from, load_relaxed(&from->woken.head), now);
		return gp;
	}
	if (!loaded || !any)
		return NULL;
	gp = runq_steal(pp, from, true, true, false, stale);
	if (gp)
		trial_begin(pp, from, now, per_ms);
	return gp;
}

/* Work goes through this P: it has some, or has switched since the last look. */
static bool is_moving(struct p *from)
{
	uint64_t switches = load_relaxed(&from->count.switches);
	bool moved = load_relaxed(&from->seen_switches) != switches;

	if (moved)
		store_relaxed(&from->seen_switches, switches);
	return moved || !runq_empty(from);
}

/* One look at each of the others, in random order. */
static struct g *look_around(struct m *mp, int64_t now, bool *moving)
{
	unsigned n = (unsigned)load_relaxed(&sched.gomaxprocs);
	struct steal_order o;

	*moving = false;
	for (o = steal_order_start(n, m_random(mp)); !steal_order_done(&o); steal_order_next(&o)) {
		struct p *from = p_at(o.at);
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

static int64_t in_vain_at;	/* when a thread went to sleep that had been woken for nothing */

void steal_doze(struct m *mp, int64_t now)
{
	int64_t ns = timers_earliest() - now;

	if (ns > DOZE_NS)
		ns = DOZE_NS;
	if (ns > 0)
		note_sleep_for(&mp->park, ns);
}

struct g *steal_in_place(struct m *mp)
{
	struct p *from = mp->woken_by;

	mp->woken_by = NULL;
	if (!from || mp->woken_on != os_cpu())
		return NULL;
	return runq_steal(mp->p, from, true, true, true, 0);
}

struct g *steal_work(struct m *mp, bool woken)
{
	int64_t now = os_now(), end = os_many_cpus ? now + SPIN_BEFORE_SLEEP_NS : now;
	bool again = woken && now - load_relaxed(&in_vain_at) < DOZE_IN_VAIN_NS;
	int64_t moved_at = now;
	struct g *gp;
	int pause = 16;

	check(mp->spinning && mp->p);
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
		} else if ((moving || (again && now - moved_at < DOZE_IN_VAIN_NS)) && os_many_cpus &&
		           load_relaxed(&sched.spinning) == 1) {
			steal_doze(mp, now);
			if ((gp = netpoll_look_if_wanted(mp)))
				return gp;
		} else {
			if (woken)
				store_relaxed(&in_vain_at, now);
			return NULL;
		}
	}
}
