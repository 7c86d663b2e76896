/*
 * unwind_guess.c - a frame pointer that is not known, found by search
 *
 * Of a thread asleep in the kernel only sp and pc are known. They suffice for libc, which
 * finds its frames by sp, and often not for its caller: code compiled without
 * optimisation finds its frames by the frame pointer, which libc had no reason to save.
 *
 * The row says where the return address is relative to the frame pointer. So the search
 * tries every aligned address above sp as the frame pointer. An address is a candidate if
 * the word where the return address would be is one: in a function, right behind a call.
 *
 * Between sp and the frame pointer lie the function's variables, and among them return
 * addresses that earlier calls have left. The called function tells these apart:
 *
 *  - a call of this frame's function: the answer
 *  - a call of another function: no candidate
 *  - a call by pointer or through the linkage table: the first of these, if no call of
 *    this frame's function is found
 *
 * A copy of the real return address may lie there, too: in a variable, or left by a
 * profiler's or a sanitizer's hook at the function's entry. Beside the real one stands
 * the caller's frame pointer, which usually points further up the stack. So of two
 * candidates that are equal otherwise the one with such a frame pointer is taken.
 */
#include "unwind/cfi.h"

#include "platform/os.h"

/* Variables rarely take more than this, and this much is searched in a millisecond. */
#define SEARCH_BYTES (256 << 10)

#define FRAME_ALIGN 16

/* No call instruction is longer. */
#define CALL_BYTES_MAX 8

enum verdict { NO, PERHAPS, YES };

/* Is ra where a call of `function` returns to? */
static enum verdict judge(uintptr_t ra, uintptr_t function)
{
	struct cfi_row caller, callee;
	uintptr_t target = 0;

	if (!cfi_find_row(ra - 1, &caller) || !os_is_readable(ra - CALL_BYTES_MAX))
		return NO;	/* no function, or one whose code is execute-only */
	switch (regs_call_before(ra, caller.function, &target)) {
	case REGS_CALL_NONE:
		return NO;
	case REGS_CALL_INDIRECT:
		return PERHAPS;
	case REGS_CALL_DIRECT:
		break;
	}
	if (target == function)
		return YES;
	return cfi_find_row(target, &callee) && callee.function == target ? NO : PERHAPS;
}

static bool is_findable(const struct unwind_frame *f, const struct cfi_row *row)
{
	return row->cfa.how == CFI_VAL_OFFSET && row->cfa_reg == UNWIND_FP &&
	       row->reg[row->ra_column].how == CFI_OFFSET &&
	       !unwind_regs_know(&f->regs, UNWIND_FP);
}

/* If fp is f's frame pointer: does the caller's, saved in f, point above f's frame? */
static bool is_chained(const struct unwind_frame *f, const struct cfi_row *row, uintptr_t fp)
{
	const struct cfi_rule *saved = &row->reg[UNWIND_FP];
	uintptr_t cfa = fp + (uintptr_t)row->cfa.offset, caller_fp;

	return saved->how == CFI_OFFSET &&
	       unwind_load(f, cfa + (uintptr_t)saved->offset, &caller_fp) &&
	       caller_fp >= cfa && caller_fp < f->stack_hi;
}

bool unwind_guess_fp(const struct unwind_frame *f, const struct cfi_row *row, uintptr_t *fp)
{
	uintptr_t to_ra = (uintptr_t)row->cfa.offset + (uintptr_t)row->reg[row->ra_column].offset;
	uintptr_t at = (f->floor + FRAME_ALIGN - 1) & ~(uintptr_t)(FRAME_ALIGN - 1);
	uintptr_t end = at + SEARCH_BYTES;
	int best = 0, surest = 2 * YES + 1;
	uintptr_t ra;

	if (!is_findable(f, row))
		return false;
	for (; best < surest && at < end && unwind_load(f, at + to_ra, &ra); at += FRAME_ALIGN) {
		enum verdict v = judge(regs_strip_signature(ra), row->function);
		int sure = v == NO ? 0 : 2 * (int)v + is_chained(f, row, at);

		if (sure > best) {
			best = sure;
			*fp = at;
		}
	}
	return best > 0;
}
