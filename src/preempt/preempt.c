/*
 * preempt.c - stopping a goroutine where it stands, on its thread.
 *
 * In C a goroutine can be stopped anywhere (inside malloc, printf, a vector kernel) only
 * if it goes on later on the same kernel thread: that thread may own the lock that the
 * goroutine holds, and a register may hold the address of a thread-local variable. So the
 * goroutine is not moved. Its thread hands the P to another thread and sleeps in the
 * signal handler, and the goroutine waits in the global queue, bound to this M (turn.c).
 *
 * The signal (SIG_PREEMPT) runs on a stack of the thread's own, since a goroutine's may
 * be small. In state RUNTIME the handler does nothing: the way out of the runtime looks
 * at ATTN_GIVE_WAY. While the program counter is in libc the handler asks for another
 * try, up to PUT_OFF_MAX times. A goroutine that is stopped while it holds a lock of
 * libc's makes all others wait for that lock: see convoy.c.
 *
 * Rejected: switching stacks in the handler. That is cheaper, and wrong in C.
 */
#define _GNU_SOURCE
#include "preempt/preempt.h"
#include "base/probe.h"

#include <link.h>
#include <signal.h>
#include <string.h>

#include <goro.h>

#include "preempt/convoy.h"
#include "platform/os.h"
#include "preempt/restart.h"
#include "unwind/unwind.h"
#include "sched/init.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "preempt/sigchain.h"

/* ------------------------------------------------------------- put it off */

/* The code of libc and of the loader, where a goroutine is better not stopped. */
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

/* Whether the goroutine may be stopped here. If not, sysmon tries again. */
static bool may_stop(struct m *mp, const void *ucontext)
{
	struct unwind_regs regs;

	check(mp->p->mp == mp);
	if (load_relaxed(&mp->watch.put_off) >= PUT_OFF_MAX)
		return true;
	unwind_regs_from_ucontext(&regs, ucontext);
	if (load_relaxed(&mp->p->heir))
		return convoy_may_pass_on(&regs);
	if (!preempt_is_delicate(regs.reg[UNWIND_PC]))
		return true;
	count_up(&mp->watch.put_off, 1);
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

/* In user code on a goroutine's thread. Crosses the border as rt_enter_slow does. */
static void stop_here(struct m *mp, const void *ucontext)
{
	struct unwind_regs regs;
	uint32_t attn;

	check(mp->curg->mp == mp && !load_relaxed(&mp->stopped_at));
	if (mp->curg->preempt_off)
		return;		/* even without a P, if it was taken while the M slept */
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
		store_relaxed(&mp->watch.put_off, 0);
		PROBE1(preempt, mp->curg->id);
		if (mp->p)
			count_up(&mp->p->count.preemptions, 1);
		if (mp->p)
			mp->trace.preempted = true;
		store_release(&mp->stopped_at, ucontext);
		turn_wait(mp, attn & ATTN_TAKEN && load_relaxed(&mp->slept));
		check(mp == m_self() && mp->p->mp == mp);
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
		on = (struct restart_stack){ (uintptr_t)load_relaxed(&gp->stack.lo),
		                             (uintptr_t)load_relaxed(&gp->stack.hi) };
	return restart_interrupted(uc, on);
}

struct preempt_guest *preempt_guests;

TOOL_RACY bool preempt_taken(int sig, const siginfo_t *info)
{
	for (const struct preempt_guest *guest = preempt_guests; guest; guest = guest->next)
		if (guest->takes && guest->takes(sig, info))
			return true;
	return false;
}

/* True: a guest made the thread sleep, and no goroutine runs on the thread. */
TOOL_RACY static bool visit(struct m *mp, const void *uc)
{
	bool slept = false;

	for (const struct preempt_guest *guest = preempt_guests; guest; guest = guest->next)
		if (guest->visits && guest->visits(mp, uc))
			slept = true;
	return slept && (!mp || mp->is_foreign);
}

/* A goroutine whose system call is made again is not stopped. It is as good as asleep,
 * and must not have to wait for its turn before its timeout goes on. */
static void on_preempt(int sig, siginfo_t *info, void *uc)
{
	struct m *mp = m_self();
	int *errno_at = goro_errno();
	int saved = *errno_at;
	bool program_saw = !os_signal_is_ours(info) && !preempt_taken(sig, info) &&
	                   sigchain_give(&chain, info, uc);
	bool sleeps_on = false;

	if (visit(mp, uc))
		preempt_restart(NULL, uc);
	if (mp) {
		store_relaxed(&mp->watch.signalled, 0);
		if (!mp->is_foreign && !program_saw && load_relaxed(&mp->state) != M_RUNTIME)
			sleeps_on = preempt_restart(mp, uc);
		if (!mp->is_foreign && !sleeps_on && load_relaxed(&mp->state) == M_USER)
			stop_here(mp, uc);
	}
	*errno_at = saved;
}

/* The handler behind TSan's back. Where the signal has interrupted the tool, or libc,
 * which the tool may have called, it only makes a system call go on that it has cut short
 * in libc, and sysmon tries again. */
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
	store_relaxed(&mp->watch.signalled, 0);
}

/* ------------------------------------------------------------------ set-up */

static void preempt_init(void)
{
	if (tool_init())
		chain.direct = on_preempt_direct;
	dl_iterate_phdr(find_delicate, NULL);
	sigchain_install(&chain, NULL);
}

HOOK(at_start, START_SIGNALS, preempt_init);

/* In a child made by fork the signal is the program's alone. */
static void preempt_forked(void)
{
	sigchain_remove(&chain);
}

HOOK(at_forked, FORKED_OTHER, preempt_forked);

/* ----------------------------------------------------------------- opt out */

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
