/*
 * unwind_guess.c - a frame pointer that nobody told us
 *
 * Of a thread asleep in the kernel we know sp and pc. That takes us through libc,
 * which finds its frames by sp, and often no further: code compiled without
 * optimisation finds its frames by the frame pointer, and libc had no reason to
 * save that register anywhere.
 *
 * But we do know what to look for. The row says where, relative to the frame
 * pointer, the return address is. So every aligned place above sp is tried: if
 * the word where the return address should be is one (it lies in a function, right
 * behind a call instruction), that is a candidate. Between sp and the frame pointer
 * lie the function's variables, and among them return addresses that earlier
 * calls have left in memory nobody has written since. Those are told by whom they
 * called. A call of the very function we are in is the answer. A call of some other
 * function is not. Where the call does not say whom it calls (by pointer, or
 * through the linkage table), the first such is the answer if there is no better.
 *
 * The return address itself may have been copied, too (a profiler's or sanitizer's
 * hook at the function's entry takes it, a variable holds it). The caller's frame
 * pointer stands beside the real one, and where the caller has one it points
 * further up the stack: a place where that is so goes before one where it is not.
 */
#include "unwind_guess.h"

#include "os.h"

/*
 * Variables that take more than this are rare, and this much is searched in a
 * millisecond.
 */
#define SEARCH_BYTES (256 << 10)

#define FRAME_ALIGN 16

/* No call is longer. */
#define CALL_BYTES_MAX 8

enum verdict { NO, PERHAPS, YES };

/* Is ra where a call of `function` returns to? */
static enum verdict judge(uintptr_t ra, uintptr_t function)
{
	struct cfi_row caller, callee;
	uintptr_t target = 0;

	if (!cfi_find_row(ra - 1, &caller) || !os_is_readable(ra - CALL_BYTES_MAX))
		return NO;	/* no function, or one of which the code can only be executed */
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

/* Does the caller's frame pointer, as saved by a frame whose own is fp, lie above? */
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
