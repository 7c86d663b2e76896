/*
 * check.c - the invariants of Ps, Ms and the scheduler's lists, in builds with checks.
 *
 * A P is looked at by its owner, and the lists by a holder of sched.lock, so most of what
 * is read stands still. Where it does not (thieves take from a P's queues), a check reads
 * a second time what tells it whether the first reading counts.
 *
 * A look may take so long that a thief takes what waits meanwhile, so looks are rare. It
 * may also cost much more than a switch: the next one is put off by as many switches as
 * this one looked at entries. So checks take a constant share of the time.
 */
#include "sched/check.h"

#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/work.h"

#if GORO_CHECKS

/* ---------------------------------------------------------------------- a P */

/* What a P's status says about its owner and its queues. */
static void check_status(const struct p *pp)
{
	uint32_t status = load_acquire(&pp->status);
	const struct m *mp = load_relaxed(&pp->mp);

	switch (P_STATUS_OF(status)) {
	case P_IDLE:
		check(!mp && !p_has_work(pp));
		break;
	case P_RUNNING:
		check(!mp || load_relaxed(&mp->p) == pp);
		break;
	case P_SYSCALL:
		check(mp && status == P_SYSCALL_OF(mp));
		break;
	case P_STOPPED:
		check(load_relaxed(&sched.stopping) || !mp);
		break;
	case P_DEAD:
		check(!mp && !p_has_work(pp));
		break;
	default:
		throw("p_check: a P of status %u", status);
	}
}

static void check_dead_gs(const struct p *pp)
{
	check(pp->gfree_n <= P_GFREE_MAX);
	for (uint32_t i = 0; i < pp->gfree_n; i++) {
		const struct g *gp = pp->gfree[i];

		check(gp && load_relaxed(&gp->status) == G_DEAD);
		check(gp->stack_class == stack_default_class);
		check(i == 0 || gp != pp->gfree[i - 1]);
	}
}

size_t p_check(const struct p *pp)
{
	check_status(pp);
	check((load_relaxed(&pp->deferred) & ~work_bits()) == 0);
	check(pp->ids.next <= pp->ids.end && pp->ids.end - pp->ids.next <= pp->ids.batch);
	check(pp->ids.end <= load_relaxed(&sched.id_next) + 1);
	check(pp->latency_in >= 1);
	check(pp->count.inherited <= pp->count.switches);
	check(pp->count.steals <= pp->count.stolen);
	check_dead_gs(pp);
	return pp->gfree_n + 1;
}

/* ------------------------------------------------------------------ the lists */

static size_t check_idle_ps(void)
{
	int n = 0;

	for (const struct p *pp = sched.idle_p; pp; pp = pp->link, n++) {
		check(n < load_relaxed(&sched.idle_p_n));
		check(load_relaxed(&pp->status) == P_IDLE && pp->id < sched.gomaxprocs);
		check_status(pp);
	}
	check(n == load_relaxed(&sched.idle_p_n));
	return (size_t)n;
}

/* Those without a P, last come first; the keeper is one of them. */
static size_t check_idle_ms(void)
{
	struct m **at = &sched.idle_m;
	int n = 0;

	for (struct m *mp = sched.idle_m; mp; at = &mp->idle.link, mp = mp->idle.link, n++) {
		check(n < sched.idle_m_n);
		check(mp->idle.at == at);
		check(!mp->p && !mp->locked_g && !mp->spinning && !mp->starting);
	}
	check(n == sched.idle_m_n);
	check(!sched.keeper || sched.keeper->idle.at);
	check(sched.keeper || !sched.keeper_polls);
	check(sched.idle_m_n + sched.idle_m_locked <= sched.m_n);
	check(sched.m_starting >= 0 && sched.m_starting <= sched.m_n);
	return (size_t)n;
}

/* Ps that wait for a thread. Some of the threads are to spin, and count already. */
static size_t check_need_m(void)
{
	int n = 0, spinning = 0;

	for (const struct p *pp = sched.need_m; pp; pp = pp->link, n++) {
		check(n < sched.need_m_n);
		check(load_relaxed(&pp->status) == P_RUNNING && !load_relaxed(&pp->mp));
		spinning += pp->spawn_spinning;
	}
	check(n == sched.need_m_n);
	check(spinning <= load_relaxed(&sched.spinning));
	return (size_t)n;
}

static size_t check_all_ps(void)
{
	check(sched.gomaxprocs >= 1 && sched.gomaxprocs <= sched.all_p_n);
	check(!load_relaxed(&sched.alone) || sched.gomaxprocs == 1);
	for (int i = 0; i < sched.all_p_n; i++) {
		bool dead = load_relaxed(&p_at(i)->status) == P_DEAD;

		check(p_at(i)->id == i);
		check(dead == (i >= sched.gomaxprocs));
	}
	return (size_t)sched.all_p_n;
}

size_t sched_check(void)
{
	size_t n;

	check(lock_is_held(&sched.lock));
	n = check_idle_ps() + check_idle_ms() + check_need_m() + check_all_ps();
	procs_check();
	world_check();
	return n + globq_check();
}

/* --------------------------------------------------------------- now and then */

void check_often(struct m *mp)
{
	static __thread size_t put_off, turn;
	struct p *pp = mp->p;

	if (put_off > 0) {
		put_off--;
		return;
	}
	put_off = CHECK_PERIOD;
	if (!pp)
		return;
	check(load_relaxed(&pp->mp) == mp && load_relaxed(&mp->state) == M_RUNTIME);
	put_off += p_check(pp) + runq_check(pp) + timers_check(&pp->timers);
	if (++turn % CHECK_SCHED_TURNS != 0)
		return;
	lock_acquire(&sched.lock);
	put_off += sched_check();
	lock_release(&sched.lock);
}

#endif
