/*
 * init.c - the runtime starts: once, at the first call from any thread.
 *
 * Its own threads, sysmon and the spawner, are made at once, too; but goro_run, which
 * brings the first M, makes them only when main has run for a while: making a thread takes
 * 60 us and more, as long as all else together, and a program that is over by then needs
 * neither.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "cxx.h"
#include "debug.h"
#include "debug_http.h"
#include "dump.h"
#include "evacuate.h"
#include "fault.h"
#include "g.h"
#include "init.h"
#include "m_end.h"
#include "module.h"
#include "os.h"
#include "preempt.h"
#include "procs.h"
#include "profile_cpu.h"
#include "runtime.h"
#include "sema.h"
#include "signal_notify.h"
#include "stack.h"

/*
 * A child made by fork has one thread, the one that called fork, and a copy of
 * the runtime whose other threads are gone. It may call what is async-signal-
 * safe, exec and _exit; a goro_ call there ends with a clear message instead of
 * hanging. Its M is told by ATTN_FORKED, a thread without one by runtime_forked.
 * Signals do what they would do without the runtime, except that faults are reported.
 */
static bool runtime_forked;

static void in_child(void)
{
	struct m *mp = m_self();

	evacuate_forked();
	preempt_forked();
	profile_cpu_forked();
	signal_forked();
	fault_forked();
	m_ends_forked();
	runtime_forked = true;
	if (mp)
		fetch_or_acqrel(&mp->attn, ATTN_FORKED);
}

static void at_exit(void)
{
	tool_exit(runtime_forked);
}

static void start(void)
{
	debug_init();
	dump_init();
	sema_init();
	os_init();
	cxx_init();
	store_relaxed(&sched.coarse_now, os_now());
	sched.keeper_until = sched.sysmon_until = TIMER_NEVER;
	stack_init();
	g_init();
	module_refresh();
	foreign_init();
	preempt_init();
	fault_init();
	procs_init();
	debug_http_init();
	pthread_atfork(evacuate_fork_begin, evacuate_fork_end, in_child);
	if (TOOL_ASAN)
		atexit(at_exit);
}

/* sysmon makes the spawner, while we go on. */
void runtime_threads(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, sysmon_init);
}

void runtime_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT, then = PTHREAD_ONCE_INIT;

	if (runtime_forked)
		fatal("goro call in a child made by fork without exec");
	pthread_once(&once, start);
	pthread_once(&then, profile_cpu_from_environment);
}
