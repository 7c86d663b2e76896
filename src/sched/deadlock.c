/*
 * deadlock.c - "all goroutines are asleep", said only when it is certain.
 *
 * It is certain when nobody is left who could ever make a goroutine runnable:
 * every M is idle, and every thread of the process is an M, one of the
 * runtime's others (sysmon, spawner, scavenger, the messenger of signal.c, the collector of
 * profile_cpu.c, the writer of trace.c, the server of evacuate.c), or a plain thread
 * asleep in a call of ours; and no signal is waited for. One other thread anywhere,
 * even in a library, and nothing is said: it may yet send on a channel. Nor is anything
 * said where the program has installed a handler for any signal other than a fault: it may
 * run at any time, and what it does (_exit, sem_post, a longjmp) nobody knows. An alarm()
 * without a handler only ends the process, so it does not count.
 *
 * The threads are counted at one moment and the sleepers at another. That no
 * plain thread went to sleep or was woken in between (foreign_moves) makes it the
 * same moment: otherwise one that makes a thread and then goes to sleep would pass
 * for the only one there is.
 *
 * The check is made whenever the last M goes to sleep, a plain thread parks or
 * ends. It may find a thread that is just ending and not yet gone: then sysmon
 * looks again a few times before it sleeps itself (deadlock_check_again).
 */
#include "evacuate.h"
#include "os.h"
#include "profile_cpu.h"
#include "runq.h"
#include "runtime.h"
#include "signal_notify.h"
#include "trace.h"
#include "uring.h"

static bool unsure;		/* written under sched.lock, read without */

void deadlock_check(void)
{
	int running = sched.m_n - sched.idle_m_n - sched.idle_m_locked;
	uint32_t moves = load_seqcst(&sched.foreign_moves);	/* before all else */
	int threads, ours;

	check(lock_is_held(&sched.lock));
	store_relaxed(&unsure, false);
	if (running > 0 || sched.need_m_n > 0 || globq_length() > 0)
		return;
	if (load_relaxed(&sched.stopping) || timers_earliest() != TIMER_NEVER || signal_expected() ||
	    anybody_waits_for_io())
		return;
	threads = os_threads();
	ours = sched.m_n + sched.runtime_threads + signal_threads() + profile_threads() + trace_threads() +
	       uring_threads() + evacuate_threads() + TOOL_THREADS + load_seqcst(&sched.foreign_parked);
	if (threads < 0)
		return;
	if (threads != ours || load_seqcst(&sched.foreign_moves) != moves) {
		store_relaxed(&unsure, true);
		return;
	}
	if (signal_may_be_awaited())	/* last: some 60 system calls */
		return;
	lock_release(&sched.lock);
	if (load_relaxed(&sched.main_exited) > 0)
		fatal_nobody("no goroutines (main called runtime.Goexit) - deadlock!");
	fatal_nobody("all goroutines are asleep - deadlock!");
}

bool deadlock_unsure(void)
{
	return load_relaxed(&unsure);
}
