/*
 * init.c - the runtime starts: once, at the first call from any thread.
 *
 * Its own threads, sysmon and the spawner, are made at once, too; but goro_run, which
 * brings the first M, makes them only when main has run for a while: making a thread
 * takes 60 us and more, as long as all else together, and a program that is over by then
 * needs neither.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "sched/cxx.h"
#include "base/debug.h"
#include "sched/g.h"
#include "sched/init.h"
#include "platform/module.h"
#include "platform/os.h"
#include "sched/runtime.h"
#include "stack/stack.h"

/*
 * A child made by fork has one thread, the one that called fork, and a copy of
 * the runtime whose other threads are gone. It may call what is async-signal-
 * safe, exec and _exit; a goro_ call there ends with a clear message instead of
 * hanging. Its M is told by ATTN_FORKED, a thread without one by runtime_forked.
 * Signals do what they would do without the runtime, except that faults are reported.
 */
struct hook *at_start, *at_started, *at_threads, *at_fork, *at_fork_end, *at_forked;

static bool runtime_forked;

static void before_fork(void)
{
	hook_run(at_fork);
}

static void after_fork(void)
{
	hook_run(at_fork_end);
}

static void in_child(void)
{
	struct m *mp = m_self();

	m_ends_forked();
	hook_run(at_forked);
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
	os_init();
	cxx_init();
	if (tool_asan())
		store_relaxed(&sched.program, sched.program | PROGRAM_ASAN);
	store_relaxed(&sched.coarse_now, os_now());
	sched.keeper_until = sched.sysmon_until = TIMER_NEVER;
	stack_init(sizeof(struct g), offsetof(struct g, stack));
	g_init();
	module_start();
	foreign_init();
	m_signals_init();
	procs_init();
	hook_run(at_start);
	pthread_atfork(before_fork, after_fork, in_child);
	if (tool_lsan())
		atexit(at_exit);
}

static void make_threads(void)
{
	hook_run(at_threads);
}

void runtime_threads(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_threads);
}

static void started(void)
{
	hook_run(at_started);
}

void runtime_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT, then = PTHREAD_ONCE_INIT;

	if (runtime_forked)
		fatal("goro call in a child made by fork without exec");
	pthread_once(&once, start);
	pthread_once(&then, started);
}
