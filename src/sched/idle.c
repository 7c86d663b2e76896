/*
 * idle.c - threads without work: asleep, woken with a P, ended.
 *
 * Idle Ms sleep on a note each, last in first out, so that those in excess stay
 * at the bottom, where they end after a while. As many as there are Ps, and a
 * few more, never do: an idle process has no timeouts running.
 *
 * The keeper
 *
 * One of the idle Ms, the keeper, sleeps no longer than until the earliest timer
 * while a P is idle to run it. (While none is, sysmon watches the timers.) It is
 * the last to be woken for other work. Starting a timer that is due before the
 * keeper looks pokes it: it is woken without a P and looks again.
 *
 *	starting a timer                keeper
 *	heap's min_when = when          keeper_until = u
 *	read keeper_until               read every heap's min_when
 *	 when < it: poke                 one < u: choose a new u
 *
 * Both sides store before they load, sequentially consistently, so one of the
 * two sees the other's. Once there are descriptors to wait for, the keeper sleeps in
 * the poller (netpoll.c). An M that makes a P idle while another M is the keeper
 * pokes it likewise, since it may sleep without a limit for lack of an idle P.
 *
 * Near
 *
 * Who hands its P over is about to sleep, and leaves its CPU idle. The kernel does not
 * know that when it chooses a CPU for the woken: it may choose another, where somebody
 * computes, and leave both there for milliseconds. It prefers the CPU on which a thread
 * slept, so one that went to sleep on this CPU is woken, if there is one among the first few.
 */
#include "beat.h"
#include "m_end.h"
#include "netpoll.h"
#include "os.h"
#include "runq.h"
#include "runtime.h"

/* Idle threads beyond the Ps that are kept for good. */
#define IDLE_SPARE 2

/* ---------------------------------------------------------------- the list */

/* sched.lock held. */
static void idle_put(struct m *mp)
{
	check(!mp->idle_at);
	store_relaxed(&mp->cpu, os_cpu());
	mp->idle_link = sched.idle_m;
	mp->idle_at = &sched.idle_m;
	if (mp->idle_link)
		mp->idle_link->idle_at = &mp->idle_link;
	sched.idle_m = mp;
	store_relaxed(&sched.idle_m_n, sched.idle_m_n + 1);
}

/* sched.lock held. Off the idle list; false: another took it off already. In constant time:
 * every idle M that is woken comes here, and there may be thousands. */
static bool idle_remove(struct m *mp)
{
	if (!mp->idle_at)
		return false;
	*mp->idle_at = mp->idle_link;
	if (mp->idle_link)
		mp->idle_link->idle_at = mp->idle_at;
	mp->idle_at = NULL;
	store_relaxed(&sched.idle_m_n, sched.idle_m_n - 1);
	return true;
}

/* sched.lock held. */
static void keeper_resign(struct m *mp)
{
	if (sched.keeper != mp)
		return;
	sched.keeper = NULL;
	sched.keeper_polls = false;
	store_seqcst(&sched.keeper_until, TIMER_NEVER);
}

/* sched.lock held. NULL: none is near. */
static struct m *idle_near(void)
{
	struct m *mp = sched.idle_m;
	int cpu = os_cpu();

	for (int i = 0; mp && i < NEAR_MAX; i++, mp = mp->idle_link)
		if (mp->cpu == cpu && mp != sched.keeper)
			return mp;
	return NULL;
}

/* sched.lock held. The one that slept last, or on this CPU; and the keeper only if there is
 * no other, except that without an idle P there is nothing for the keeper to do, and in
 * the poller it would take what a running P could have. */
static struct m *idle_take(bool near)
{
	struct m *mp = near ? idle_near() : NULL;

	if (!mp)
		mp = sched.idle_m;
	if (load_relaxed(&sched.idle_p_n) == 0 && sched.keeper_polls)
		mp = sched.keeper;
	else if (mp && mp == sched.keeper && mp->idle_link)
		mp = mp->idle_link;
	if (!mp)
		return NULL;
	idle_remove(mp);
	if (mp == sched.keeper) {
		keeper_resign(mp);
		sysmon_watch_timers();
	}
	return mp;
}

/* ------------------------------------------------------- handing a P over */

/*
 * The P is what counts, not the wake: a note may be woken by a poke as well, and
 * the wake that belongs to a P may come after its M has seen the P and gone on,
 * and be found by its next sleep. So every sleep on a note of an M is in a loop
 * around what it waits for.
 */
void m_hand_p(struct m *to, struct p *pp)
{
	store_relaxed(&pp->sent_to, to->locked_g ? to : NULL);
	store_relaxed(&pp->sent_at, os_now());
	/* release: the P is whole, and ours no longer; pairs with m_await_p */
	store_release(&to->next_p, pp);
	netpoll_note_wake(&to->park);
}

struct p *m_await_p(struct m *mp)
{
	struct p *pp;

	/* acquire: the P; an exchange, since it may be called back; pairs with m_hand_p */
	while (!(pp = exchange_acqrel(&mp->next_p, NULL)))
		note_sleep(&mp->park);
	store_relaxed(&sched.coarse_now, os_now());
	return pp;
}

/* The M was woken and gets no CPU: the kernel has put it behind somebody who computes,
 * perhaps while another CPU is idle. A goroutine that brings its own M can wait in the
 * queue as well, and let another have the P. */
void m_recall_p(struct m *to, struct p *pp)
{
	struct p *sent = pp;

	lock_acquire(&sched.lock);
	/* acquire: what the M is; pairs with m_hand_p. Until it has its P it is at rest, so
	 * locked_g stands. */
	if (load_relaxed(&sched.stopping) || !cas_acqrel(&to->next_p, &sent, NULL)) {
		lock_release(&sched.lock);
		return;
	}
	if (!to->locked_g) {
		/* It had its P long ago, for somebody it brought, and the same P was sent
		 * to it again, as to any other. */
		lock_release(&sched.lock);
		m_hand_p(to, pp);
		return;
	}
	sched.idle_m_locked++;
	globq_put(to->locked_g);
	lock_release(&sched.lock);
	p_handoff(pp);
}

/* ---------------------------------------------------------------- starting */

/* sched.lock held. pp waits for an M to be made. */
static void need_m_put(struct p *pp, bool spinning)
{
	store_relaxed(&pp->status, P_RUNNING);	/* owned by the queue */
	pp->spawn_spinning = spinning;
	pp->link = sched.need_m;
	sched.need_m = pp;
	sched.need_m_n++;
}

/* sched.lock held. pp goes to one that brings its own M; who was to look for work on pp
 * is to do so on another. */
static void hand_to_bound(struct g *gp, struct p *pp, bool spinning)
{
	struct p *other = NULL;

	sched.idle_m_locked--;
	if (spinning && !load_relaxed(&sched.stopping))
		other = p_idle_get();
	if (other) {
		need_m_put(other, true);
	} else if (spinning) {
		/* As in wake_slow: whoever sleeps next may have missed something. */
		store_relaxed(&sched.need_spinning, 1);
		fetch_add_seqcst(&sched.spinning, -1);
	}
	m_hand_p(gp->locked_m, pp);
}

void m_start_unlock(struct p *pp, bool spinning)
{
	struct m *mp = idle_take(!spinning);
	struct g *gp;
	bool spare;

	check(lock_is_held(&sched.lock) && !pp->mp);
	count_up(&pp->count.thread_wakeups, 1);
	if (mp) {
		mp->spinning = spinning;
		mp->woken_by = spinning && m_self() ? m_self()->p : NULL;
		mp->woken_on = os_cpu();
		spare = load_relaxed(&sched.want_spare) && sched.idle_m_n == 0;
		lock_release(&sched.lock);
		m_hand_p(mp, pp);
		if (spare)
			m_spawn();
		return;
	}
	if ((gp = globq_take_bound())) {
		/* No M is free, but this one brings its own: it may hold the
		 * lock that keeps the spawner from making another. The next
		 * time there is to be one, or those who bring theirs (perhaps
		 * only the one that has just given way) would run for ever. */
		if (load_relaxed(&sched.want_spare) == SPARE_NONE)
			store_relaxed(&sched.want_spare, SPARE_WANTED);
		hand_to_bound(gp, pp, spinning);
	} else {
		need_m_put(pp, spinning);
	}
	lock_release(&sched.lock);
	m_spawn();
}

struct p *need_m_take(void)
{
	struct p *pp = sched.need_m;

	if (pp) {
		sched.need_m = pp->link;
		sched.need_m_n--;
	}
	return pp;
}

/* ---------------------------------------------------------------- sleeping */

enum idle_end { IDLE_HANDED, IDLE_LOOK, IDLE_EXPIRED };

/* What an M that goes idle is to do. */
struct idle_role {
	bool keeper;		/* looks after the timers .. */
	bool polls;		/* .. and waits in the poller */
	bool excess;		/* ends after a while */
	int64_t recheck;	/* how long to leave the poller to others; 0: no limit */
};

/* Sleeps for at most ns (-1: no limit). How it ended: handed a P (and off the
 * list); poked, or the time is up (and off the list, too). Events from the poller
 * are not seen to before the M is off the list: while it counts as idle, whom they
 * concern must count as waiting (deadlock.c). */
static enum idle_end idle_sleep(struct m *mp, int64_t ns, bool polls, struct netpoll_events *ev)
{
	bool woken = true, ours;

	ev->n = 0;
	if (polls)
		woken = netpoll_sleep(&mp->park, ns, ev);
	else if (ns < 0)
		note_sleep(&mp->park);
	else
		woken = note_sleep_for(&mp->park, ns);
	lock_acquire(&sched.lock);
	ours = idle_remove(mp);
	if (ours)
		keeper_resign(mp);
	lock_release(&sched.lock);
	if (ours)
		return woken ? IDLE_LOOK : IDLE_EXPIRED;
	return IDLE_HANDED;
}

/* How long the keeper may sleep; -1: without a limit. */
static int64_t keeper_limit(void)
{
	int64_t until = TIMER_NEVER, earliest, slack, now;

	if (load_seqcst(&sched.idle_p_n) == 0)
		return -1;
	do {
		earliest = timers_earliest();
		until = earliest;
		store_seqcst(&sched.keeper_until, until);
	} while (timers_earliest() < until);
	if (until == TIMER_NEVER)
		return -1;
	slack = timers_slack(until);
	until = beat_sleep_until(until + slack, slack);
	sysmon_put_off();
	now = os_now();
	return until > now ? until - now : 0;
}

void m_poke_locked(void)
{
	netpoll_note_wake(&sched.keeper->park);
}

void m_poke_keeper(void)
{
	lock_acquire(&sched.lock);
	if (sched.keeper) {
		m_poke_locked();
		lock_release(&sched.lock);
		return;
	}
	if (!sched.sysmon_asleep) {
		sysmon_poke();
		lock_release(&sched.lock);
		return;
	}
	lock_release(&sched.lock);
	fence_seqcst();
	wake();
}

/* Each is poked and goes back to sleep, with a limit if it is in excess. */
void m_idle_reconsider(void)
{
	check(lock_is_held(&sched.lock));
	for (struct m *mp = sched.idle_m; mp; mp = mp->idle_link)
		netpoll_note_wake(&mp->park);
}

/* The keeper's time is up or it was poked: a P to run the timers that are due, which
 * may be another's. */
static struct p *p_for_timers(void)
{
	struct p *pp = NULL;
	int64_t now = os_now();

	if (timers_earliest() > now)
		return NULL;
	store_relaxed(&sched.coarse_now, now);
	lock_acquire(&sched.lock);
	if (!load_relaxed(&sched.stopping))
		pp = p_idle_get();
	lock_release(&sched.lock);
	return pp;
}

/* sched.lock held. mp becomes the keeper if there is none; or if the poller needs
 * somebody to wait there, and the keeper does not. */
static void choose_role(struct m *mp, struct idle_role *r)
{
	bool polls = netpoll_on() && p_for_events() && !netpoll_attended();

	if (!sched.keeper || (polls && !sched.keeper_polls)) {
		sched.keeper = mp;
		sched.keeper_polls = polls;
	} else if (timers_earliest() < load_seqcst(&sched.keeper_until)) {
		m_poke_locked();
	}
	r->keeper = sched.keeper == mp;
	r->polls = r->keeper && polls;
	r->excess = !r->keeper && sched.idle_m_n > sched.gomaxprocs + IDLE_SPARE;
}

/* Onto the idle list, unless there is something to do at once: a P. */
static struct p *go_idle(struct m *mp, struct idle_role *role)
{
	struct p *pp;

	lock_acquire(&sched.lock);
	if (mp->starting) {
		mp->starting = false;
		sched.m_starting--;
	}
	pp = need_m_take();
	if (pp) {
		mp->spinning = pp->spawn_spinning;
		lock_release(&sched.lock);
		return pp;
	}
	idle_put(mp);
	choose_role(mp, role);
	mp->owes_poke = false;
	deadlock_check();
	lock_release(&sched.lock);
	return NULL;
}

/* How long to sleep. A keeper that leaves the poller to those who run looks again
 * whether they do. */
static int64_t idle_limit(struct idle_role *r)
{
	int64_t limit;

	if (!r->keeper)
		return r->excess ? IDLE_THREAD_END_NS : -1;
	limit = keeper_limit();
	if (r->polls || !netpoll_on() || !p_for_events())
		return limit;
	r->recheck = r->recheck ? 2 * r->recheck : NETPOLL_ATTENDED_NS;
	if (r->recheck > NETPOLL_RECHECK_MAX_NS)
		r->recheck = NETPOLL_RECHECK_MAX_NS;
	return limit < 0 || limit > r->recheck ? r->recheck : limit;
}

/* Whom the events concern is made ready: on an idle P for this M, true; else, if there is
 * none for it now, it comes first in the global queue. */
static bool take_events(struct m *mp, const struct netpoll_events *ev)
{
	struct p *pp = NULL;

	lock_acquire(&sched.lock);
	if (!load_relaxed(&sched.stopping) && p_for_events())
		pp = p_idle_get();
	lock_release(&sched.lock);
	if (pp) {
		p_bind(mp, pp);
		spinning_begin_alone(mp);	/* it runs the first of them itself */
	}
	netpoll_dispatch(mp, ev);
	sysmon_watch_timers();
	return pp;
}

bool m_stop(struct m *mp)
{
	struct idle_role role = { .recheck = 0 };
	struct netpoll_events ev = { .n = 0 };
	struct p *pp;

	check(!mp->p && !mp->spinning && !mp->locked_g);
	while (!(pp = go_idle(mp, &role))) {
		enum idle_end end = idle_sleep(mp, idle_limit(&role), role.polls, &ev);

		if (end == IDLE_HANDED) {
			pp = m_await_p(mp);
			break;
		}
		if (ev.n != 0) {
			store_relaxed(&sched.coarse_now, os_now());
			if (take_events(mp, &ev))
				return true;
			continue;
		}
		if (end == IDLE_EXPIRED && role.excess && m_may_end())
			return false;
		pp = p_for_timers();
		if (pp) {
			p_bind(mp, pp);
			spinning_begin_alone(mp);
			timers_run_all(mp);
			sysmon_watch_timers();
			return true;
		}
	}
	p_bind(mp, pp);
	if (ev.n != 0)
		netpoll_dispatch(mp, &ev);
	return true;
}
