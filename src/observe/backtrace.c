/*
 * backtrace.c - the calls a goroutine is in, wherever it is.
 *
 * A goroutine at rest has its registers in its context (context.h). Of a thread that
 * sleeps in the kernel, /proc shows the stack and instruction pointers; no signal is
 * sent, so that no call returns EINTR. Any other thread gets the preemption signal, with
 * a request in its M. In the handler it walks its own stack, and sets backtrace.done.
 *
 * Everything here is async-signal-safe.
 */
#include "observe/backtrace.h"

#include <signal.h>
#include <string.h>

#include "platform/os.h"
#include "platform/raw_file.h"
#include "preempt/preempt.h"
#include "sched/runtime.h"
#include "base/text.h"

/* How far below its stack an overflowing goroutine's sp may be: a guard's size. */
#define OVERFLOW_BYTES (64 << 10)

/* How long a thread may take to answer. */
#define ANSWER_NS 100000000

static bool inside(uintptr_t sp, const char *lo, const char *hi)
{
	return sp >= (uintptr_t)lo && sp < (uintptr_t)hi;
}

/* The goroutine may have ended meanwhile, and its G may have another function. */
static TOOL_RACY uintptr_t function_of(const struct g *gp)
{
	return (uintptr_t)peek(&gp->fn);
}

uintptr_t backtrace_stack_end(uintptr_t sp, const struct g *gp, const struct m *mp)
{
	/* relaxed: the goroutine that backtrace_asleep looks at may have woken and ended
	 * meanwhile. Its stack stays readable, and the result is not used. */
	const char *g_hi = gp ? load_relaxed(&gp->stack.hi) : NULL;

	if (gp && inside(sp, load_relaxed(&gp->stack.lo), g_hi))
		return (uintptr_t)g_hi;
	if (mp && inside(sp, mp->thread_stack.lo, mp->thread_stack.hi))
		return (uintptr_t)mp->thread_stack.hi;
	if (mp && inside(sp, mp->signal_stack.at, (char *)mp->signal_stack.at + mp->signal_stack.bytes))
		return (uintptr_t)mp->signal_stack.at + mp->signal_stack.bytes;
	return 0;
}

void backtrace_regs(struct backtrace *bt, const struct unwind_regs *regs, const struct g *gp,
                    const struct m *mp)
{
	uintptr_t sp = regs->reg[UNWIND_SP];
	uintptr_t lo = sp & ~(uintptr_t)15, hi = backtrace_stack_end(sp, gp, mp);
	/* relaxed: as in backtrace_stack_end */
	const char *g_lo = gp && !gp->is_foreign ? load_relaxed(&gp->stack.lo) : NULL;
	bool begins = g_lo && inside(sp, g_lo - OVERFLOW_BYTES, load_relaxed(&gp->stack.hi));

	if (begins && sp < (uintptr_t)g_lo) {
		lo = (uintptr_t)g_lo;	/* overflowed: below is the guard */
		hi = (uintptr_t)load_relaxed(&gp->stack.hi);
	} else if (hi == 0) {
		/* Unknown: only the page of sp is sure to exist, and not even that if
		 * nobody is stopped and gp has ended meanwhile. */
		bt->n = 0;
		bt->from = FRAMES_RUNTIME;
		if (!os_is_readable(sp))
			return;
		hi = (sp | (os_page_bytes - 1)) + 1;
	}
	bt->n = unwind_walk(regs, lo, hi, bt->pc, BACKTRACE_MAX - begins);
	if (begins)
		bt->pc[bt->n++] = function_of(gp) + 1;
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

/* gp's, where its thread mp has these registers. On the scheduler's stack a thread runs
 * no goroutine: gp is at rest, or about to be. */
static void backtrace_on(struct backtrace *bt, const struct unwind_regs *regs,
                         const struct g *gp, const struct m *mp)
{
	if (gp && !gp->is_foreign &&
	    inside(regs->reg[UNWIND_SP], mp->thread_stack.lo, mp->thread_stack.hi))
		backtrace_parked(bt, gp);
	else
		backtrace_regs(bt, regs, gp, mp);
}

size_t backtrace_thread_file(int tid, const char *name, char *out, size_t size)
{
	char path[64];
	struct text t = text_make(path, sizeof path);
	ssize_t n;
	int fd;

	text_add(&t, "/proc/self/task/");
	text_add_decimal(&t, (unsigned)tid);
	text_add(&t, name);
	fd = raw_open(path);
	if (fd < 0)
		return 0;
	n = raw_read(fd, out, size - 1);
	raw_close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

uintptr_t backtrace_parse_hex(const char **at)
{
	uintptr_t v = 0;

	for (;; ++*at) {
		char c = **at;

		if (c >= '0' && c <= '9')
			v = v << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uintptr_t)(c - 'a' + 10);
		else
			return v;
	}
}

size_t backtrace_syscall_words(const char *line, uintptr_t word[SYSCALL_WORDS])
{
	size_t n = 0;

	while (n < SYSCALL_WORDS && (line = strstr(line, "0x"))) {
		line += 2;
		word[n++] = backtrace_parse_hex(&line);
	}
	return n;
}

/* Where a thread sleeps in the kernel; false if it does not. */
static bool asleep_at(int tid, struct unwind_regs *regs)
{
	uintptr_t word[SYSCALL_WORDS];
	char line[256];
	size_t n;

	if (!backtrace_thread_file(tid, "/syscall", line, sizeof line))
		return false;
	n = backtrace_syscall_words(line, word);
	if (n < 2 || !word[n - 2] || !word[n - 1])
		return false;	/* it runs, or has ended */
	regs->valid = 0;
	unwind_regs_set(regs, UNWIND_SP, word[n - 2]);
	unwind_regs_set(regs, UNWIND_PC, word[n - 1]);
	return true;
}

bool backtrace_on_signal(struct m *mp, const void *ucontext)
{
	/* acquire: the request is whole; pairs with store_release in backtrace_thread */
	struct backtrace *bt = mp ? exchange_acqrel(&mp->backtrace.wanted, NULL) : NULL;
	struct unwind_regs regs;

	if (!bt)
		return false;
	unwind_regs_from_ucontext(&regs, ucontext);
	backtrace_on(bt, &regs, mp->backtrace.of, mp);
	/* release: bt is filled; pairs with load_acquire in backtrace_thread */
	store_release(&mp->backtrace.done, 1);
	return false;
}
PREEMPT_GUEST(backtrace, .visits = backtrace_on_signal, .order = GUEST_BACKTRACE);

/* The registers of a thread that sleeps in the kernel. Under an emulator the kernel shows
 * the emulator's stack, which is of no use. */
static bool asleep_on_known_stack(struct unwind_regs *regs, struct m *mp, const struct g *gp)
{
	return asleep_at(load_relaxed(&mp->tid), regs) &&
	       backtrace_stack_end(regs->reg[UNWIND_SP], gp, mp) != 0;
}

void backtrace_asleep(struct backtrace *bt, struct m *mp, const struct g *gp)
{
	struct unwind_regs regs;

	bt->n = 0;
	if (asleep_on_known_stack(&regs, mp, gp))
		backtrace_regs(bt, &regs, gp, mp);
}

/* Where a thread that is stopped in the signal handler was before. False: it is not. */
static bool backtrace_stopped(struct backtrace *bt, struct m *mp, const struct g *gp)
{
	const void *stopped_at = load_acquire(&mp->stopped_at);
	struct unwind_regs regs;

	if (!stopped_at)
		return false;
	unwind_regs_from_ucontext(&regs, stopped_at);
	backtrace_regs(bt, &regs, gp, mp);
	bt->from = FRAMES_USER;	/* its M is in the runtime, but the goroutine was not */
	return true;
}

bool backtrace_thread(struct backtrace *bt, struct m *mp, const struct g *gp)
{
	struct unwind_regs regs;
	bool asleep = asleep_on_known_stack(&regs, mp, gp);
	int64_t end;

	bt->n = 0;
	/* Checked second: the thread may have stopped in between, and sleep there. */
	if (backtrace_stopped(bt, mp, gp))
		return true;
	if (asleep) {
		backtrace_on(bt, &regs, gp, mp);
		return true;
	}
	mp->backtrace.of = gp;
	store_relaxed(&mp->backtrace.done, 0);
	/* release: the request; pairs with exchange_acqrel in backtrace_on_signal */
	store_release(&mp->backtrace.wanted, bt);
	os_signal(load_relaxed(&mp->tid), SIG_PREEMPT);
	for (end = os_now() + ANSWER_NS; os_now() < end; os_sleep(20000)) {
		if (load_acquire(&mp->backtrace.done))
			return true;
		/* Stopped in the handler, where the signal is blocked, the thread answers
		 * only once it goes on, which may be after us. */
		if (load_acquire(&mp->stopped_at))
			break;
		if (TOOL_TSAN)	/* on_preempt_direct may have ignored the signal */
			os_signal(load_relaxed(&mp->tid), SIG_PREEMPT);
	}
	/* Withdraws the request, unless the thread is answering it. */
	if (exchange_acqrel(&mp->backtrace.wanted, NULL))
		return backtrace_stopped(bt, mp, gp);
	while (!load_acquire(&mp->backtrace.done))
		os_sleep(20000);
	return true;
}

void backtrace_any(struct backtrace *bt, const struct g *gp)
{
	/* acquire: gp's context, if gp is at rest; pairs with after_run */
	struct m *mp = load_acquire(&gp->mp);

	bt->n = 0;
	if (!mp)
		backtrace_parked(bt, gp);
	else if (mp != m_self())
		backtrace_thread(bt, mp, gp);
	/* If gp has left the thread, that walk was not gp's. acquire: as above. */
	if (mp && !load_acquire(&gp->mp))
		backtrace_parked(bt, gp);
}
