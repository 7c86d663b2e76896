/*
 * unwind.c - from frame to frame, outwards
 *
 * A frame is known by its registers. For its pc there is a row of call frame
 * information (cfi.c) that says how to compute the caller's registers, return
 * address and stack pointer included. Applied again and again that walks the
 * stack up to a frame that says it has no caller, as goroutine entries, thread
 * entries and _start do.
 *
 * Two things make this harder than a debugger's life. Not all registers are
 * known: of a thread asleep in the kernel we know pc and sp only. So every
 * register carries a "known" bit, a rule over an unknown register gives an
 * unknown one, and the walk goes on until it really needs it. And the stack may
 * be garbage, since traces are wanted most when something has been overwritten.
 * So only aligned words within the stack's bounds are ever read, and every step
 * must go up the stack: a walk ends, whatever the memory says.
 *
 * Where the rows give out there are, in this order:
 *
 *  - a search for the frame pointer, if the row needs it and it is not known: see
 *    unwind_guess.c
 *  - a signal trampoline without a row (aarch64 never has one): known by its
 *    instructions; the interrupted registers are in the ucontext on the stack
 *  - a call to an address where there is no code, a null function pointer above
 *    all: the caller is where such a call left its return address
 *  - the chain of frame pointers, for code of no known module, or to get across
 *    a function whose row needs a register we do not know
 *
 * pc and pc - 1. A return address points behind its call, which may be in the
 * next row, or even behind the end of the function if the call never returns. So
 * frames in the middle of a call are looked up at pc - 1; the innermost frame and
 * one interrupted by a signal are at pc exactly.
 *
 * Rejected: _Unwind_Backtrace and libunwind. The first takes the loader's lock on
 * older systems, reads any address it computes, and cannot start from registers
 * of ours; the second is a dependency. Frame pointers alone: libc has none.
 */
#include "unwind.h"

#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#include "cfi.h"
#include "dwarf_expr.h"
#include "os.h"
#include "unwind_guess.h"

/* Other frames' variables are fenced off by ASan, and others' stacks by TSan. */
#define READS_FOREIGN_MEMORY __attribute__((no_sanitize_address, no_sanitize_thread))

#define WORD sizeof(uintptr_t)

enum step {
	STEP_DONE,		/* *next is the caller */
	STEP_END,		/* there is no caller, certainly */
	STEP_LOST,		/* there is one, but this is not the way to it */
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

/* Eight bytes of code; they need not be aligned. */
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

/* Where to look up what a frame is doing: see "pc and pc - 1". */
static uintptr_t frame_lookup_pc(const struct unwind_frame *f)
{
	return frame_pc(f) - !f->exact;
}

/*
 * Rows
 */

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

/* Does the row leave the return address where the call put it? */
static bool row_keeps(const struct cfi_row *row, unsigned reg)
{
	return row->reg[reg].how == CFI_UNSPECIFIED || row->reg[reg].how == CFI_SAME;
}

static bool row_is_outermost(const struct cfi_row *row)
{
	/* "My return address is my pc": nothing but a row that says nothing. */
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
	/* The call itself has overwritten the link register of the caller. */
	if (row->ra_column != UNWIND_PC && !row->signal_frame && row_keeps(row, row->ra_column))
		unwind_regs_forget(&next->regs, row->ra_column);
	unwind_regs_set(&next->regs, UNWIND_PC, row->ra_signed ? regs_strip_signature(pc) : pc);
	next->exact = row->signal_frame;
	next->floor = cfa;
	return STEP_DONE;
}

/*
 * Ways without a row
 */

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

/*
 * The first instruction of a function that is not there: only the call itself is to
 * be undone.
 */
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
	/*
	 * The word may be anything; it is a return address if there is a function
	 * around it.
	 */
	if (!cfi_find_row(ra - 1, &row))
		return STEP_LOST;
	unwind_regs_set(&next->regs, UNWIND_PC, ra);
	next->exact = false;
	next->floor = sp;
	return STEP_DONE;
}

/*
 * A frame record is the caller's frame pointer and the return address, at the
 * address the frame pointer holds. That tells nothing of the other registers.
 */
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

/*
 * The walk
 */

/* The row, with a frame pointer found by search if that is what is missing. */
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

/*
 * Up the stack? A function may leave its frame as large as it found it only if it
 * calls nobody, so the same sp twice is legal once, innermost. Signal frames are
 * never empty: what interrupted lies below what was interrupted.
 */
static bool is_progress(const struct unwind_frame *f, const struct unwind_frame *next)
{
	if (next->floor > f->stack_hi || frame_pc(next) == 0)
		return false;
	if (next->floor > f->floor)
		return true;
	return next->floor == f->floor && f->exact && !next->exact;
}

void unwind_begin(struct unwind_frame *f, const struct unwind_regs *start, uintptr_t stack_lo,
		  uintptr_t stack_hi)
{
	*f = (struct unwind_frame){
		.regs = *start,
		.stack_lo = stack_lo,
		.stack_hi = stack_hi,
		.floor = stack_lo,
		.exact = true,
	};
	/* Below stack_lo where the stack has overflowed: the callers are there. */
	if (unwind_regs_know(start, UNWIND_SP) && start->reg[UNWIND_SP] > stack_lo)
		f->floor = start->reg[UNWIND_SP];
}

bool unwind_step(struct unwind_frame *f)
{
	struct unwind_frame next = *f;

	if (f->floor < f->stack_lo || f->floor > f->stack_hi)
		return false;
	if (step_by_any(f, &next) != STEP_DONE || !is_progress(f, &next))
		return false;
	*f = next;
	return true;
}

size_t unwind_walk(const struct unwind_regs *start, uintptr_t stack_lo, uintptr_t stack_hi,
		   uintptr_t *pcs, size_t max)
{
	struct unwind_frame f;
	size_t n = 0;

	if (max == 0 || !unwind_regs_know(start, UNWIND_PC))
		return 0;
	unwind_begin(&f, start, stack_lo, stack_hi);
	pcs[n++] = frame_pc(&f);
	while (n < max && unwind_step(&f))
		pcs[n++] = frame_lookup_pc(&f) + 1;
	return n;
}
