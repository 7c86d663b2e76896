/*
 * border.c - the slow ways in and out of the runtime. See "Owning a P" in rt.h.
 */
#include "platform/sim.h"
#include "sched/alone.h"
#include "base/probe.h"
#include "sched/blockers.h"
#include "sched/runq.h"
#include "sched/timers.h"
#include "sched/runtime.h"

/*
 * Settles who owns the P of an M that has just stored RUNTIME. Returns attn as it was:
 * with ATTN_TAKEN the P is gone and mp->p is NULL.
 */
uint32_t border_settle(struct m *mp)
{
	uint32_t attn = load_acquire(&mp->attn);

	check(mp == m_self() && mp->state == M_RUNTIME);
	if (attn & ATTN_SIM) {
		sim->border();
		attn = load_acquire(&mp->attn);
	}
	if (attn & ATTN_FENCE) {
		fence_seqcst();
		attn = load_acquire(&mp->attn);
	}
	for (;;) {
		if (attn & ATTN_FORKED)
			fatal("goro call in a child made by fork without exec");
		check(!(attn & ATTN_TAKEN) || !(attn & ATTN_GIVEN));
		if (attn & ATTN_CLAIMED) {
			/* Ours again, if the taker has not finished. */
			if (cas_acqrel(&mp->attn, &attn, attn & ~(uint32_t)ATTN_CLAIMED))
				attn &= ~(uint32_t)ATTN_CLAIMED;
		} else if (attn & ATTN_TAKEN) {
			if (cas_acqrel(&mp->attn, &attn, attn & ~(uint32_t)ATTN_TAKEN)) {
				store_relaxed(&mp->p, NULL);
				fetch_add_seqcst(&sched.taken, -1);
				blockers_return(mp);
				return attn;
			}
		} else if (attn & ATTN_GIVEN) {
			/* acquire: what others did to the P; pairs with p_give */
			if (cas_acqrel(&mp->attn, &attn, attn & ~(uint32_t)ATTN_GIVEN)) {
				check(load_relaxed(&mp->given->mp) == mp);
				store_relaxed(&mp->p, mp->given);
				attn &= ~(uint32_t)ATTN_GIVEN;
			}
		} else if (attn & ATTN_PLAIN) {
			fetch_and_acqrel(&mp->attn, ~(uint32_t)ATTN_PLAIN);
			alone_end(mp);
			return attn;
		} else {
			return attn;
		}
	}
}

struct m *rt_enter_slow(struct m *mp)
{
	if (!mp)
		mp = foreign_attach(0);
	if (border_settle(mp) & ATTN_TAKEN) {
		turn_wait(mp, load_relaxed(&mp->slept));
		blockers_begin(mp, mp->curg);
	}
	return mp;
}

struct m *rt_enter_free_slow(struct m *mp)
{
	if (!mp)
		mp = foreign_attach(0);
	return border_settle(mp) & ATTN_TAKEN ? sched_regain(mp) : mp;
}

/*
 * Whether attn, as it was, asks the running goroutine to give way. A request because a
 * slice is over (ATTN_SLICE) is for that slice alone: if its goroutine has parked since,
 * another one runs in a new slice, and must not pay for the old one.
 */
bool border_gives_way(struct m *mp, uint32_t attn)
{
	return attn & ATTN_YIELD ||
	       (attn & ATTN_SLICE && p_slices(mp->p) == load_relaxed(&mp->over_tick));
}

/* What is asked of an M that leaves. Claims and takings wait until it enters again. */
static uint32_t asked(struct m *mp)
{
	if (load_relaxed(&mp->attn) & ATTN_SIM)
		sim->border();
	if (load_relaxed(&mp->attn) & ATTN_FENCE)
		fence_seqcst();
	return load_relaxed(&mp->attn) & (ATTN_GIVE_WAY | ATTN_TIMERS);
}

/* In state RUNTIME again. Runs due timers; true if the goroutine is to give way. */
static bool take_requests(struct m *mp)
{
	uint32_t attn = fetch_and_acqrel(&mp->attn, ~(uint32_t)(ATTN_GIVE_WAY | ATTN_TIMERS));

	if (mp->is_foreign)
		return false;
	check(mp->p && mp->curg->status == G_RUNNING);
	if (attn & ATTN_TIMERS)
		timers_run(mp, mp->p, 0);
	if (!border_gives_way(mp, attn) || mp->curg->preempt_off)
		return false;
	count_up(&mp->p->count.preemptions, 1);
	PROBE1(preempt, mp->curg->id);
	mp->trace.preempted = true;
	return true;
}

/* A timer that fires every microsecond makes a new request as fast as the M sees to the
 * last one. sysmon repeats what the last look left. */
#define EXIT_LOOKS 2

void rt_exit_slow(struct m *mp)
{
	if (blockers_leave(mp))
		return;
	for (int i = 0; i < EXIT_LOOKS && asked(mp); i++) {
		mp = rt_enter();
		if (take_requests(mp))
			turn_wait(mp, false);
		if (rt_try_exit(mp))
			return;
	}
}

void rt_exit_free_slow(struct m *mp)
{
	if (blockers_leave(mp))
		return;
	for (int i = 0; i < EXIT_LOOKS && asked(mp); i++) {
		mp = rt_enter_free();
		if (take_requests(mp)) {
			runq_stopped(mp->p);
			mp = sched_yield_global(mp);
		}
		if (rt_try_exit(mp))
			return;
	}
}
