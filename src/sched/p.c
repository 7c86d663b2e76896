/*
 * p.c - processors: made, bound to an M, idle, taken, handed on.
 *
 * A P has one owner at a time, by its status (types.h). The owner alone touches
 * what is not shared with thieves.
 */

#include "backtrace.h"
#include "fd.h"
#include "mem.h"
#include "os.h"
#include "preempt.h"
#include "runq.h"
#include "runtime.h"
#include "trace.h"

struct p *p_make(int id)
{
	struct p *pp = mem_alloc_at(sizeof *pp, P_PAGE_OFFSET);

	if (!pp)
		return NULL;
	pp->id = id;
	pp->status = P_STOPPED;
	pp->fair_in = FAIR_PERIOD_PICKS;
	pp->latency_in = 1;
	timers_init(&pp->timers);
	return pp;
}

void p_bind(struct m *mp, struct p *pp)
{
	check(!mp->p && !pp->mp);
	if (trace_on())
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
	if (trace_on())
		trace_p_stop(mp);
	store_relaxed(&mp->p, NULL);
	store_relaxed(&pp->mp, NULL);
	return pp;
}

void p_slice_begin(struct p *pp)
{
	count_up(&pp->count.switches, 1);
	store_relaxed(&pp->begun_at, os_now());
	store_relaxed(&pp->begun_m, pp->mp);
	/* release: both; pairs with load_acquire in retake.c */
	store_release(&pp->begun_tick, p_slices(pp));
}

void p_idle_put(struct p *pp)
{
	check(lock_is_held(&sched.lock) && !pp->mp && runq_empty(pp) && !pp->untried && !fd_posts(pp));
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
	if (sched.sysmon_asleep)
		sysmon_rouse();
	return pp;
}

/* By the CAS that the M in the announced call would take it back with. */
bool p_take_left_behind(struct p *pp)
{
	uint32_t status = load_acquire(&pp->status);

	/* acquire: what its M did to it; pairs with leave_p_behind */
	if (P_STATUS_OF(status) != P_SYSCALL || !cas_acqrel(&pp->status, &status, P_RUNNING))
		return false;
	store_relaxed(&pp->mp, NULL);
	if (trace_on())
		trace_p_stolen(pp);
	return true;
}

/* From an M in user code: the last step. */
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
	struct backtrace bt = { .n = 0 };
	bool taken;

	backtrace_asleep(&bt, mp, load_relaxed(&mp->curg));
	lock_acquire(&sched.lock);
	taken = take_by_cas(pp, mp, attn);
	if (taken)
		trace_p_taken(mp, pp, bt.pc, bt.n);
	lock_release(&sched.lock);
	return taken;
}

/* From an M in user code, on which we have the only claim. */
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
	/* If we get it, the M was there from the look at its state on; so the world was
	 * not stopped since, and whether there is a trace did not change. */
	return trace_on() ? take_and_trace(pp, mp, attn) : take_by_cas(pp, mp, attn);
}

/* The protocol is in rt.h, "Owning a P". One taker at a time: the M may cancel a
 * claim and come back to user code, and a second taker's claim must not be taken
 * for ours then. */
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

/* The other way about: to an M that goes on without a P in user code and does not
 * know. It is the M's as soon as the CAS succeeds, and the M finds out in
 * border_settle; if it comes there before, it gets in line, and the P is still ours. */
bool p_give(struct p *pp, struct m *mp)
{
	uint32_t attn = load_relaxed(&mp->attn);
	struct trace_undo undo = { .written = false };

	check(lock_is_held(&sched.lock) && !load_relaxed(&sched.stopping));
	if (!(attn & ATTN_TAKEN))
		return false;	/* given may still be needed */
	store_relaxed(&mp->given, pp);
	store_relaxed(&pp->mp, mp);
	p_slice_begin(pp);
	store_release(&pp->status, P_RUNNING);
	if (trace_on())		/* first: it may be told on as soon as it is the M's */
		undo = trace_p_given(mp, pp);
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

static bool has_work(const struct p *pp)
{
	return !runq_empty(pp) || globq_length() != 0 || pp->untried || fd_posts(pp);
}

void p_handoff(struct p *pp)
{
	int none = 0;

	if (has_work(pp)) {
		lock_acquire(&sched.lock);
		if (!load_relaxed(&sched.stopping)) {
			m_start_unlock(pp, false);
			return;
		}
	} else if (load_relaxed(&sched.spinning) == 0 && !p_to_spare() &&
	           cas_seqcst(&sched.spinning, &none, 1)) {
		/* Nobody looks for work and no P is to spare: were this one idle, work
		 * that appears now would find nobody. */
		lock_acquire(&sched.lock);
		if (!load_relaxed(&sched.stopping)) {
			m_start_unlock(pp, true);
			return;
		}
		fetch_add_seqcst(&sched.spinning, -1);
	} else {
		lock_acquire(&sched.lock);
	}
	if (load_relaxed(&sched.stopping)) {
		world_p_stopped(pp);
	} else if (globq_length() != 0) {
		m_start_unlock(pp, false);
		return;
	} else {
		p_idle_put(pp);
	}
	lock_release(&sched.lock);
}
