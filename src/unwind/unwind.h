/*
 * unwind.h - the room unwind: stacks walked, names and lines of addresses
 *
 * Everything in the room is async-signal-safe, takes no lock and allocates nothing, so
 * that a trace can be made in a signal handler and in a program that has crashed. Walks
 * use the tables that every C compiler emits (.eh_frame): neither the program nor its
 * libraries need frame pointers or debug information.
 *
 * May use: base, platform. Offers walks and the registers of a goroutine at rest (this
 * file), unwind rows (cfi.h), names and lines (symbol.h) and ELF files (elf_file.h).
 */
#ifndef GORO_UNWIND_H
#define GORO_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/context.h"
#include "unwind/regs.h"

/* A frame's registers, by DWARF number. A register is known if its bit is in `valid`. */
struct unwind_regs {
	uintptr_t reg[UNWIND_NREG];
	uint64_t valid;
};

/* One frame of a walk, which is all the state that a walk has. */
struct unwind_frame {
	struct unwind_regs regs;
	uintptr_t stack_lo;	/* loads stay within [stack_lo, stack_hi) */
	uintptr_t stack_hi;
	uintptr_t floor;	/* sp or, if it is not known, a lower bound of it */
	bool exact;		/* pc is the next instruction, not a return address */
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

/* The caller's registers that a walk needs. Inlined, so that pc lies in the caller. */
static inline __attribute__((always_inline)) void unwind_regs_here(struct unwind_regs *regs)
{
	regs_capture(regs->reg);
	regs->valid = REGS_CAPTURED;
}

/* The registers of a goroutine at rest. The other callee-saved registers lie on the
 * stack, where the unwind table of the function that switched says. */
static inline void context_regs(struct unwind_regs *regs, const struct context *c)
{
	regs->valid = 0;
	unwind_regs_set(regs, UNWIND_FP, (uintptr_t)c->fp);
	unwind_regs_set(regs, UNWIND_SP, (uintptr_t)c->sp);
	unwind_regs_set(regs, UNWIND_PC, (uintptr_t)c->pc);
}

/*
 * Fills pcs with at most max program counters, innermost first, and returns their number.
 * pcs[0] is the start's pc. The others are return addresses, and the call of each is at
 * pc - 1. A pc that a signal interrupted is stored plus one, so that this holds for it.
 *
 * start must have pc. With sp most walks succeed; callee-saved registers make them
 * certain. [stack_lo, stack_hi) must be readable, and may hold anything.
 */
size_t unwind_walk(const struct unwind_regs *start, uintptr_t stack_lo, uintptr_t stack_hi,
		   uintptr_t *pcs, size_t max);

/* Loads the word at addr. False if addr is not aligned or not in the frame's stack. */
bool unwind_load(const struct unwind_frame *f, uintptr_t addr, uintptr_t *value);

#endif
