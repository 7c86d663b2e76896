/*
 * retake_decide.c - the decision about a P that has been in one slice for a while.
 *
 * In this order:
 *
 *	1. No goroutine waits: leave the P.
 *	2. The M is in an announced call: take the P after SYSCALL_GRACE_NS.
 *	3. The M sleeps in the kernel: take the P, early in the slice, too. The M's CPU
 *	   clock is the cheap hint. Only when it stands still is the thread looked at.
 *	4. The slice is not over: leave the P.
 *	5. The M waits for a CPU, among Ms that have one: leave the P for a few slices.
 *	6. The M sleeps: take the P.
 *	7. Many goroutines are stopped, and the M has not had the slice as CPU time: leave
 *	   the P, for STARVED_NS at most. Other programs have the CPUs. To stop this
 *	   goroutine, too, keeps one more thread, which needs a CPU as well.
 *	8. The M has not answered the last signal: take the P.
 *	9. One goroutine used a CPU for the whole slice, and a P is idle because CPUs are
 *	   short: start that P once. The kernel divides the CPUs.
 *	10. Preempt the goroutine, or wait for the try that its handler asked for.
 */
#include "preempt/retake_decide.h"

#include "base/config.h"
#include "base/throw.h"
#include "timer/timer.h"

static struct retake_action act(enum retake_what what, int64_t next)
{
	/* Otherwise sysmon would look again at once, for ever. */
	check(what >= RETAKE_SEE_CLOCK || next > 0);
	return (struct retake_action){ what, next };
}

/* While goroutines compete for a lock the next look comes soon. */
static int64_t after(const struct retake_view *v, int64_t ns)
{
	return v->convoy ? soonest(LOOK_SOON_NS, ns) : ns;
}

/* Whether a sleep of the M ends the slice already now: 3 above. */
static bool may_sleep_early(const struct retake_view *v)
{
	return v->user && !v->take_failed && (v->resumed || v->age >= LOOK_SOON_NS);
}

/* 3 above: RETAKE_LEAVE if it is awake. */
static enum retake_what look_early(const struct retake_view *v)
{
	if (!may_sleep_early(v))
		return RETAKE_LEAVE;
	if (!v->convoy && v->clock_stands != FACT_YES)
		return v->clock_stands == FACT_UNKNOWN ? RETAKE_SEE_CLOCK : RETAKE_LEAVE;
	if (v->asleep == FACT_UNKNOWN)
		return RETAKE_SEE_ASLEEP;
	return v->asleep == FACT_YES ? RETAKE_TAKE : RETAKE_LEAVE;
}

/* 5 above, if used is known. */
static bool lacks_cpu(const struct retake_view *v)
{
	return v->used_known == FACT_YES && v->used < v->age / 4;
}

static bool may_lack_cpu(const struct retake_view *v)
{
	return v->brisk && v->cpus_short && v->age < LACKS_CPU_SLICES * SLICE_SHORT_NS;
}

/* 7 above, if used is known. */
static bool is_starved(const struct retake_view *v, int64_t slice)
{
	return v->used_known == FACT_YES && v->used < slice;
}

static bool may_be_starved(const struct retake_view *v)
{
	return v->many_stopped && v->age < STARVED_NS;
}

/* 9 above. */
static bool may_use_another_p(const struct retake_view *v, int64_t slice)
{
	return v->cpus_short && v->single && v->age < 2 * slice;
}

static struct retake_action slice_over(const struct retake_view *v, int64_t slice)
{
	bool another_p = may_use_another_p(v, slice);

	if (may_lack_cpu(v) && v->used_known == FACT_UNKNOWN)
		return act(RETAKE_SEE_USED, 0);
	if (may_lack_cpu(v) && lacks_cpu(v))
		return act(RETAKE_LEAVE, LOOK_NS / 2);
	if (v->user && v->take_failed)
		return act(RETAKE_LEAVE, LOOK_SOON_NS);
	if (v->user && v->asleep == FACT_UNKNOWN)
		return act(RETAKE_SEE_ASLEEP, 0);
	if (v->user && v->asleep == FACT_YES)
		return act(RETAKE_TAKE, LOOK_SOON_NS);
	if (may_be_starved(v) && v->used_known == FACT_UNKNOWN)
		return act(RETAKE_SEE_USED, 0);
	if (may_be_starved(v) && is_starved(v, slice))
		return act(RETAKE_LEAVE, LOOK_NS / 2);
	if (v->user && v->unanswered)
		return act(RETAKE_TAKE, LOOK_SOON_NS);
	if (another_p && v->used_known == FACT_UNKNOWN)
		return act(RETAKE_SEE_USED, 0);
	if (another_p && v->used_known == FACT_YES && v->used >= v->age / 2)
		return act(RETAKE_ANOTHER_P, LOOK_NS);
	if (v->put_off > 0)
		return act(RETAKE_PUT_OFF, after(v, v->put_off));
	if (v->preempt_off)
		return act(RETAKE_YIELD, LOOK_NS);
	return act(RETAKE_YIELD, v->steady ? UNANSWERED_NS : LOOK_AFTER_NS);
}

struct retake_action retake_decide(const struct retake_view *v)
{
	int64_t slice;
	enum retake_what early;

	check(v->allowed > 0);
	if (v->allowed == TIMER_NEVER)
		return act(RETAKE_LEAVE, after(v, TIMER_NEVER));
	if (v->announced)
		return act(v->age >= SYSCALL_GRACE_NS && !v->take_failed ? RETAKE_TAKE : RETAKE_LEAVE, LOOK_SOON_NS);
	if (v->resumed && v->age < LOOK_EARLY_NS && !v->steady)
		return act(RETAKE_LEAVE, LOOK_EARLY_NS - v->age);
	early = look_early(v);
	if (early != RETAKE_LEAVE)
		return act(early, LOOK_SOON_NS);
	/* sysmon may come a little early: that is no reason for another look. */
	slice = v->allowed - soonest(SLICE_NEARLY_NS, v->allowed / 10);
	if (v->age < slice)
		return act(RETAKE_LEAVE, soonest(after(v, v->look), slice - v->age));
	return slice_over(v, slice);
}
