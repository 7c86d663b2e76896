/*
 * procs.c - GOMAXPROCS: its default, changes, and following the machine.
 *
 * The default is what cpus.c says: the CPUs that this process may use, or its cgroup
 * quota. GORO_MAXPROCS or goro_gomaxprocs(n) set a number of the program's own; goro then
 * follows the machine no longer, until goro_set_default_gomaxprocs.
 */
#include <goro.h>
#include <stdlib.h>

#include "platform/cpus.h"
#include "base/debug.h"
#include "base/environment.h"
#include "platform/sim.h"
#include "sched/check.h"
#include "sched/runtime.h"
#include "sched/trace_hook.h"

/* cpus and helped under sched.lock; all but helped may be read without. */
static bool custom;		/* the program chose a number */
static int machine_procs;	/* the default that cpus.c last gave */
static int cpus;		/* the CPUs of this process, whatever the quota */
static bool helped;		/* a thread of the runtime keeps one CPU busy */

void procs_init(void)
{
	const char *s = environment_get("GORO_MAXPROCS");
	int n = s ? cpus_parse_maxprocs(s, GOMAXPROCS_MAX) : sim ? sim->procs() : 0;

	cpus_open();
	cpus = cpus_affinity();
	machine_procs = cpus_default();
	custom = n > 0;
	world_make(n > 0 ? n : machine_procs);
}

/* A quota leaves no P idle: until it is used up all CPUs are there. */
static int unneeded(void)
{
	int more = sched.gomaxprocs + helped - load_relaxed(&cpus);

	if (debug.nounneeded)
		more = 0;
	if (more >= sched.gomaxprocs)
		more = sched.gomaxprocs - 1;
	return more > 0 ? more : 0;
}

void procs_changed(void)
{
	check(lock_is_held(&sched.lock));
	store_relaxed(&sched.unneeded_p, unneeded());
}

#if GORO_CHECKS
void procs_check(void)
{
	check(sched.unneeded_p == unneeded());
}
#endif

void procs_help(bool on)
{
	lock_acquire(&sched.lock);
	helped = on;
	procs_changed();
	lock_release(&sched.lock);
	if (!on)
		wake_for_queued();
}

/* In state RUNTIME. */
static struct m *change(struct m *mp, int n)
{
	if (n > GOMAXPROCS_MAX)
		n = GOMAXPROCS_MAX;
	if (n == load_relaxed(&sched.gomaxprocs))
		return mp;
	mp = world_stop_for(mp, "GOMAXPROCS");
	mp = world_start(mp, n);
	trace_procs(mp, n);
	return mp;
}

int goro_gomaxprocs(int n)
{
	struct m *mp = rt_enter();
	int old = load_relaxed(&sched.gomaxprocs);

	if (n >= 1) {
		store_relaxed(&custom, true);
		mp = change(mp, n);
	}
	rt_exit(mp);
	return old;
}

void goro_set_default_gomaxprocs(void)
{
	struct m *mp = rt_enter();

	store_relaxed(&custom, false);
	mp = change(mp, load_relaxed(&machine_procs));
	rt_exit(mp);
}

int goro_num_cpu(void)
{
	rt_exit(rt_enter());	/* the runtime is running */
	return load_relaxed(&machine_procs);
}

void procs_follow_machine(void)
{
	int n = cpus_default();

	if (cpus_affinity() != cpus) {
		lock_acquire(&sched.lock);
		store_relaxed(&cpus, cpus_affinity());
		procs_changed();
		lock_release(&sched.lock);
	}
	if (n == load_relaxed(&machine_procs))
		return;
	store_relaxed(&machine_procs, n);
	if (!load_relaxed(&custom))
		change(m_self(), n);
}
