/*
 * m_signals.c - an M's signal stack and signal mask.
 *
 * Handlers run on a stack of the thread's own, since a goroutine's may be small.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>

#include "platform/os.h"
#include "platform/sim.h"
#include "base/throw.h"
#include "sched/runtime.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* For the handlers themselves: symbolizing a trace is the hungriest. */
#define HANDLER_BYTES (64 << 10)

/* What the starting thread has blocked, for all Ms; but no fault, which would end the
 * process without a report, nor the preemption signal. */
static sigset_t program_mask;

void m_signals_init(void)
{
	pthread_sigmask(SIG_SETMASK, NULL, &program_mask);
	os_unblock_faults(&program_mask);
	sigdelset(&program_mask, SIG_PREEMPT);
}

bool m_signals_prepare(struct m *mp)
{
	if (mp->signal_stack.at)
		return true;
	mp->signal_stack.bytes = HANDLER_BYTES + getauxval(AT_MINSIGSTKSZ);
	mp->signal_stack.bytes += -mp->signal_stack.bytes % os_page_bytes;
	mp->signal_stack.at = os_map(mp->signal_stack.bytes);
	if (mp->signal_stack.at)
		tool_mapped(mp->signal_stack.at, mp->signal_stack.bytes);
	return mp->signal_stack.at != NULL;
}

void m_signals_begin(struct m *mp)
{
	stack_t ss = (stack_t){ .ss_sp = mp->signal_stack.at, .ss_size = mp->signal_stack.bytes };

	check(mp == m_self() && ss.ss_sp);
	if (sim)
		return;		/* one thread is all threads */
	sigaltstack(&ss, NULL);
	pthread_sigmask(SIG_SETMASK, &program_mask, NULL);
	os_thread_punctual();
}

/* The stack stays with the M, for its next thread. */
void m_signals_end(void)
{
	stack_t off = { .ss_flags = SS_DISABLE };
	sigset_t all;

	if (sim)
		return;
	os_all_signals(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	sigaltstack(&off, NULL);
}
