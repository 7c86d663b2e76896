/*
 * timers.c - the Ps' timers: who looks at them, firing what is due, and goro_sleep.
 *
 * Each P has a heap (timer/heap.c). A timer or sleep goes to the heap of the P that
 * starts it, and any M with a P may fire what is due there. Who looks, and when:
 *
 *	- an M that looks for work: at its own P's, then at the others';
 *	- an M that switches goroutines: at its own P's, in each fair turn of picks;
 *	- one idle M, the keeper: it sleeps until the earliest of all (idle.c);
 *	- sysmon, while any P runs: it sleeps until the earliest at most, and makes a P
 *	  look (sysmon.c).
 *
 * A timer that becomes the earliest of all wakes the keeper or sysmon, if both would
 * sleep too long (timers_tell).
 *
 * Many timers
 *
 * Where many timers come close to each other, each would cost a sleep and a wake of a
 * thread, several times what it costs to fire it. So if TIMERS_DENSE of them are due
 * within TIMER_SLACK_NS of the next, a thread that sleeps until the next (idle.c,
 * sysmon.c) sleeps up to TIMER_SLACK_NS longer, and they are fired together. The heaps
 * say how dense timers are, not the past: a few short sleeps beside many long ones are as
 * precise as alone. The thread that fires the timers runs the goroutines that they make
 * ready, and wakes no other thread for them. If these take long, the next timers become
 * due and are not fired; sysmon notices that.
 */
#include "sched/timers.h"

#include <goro.h>

#include "base/debug.h"
#include "platform/os.h"
#include "sched/runq.h"
#include "sched/runtime.h"

/* An M that has fired more timers than this wakes others for what they made ready. */
#define HUSHED_MAX (GORO_RUNQ_CAP / 2)

/* ------------------------------------------------------------------- starting */

void timers_tell(struct m *mp)
{
	int64_t when = timers_earliest();

	mp->owes_poke = false;
	check(!lock_is_held(&sched.lock));	/* m_poke_keeper takes it */
	/* seqcst: after min_when; pairs with keeper_limit and sysmon's tick_sleep */
	if (when < load_seqcst(&sched.keeper_until) && when < load_seqcst(&sched.sysmon_until))
		m_poke_keeper();
}

/* An earliest timer of a P. In its scheduler context an M looks at the timers itself,
 * or goes to sleep and becomes or pokes the keeper; or it tells before it runs a
 * goroutine. */
static void tell_soon(struct m *mp)
{
	if (mp->p && !mp->curg)
		mp->owes_poke = true;
	else
		timers_tell(mp);
}

static void start(struct m *mp, struct timer_entry e)
{
	struct p *pp = mp->p ? mp->p : p_at(0);		/* P 0 is never retired */

	if (timers_put(&pp->timers, e))
		tell_soon(mp);
}

void timer_start(struct m *mp, struct timer *t, int64_t when)
{
	check(!t->heap && !t->firing);
	t->when = soonest(when, TIMER_LAST);
	start(mp, entry_of_timer(t));
}

bool timer_change(struct m *mp, struct timer *t, int64_t when)
{
	bool first;

	if (!mp->p || !timers_change(&mp->p->timers, t, soonest(when, TIMER_LAST), &first))
		return false;
	if (first)
		tell_soon(mp);
	return true;
}

/* ------------------------------------------------------------------- firing */

bool timers_are_due(const struct p *pp)
{
	int64_t min = load_relaxed(&pp->timers.min_when);

	return min != TIMER_NEVER && min <= os_now();
}

static uint32_t fire_due(struct m *mp, struct timers *ts, int64_t now)
{
	struct timer_entry due[TIMERS_TOGETHER];
	uint32_t n, all = 0, fetched = 0;

	while (load_relaxed(&ts->min_when) <= now && (n = timers_take_due(ts, now, due))) {
		all += n;
		if (entry_is_sleep(due[0])) {
			/* each fetches the stacks behind it: runq_fetch_next */
			for (uint32_t i = 0; i < n; i++)
				g_ready_in_order(mp, entry_g(due[i]));
		} else {
			struct timer *t = entry_timer(due[0]);

			if (fetched-- == 0)
				fetched = timers_fetch_due(ts, now);
			t->fire(mp, t, now);	/* its last use of t clears firing */
		}
	}
	return all;
}

bool timers_run(struct m *mp, struct p *pp, int64_t now)
{
	struct timers *ts = &pp->timers;
	bool dense = load_relaxed(&sched.timer_slack) != 0, alone;
	uint32_t all;

	check(mp->p);
	if (load_relaxed(&ts->min_when) == TIMER_NEVER)
		return false;
	if (now == 0)
		now = os_now();
	if (load_relaxed(&ts->min_when) > now)
		return false;
	alone = dense && !mp->spinning && spinning_begin_alone(mp);
	if (alone || !mp->spinning)
		mp->fired = 0;
	all = fire_due(mp, ts, now);
	mp->fired += all;
	if (alone)
		spinning_end(mp);
	return all > 0;
}

bool timers_are_hushed(const struct m *mp)
{
	return load_relaxed(&sched.timer_slack) != 0 && mp->fired > 0 && mp->fired <= HUSHED_MAX;
}

/* -------------------------------------------------------------- when to look */

static bool are_many(void)
{
	size_t sum = 0;

	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n && sum < TIMERS_MANY; i++)
		sum += timers_count(&p_at(i)->timers);
	return sum >= TIMERS_MANY;
}

static bool are_dense(int64_t by)
{
	uint32_t sum = 0;

	if (!are_many())
		return false;
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n && sum < TIMERS_DENSE; i++)
		if (load_relaxed(&p_at(i)->timers.min_when) <= by)
			sum += timers_count_due(&p_at(i)->timers, by, TIMERS_DENSE);
	return sum >= TIMERS_DENSE;
}

int64_t timers_slack(int64_t next)
{
	bool dense = !debug.noslack && next < TIMER_LAST && are_dense(next + TIMER_SLACK_NS);
	int64_t slack = dense ? TIMER_SLACK_NS : 0;

	store_relaxed(&sched.timer_slack, slack);
	return slack;
}

int64_t timers_earliest(void)
{
	return timers_earliest_after(INT64_MIN);
}

int64_t timers_earliest_after(int64_t after)
{
	int64_t min = TIMER_NEVER;

	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++) {
		int64_t when = load_seqcst(&p_at(i)->timers.min_when);

		if (when > after && when < min)
			min = when;
	}
	return min;
}

/* ------------------------------------------------------------------- sleep */

static void commit_sleep(struct m *mp, struct g *gp)
{
	check(gp->status == G_WAITING && (gp->is_foreign || !gp->mp));
	start(mp, entry_of_sleep(gp, (int64_t)(uintptr_t)mp->after.arg));
}

void goro_sleep(int64_t ns)
{
	struct m *mp = rt_enter_free();

	if (ns > 0) {
		int64_t now = os_now();
		int64_t when = ns < TIMER_LAST - now ? now + ns : TIMER_LAST;

		mp = park(mp, commit_sleep, (void *)(uintptr_t)when, WAIT_SLEEP);
		if (likely(mp->p))
			runq_fetch_next(mp->p);
	}
	rt_exit_free(mp);
}
