/*
 * sim_check.c - what must hold: no goroutine is runnable for long while a P is idle.
 *
 * The waker of a goroutine wakes an M for it, or an M that goes to sleep finds it
 * ("Finding work" in sched.c). sysmon would mend a lost wake some milliseconds later, so
 * that a program only becomes slow. Here it is an error:
 *
 *	- if all threads sleep, at once;
 *	- else if it lasts for LOST_NS of the time in which user code computes, and no
 *	  thread has something to do in the runtime.
 */
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sim/sim.h"

/* A woken M has come by then, and stolen what there is. */
#define LOST_NS 1000000

static bool is_work_left(void)
{
	if (load_relaxed(&sched.stopping) || load_relaxed(&sched.spinning) != 0 || !p_to_spare() ||
	    load_relaxed(&sched.need_m_n) != 0)
		return false;
	for (int i = 0; i < load_relaxed(&sched.gomaxprocs); i++)
		if (!runq_empty(p_at(i)))
			return true;
	return globq_length() != 0;
}

const char *sim_check(int64_t now, bool asleep, bool held_up)
{
	static int64_t lost, seen;
	static bool was_left;		/* at the last look, too */
	bool left = is_work_left();

	if (left && asleep)
		return "a goroutine is runnable, a P is idle, and all threads sleep";
	if (!left || !was_left)
		lost = 0;
	else if (!held_up && (lost += now - seen) > LOST_NS)
		return "a goroutine is runnable and a P is idle for long";
	was_left = left;
	seen = now;
	return NULL;
}
