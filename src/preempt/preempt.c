/*
 * preempt.c - stopping a goroutine where it stands, on its thread.
 *
 * In C a goroutine can be stopped anywhere (inside malloc, printf, a vector
 * kernel) only if it goes on later on the same kernel thread: the lock that it
 * holds may be owned by that thread, the register may hold the address of a
 * thread-local variable. So a goroutine is not moved: its thread hands the P to
 * another thread, and goes to sleep as it is, in the signal handler; the
 * goroutine waits in the global queue for its turn, bound to this M. Whoever
 * picks it hands over the P it was picked with, and the handler returns.
 *
 * The same for a goroutine whose P was taken from it while its thread slept in
 * the kernel, and which has come back, and for one that was asked to give way
 * while it was in the runtime and is about to leave it.
 *
 * The signal (SIG_PREEMPT) runs on a stack of the thread's own, since a
 * goroutine's may be small. In state RUNTIME the handler does nothing: the way
 * out of the runtime looks at ATTN_GIVE_WAY. While the program counter is in libc
 * it asks for another try, a few times: a goroutine that is stopped while it
 * holds a lock of libc's makes all others wait for that lock (they lose their
 * Ps for it, so that nothing hangs, but it costs: see convoy.c).
 *
 * Nothing here, and nothing in state RUNTIME, takes a libc lock: its holder may
 * be a stopped goroutine.
 *
 * Rejected: switching stacks in the handler. Cheaper, and wrong in C: see above.
 */
#define _GNU_SOURCE
#include "preempt.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>

#include <goro.h>

#include "backtrace.h"
#include "convoy.h"
#include "debug_attach.h"
#include "fault.h"
#include "fd.h"
#include "latency.h"
#include "netpoll.h"
#include "os.h"
#include "reach.h"
#include "restart.h"
#include "runq.h"
#include "runtime.h"
#include "sigchain.h"
#include "signal_notify.h"
#include "trace.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* For the handlers themselves: symbolizing a trace is the hungriest. */
#define HANDLER_BYTES (64 << 10)

/* What the thread that starts the runtime has blocked, for all Ms; but neither a fault, which
 * would end the process without a report, nor the preemption signal. */
static sigset_t program_mask;

/* ------------------------------------------------------------------ in line */

/* sched.lock held. A P that nobody runs. *was_to_look: one for whose M a place among
 * the spinning was taken. */
static struct p *free_p(bool *was_to_look)
{
	struct p *pp;

	if (load_relaxed(&sched.stopping))
		return NULL;
	pp = p_idle_get();
	if (!pp && (pp = need_m_take()))
		*was_to_look = pp->spawn_spinning;
	return pp;
}

/* A P whose M is in an announced call, taken from it. */
static struct p *take_left_behind(void)
{
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++) {
		struct p *pp = p_at(i);

		if (p_take_left_behind(pp))
			return pp;
	}
	return NULL;
}

/* sched.lock held. The next to run on a P that is given away, if it brings its own M:
 * its thread is woken at once, and not one that looks for it first. Where there is a
 * poller somebody is to look there before. */
static struct g *next_bound(struct p *pp)
{
	struct g *gp;

	if (load_relaxed(&sched.stopping) || !runq_empty(pp) || timers_are_due(pp) ||
	    pp->untried || fd_posts(pp) || netpoll_on())
		return NULL;
	gp = globq_get_bound();
	if (gp) {
		pp->global_served = true;
		sched.idle_m_locked--;
		count_up(&pp->count.thread_wakeups, 1);
	}
	return gp;
}

void preempt_wait_turn(struct m *mp, bool fresh)
{
	struct g *gp = mp->curg;
	struct p *pp = NULL;
	struct g *next = NULL;
	bool was_to_look = false;

	gp->locked_m = mp;
	mp->locked_g = gp;
	store_relaxed(&mp->cpu, os_cpu());
	if (mp->p) {
		runq_stopped(mp->p);
		latency_ready(mp->p, gp);
	} else {
		store_relaxed(&gp->status, G_RUNNABLE);
	}
	if (!mp->p && trace_on())	/* before more is told of this thread */
		trace_go_back_unlocked(mp, gp);
	if (!mp->p && !load_relaxed(&sched.stopping))
		pp = take_left_behind();
	lock_acquire(&sched.lock);
	if (!mp->p)
		trace_go_back(mp, gp);
	if (!mp->p && !pp)
		pp = free_p(&was_to_look);
	if (!pp && fresh)
		globq_put_fresh(gp);
	else if (!pp)
		globq_put(gp);
	if (mp->p && !load_relaxed(&mp->p->heir))
		next = next_bound(mp->p);
	lock_release(&sched.lock);
	if (pp) {
		p_bind(mp, pp);
	} else {
		if (fresh)
			sysmon_somebody_waits();
		if (mp->p)
			store_relaxed(&mp->p->stopped, gp);
		if (next)
			m_hand_p(next->locked_m, p_unbind(mp));
		else if (mp->p)
			convoy_pass_on(mp);
		m_stop_locked(mp);
		store_relaxed(&mp->stop_where, STOP_ANYWHERE);
	}
	if (was_to_look) {
		/* We have something to run; somebody else is to look around. */
		fetch_add_seqcst(&sched.spinning, -1);
		wake();
	}
	if (gp->lock_depth == 0) {
		gp->locked_m = NULL;
		mp->locked_g = NULL;
	}
	latency_run(mp->p, gp);
	store_relaxed(&gp->status, G_RUNNING);
	p_slice_begin(mp->p);
}

/* ------------------------------------------------------------- put it off */

/* libc and the loader, where a goroutine is better not stopped. A call of theirs that is
 * made again counts as theirs. */
static struct code_range {
	uintptr_t start, end;
} delicate[4];
static int delicate_n;

static int find_delicate(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *base = strrchr(info->dlpi_name, '/');

	(void)size; (void)arg;
	base = base ? base + 1 : info->dlpi_name;
	if (strncmp(base, "libc.", 5) != 0 && strncmp(base, "ld-", 3) != 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum && delicate_n < 4; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X)) {
			uintptr_t at = info->dlpi_addr + ph->p_vaddr;

			delicate[delicate_n++] = (struct code_range){ at, at + ph->p_memsz };
		}
	}
	return 0;
}

TOOL_RACY bool preempt_is_delicate(uintptr_t pc)
{
	for (int i = 0; i < delicate_n; i++)
		if (pc >= delicate[i].start && pc < delicate[i].end)
			return true;
	return restart_is_inside(pc);
}

/* Whether the goroutine may be stopped here; if not, retake.c tries again. */
static bool may_stop(struct m *mp, const void *ucontext)
{
	struct unwind_regs regs;

	if (load_relaxed(&mp->put_off) >= PUT_OFF_MAX)
		return true;
	unwind_regs_from_ucontext(&regs, ucontext);
	if (load_relaxed(&mp->p->heir))
		return convoy_may_pass_on(&regs);
	if (!preempt_is_delicate(regs.reg[UNWIND_PC]))
		return true;
	count_up(&mp->put_off, 1);
	return false;
}

/* ----------------------------------------------- the program's own SIGURG */

static void on_preempt(int sig, siginfo_t *info, void *uc);
static void on_preempt_direct(int sig, siginfo_t *info, void *uc);

static struct sigchain chain = { .sig = SIG_PREEMPT, .ours = on_preempt };

void preempt_signal(struct m *mp)
{
	sigchain_renew(&chain);
	os_signal(load_relaxed(&mp->tid), SIG_PREEMPT);
}

/* ------------------------------------------------------------- the handler */

/* In user code on a thread with a goroutine. The same crossing of the border as
 * in rt_enter, with what rt_enter_slow does done here, on this stack. */
static void stop_here(struct m *mp, const void *ucontext)
{
	struct unwind_regs regs;
	uint32_t attn;

	if (mp->curg->preempt_off)
		return;		/* even without a P, if that was taken while it slept */
	if (load_relaxed(&mp->stop_where)) {
		unwind_regs_from_ucontext(&regs, ucontext);
		if (!convoy_may_stop(mp, &regs))
			return;
	}
	store_relaxed(&mp->state, M_RUNTIME);
	fence_seqcst();
	attn = border_settle(mp);
	if (attn & ATTN_TAKEN || (border_gives_way(mp, attn) && may_stop(mp, ucontext))) {
		fetch_and_acqrel(&mp->attn, ~(uint32_t)ATTN_GIVE_WAY);
		store_relaxed(&mp->put_off, 0);
		if (mp->p)
			count_up(&mp->p->count.preemptions, 1);
		if (mp->p)
			mp->trace.preempted = true;
		store_release(&mp->stopped_at, ucontext);
		preempt_wait_turn(mp, attn & ATTN_TAKEN && load_relaxed(&mp->slept));
		store_release(&mp->stopped_at, NULL);
	}
	/* release: what was done to the P; pairs with load_acquire in p_take */
	store_release(&mp->state, M_USER);
}

TOOL_RACY bool preempt_restart(const struct m *mp, void *uc)
{
	const struct g *gp = mp && !mp->is_foreign ? load_relaxed(&mp->curg) : NULL;
	struct restart_stack on = { 0, 0 };

	if (gp)
		on = (struct restart_stack){ (uintptr_t)load_relaxed(&gp->stack_lo),
		                             (uintptr_t)load_relaxed(&gp->stack_hi) };
	return restart_interrupted(uc, on);
}

/* A goroutine whose call is made again is not stopped: it is as good as asleep, and its
 * time must not stand still until it is its turn. */
static void on_preempt(int sig, siginfo_t *info, void *uc)
{
	struct m *mp = m_self();
	int *errno_at = goro_errno();
	int saved = *errno_at;
	bool program_saw = !os_signal_is_ours(info) && !debug_attach_take(info) &&
	                   !signal_take(sig) && sigchain_give(&chain, info, uc);
	bool sleeps_on = false;

	if (load_relaxed(&reach_holding) & 1 && reach_on_signal(uc) && (!mp || mp->is_foreign))
		preempt_restart(NULL, uc);
	if (mp) {
		backtrace_on_signal(mp, uc);
		store_relaxed(&mp->signalled, 0);
		if (!mp->is_foreign && !program_saw && load_relaxed(&mp->state) != M_RUNTIME)
			sleeps_on = preempt_restart(mp, uc);
		if (!mp->is_foreign && !sleeps_on && load_relaxed(&mp->state) == M_USER)
			stop_here(mp, uc);
	}
	*errno_at = saved;
}

/* Where it has interrupted the tool, or libc, which the tool may have called, it
 * comes to nothing, and retake.c tries again. Only a system call that it has cut
 * short is seen to: the tool makes its own differently. */
TOOL_RACY static void on_preempt_direct(int sig, siginfo_t *info, void *uc)
{
	uintptr_t pc = REGS_UCONTEXT_PC(uc);
	struct m *mp = m_self();

	if (!os_signal_is_ours(info) || (!tool_is_inside(pc) && !preempt_is_delicate(pc))) {
		on_preempt(sig, info, uc);
		return;
	}
	if (!mp)
		return;
	if (preempt_is_delicate(pc) && !mp->is_foreign && load_relaxed(&mp->state) != M_RUNTIME)
		preempt_restart(mp, uc);
	store_relaxed(&mp->signalled, 0);
}

/* ------------------------------------------------------------------ set-up */

void preempt_init(void)
{
	if (tool_init())
		chain.direct = on_preempt_direct;
	dl_iterate_phdr(find_delicate, NULL);
	sigchain_install(&chain, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &program_mask);
	fault_unmask(&program_mask);
	sigdelset(&program_mask, SIG_PREEMPT);
}

void preempt_forked(void)
{
	sigchain_remove(&chain);
}

bool preempt_thread_prepare(struct m *mp)
{
	if (mp->signal_stack)
		return true;
	mp->signal_stack_bytes = HANDLER_BYTES + getauxval(AT_MINSIGSTKSZ);
	mp->signal_stack_bytes += -mp->signal_stack_bytes % os_page_bytes;
	mp->signal_stack = os_map(mp->signal_stack_bytes);
	if (mp->signal_stack)
		tool_mapped(mp->signal_stack, mp->signal_stack_bytes);
	return mp->signal_stack != NULL;
}

void preempt_thread_init(struct m *mp)
{
	stack_t ss = (stack_t){ .ss_sp = mp->signal_stack, .ss_size = mp->signal_stack_bytes };
	sigaltstack(&ss, NULL);
	pthread_sigmask(SIG_SETMASK, &program_mask, NULL);
	os_thread_punctual();
}

/* The stack stays with the M, for its next thread. */
void preempt_thread_end(struct m *mp)
{
	stack_t off = { .ss_flags = SS_DISABLE };
	sigset_t all;

	(void)mp;
	sigfillset(&all);
	fault_unmask(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	sigaltstack(&off, NULL);
}

/* ----------------------------------------------------------------- opt out */

bool preempt_is_off(const struct m *mp)
{
	const struct g *gp = load_relaxed(&mp->curg);

	return gp && load_relaxed(&gp->preempt_off) != 0;
}

void goro_preempt_disable(void)
{
	struct m *mp = rt_enter();

	count_up(&mp->curg->preempt_off, 1);
	store_relaxed(&mp->curg->untidy, true);		/* g_forget is to reset it */
	rt_exit(mp);
}

void goro_preempt_enable(void)
{
	struct m *mp = rt_enter();

	if (mp->curg->preempt_off > 0)
		store_relaxed(&mp->curg->preempt_off, mp->curg->preempt_off - 1);
	rt_exit(mp);
}
