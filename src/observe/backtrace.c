/*
 * backtrace.c - the calls a goroutine is in, wherever it is.
 *
 * At rest: its registers lie on its stack (context.h). Asleep in the kernel:
 * the kernel shows its stack and instruction pointers in /proc, and no signal
 * is sent, so that nothing returns EINTR. Executing elsewhere: its thread gets
 * the preemption signal with a request in its M, walks its own stack in the
 * handler, and says so.
 *
 * Async-signal-safe throughout.
 */
#include "backtrace.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "context_regs.h"
#include "os.h"
#include "runtime.h"
#include "text.h"

/* How far below its stack an overflowing goroutine's sp may be: a guard's size. */
#define OVERFLOW_BYTES (64 << 10)

/* How long a thread may take to answer. */
#define ANSWER_NS 100000000

static bool inside(uintptr_t sp, const char *lo, const char *hi)
{
	return sp >= (uintptr_t)lo && sp < (uintptr_t)hi;
}

void backtrace_regs(struct backtrace *bt, const struct unwind_regs *regs, const struct g *gp,
                    const struct m *mp)
{
	uintptr_t sp = regs->reg[UNWIND_SP];
	uintptr_t lo = sp & ~(uintptr_t)15, hi;
	bool begins = false;

	/* relaxed: backtrace_asleep looks at one that may have woken and ended meanwhile. Its
	 * stack stays readable, and what is found there is not used. */
	const char *g_lo = gp ? load_relaxed(&gp->stack_lo) : NULL;
	const char *g_hi = gp ? load_relaxed(&gp->stack_hi) : NULL;

	if (gp && inside(sp, g_lo, g_hi)) {
		hi = (uintptr_t)g_hi;
		begins = !gp->is_foreign;
	} else if (gp && !gp->is_foreign && inside(sp, g_lo - OVERFLOW_BYTES, g_lo)) {
		lo = (uintptr_t)g_lo;	/* overflowed: below is the guard */
		hi = (uintptr_t)g_hi;
		begins = true;
	} else if (mp && inside(sp, mp->thread_stack_lo, mp->thread_stack_hi)) {
		hi = (uintptr_t)mp->thread_stack_hi;
	} else if (mp && inside(sp, mp->signal_stack,
	                        (char *)mp->signal_stack + mp->signal_stack_bytes)) {
		hi = (uintptr_t)mp->signal_stack + mp->signal_stack_bytes;
	} else {	/* a stack of somebody else's making: the page is there */
		hi = (sp | (os_page_bytes - 1)) + 1;
	}
	bt->n = unwind_walk(regs, lo, hi, bt->pc, BACKTRACE_MAX - begins);
	if (begins)
		bt->pc[bt->n++] = (uintptr_t)gp->fn + 1;
	bt->from = mp && load_relaxed(&mp->state) == M_RUNTIME ? FRAMES_RUNTIME : FRAMES_USER;
}

__attribute__((noinline)) void backtrace_here(struct backtrace *bt)
{
	struct m *mp = m_self();
	struct unwind_regs regs;

	unwind_regs_here(&regs);
	backtrace_regs(bt, &regs, mp ? mp->curg : NULL, mp);
	bt->from = FRAMES_RUNTIME;
}

void backtrace_parked(struct backtrace *bt, const struct g *gp)
{
	struct unwind_regs regs;

	if (gp->context.pc == (void *)context_entry) {
		bt->pc[0] = (uintptr_t)gp->fn;	/* has not run yet: it will begin there */
		bt->n = 1;
		bt->from = FRAMES_USER;
		return;
	}
	context_regs(&regs, &gp->context);
	backtrace_regs(bt, &regs, gp, NULL);
	bt->from = FRAMES_RUNTIME;
}

/* ------------------------------------------------------- another thread's */

/* Parses "NR 0x.. 0x.. ... SP PC\n": the last two words. False: "running". */
static bool parse_syscall(const char *s, uintptr_t *sp, uintptr_t *pc)
{
	uintptr_t word[2] = { 0, 0 };

	if (*s == 'r')
		return false;
	while (*s) {
		uintptr_t v = 0;

		while (*s == ' ')
			s++;
		if (s[0] == '0' && s[1] == 'x')
			s += 2;
		for (; (*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'f'); s++)
			v = v * 16 + (uintptr_t)(*s <= '9' ? *s - '0' : *s - 'a' + 10);
		word[0] = word[1];
		word[1] = v;
		if (*s == '\n')
			break;
		if (*s && *s != ' ')
			s++;
	}
	*sp = word[0];
	*pc = word[1];
	return *sp && *pc;
}

/* Where a thread sleeps in the kernel; false if it does not. */
static bool asleep_at(int tid, struct unwind_regs *regs)
{
	char path[64], line[256];
	struct text t = text_make(path, sizeof path);
	uintptr_t sp, pc;
	ssize_t n;
	int fd;

	text_add(&t, "/proc/self/task/");
	text_add_decimal(&t, (unsigned)tid);
	text_add(&t, "/syscall");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, line, sizeof line - 1);
	close(fd);
	if (n <= 0)
		return false;
	line[n] = '\0';
	if (!parse_syscall(line, &sp, &pc))
		return false;
	regs->valid = 0;
	unwind_regs_set(regs, UNWIND_SP, sp);
	unwind_regs_set(regs, UNWIND_PC, pc);
	return true;
}

bool backtrace_on_signal(struct m *mp, const void *ucontext)
{
	/* acquire: the request is whole; pairs with store_release below */
	struct backtrace *bt = exchange_acqrel(&mp->backtrace_for, NULL);
	struct unwind_regs regs;

	if (!bt)
		return false;
	unwind_regs_from_ucontext(&regs, ucontext);
	backtrace_regs(bt, &regs, mp->curg, mp);
	/* release: bt is filled; pairs with load_acquire in backtrace_thread */
	store_release(&mp->backtrace_done, 1);
	return true;
}

/* What the kernel says of a thread is of no use where an emulator runs on it, whose
 * stack that is. */
static bool on_known_stack(const struct unwind_regs *regs, const struct m *mp, const struct g *gp)
{
	uintptr_t sp = regs->reg[UNWIND_SP];

	return (gp && inside(sp, load_relaxed(&gp->stack_lo), load_relaxed(&gp->stack_hi))) ||
	       inside(sp, mp->thread_stack_lo, mp->thread_stack_hi) ||
	       inside(sp, mp->signal_stack, (char *)mp->signal_stack + mp->signal_stack_bytes);
}

void backtrace_asleep(struct backtrace *bt, struct m *mp, const struct g *gp)
{
	struct unwind_regs regs;

	bt->n = 0;
	if (asleep_at(load_relaxed(&mp->tid), &regs) && on_known_stack(&regs, mp, gp))
		backtrace_regs(bt, &regs, gp, mp);
}

/* Of one that is stopped in the signal handler: where it was before. False if it is not. */
static bool backtrace_stopped(struct backtrace *bt, struct m *mp, const struct g *gp)
{
	const void *stopped_at = load_acquire(&mp->stopped_at);
	struct unwind_regs regs;

	if (!stopped_at)
		return false;
	unwind_regs_from_ucontext(&regs, stopped_at);
	backtrace_regs(bt, &regs, gp, mp);
	bt->from = FRAMES_USER;	/* its handler is in the runtime, and it was not */
	return true;
}

bool backtrace_thread(struct backtrace *bt, struct m *mp, const struct g *gp)
{
	struct unwind_regs regs;
	bool asleep = asleep_at(load_relaxed(&mp->tid), &regs) && on_known_stack(&regs, mp, gp);
	int64_t end;

	bt->n = 0;
	/* Read after: it may have been stopped in between, and sleep there. */
	if (backtrace_stopped(bt, mp, gp))
		return true;
	if (asleep) {
		backtrace_regs(bt, &regs, gp, mp);
		return true;
	}
	store_relaxed(&mp->backtrace_done, 0);
	store_release(&mp->backtrace_for, bt);
	os_signal(load_relaxed(&mp->tid), SIG_PREEMPT);
	for (end = os_now() + ANSWER_NS; os_now() < end; os_sleep(20000)) {
		if (load_acquire(&mp->backtrace_done))
			return true;
		/* In the handler all the while, where ours is blocked: no answer until it goes on,
		 * and that may be after us. */
		if (load_acquire(&mp->stopped_at))
			break;
		if (TOOL_TSAN)	/* it may have come to nothing: on_preempt_direct */
			os_signal(load_relaxed(&mp->tid), SIG_PREEMPT);
	}
	/* Withdrawn, unless it is being answered just now. */
	if (exchange_acqrel(&mp->backtrace_for, NULL))
		return backtrace_stopped(bt, mp, gp);
	while (!load_acquire(&mp->backtrace_done))
		os_sleep(20000);
	return true;
}

void backtrace_any(struct backtrace *bt, const struct g *gp)
{
	/* acquire: its context, if it is at rest; pairs with after_run */
	struct m *mp = load_acquire(&gp->mp);

	bt->n = 0;
	if (!mp)
		backtrace_parked(bt, gp);
	else if (mp != m_self())
		backtrace_thread(bt, mp, gp);
}
