/*
 * p.c - processors: made, bound to an M, idle, taken, handed on.
 *
 * A P has one owner at a time, by its status (types.h). Only the owner touches what is
 * not shared with thieves.
 */

#include "base/mem.h"
#include "platform/os.h"
#include "base/probe.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/trace_hook.h"
#include "sched/work.h"

struct p *p_make(int id)
{
	struct p *pp = mem_alloc(sizeof *pp);

	if (!pp)
		return NULL;
	pp->id = id;
	pp->status = P_STOPPED;
	pp->fair.in = FAIR_PERIOD_PICKS;
	pp->latency_in = 1;
	timers_init(&pp->timers);
	return pp;
}

void p_bind(struct m *mp, struct p *pp)
{
	check(!mp->p && !pp->mp);
	check(P_STATUS_OF(load_relaxed(&pp->status)) != P_DEAD);
	trace_p_start(mp, pp);
	store_relaxed(&mp->p, pp);
	store_relaxed(&pp->mp, mp);
	/* release: pairs with load_acquire in p_take */
	store_release(&pp->status, P_RUNNING);
}

struct p *p_unbind(struct m *mp)
{
	struct p *pp = mp->p;

	check(pp && pp->mp == mp);
	trace_p_stop(mp);
	store_relaxed(&mp->p, NULL);
	store_relaxed(&pp->mp, NULL);
	return pp;
}

void p_slice_begin(struct p *pp)
{
	check(pp->mp);
	count_up(&pp->count.switches, 1);
	store_relaxed(&pp->slice.at, os_now());
	store_relaxed(&pp->slice.mp, pp->mp);
	/* release: both; pairs with load_acquire in retake.c */
	store_release(&pp->slice.tick, p_slices(pp));
}

void p_idle_put(struct p *pp)
{
	check(lock_is_held(&sched.lock) && !pp->mp && !p_has_work(pp));
	store_relaxed(&pp->status, P_IDLE);
	pp->link = sched.idle_p;
	sched.idle_p = pp;
	fetch_add_seqcst(&sched.idle_p_n, 1);
}

struct p *p_idle_get(void)
{
	struct p *pp = sched.idle_p;

	check(lock_is_held(&sched.lock));
	if (!pp)
		return NULL;
	sched.idle_p = pp->link;
	fetch_add_seqcst(&sched.idle_p_n, -1);
	if (monitor.asleep)
		monitor.rouse();
	return pp;
}

/* The M in the announced call takes its P back by the same CAS: one of the two has it. */
bool p_take_left_behind(struct p *pp)
{
	uint32_t status = load_acquire(&pp->status);

	/* acquire: what its M did to it; pairs with leave_p_behind */
	if (P_STATUS_OF(status) != P_SYSCALL || !cas_acqrel(&pp->status, &status, P_RUNNING))
		return false;
	check(load_relaxed(&pp->mp->id) == (int)(status >> 8));
	store_relaxed(&pp->mp, NULL);
	trace_p_stolen(pp);
	return true;
}

/* The last step of taking a P from an M in user code. */
static bool take_by_cas(struct p *pp, struct m *mp, uint32_t attn)
{
	while (attn & ATTN_CLAIMED)
		if (cas_acqrel(&mp->attn, &attn,
		               (attn & ~(uint32_t)(ATTN_CLAIMED | ATTN_GIVEN)) | ATTN_TAKEN)) {
			/* mp->p is the M's to clear, when it finds out. */
			store_relaxed(&pp->mp, NULL);
			fetch_add_seqcst(&sched.taken, 1);
			return true;
		}
	return false;
}

/* The M finds out at its next entry, and tells of its return under the lock. */
static bool take_and_trace(struct p *pp, struct m *mp, uint32_t attn)
{
	uintptr_t pcs[TRACE_CALLS_MAX];
	size_t n = trace_hook.asleep_in(mp, pcs);
	bool taken;

	lock_acquire(&sched.lock);
	taken = take_by_cas(pp, mp, attn);
	if (taken)
		trace_p_taken(mp, pp, pcs, n);
	lock_release(&sched.lock);
	return taken;
}

/* The M had no claim on it but the caller's. */
static bool take_claimed(struct p *pp, struct m *mp, bool even_if_off)
{
	uint32_t attn;

	os_membarrier();
	/* acquire: what the M did to the P; pairs with store_release in rt_exit.
	 * In USER with our claim on it the M changes nothing: mp->p is stable. */
	if (load_acquire(&mp->state) != M_USER)
		return false;
	if (!even_if_off && preempt_is_off(mp))
		return false;
	attn = load_relaxed(&mp->attn);
	if (load_relaxed(attn & ATTN_GIVEN ? &mp->given : &mp->p) != pp)
		return false;
	/* If the CAS succeeds, the M was in user code since: trace_on did not change. */
	return trace_on() ? take_and_trace(pp, mp, attn) : take_by_cas(pp, mp, attn);
}

/* One taker at a time: the M may cancel our claim and come back to user code, where a
 * second taker's claim would look like ours. */
bool p_take(struct p *pp, bool even_if_off)
{
	static struct lock taking = LOCK_INIT(RANK_TAKE);
	bool taken = false;
	struct m *mp;

	if (p_take_left_behind(pp))
		return true;
	if (!lock_try(&taking))
		return false;
	mp = load_acquire(&pp->mp);
	if (mp && load_acquire(&pp->status) == P_RUNNING &&
	    !(fetch_or_acqrel(&mp->attn, ATTN_CLAIMED) & ATTN_TAKEN))
		taken = take_claimed(pp, mp, even_if_off);
	if (mp && !taken)
		fetch_and_acqrel(&mp->attn, ~(uint32_t)ATTN_CLAIMED);
	lock_release(&taking);
	return taken;
}

/* See "Owning a P" in rt.h. If the M enters the runtime first it gets in line, and the P
 * is still the caller's. */
bool p_give(struct p *pp, struct m *mp)
{
	uint32_t attn = load_relaxed(&mp->attn);
	struct trace_undo undo;

	check(!pp->mp);
	check(lock_is_held(&sched.lock) && !load_relaxed(&sched.stopping));
	if (!(attn & ATTN_TAKEN))
		return false;	/* with ATTN_GIVEN, given is in use */
	store_relaxed(&mp->given, pp);
	store_relaxed(&pp->mp, mp);
	p_slice_begin(pp);
	store_release(&pp->status, P_RUNNING);
	undo = trace_p_given(mp, pp);	/* first: the M writes events once it has the P */
	while (attn & ATTN_TAKEN)
		/* release: the P is whole; pairs with cas_acqrel in border_settle */
		if (cas_acqrel(&mp->attn, &attn, (attn & ~(uint32_t)ATTN_TAKEN) | ATTN_GIVEN)) {
			fetch_add_seqcst(&sched.taken, -1);
			return true;
		}
	trace_p_given_undo(mp, pp, &undo);
	store_relaxed(&pp->mp, NULL);
	return false;
}

void p_handoff(struct p *pp)
{
	bool work = p_has_work(pp) || globq_length() != 0;
	int none = 0;
	/* Else work that appears after this P has become idle would wake no M. */
	bool spinning = !work && load_relaxed(&sched.spinning) == 0 && !p_to_spare() &&
	                cas_seqcst(&sched.spinning, &none, 1);

	check(!pp->mp);
	PROBE_INT(handoff, pp->id);
	lock_acquire(&sched.lock);
	if (!load_relaxed(&sched.stopping) && (work || spinning || globq_length() != 0)) {
		m_start_unlock(pp, spinning);
		return;
	}
	if (spinning)
		fetch_add_seqcst(&sched.spinning, -1);
	if (load_relaxed(&sched.stopping))
		world_p_stopped(pp);
	else
		p_idle_put(pp);
	lock_release(&sched.lock);
}
