/*
 * unwind.c - from frame to frame, outwards
 *
 * A frame is its registers. The row of call frame information (cfi.c) for its pc says how
 * to compute the caller's registers, return address and stack pointer included. The walk
 * repeats this up to a frame whose row says that it has no caller: a goroutine's entry, a
 * thread's entry or _start.
 *
 * Of a thread asleep in the kernel only pc and sp are known. So each register has a
 * "known" bit. A rule over an unknown register gives an unknown one, and the walk ends
 * only where it needs that register.
 *
 * The stack may be garbage: traces are wanted most when something has been overwritten.
 * So only aligned words within the stack's bounds are read, and every step must go up the
 * stack: a walk ends, whatever the memory holds.
 *
 * Where the row does not lead to the caller, these are tried, in this order:
 *
 *  - a search for the frame pointer, if the row needs it and it is not known
 *    (unwind_guess.c)
 *  - a signal trampoline without a row (aarch64's never has one): recognised by its
 *    instructions; the interrupted registers are in the ucontext on the stack
 *  - a call to an address without code, most often through a null function pointer: the
 *    caller is where such a call left its return address
 *  - the chain of frame pointers: for code of no known module, and for a function whose
 *    row needs a register that is not known
 *
 * pc and pc - 1. A return address may be in the next row, or behind the end of the
 * function if the call never returns. So a frame in a call is looked up at pc - 1, the
 * innermost frame and one that a signal interrupted at pc.
 *
 * Rejected: _Unwind_Backtrace, which takes the loader's lock on older systems, reads any
 * address that it computes and cannot start from given registers; libunwind, which is a
 * dependency; frame pointers alone, which libc has not.
 */
#include "unwind/unwind.h"

#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#include "platform/os.h"
#include "base/throw.h"
#include "unwind/cfi.h"

/* ASan forbids to read other functions' variables, and TSan other threads' stacks. */
#define READS_FOREIGN_MEMORY __attribute__((no_sanitize_address, no_sanitize_thread))

#define WORD sizeof(uintptr_t)

enum step {
	STEP_DONE,		/* *next is the caller's frame */
	STEP_END,		/* there is no caller */
	STEP_LOST,		/* this way does not find the caller */
};

READS_FOREIGN_MEMORY
static uintptr_t read_word(uintptr_t addr)
{
	return *(const volatile uintptr_t *)addr;
}

bool unwind_load(const struct unwind_frame *f, uintptr_t addr, uintptr_t *value)
{
	if (addr % WORD || addr < f->stack_lo || addr >= f->stack_hi || f->stack_hi - addr < WORD)
		return false;
	*value = read_word(addr);
	return true;
}

/* Eight bytes of code, at any alignment. */
READS_FOREIGN_MEMORY
static uint64_t read_code(uintptr_t pc)
{
	const volatile uint8_t *byte = (const volatile uint8_t *)pc;
	uint64_t code = 0;

	for (int i = 0; i < 8; i++)
		code |= (uint64_t)byte[i] << (8 * i);
	return code;
}

static uintptr_t frame_pc(const struct unwind_frame *f)
{
	return f->regs.reg[UNWIND_PC];
}

/* Where to look up the frame's row: see "pc and pc - 1". */
static uintptr_t frame_lookup_pc(const struct unwind_frame *f)
{
	return frame_pc(f) - !f->exact;
}

/* Rows */

static bool row_cfa(const struct cfi_row *row, const struct unwind_frame *f, uintptr_t *cfa)
{
	if (row->cfa.how == CFI_VAL_EXPRESSION)
		return dwarf_expr_eval(cfi_expr(&row->cfa), f, NULL, cfa);
	if (row->cfa.how != CFI_VAL_OFFSET || row->cfa_reg >= UNWIND_NREG ||
	    !unwind_regs_know(&f->regs, (unsigned)row->cfa_reg))
		return false;
	*cfa = f->regs.reg[row->cfa_reg] + (uintptr_t)row->cfa.offset;
	return true;
}

/* The caller's value of register i; false if it cannot be known. */
static bool row_register(const struct cfi_row *row, const struct unwind_frame *f, uintptr_t cfa,
			 unsigned i, uintptr_t *value)
{
	const struct cfi_rule *rule = &row->reg[i];
	uintptr_t addr;

	switch (rule->how) {
	case CFI_UNSPECIFIED:
		if (i == UNWIND_SP) {
			*value = cfa;
			return true;
		}
		/* fallthrough */
	case CFI_SAME:
		*value = f->regs.reg[i];
		return unwind_regs_know(&f->regs, i);
	case CFI_OFFSET:
		return unwind_load(f, cfa + (uintptr_t)rule->offset, value);
	case CFI_VAL_OFFSET:
		*value = cfa + (uintptr_t)rule->offset;
		return true;
	case CFI_REGISTER:
		if (rule->offset < 0 || rule->offset >= UNWIND_NREG)
			return false;
		*value = f->regs.reg[rule->offset];
		return unwind_regs_know(&f->regs, (unsigned)rule->offset);
	case CFI_EXPRESSION:
		return dwarf_expr_eval(cfi_expr(rule), f, &cfa, &addr) &&
		       unwind_load(f, addr, value);
	case CFI_VAL_EXPRESSION:
		return dwarf_expr_eval(cfi_expr(rule), f, &cfa, value);
	case CFI_UNDEFINED:
		break;
	}
	return false;
}

/* Does the row leave this register as the call left it? */
static bool row_keeps(const struct cfi_row *row, unsigned reg)
{
	return row->reg[reg].how == CFI_UNSPECIFIED || row->reg[reg].how == CFI_SAME;
}

static bool row_is_outermost(const struct cfi_row *row)
{
	/* "My return address is my pc" is what a row without rules says. */
	return row->reg[row->ra_column].how == CFI_UNDEFINED ||
	       (row->ra_column == UNWIND_PC && row_keeps(row, UNWIND_PC));
}

static enum step step_by_row(const struct unwind_frame *f, const struct cfi_row *row,
			     struct unwind_frame *next)
{
	uintptr_t cfa, pc, value;

	if (row_is_outermost(row))
		return STEP_END;
	if (!row_cfa(row, f, &cfa))
		return STEP_LOST;
	for (unsigned i = 0; i < UNWIND_NREG; i++)
		if (row_register(row, f, cfa, i, &value))
			unwind_regs_set(&next->regs, i, value);
		else
			unwind_regs_forget(&next->regs, i);
	if (!unwind_regs_know(&next->regs, row->ra_column))
		return STEP_LOST;
	pc = next->regs.reg[row->ra_column];
	/* The call has overwritten the caller's link register. */
	if (row->ra_column != UNWIND_PC && !row->signal_frame && row_keeps(row, row->ra_column))
		unwind_regs_forget(&next->regs, row->ra_column);
	unwind_regs_set(&next->regs, UNWIND_PC, row->ra_signed ? regs_strip_signature(pc) : pc);
	next->exact = row->signal_frame;
	next->floor = cfa;
	return STEP_DONE;
}

/* Ways without a row */

static enum step step_by_sigreturn(const struct unwind_frame *f, struct unwind_frame *next)
{
	const size_t size = offsetof(ucontext_t, uc_mcontext) + sizeof(mcontext_t);
	uintptr_t uc = f->regs.reg[UNWIND_SP] + REGS_SIGRETURN_UCONTEXT;

	if (!unwind_regs_know(&f->regs, UNWIND_SP) || !os_is_readable(frame_pc(f)) ||
	    !regs_is_sigreturn(read_code(frame_pc(f))))
		return STEP_LOST;
	if (uc % 16 || uc < f->stack_lo || uc > f->stack_hi || f->stack_hi - uc < size)
		return STEP_END;
	unwind_regs_from_ucontext(&next->regs, (const void *)uc);
	next->exact = true;
	next->floor = next->regs.reg[UNWIND_SP];
	return STEP_DONE;
}

/* pc has no function: it is the target of a wild call. Only the call is to be undone. */
static enum step step_by_call(const struct unwind_frame *f, struct unwind_frame *next)
{
	uintptr_t sp = f->regs.reg[UNWIND_SP], ra;
	struct cfi_row row;

	if (!f->exact || !unwind_regs_know(&f->regs, UNWIND_SP))
		return STEP_LOST;
#if REGS_CALL_PUSHES
	if (!unwind_load(f, sp, &ra))
		return STEP_LOST;
	unwind_regs_set(&next->regs, UNWIND_SP, sp += WORD);
#else
	if (!unwind_regs_know(&f->regs, UNWIND_LR))
		return STEP_LOST;
	ra = regs_strip_signature(f->regs.reg[UNWIND_LR]);
	unwind_regs_forget(&next->regs, UNWIND_LR);
#endif
	/* The word may be anything: it is a return address if a function holds it. */
	if (!cfi_find_row(ra - 1, &row))
		return STEP_LOST;
	unwind_regs_set(&next->regs, UNWIND_PC, ra);
	next->exact = false;
	next->floor = sp;
	return STEP_DONE;
}

/* The frame pointer holds the address of a frame record: the caller's frame pointer and
 * the return address. It tells nothing of the other registers. */
static enum step step_by_frame_pointer(const struct unwind_frame *f, struct unwind_frame *next)
{
	uintptr_t fp = f->regs.reg[UNWIND_FP], caller_fp, ra;

	if (!unwind_regs_know(&f->regs, UNWIND_FP) || fp < f->floor ||
	    !unwind_load(f, fp, &caller_fp) || !unwind_load(f, fp + WORD, &ra))
		return STEP_LOST;
	next->regs.valid = 0;
	unwind_regs_set(&next->regs, UNWIND_FP, caller_fp);
	unwind_regs_set(&next->regs, UNWIND_PC, regs_strip_signature(ra));
	if (REGS_RECORD_ENDS_FRAME)
		unwind_regs_set(&next->regs, UNWIND_SP, fp + 2 * WORD);
	next->exact = false;
	next->floor = fp + 2 * WORD;
	return STEP_DONE;
}

/* The walk */

/* Steps by the row, with a frame pointer found by search if the row needs that. */
static enum step step_by_row_or_guess(const struct unwind_frame *f, const struct cfi_row *row,
				      struct unwind_frame *next)
{
	enum step step = step_by_row(f, row, next);
	uintptr_t fp;

	if (step == STEP_LOST && unwind_guess_fp(f, row, &fp)) {
		struct unwind_frame guessed = *f;

		unwind_regs_set(&guessed.regs, UNWIND_FP, fp);
		step = step_by_row(&guessed, row, next);
	}
	return step;
}

static enum step step_by_any(const struct unwind_frame *f, struct unwind_frame *next)
{
	struct cfi_row row;
	enum step step;

	if (cfi_find_row(frame_lookup_pc(f), &row)) {
		step = step_by_row_or_guess(f, &row, next);
	} else {
		step = step_by_sigreturn(f, next);
		if (step == STEP_LOST)
			step = step_by_call(f, next);
	}
	if (step != STEP_LOST)
		return step;
	*next = *f;
	return step_by_frame_pointer(f, next);
}

/* Does the step go up the stack? Only a function that calls no other can have an empty
 * frame, so two frames may have the same sp only if the first is the innermost. A signal
 * frame is never empty, so its step goes up. */
static bool is_progress(const struct unwind_frame *f, const struct unwind_frame *next)
{
	if (next->floor > f->stack_hi || frame_pc(next) == 0)
		return false;
	if (next->floor > f->floor)
		return true;
	return next->floor == f->floor && f->exact && !next->exact;
}

/* Goes to the caller's frame. False: the walk ends. */
static bool go_outwards(struct unwind_frame *f)
{
	struct unwind_frame next = *f;

	check(f->floor >= f->stack_lo);
	if (f->floor > f->stack_hi || step_by_any(f, &next) != STEP_DONE ||
	    !is_progress(f, &next))
		return false;
	*f = next;
	return true;
}

size_t unwind_walk(const struct unwind_regs *start, uintptr_t stack_lo, uintptr_t stack_hi,
		   uintptr_t *pcs, size_t max)
{
	struct unwind_frame f = {
		.regs = *start,
		.stack_lo = stack_lo,
		.stack_hi = stack_hi,
		.floor = stack_lo,
		.exact = true,
	};
	size_t n = 0;

	if (max == 0 || !unwind_regs_know(start, UNWIND_PC))
		return 0;
	/* After a stack overflow sp is below stack_lo; the callers are above it. */
	if (unwind_regs_know(start, UNWIND_SP) && start->reg[UNWIND_SP] > stack_lo)
		f.floor = start->reg[UNWIND_SP];
	pcs[n++] = frame_pc(&f);
	while (n < max && go_outwards(&f))
		pcs[n++] = frame_lookup_pc(&f) + 1;
	return n;
}
