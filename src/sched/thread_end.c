/*
 * thread_end.c - a thread that ends while it runs a goroutine.
 *
 * pthread_exit and pthread_cancel end a thread, not a goroutine: its defers would not
 * run, its waiters would hang, and the M would be gone with its P. So they end the
 * process, with a message and the goroutine's stack.
 *
 * They are noticed in two places.
 *	- glibc unwinds the stack before it ends the thread, running the destructors of
 *	  C++ and the handlers of pthread_cleanup_push on the way. The first frame of a
 *	  goroutine (context_entry) has a personality routine, which the unwinder calls
 *	  when it gets there. The frames of the call are still in place then.
 *	- The unwinder does not get there where a function has no unwind table, and other
 *	  libcs do not unwind. Then a cleanup handler in the M's first frame runs, on the
 *	  thread's own stack.
 *
 * Rejected: ending the goroutine alone, with its defers. libc has marked the thread as
 * exiting by then, and nothing takes that back. A thread-specific key in place of the
 * cleanup handler: setting one may call malloc, whose lock a stopped goroutine may hold.
 */
#include "base/throw.h"
#include "sched/runtime.h"

/* Of the unwinding ABI; <unwind.h> would be ours. */
enum { FORCE_UNWIND = 8 };	/* _Unwind_Action: to the end, whatever is on the way */
enum { CONTINUE_UNWIND = 8 };	/* _Unwind_Reason_Code: nothing for me here */

static _Noreturn void thread_ended(void)
{
	fatal("pthread_exit or pthread_cancel in a goroutine's thread");
}

/* An exception that no frame catches goes on to the end of the stack. */
int thread_end_personality(int version, int actions, uint64_t kind, void *exception, void *context)
{
	(void)version, (void)kind, (void)exception, (void)context;
	if (actions & FORCE_UNWIND)
		thread_ended();
	return CONTINUE_UNWIND;
}

void thread_end_cleanup(void *unused)
{
	(void)unused;
	thread_ended();
}
