/*
 * idle.c - threads without work: asleep, woken with a P, ended.
 *
 * Each idle M sleeps on a note of its own. They are woken last in first out, so that
 * those in excess stay at the bottom of the list, where they end after
 * IDLE_THREAD_END_NS. As many as there are Ps, and IDLE_SPARE more, never end: an idle
 * process has no timeouts running.
 *
 * The keeper
 *
 * One of the idle Ms, the keeper, sleeps no longer than until the earliest timer, while a
 * P is idle to run it. (While no P is idle, sysmon watches the timers.) It is the last to
 * be woken for other work. An M that starts a timer that is due before the keeper looks
 * pokes the keeper: the keeper wakes without a P and looks again.
 *
 *	starting a timer                keeper
 *	heap's min_when = when          keeper_until = u
 *	read keeper_until               read every heap's min_when
 *	 when < it: poke                 one < u: choose a new u
 *
 * Both sides store before they load, sequentially consistently, so one of the two sees
 * the other's store. Once there are descriptors to wait for, the keeper sleeps in the
 * poller (netpoll.c). An M that makes a P idle while another M is the keeper pokes the
 * keeper, too, since it may sleep without a limit for lack of an idle P.
 */
#include "sched/deadlock.h"
#include "sched/netpoll.h"
#include "platform/os.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/timers.h"

/* An idle thread in excess ends after this long: making it again takes 60 us. */
#define IDLE_THREAD_END_NS (5 * 1000000000LL)

/* Looks of a keeper that leaves the poller to running Ms: their intervals double from
 * NETPOLL_ATTENDED_NS up to this. */
#define NETPOLL_RECHECK_MAX_NS 1000000

/* Idle threads beyond the Ps that are kept for good. */
#define IDLE_SPARE 2

/* ---------------------------------------------------------------- the list */

/* sched.lock held. */
static void idle_put(struct m *mp)
{
	check(lock_is_held(&sched.lock));
	check(!mp->idle.at && sched.keeper != mp);
	mp->idle.link = sched.idle_m;
	mp->idle.at = &sched.idle_m;
	if (mp->idle.link)
		mp->idle.link->idle.at = &mp->idle.link;
	sched.idle_m = mp;
	store_relaxed(&sched.idle_m_n, sched.idle_m_n + 1);
}

/* sched.lock held. False: another M took mp off already. In constant time: there may be
 * thousands, and each that is woken comes here. */
static bool idle_remove(struct m *mp)
{
	check(lock_is_held(&sched.lock));
	if (!mp->idle.at)
		return false;
	check(*mp->idle.at == mp && sched.idle_m_n > 0);
	check(!mp->idle.link || mp->idle.link->idle.at == &mp->idle.link);
	*mp->idle.at = mp->idle.link;
	if (mp->idle.link)
		mp->idle.link->idle.at = mp->idle.at;
	mp->idle.at = NULL;
	store_relaxed(&sched.idle_m_n, sched.idle_m_n - 1);
	return true;
}

/* sched.lock held. */
static void keeper_resign(struct m *mp)
{
	check(lock_is_held(&sched.lock) && !mp->idle.at);
	if (sched.keeper != mp)
		return;
	sched.keeper = NULL;
	sched.keeper_polls = false;
	store_seqcst(&sched.keeper_until, TIMER_NEVER);
}

/* sched.lock held. Takes the most recently idle. The keeper goes last, except when it
 * waits in the poller and no P is idle: then it has nothing to do there. */
static struct m *idle_take(void)
{
	struct m *mp = sched.idle_m;

	check(lock_is_held(&sched.lock));
	check((sched.idle_m != NULL) == (sched.idle_m_n > 0));
	check(!sched.keeper || sched.keeper->idle.at);
	if (load_relaxed(&sched.idle_p_n) == 0 && sched.keeper_polls)
		mp = sched.keeper;
	else if (mp && mp == sched.keeper && mp->idle.link)
		mp = mp->idle.link;
	if (!mp)
		return NULL;
	idle_remove(mp);
	if (mp == sched.keeper) {
		keeper_resign(mp);
		monitor.watch_timers();
	}
	return mp;
}

/* ------------------------------------------------------- handing a P over */

/* The P is what counts, not the wake: a note may be woken by a poke as well, or late,
 * after its M has seen the P. So every sleep on a note of an M is in a loop around what
 * it waits for. */
void m_hand_p(struct m *to, struct p *pp)
{
	check(!load_relaxed(&pp->mp) && !load_relaxed(&to->next_p));
	store_relaxed(&pp->sent.to, to->locked_g ? to : NULL);
	store_relaxed(&pp->sent.at, os_now());
	/* release: the P is whole, and ours no longer; pairs with m_await_p */
	store_release(&to->next_p, pp);
	netpoll_note_wake(&to->park);
}

struct p *m_await_p(struct m *mp)
{
	struct p *pp;

	/* acquire: the P, which may be called back; pairs with m_hand_p */
	while (!(pp = exchange_acqrel(&mp->next_p, NULL)))
		note_sleep(&mp->park);
	store_relaxed(&sched.coarse_now, os_now());
	return pp;
}

/* `to` was woken and gets no CPU. Its goroutine can wait in the queue as well, and
 * another M gets the P. */
void m_recall_p(struct m *to, struct p *pp)
{
	struct p *sent = pp;

	lock_acquire(&sched.lock);
	/* acquire: what the M is; pairs with m_hand_p. It is at rest, so locked_g
	 * stands. */
	if (load_relaxed(&sched.stopping) || !cas_acqrel(&to->next_p, &sent, NULL)) {
		lock_release(&sched.lock);
		return;
	}
	if (!to->locked_g) {
		/* It has had its P and went idle since, and was sent the same P again. */
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
	check(lock_is_held(&sched.lock) && !load_relaxed(&pp->mp));
	check((sched.need_m != NULL) == (sched.need_m_n > 0));
	store_relaxed(&pp->status, P_RUNNING);	/* owned by the queue */
	pp->spawn_spinning = spinning;
	pp->link = sched.need_m;
	sched.need_m = pp;
	sched.need_m_n++;
}

/* sched.lock held. gp's own M gets pp. The M that was to look for work on pp gets
 * another. */
static void hand_to_bound(struct g *gp, struct p *pp, bool spinning)
{
	struct p *other = NULL;

	check(lock_is_held(&sched.lock) && gp->locked_m->locked_g == gp);
	sched.idle_m_locked--;
	if (spinning && !load_relaxed(&sched.stopping))
		other = p_idle_get();
	if (other) {
		need_m_put(other, true);
	} else if (spinning) {
		/* As in wake_slow: the next M to sleep may have missed something. */
		store_relaxed(&sched.need_spinning, 1);
		fetch_add_seqcst(&sched.spinning, -1);
	}
	m_hand_p(gp->locked_m, pp);
}

void m_start_unlock(struct p *pp, bool spinning)
{
	struct m *mp = idle_take();
	struct g *gp;
	bool spare;

	check(lock_is_held(&sched.lock) && !pp->mp);
	count_up(&pp->count.thread_wakeups, 1);
	if (mp) {
		mp->spinning = spinning;
		mp->woken.by = spinning && m_self() ? m_self()->p : NULL;
		mp->woken.cpu = os_cpu();
		spare = load_relaxed(&sched.want_spare) && sched.idle_m_n == 0;
		lock_release(&sched.lock);
		m_hand_p(mp, pp);
		if (spare)
			m_spawn();
		return;
	}
	if ((gp = globq_take_bound())) {
		/* No M is free, but this goroutine brings its own: it may hold the lock
		 * that keeps the spawner from making a thread. The next time there is to
		 * be a free M, or the goroutines that bring theirs would run for ever. */
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

	check(lock_is_held(&sched.lock) && (pp != NULL) == (sched.need_m_n > 0));
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
	bool keeper;		/* looks after the timers */
	bool polls;		/* is the keeper, and waits in the poller */
	bool excess;		/* ends after a while */
	int64_t recheck;	/* ns to leave the poller to others; 0: no limit */
};

/* Sleeps for at most ns (-1: no limit). HANDED: a P was handed over, and mp is off the
 * list. LOOK, EXPIRED: poked, or the time is up, and mp has left the list. It sees to
 * events only then: while it counts as idle, the goroutines that they concern count as
 * waiting (deadlock.c). */
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
	int64_t until = TIMER_NEVER, earliest, now;

	if (load_seqcst(&sched.idle_p_n) == 0)
		return -1;
	do {
		earliest = timers_earliest();
		until = earliest;
		store_seqcst(&sched.keeper_until, until);
	} while (timers_earliest() < until);
	if (until == TIMER_NEVER)
		return -1;
	until += timers_slack(until);
	now = os_now();
	return until > now ? until - now : 0;
}

void m_poke_locked(void)
{
	check(lock_is_held(&sched.lock) && sched.keeper->idle.at);
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
	if (!monitor.asleep) {
		monitor.poke();
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
	for (struct m *mp = sched.idle_m; mp; mp = mp->idle.link)
		netpoll_note_wake(&mp->park);
}

static struct p *take_idle_p(void)
{
	struct p *pp;

	lock_acquire(&sched.lock);
	pp = load_relaxed(&sched.stopping) ? NULL : p_idle_get();
	lock_release(&sched.lock);
	return pp;
}

/* An idle P for timers that are due, perhaps of another P; NULL: none is due, or idle. */
static struct p *p_for_timers(void)
{
	int64_t now = os_now();

	if (timers_earliest() > now)
		return NULL;
	store_relaxed(&sched.coarse_now, now);
	return take_idle_p();
}

/* sched.lock held. mp becomes the keeper if there is none, or none that is to poll. */
static void choose_role(struct m *mp, struct idle_role *r)
{
	bool polls = netpoll_on() && p_for_events() && !netpoll_attended();

	check(lock_is_held(&sched.lock) && mp->idle.at);
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

/* Puts mp on the idle list. If a P waits for an M, returns that P instead. */
static struct p *go_idle(struct m *mp, struct idle_role *role)
{
	struct p *pp;

	lock_acquire(&sched.lock);
	if (mp->starting) {
		check(sched.m_starting > 0);
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

/* A keeper that leaves the poller to running Ms looks again whether they look. */
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

/* On an idle P for this M: true. If there is none now they go first in the global
 * queue. */
static bool take_events(struct m *mp, const struct netpoll_events *ev)
{
	struct p *pp = p_for_events() ? take_idle_p() : NULL;

	if (pp) {
		p_bind(mp, pp);
		spinning_begin_alone(mp);	/* it runs the first of them itself */
	}
	netpoll_dispatch(mp, ev);
	monitor.watch_timers();
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
			for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++)
				timers_run(mp, p_at(i), 0);
			monitor.watch_timers();
			return true;
		}
	}
	p_bind(mp, pp);
	if (ev.n != 0)
		netpoll_dispatch(mp, &ev);
	return true;
}
