/*
 * procs.c - GOMAXPROCS: the default, the change, the following of the machine.
 *
 * The default is what cpus.c says: the CPUs this process may use, or its cgroup
 * quota. GORO_MAXPROCS or a call of goro_gomaxprocs(n) sets a number of the
 * program's own, and the machine is then followed no longer until
 * goro_set_default_gomaxprocs.
 */
#include "procs.h"

#include <goro.h>
#include <stdlib.h>

#include "cpus.h"
#include "environment.h"
#include "runtime.h"
#include "trace.h"
#include "world.h"

static bool custom;		/* set by the program: do not follow the machine */
static int machine_procs;	/* what cpus.c last said .. */
static int cpus;		/* .. and how many there are, whatever the quota */
static bool helped;		/* one of them is kept busy by the runtime itself */

void procs_init(void)
{
	const char *s = environment_get("GORO_MAXPROCS");
	int n = s ? cpus_parse_maxprocs(s, GOMAXPROCS_MAX) : 0;

	cpus_open();
	cpus = cpus_affinity();
	machine_procs = cpus_default();
	custom = n > 0;
	world_make(n > 0 ? n : machine_procs);
}

/* A quota is no reason to leave a P idle: while it lasts all CPUs are there. One P is always
 * needed. */
void procs_changed(void)
{
	int more = sched.gomaxprocs + helped - load_relaxed(&cpus);

	if (more >= sched.gomaxprocs)
		more = sched.gomaxprocs - 1;
	store_relaxed(&sched.unneeded_p, more > 0 ? more : 0);
}

void procs_help(bool on)
{
	lock_acquire(&sched.lock);
	helped = on;
	procs_changed();
	lock_release(&sched.lock);
	if (!on)
		wake_for_queued();
}

bool procs_leave_a_cpu(void)
{
	return load_relaxed(&sched.gomaxprocs) - load_relaxed(&sched.idle_p_n) < load_relaxed(&cpus);
}

/* In state RUNTIME. */
static struct m *change(struct m *mp, int n)
{
	if (n > GOMAXPROCS_MAX)
		n = GOMAXPROCS_MAX;
	if (n == load_relaxed(&sched.gomaxprocs))
		return mp;
	if (!mp->is_foreign)
		mp = sched_yield_local(mp);	/* a loop of these starves nobody */
	mp = world_stop_for(mp, "GOMAXPROCS");
	mp = world_start(mp, n);
	if (trace_on())
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
