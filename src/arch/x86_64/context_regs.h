/*
 * context_regs.h (x86-64) - a context at rest, as the unwinder wants it.
 */
#ifndef GORO_ARCH_CONTEXT_REGS_H
#define GORO_ARCH_CONTEXT_REGS_H

#include "context.h"
#include "unwind.h"

/* The other callee-saved registers lie on the stack, where the unwind tables of
 * the function that switched say. */
static inline void context_regs(struct unwind_regs *regs, const struct context *c)
{
	regs->valid = 0;
	unwind_regs_set(regs, UNWIND_RBP, (uintptr_t)c->fp);
	unwind_regs_set(regs, UNWIND_RSP, (uintptr_t)c->sp);
	unwind_regs_set(regs, UNWIND_RIP, (uintptr_t)c->pc);
}

#endif
