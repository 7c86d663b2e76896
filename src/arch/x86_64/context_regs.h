/*
 * context_regs.h (x86-64) - a context at rest, as the unwinder wants it.
 */
#ifndef GORO_ARCH_CONTEXT_REGS_H
#define GORO_ARCH_CONTEXT_REGS_H

#include "context.h"
#include "unwind.h"

/* sp: what context_switch saved. The frame it left is that of its caller. */
static inline void context_regs(struct unwind_regs *regs, const void *sp)
{
	const struct context_frame *f = sp;

	regs->valid = 0;
	unwind_regs_set(regs, UNWIND_R15, f->r15);
	unwind_regs_set(regs, UNWIND_R14, f->r14);
	unwind_regs_set(regs, UNWIND_R13, f->r13);
	unwind_regs_set(regs, UNWIND_R12, f->r12);
	unwind_regs_set(regs, UNWIND_RBX, f->rbx);
	unwind_regs_set(regs, UNWIND_RBP, f->rbp);
	unwind_regs_set(regs, UNWIND_RSP, (uintptr_t)(f + 1));
	unwind_regs_set(regs, UNWIND_RIP, f->pc);
}

#endif
