/*
 * fault.c - signals that end the process with a trace: faults and SIGQUIT.
 *
 * A fault in a goroutine prints what happened and the goroutine's trace, in Go's words.
 * Then the signal has its usual effect, so that cores are still made and the parent sees
 * the signal. A fault in a stack's guard is an overflow, and ends the process with status
 * 2. SIGQUIT prints all goroutines and exits with status 2.
 *
 * The handlers run on the thread's signal stack, take no lock and allocate nothing. A
 * second fault while printing ends the process at once by the signal's default action. A
 * handler that the program installs later replaces ours; one that it installed before
 * stays, and ours is not installed.
 *
 * A fault whose signal is ignored ends the process all the same, so it is reported; the
 * same signal sent by kill stays ignored. A fault whose signal is blocked ends the
 * process before any handler runs, so the runtime's threads do not block these signals.
 *
 * A shell ignores SIGQUIT in a command that it starts with "&". As in Go, SIGQUIT prints
 * there nevertheless, unless the program itself ignores it after it was loaded.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "observe/dump.h"
#include "platform/os.h"
#include "preempt/sigchain.h"
#include "sched/init.h"
#include "sched/runtime.h"
#include "stack/stack.h"

static const struct fault {
	int sig;
	const char *name, *text;
} faults[] = {
#define X(sig, text) { sig, #sig, text },
	FAULT_LIST(X)
#undef X
};
#define FAULTS (sizeof faults / sizeof *faults)

static struct sigaction before[FAULTS];	/* the program's actions */
static struct sigaction before_quit;
static bool quit_inherited;	/* SIGQUIT was ignored when the program was loaded */
static uint32_t printing;	/* the thread that prints; 0: none */

/* True for the first thread that calls it; false if that thread calls it again. Any other
 * thread sleeps until the first one ends the process. */
static bool first_to_print(void)
{
	uint32_t nobody = 0, me = (uint32_t)os_tid();

	if (cas_seqcst(&printing, &nobody, me))
		return true;
	while (load_relaxed(&printing) != me)
		os_sleep(1000000000);
	return false;
}

static const struct fault *fault_of(int sig)
{
	for (size_t i = 0; i < FAULTS; i++)
		if (faults[i].sig == sig)
			return &faults[i];
	return NULL;
}

static bool is_handled(const struct sigaction *sa)
{
	return sa->sa_flags & SA_SIGINFO || (sa->sa_handler != SIG_DFL && sa->sa_handler != SIG_IGN);
}

static bool is_ignored(const struct sigaction *sa)
{
	return !(sa->sa_flags & SA_SIGINFO) && sa->sa_handler == SIG_IGN;
}

/* Restores the program's action. When the handler returns, a faulting instruction runs
 * and faults again. A signal that was sent is sent again. */
static void give_to_program(int sig, const siginfo_t *info)
{
	sigaction(sig, &before[fault_of(sig) - faults], NULL);
	if (info->si_code <= 0)
		os_tgkill(os_tid(), sig);
}

static void print_overflow(struct printer *pr, const struct g *gp, uintptr_t sp)
{
	print_format(pr, "runtime: goroutine stack exceeds %ld-byte limit\n"
	             "runtime: sp=%#lx stack=[%#lx, %#lx]\nfatal error: stack overflow\n\n",
	             (long)stack_class_bytes(gp->stack_class), sp, (uintptr_t)gp->stack.lo,
	             (uintptr_t)gp->stack.hi);
}

static void print_fault(struct printer *pr, const struct fault *f, const siginfo_t *info, uintptr_t pc)
{
	print_format(pr, "fatal error: unexpected signal during execution\n"
	             "[signal %s: %s code=%#lx addr=%#lx pc=%#lx]\n", f->name, f->text,
	             (uintptr_t)(unsigned)info->si_code, (uintptr_t)info->si_addr, pc);
}

/* Is addr in the guard of gp's own stack? */
static bool is_overflow(const struct g *gp, const void *addr)
{
	struct g *owner;

	return gp && !gp->is_foreign && stack_find(addr, &owner) == STACK_GUARD && owner == gp;
}

static void on_fault(int sig, siginfo_t *info, void *uc)
{
	const struct fault *f = fault_of(sig);
	struct printer pr = print_to_fd(STDERR_FILENO);
	struct m *mp = m_self();
	const struct g *gp = mp ? mp->curg : NULL;
	struct unwind_regs regs;
	struct backtrace bt;
	bool overflow;

	if (is_ignored(&before[f - faults]) && info->si_code <= 0)
		return;
	if (is_handled(&before[f - faults]) || !first_to_print()) {
		give_to_program(sig, info);
		return;
	}
	unwind_regs_from_ucontext(&regs, uc);
	overflow = info->si_code > 0 && is_overflow(gp, info->si_addr);
	if (overflow)
		print_overflow(&pr, gp, regs.reg[UNWIND_SP]);
	else
		print_fault(&pr, f, info, regs.reg[UNWIND_PC]);
	print_flush(&pr);
	if (dump_level != DUMP_NONE && !fatal_is_alone()) {
		backtrace_regs(&bt, &regs, gp, mp);
		if (bt.from == FRAMES_USER)
			bt.from = FRAMES_ALL;	/* shows where in a goro_ function */
		if (!overflow)
			print_str(&pr, "\n");
		if (gp)
			dump_goroutine(&pr, gp, &bt);
		else
			dump_frames(&pr, &bt);
		print_flush(&pr);
		if (dump_level == DUMP_ALL)
			dump_all_unstopped(&pr, gp, NULL);
	}
	if (overflow)
		fatal_exit();
	give_to_program(sig, info);
}

static void on_quit(int sig, siginfo_t *info, void *uc)
{
	struct printer pr = print_to_fd(STDERR_FILENO);
	struct m *mp = m_self();
	const struct g *gp = mp && !mp->is_foreign ? mp->curg : NULL;
	struct unwind_regs regs;
	struct backtrace bt;

	(void)sig;
	if (!first_to_print())
		return;
	unwind_regs_from_ucontext(&regs, uc);
	print_format(&pr, "SIGQUIT: quit\nPC=%#lx m=%ld sigcode=%d\n", regs.reg[UNWIND_PC],
	             mp ? (long)mp->id : -1, info->si_code);
	print_flush(&pr);
	backtrace_regs(&bt, &regs, gp, mp);
	dump_all_unstopped(&pr, gp, &bt);
	fatal_exit();
}

static void install(int sig, void (*fn)(int, siginfo_t *, void *), struct sigaction *old)
{
	struct sigaction sa = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };

	os_all_signals(&sa.sa_mask);
	sigdelset(&sa.sa_mask, SIG_PREEMPT);
	sigaction(sig, &sa, old);
	sigchain_unchained(sig, fn);
}

__attribute__((constructor)) static void loaded(void)
{
	struct sigaction quit;

	sigaction(SIGQUIT, NULL, &quit);
	quit_inherited = is_ignored(&quit);
}

static void fault_init(void)
{
	for (size_t i = 0; i < FAULTS; i++) {
		sigaction(faults[i].sig, NULL, &before[i]);
		if (!is_handled(&before[i]))
			install(faults[i].sig, on_fault, &before[i]);
	}
	sigaction(SIGQUIT, NULL, &before_quit);
	if (!is_handled(&before_quit) && (quit_inherited || !is_ignored(&before_quit)))
		install(SIGQUIT, on_quit, NULL);
}

HOOK(at_start, START_SIGNALS, fault_init);

/* A forked child gets its former action for SIGQUIT back. It still reports faults. */
static void fault_forked(void)
{
	if (sigchain_is_unchained(SIGQUIT))
		sigaction(SIGQUIT, &before_quit, NULL);
}

HOOK(at_forked, FORKED_OTHER, fault_forked);
