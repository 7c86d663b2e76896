/*
 * unwind.h - which calls led here: the return addresses on a stack
 *
 * Works on the tables every C compiler emits (.eh_frame), so neither the program
 * nor its libraries need frame pointers or debug information. Everything here is
 * async-signal-safe and takes no lock. See unwind.c.
 */
#ifndef GORO_UNWIND_H
#define GORO_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "regs.h"

/*
 * What is known about a frame's registers, by DWARF number. A register whose bit is
 * not in `valid` is unknown.
 */
struct unwind_regs {
	uintptr_t reg[UNWIND_NREG];
	uint64_t valid;
};

/* One frame of a walk; also all a walk has to remember. */
struct unwind_frame {
	struct unwind_regs regs;
	uintptr_t stack_lo;	/* the only memory that is read is [stack_lo, stack_hi) */
	uintptr_t stack_hi;
	uintptr_t floor;	/* the frame lies above this: sp, or the best that is known */
	bool exact;		/* pc is what runs next, not where a call will return to */
};

static inline bool unwind_regs_know(const struct unwind_regs *regs, unsigned i)
{
	return i < UNWIND_NREG && (regs->valid >> i & 1);
}

static inline void unwind_regs_set(struct unwind_regs *regs, unsigned i, uintptr_t value)
{
	regs->reg[i] = value;
	regs->valid |= 1ull << i;
}

static inline void unwind_regs_forget(struct unwind_regs *regs, unsigned i)
{
	regs->valid &= ~(1ull << i);
}

/* The registers a signal interrupted. ucontext is the handler's third argument. */
static inline void unwind_regs_from_ucontext(struct unwind_regs *regs, const void *ucontext)
{
	regs_from_ucontext(regs->reg, ucontext);
	regs->valid = (1ull << UNWIND_NREG) - 1;
}

/*
 * The caller's own registers, as far as a walk from here needs them. Inlined, so
 * that pc lies in the caller.
 */
static inline __attribute__((always_inline)) void unwind_regs_here(struct unwind_regs *regs)
{
	regs_capture(regs->reg);
	regs->valid = REGS_CAPTURED;
}

/*
 * Fills pcs with at most max program counters, innermost first, and returns how
 * many. pcs[0] is the start's pc; the others are return addresses, so what they
 * name is at pc - 1. (Where the walk passes through a signal frame, the interrupted
 * pc is stored plus one, to keep that true.)
 *
 * start needs pc; with sp alone beside it most walks succeed, callee-saved
 * registers make them certain. Reads [stack_lo, stack_hi), which must be readable
 * but may hold anything: the walk then ends early, it does not fault.
 */
size_t unwind_walk(const struct unwind_regs *start, uintptr_t stack_lo, uintptr_t stack_hi,
		   uintptr_t *pcs, size_t max);

/*
 * The same, a frame at a time. unwind_step goes to the caller's frame, or returns
 * false where the walk ends.
 */
void unwind_begin(struct unwind_frame *f, const struct unwind_regs *start, uintptr_t stack_lo,
		  uintptr_t stack_hi);
bool unwind_step(struct unwind_frame *f);

/* The word at addr of the frame's stack; false if it is not aligned or not in the stack. */
bool unwind_load(const struct unwind_frame *f, uintptr_t addr, uintptr_t *value);

#endif
