/*
 * deadlock.c - "all goroutines are asleep", said only when it is certain.
 *
 * It is certain when nothing is left that could ever make a goroutine runnable:
 *
 *	- Every M is idle, and no timer, descriptor or signal is waited for.
 *	- Every thread of the process is an M, another one of the runtime's (sysmon,
 *	  the spawner, those of rooms above: deadlock_witness), or a plain thread
 *	  asleep in a call of goro. One other thread, even in a library, may yet send
 *	  on a channel.
 *	- The program has installed no handler for a signal other than a fault. A
 *	  handler may run at any time, and what it does is unknown.
 *
 * The threads are counted at one moment and the sleepers at another. They count as one
 * moment if no plain thread went to sleep or was woken in between (plain.moves).
 *
 * The check is made whenever the last M goes to sleep, or a plain thread parks or ends.
 * It may find a thread that is just ending and not yet gone: then sysmon looks again a
 * few times before it sleeps itself (deadlock_unsure).
 */
#include "sched/deadlock.h"

#include "platform/os.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/timers.h"

static bool unsure;		/* written under sched.lock, read without */
struct deadlock_witness *deadlock_witnesses;

/* at_last: the question that takes long. */
static bool is_expected(bool at_last)
{
	for (const struct deadlock_witness *w = deadlock_witnesses; w; w = w->next) {
		bool (*ask)(void) = at_last ? w->may_expect : w->expects;

		if (ask && ask())
			return true;
	}
	return false;
}

/* Ms, the runtime's other threads, and plain threads that are asleep. */
static int our_threads(void)
{
	int n = sched.m_n + sched.runtime_threads + TOOL_THREADS + load_seqcst(&sched.plain.parked);

	for (const struct deadlock_witness *w = deadlock_witnesses; w; w = w->next)
		if (w->threads)
			n += w->threads();
	return n;
}

void deadlock_check(void)
{
	int running = sched.m_n - sched.idle_m_n - sched.idle_m_locked;
	uint32_t moves = load_seqcst(&sched.plain.moves);	/* before all else */
	int threads, ours;

	check(lock_is_held(&sched.lock));
	check(sched.idle_m_n <= sched.m_n && sched.m_starting <= sched.m_n);
	check((sched.need_m != NULL) == (sched.need_m_n > 0));
	store_relaxed(&unsure, false);
	if (running > 0 || sched.need_m_n > 0 || globq_length() > 0)
		return;
	if (load_relaxed(&sched.stopping) || timers_earliest() != TIMER_NEVER || is_expected(false))
		return;
	threads = os_threads();
	ours = our_threads();
	if (threads < 0)
		return;
	if (threads != ours || load_seqcst(&sched.plain.moves) != moves) {
		store_relaxed(&unsure, true);
		return;
	}
	if (is_expected(true))
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
