/*
 * preempt.c - a thread's signal stack and signal mask.
 *
 * Signals that find a goroutine are handled on a stack of the thread's own
 * (sigaltstack), never on the goroutine's, which may be small or overflowing.
 * It is sized by what the kernel says a frame takes here (AVX-512 state is
 * large) plus room for printing a stack trace.
 *
 * Threads run with the signal mask of the thread that started the runtime.
 */
#define _GNU_SOURCE
#include "preempt.h"

#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>

#include "backtrace.h"
#include "os.h"
#include "runtime.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* For the handlers themselves: symbolizing a trace is the hungriest. */
#define HANDLER_BYTES (64 << 10)

static sigset_t program_mask;

static void on_preempt(int sig, siginfo_t *info, void *uc)
{
	struct m *mp = m_self();

	(void)sig; (void)info;
	if (mp)
		backtrace_on_signal(mp, uc);
}

void preempt_init(void)
{
	struct sigaction sa = {
		.sa_sigaction = on_preempt,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART,
	};

	sigfillset(&sa.sa_mask);
	sigaction(SIG_PREEMPT, &sa, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &program_mask);
	sigdelset(&program_mask, SIG_PREEMPT);
}

void preempt_thread_init(struct m *mp)
{
	stack_t ss;

	if (!mp->signal_stack) {
		mp->signal_stack_bytes = HANDLER_BYTES + getauxval(AT_MINSIGSTKSZ);
		mp->signal_stack_bytes += -mp->signal_stack_bytes % os_page_bytes;
		mp->signal_stack = os_map(mp->signal_stack_bytes);
		if (!mp->signal_stack)
			throw("out of memory for a signal stack");
	}
	ss = (stack_t){ .ss_sp = mp->signal_stack, .ss_size = mp->signal_stack_bytes };
	sigaltstack(&ss, NULL);
	pthread_sigmask(SIG_SETMASK, &program_mask, NULL);
}

/* The stack stays with the M, for its next thread. */
void preempt_thread_end(struct m *mp)
{
	stack_t off = { .ss_flags = SS_DISABLE };
	sigset_t all;

	(void)mp;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	sigaltstack(&off, NULL);
}
