/*
 * fault.c - signals that end the process with a trace: faults and SIGQUIT.
 *
 * A fault in a goroutine prints what happened and its trace, in Go's words, and
 * then lets the signal do what it would have done without us, so that cores are
 * still made and the parent sees the signal. A fault in a stack's guard is an
 * overflow: that is the program's own end, with status 2. SIGQUIT prints all
 * goroutines and exits with status 2.
 *
 * The handlers run on the thread's signal stack, take no lock and allocate
 * nothing. A second fault while printing (a goroutine's memory may be anything)
 * ends the process at once by the signal's default action. A handler that the
 * program installs later replaces ours; one that it installed before is kept
 * and called instead of the default action.
 *
 * A fault whose signal is ignored ends the process all the same, so it is reported; a signal
 * that somebody sends stays ignored. A fault whose signal is blocked ends the process before
 * any handler runs, so no thread of ours blocks it.
 *
 * SIGQUIT is ignored in whatever a script starts with "&": as in Go it prints there, too.
 * Where the program itself ignores it, that is, after it was loaded, it stays ignored.
 */
#define _GNU_SOURCE
#include "fault.h"

#include <signal.h>
#include <unistd.h>

#include "dump.h"
#include "evacuate.h"
#include "os.h"
#include "runtime.h"
#include "stack.h"

static const struct fault {
	int sig;
	const char *name, *text;
} faults[] = {
	{ SIGSEGV, "SIGSEGV", "segmentation violation" },
	{ SIGBUS, "SIGBUS", "bus error" },
	{ SIGFPE, "SIGFPE", "floating-point exception" },
	{ SIGILL, "SIGILL", "illegal instruction" },
};
#define FAULTS (sizeof faults / sizeof *faults)

static struct sigaction before[FAULTS];	/* what the program had */
static struct sigaction before_quit;
static bool quit_inherited;	/* SIGQUIT was ignored when the program was loaded */
static uint32_t printing;	/* the thread that prints; 0: none */

/* True in the first thread that comes here; false when the same thread comes
 * again. Another waits for the end that the first will bring. */
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

/* As if we had never been here: the instruction is tried again and faults again
 * when the handler returns. A signal somebody sent is sent once more. */
static void give_to_program(int sig, const siginfo_t *info)
{
	sigaction(sig, &before[fault_of(sig) - faults], NULL);
	if (info->si_code <= 0)
		os_tgkill(os_tid(), sig);
}

static void print_overflow(struct printer *pr, const struct g *gp, uintptr_t sp)
{
	print_str(pr, "runtime: goroutine stack exceeds ");
	print_int(pr, (int64_t)stack_class_bytes(gp->stack_class));
	print_str(pr, "-byte limit\nruntime: sp=");
	print_hex(pr, sp);
	print_str(pr, " stack=[");
	print_hex(pr, (uintptr_t)gp->stack_lo);
	print_str(pr, ", ");
	print_hex(pr, (uintptr_t)gp->stack_hi);
	print_str(pr, "]\nfatal error: stack overflow\n\n");
}

static void print_fault(struct printer *pr, const struct fault *f, const siginfo_t *info, uintptr_t pc)
{
	print_str(pr, "fatal error: unexpected signal during execution\n[signal ");
	print_str(pr, f->name);
	print_str(pr, ": ");
	print_str(pr, f->text);
	print_str(pr, " code=");
	print_hex(pr, (uint64_t)(unsigned)info->si_code);
	print_str(pr, " addr=");
	print_hex(pr, (uintptr_t)info->si_addr);
	print_str(pr, " pc=");
	print_hex(pr, pc);
	print_str(pr, "]\n");
}

/* An address in the guard of the running goroutine's own stack. */
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
	if (dump_level != DUMP_NONE && !evacuate_is_server()) {
		backtrace_regs(&bt, &regs, gp, mp);
		if (bt.from == FRAMES_USER)
			bt.from = FRAMES_ALL;	/* where exactly it was is what is asked */
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
		_exit(2);
	give_to_program(sig, info);
}

static void on_quit(int sig, siginfo_t *info, void *uc)
{
	struct printer pr = print_to_fd(STDERR_FILENO);
	struct m *mp = m_self();
	const struct g *gp = mp && !mp->is_foreign ? mp->curg : NULL;
	struct unwind_regs regs;
	struct backtrace bt;

	(void)sig; (void)info;
	if (!first_to_print())
		return;
	unwind_regs_from_ucontext(&regs, uc);
	print_str(&pr, "SIGQUIT: quit\nPC=");
	print_hex(&pr, regs.reg[UNWIND_PC]);
	print_str(&pr, " m=");
	print_int(&pr, mp ? mp->id : -1);
	print_str(&pr, " sigcode=");
	print_int(&pr, info->si_code);
	print_str(&pr, "\n");
	print_flush(&pr);
	backtrace_regs(&bt, &regs, gp, mp);
	dump_all_unstopped(&pr, gp, &bt);
	_exit(2);
}

void fault_unmask(sigset_t *mask)
{
	for (size_t i = 0; i < FAULTS; i++)
		sigdelset(mask, faults[i].sig);
}

static void install(int sig, void (*fn)(int, siginfo_t *, void *), struct sigaction *old)
{
	struct sigaction sa = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };

	sigfillset(&sa.sa_mask);
	fault_unmask(&sa.sa_mask);
	sigdelset(&sa.sa_mask, SIG_PREEMPT);
	sigaction(sig, &sa, old);
}

bool fault_is_ours(int sig)
{
	struct sigaction now;

	return sigaction(sig, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
	       (now.sa_sigaction == on_fault || now.sa_sigaction == on_quit);
}

__attribute__((constructor)) static void loaded(void)
{
	struct sigaction quit;

	sigaction(SIGQUIT, NULL, &quit);
	quit_inherited = is_ignored(&quit);
}

void fault_init(void)
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

void fault_forked(void)
{
	if (fault_is_ours(SIGQUIT))
		sigaction(SIGQUIT, &before_quit, NULL);
}
