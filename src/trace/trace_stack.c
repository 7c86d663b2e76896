/*
 * trace_stack.c - the calls that led to an event: walked quickly, named by number.
 *
 * The unwinder (unwind.c) spends most of its time finding and decoding the row of the
 * unwind table for a program counter, and a program has few program counters at which its
 * goroutines wait. So each row's content is remembered, in one word: the distance of the
 * caller's frame from the stack or frame pointer, and where in it the frame pointer and
 * the return address were saved. A frame then takes a few loads. If a row is of another
 * kind, which is rare, the unwinder walks the stack.
 *
 * All threads share the remembered rows without a lock. A slot is two words, of which the
 * first is the program counter XOR the second. A slot that two threads wrote at the same
 * time matches no program counter, and is overwritten.
 *
 * The walk reads only the stack's own memory, whatever a row says. So a row remembered
 * from code that has been unloaded leads at worst to a wrong trace.
 *
 * Names are looked up when a stack is written (trace_writer.c).
 */
#include <string.h>

#include "observe/backtrace.h"
#include "unwind/cfi.h"
#include "goroutine/run.h"
#include "sched/runtime.h"
#include "trace/trace.h"

#define WORD sizeof(uintptr_t)

/* ------------------------------------------------------- remembered rows */

enum row_kind { ROW_UNKNOWN, ROW_FROM_SP, ROW_FROM_FP, ROW_END, ROW_OTHER };

/* Distances in bytes. The CFA is the caller's sp at the call. */
struct row {
	enum row_kind kind;
	int32_t cfa;		/* of the CFA from sp or fp */
	int16_t ra, fp;		/* of their places, from the CFA; fp 0: not saved */
};

#define SLOTS 4096
static struct slot {
	uint64_t check, value;
} slots[SLOTS];

static uint64_t row_pack(struct row r)
{
	return (uint64_t)(uint32_t)r.cfa << 32 | (uint64_t)(r.kind & 7) << 28 |
	       (uint64_t)((uint16_t)(r.ra / (int)WORD) & 0x3fff) << 14 |
	       (uint64_t)((uint16_t)(r.fp / (int)WORD) & 0x3fff);
}

/* A 14 bit number of words, with its sign. */
static int16_t unpack_words(uint64_t v)
{
	return (int16_t)(((int)((v & 0x3fff) ^ 0x2000) - 0x2000) * (int)WORD);
}

static struct row row_unpack(uint64_t v)
{
	return (struct row){
		.kind = (enum row_kind)(v >> 28 & 7),
		.cfa = (int32_t)(v >> 32),
		.ra = unpack_words(v >> 14),
		.fp = unpack_words(v),
	};
}

/* The register is saved at an offset that fits in 14 bits. */
static bool is_near(const struct cfi_rule *rule)
{
	return rule->how == CFI_OFFSET && rule->offset % (int64_t)WORD == 0 &&
	       rule->offset > -4096 * (int64_t)WORD && rule->offset < 4096 * (int64_t)WORD &&
	       rule->offset != 0;
}

static bool is_kept(const struct cfi_rule *rule)
{
	return rule->how == CFI_UNSPECIFIED || rule->how == CFI_SAME;
}

static struct row row_read(uintptr_t pc)
{
	struct row other = { .kind = ROW_OTHER }, r;
	struct cfi_row c;

	if (!cfi_find_row(pc, &c))
		return other;
	if (c.reg[c.ra_column].how == CFI_UNDEFINED)
		return (struct row){ .kind = ROW_END };
	if (c.cfa.how != CFI_VAL_OFFSET || c.signal_frame || !is_near(&c.reg[c.ra_column]) ||
	    c.reg[UNWIND_SP].how != CFI_UNSPECIFIED ||
	    (!is_near(&c.reg[UNWIND_FP]) && !is_kept(&c.reg[UNWIND_FP])) ||
	    c.cfa.offset != (int32_t)c.cfa.offset)
		return other;
	if (c.cfa_reg != UNWIND_SP && c.cfa_reg != UNWIND_FP)
		return other;
	r.kind = c.cfa_reg == UNWIND_SP ? ROW_FROM_SP : ROW_FROM_FP;
	r.cfa = (int32_t)c.cfa.offset;
	r.ra = (int16_t)c.reg[c.ra_column].offset;
	r.fp = is_near(&c.reg[UNWIND_FP]) ? (int16_t)c.reg[UNWIND_FP].offset : 0;
	return r;
}

static struct slot *slot_of(uintptr_t pc)
{
	return &slots[((uint64_t)pc * UINT64_C(0x9e3779b97f4a7c15) >> 40) % SLOTS];
}

static struct row row_of(uintptr_t pc)
{
	struct slot *s = slot_of(pc);
	uint64_t value = load_relaxed(&s->value);

	if (unlikely((load_relaxed(&s->check) ^ value) != pc || value == 0)) {
		value = row_pack(row_read(pc));
		store_relaxed(&s->value, value);
		store_relaxed(&s->check, value ^ pc);
	}
	return row_unpack(value);
}

void trace_stack_forget(void)
{
	for (int i = 0; i < SLOTS; i++)
		store_relaxed(&slots[i].value, 0);
}

/* --------------------------------------------------------------- the walk */

struct walk {
	uintptr_t pc, sp, fp;
	uintptr_t hi;		/* where the stack ends */
};

/* ASan fences off other frames' variables, and TSan other threads' stacks. */
__attribute__((no_sanitize_address, no_sanitize_thread))
static uintptr_t read_word(uintptr_t addr)
{
	return *(const volatile uintptr_t *)addr;
}

static bool readable(const struct walk *w, uintptr_t addr)
{
	return addr % WORD == 0 && addr >= w->sp && addr < w->hi;
}

enum step { STEP_DONE, STEP_END, STEP_UNABLE };

static enum step step(struct walk *w, bool exact)
{
	struct row r = row_of(w->pc - !exact);
	uintptr_t cfa;

	if (r.kind == ROW_END)
		return STEP_END;
	if (unlikely(r.kind == ROW_OTHER))
		return STEP_UNABLE;
	cfa = (r.kind == ROW_FROM_SP ? w->sp : w->fp) + (uintptr_t)(intptr_t)r.cfa;
	if (cfa <= w->sp || !readable(w, cfa + (uintptr_t)(intptr_t)r.ra))
		return STEP_UNABLE;
	w->pc = regs_strip_signature(read_word(cfa + (uintptr_t)(intptr_t)r.ra));
	if (r.fp && readable(w, cfa + (uintptr_t)(intptr_t)r.fp))
		w->fp = read_word(cfa + (uintptr_t)(intptr_t)r.fp);
	w->sp = cfa;
	return w->pc ? STEP_DONE : STEP_END;
}

static __attribute__((noinline, cold)) size_t walk_slowly(const struct unwind_regs *regs,
	const struct g *gp, const struct m *mp, uintptr_t *pcs)
{
	struct backtrace bt;
	size_t n;

	backtrace_regs(&bt, regs, gp, mp);
	n = bt.n;
	if (gp && n > 1 && bt.pc[n - 1] == (uintptr_t)gp->fn + 1)
		n--;	/* number_of_goroutine adds it */
	if (n > TRACE_FRAMES_MAX)
		n = TRACE_FRAMES_MAX;
	memcpy(pcs, bt.pc, n * sizeof *pcs);
	return n;
}

static size_t walk(const struct unwind_regs *regs, const struct g *gp, const struct m *mp,
                   uintptr_t *pcs)
{
	struct walk w = {
		.pc = regs->reg[UNWIND_PC], .sp = regs->reg[UNWIND_SP],
		.fp = regs->reg[UNWIND_FP],
	};
	enum step s = STEP_DONE;
	size_t n = 0;

	w.hi = backtrace_stack_end(w.sp, gp, mp);
	if (w.hi == 0)
		return walk_slowly(regs, gp, mp, pcs);
	pcs[n++] = w.pc;
	while (n < TRACE_FRAMES_MAX && (s = step(&w, n == 1)) == STEP_DONE)
		pcs[n++] = w.pc;
	return s == STEP_UNABLE ? walk_slowly(regs, gp, mp, pcs) : n;
}

/* ---------------------------------------------------------------- numbers */

static uint64_t number(const struct trace_stack *s, size_t n)
{
	if (n == 0)
		return 0;
	return trace_table_put(&trace_stacks[trace.gen % 2], s,
	                       offsetof(struct trace_stack, pc) + n * sizeof s->pc[0]);
}

static uintptr_t start_of(const struct g *gp)
{
	return (uintptr_t)(gp->fn == (void (*)(void))run_main ? run_main_fn(gp) : gp->fn);
}

/* Readers name a goroutine by its outermost frame. So that frame is the function that the
 * goroutine was started with, even if that has left by a tail call. */
static uint64_t number_of_goroutine(struct trace_stack *s, const struct unwind_regs *regs,
                                    const struct g *gp, const struct m *mp)
{
	size_t n = walk(regs, gp, mp, s->pc);

	if (gp->is_foreign)
		return number(s, n);
	if (n == TRACE_FRAMES_MAX)
		n--;
	s->pc[n++] = start_of(gp) + 1;
	return number(s, n);
}

/* The stack of a preempted goroutine is the one in user code, not the handler's. */
__attribute__((noinline)) uint64_t trace_stack_here(struct m *mp)
{
	const void *stopped_at = mp->stopped_at;
	struct unwind_regs regs;
	struct trace_stack s;

	if (!mp->curg)
		return 0;	/* the scheduler runs, for no goroutine */
	s.from = stopped_at ? FRAMES_USER : FRAMES_RUNTIME;
	if (stopped_at)
		unwind_regs_from_ucontext(&regs, stopped_at);
	else
		unwind_regs_here(&regs);
	return number_of_goroutine(&s, &regs, mp->curg, mp);
}

uint64_t trace_stack_start(const struct g *gp)
{
	struct trace_stack s = { .from = FRAMES_ALL, .pc = { start_of(gp) } };

	return number(&s, 1);
}

/* A goroutine that is stopped in the signal handler has its registers there; one that has
 * not run yet has only its function. */
uint64_t trace_stack_of(struct g *gp)
{
	struct m *mp = load_acquire(&gp->mp);
	const void *stopped_at = mp ? load_acquire(&mp->stopped_at) : NULL;
	struct trace_stack s;
	struct unwind_regs regs;

	if (stopped_at)
		unwind_regs_from_ucontext(&regs, stopped_at);
	else if (!mp && gp->context.pc != (void *)context_entry)
		context_regs(&regs, &gp->context);
	else
		return trace_stack_start(gp);
	s.from = mp ? FRAMES_USER : FRAMES_RUNTIME;
	return number_of_goroutine(&s, &regs, gp, mp);
}

uint64_t trace_stack_pcs(const uintptr_t *pcs, size_t n)
{
	struct trace_stack s = { .from = FRAMES_USER };

	if (n > TRACE_FRAMES_MAX)
		n = TRACE_FRAMES_MAX;
	memcpy(s.pc, pcs, n * sizeof *pcs);
	return number(&s, n);
}
