/*
 * context.h (aarch64) - the switch between goroutines.
 *
 * A context at rest is a stack pointer, a frame pointer, the address to go on at, and the
 * floating-point control register. The switch is inlined, and tells the compiler that it
 * changes every other register: what is live the compiler saves on the stack itself,
 * where the unwind tables find it again. Why inlined: see context.h of x86-64; returns
 * are predicted here in the same way.
 *
 * The control register is part of the context since the ABI counts it among what a call
 * preserves: a rounding mode belongs to the goroutine that set it. A signal mask does
 * not: it belongs to the thread.
 *
 * Branch target identification: the switch leaves by x16, the register for which a
 * landing pad for calls and one for jumps both accept a branch. There is a pad where it
 * arrives, behind itself and at context_entry. The pads are spelt as hints, which other
 * processors and assemblers take for no-ops.
 *
 * Pointer authentication: the address to go on at is not signed. It lies beside the stack
 * pointer: an attacker that can change the one can change the other. Return addresses
 * that the compiler has signed stay on their stack, at the stack pointer they were signed
 * with.
 */
#ifndef GORO_ARCH_CONTEXT_H
#define GORO_ARCH_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

struct context {
	void *sp, *fp, *pc;
	uint64_t fpcr;
};
_Static_assert(offsetof(struct context, sp) == 0 && offsetof(struct context, fp) == 8 &&
               offsetof(struct context, pc) == 16 && offsetof(struct context, fpcr) == 24,
               "the asm below has these offsets");

/*
 * From [x2]; the value passed is in x0, FPCR as it is now in x5. Writing FPCR drains the
 * pipeline on many processors and seldom changes anything, so it is written only if it
 * differs. The stack pointer comes last: a signal in between is to find a stack that fits
 * the code it interrupts.
 */
#define CONTEXT_LOAD                 \
	"ldp x16, x6, [x2, #16]\n\t" \
	"cmp x5, x6\n\t"             \
	"b.eq 2f\n\t"                \
	"msr fpcr, x6\n"             \
	"2:\tldp x4, x29, [x2]\n\t"  \
	"mov sp, x4\n\t"             \
	"br x16\n"

/* Predicates too, if the compiler may use them. */
#ifdef __ARM_FEATURE_SVE
#define CONTEXT_CLOBBERS_SVE                                                          \
	, "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11",   \
	"p12", "p13", "p14", "p15", "ffr"
#else
#define CONTEXT_CLOBBERS_SVE
#endif

/* Saves this context and goes on in the one in *to, which sees pass as its call's
 * result. */
static inline __attribute__((always_inline)) void *
context_switch(struct context *from, struct context *to, void *pass)
{
	register void *x0 __asm__("x0") = pass;
	register struct context *x1 __asm__("x1") = from;
	register struct context *x2 __asm__("x2") = to;

	__asm__ volatile("adr x3, 1f\n\t"
	                 "mov x4, sp\n\t"
	                 "mrs x5, fpcr\n\t"
	                 "stp x4, x29, [x1]\n\t"
	                 "stp x3, x5, [x1, #16]\n\t"
	                 CONTEXT_LOAD
	                 "1:\thint #36"		/* bti j */
	                 : "+r"(x0), "+r"(x1), "+r"(x2)
	                 :
	                 : "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
	                   "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23",
	                   "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4",
	                   "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
	                   "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25",
	                   "v26", "v27", "v28", "v29", "v30", "v31" CONTEXT_CLOBBERS_SVE,
	                   "cc", "memory");
	return x0;
}

/* The same without saving: this context is over. */
static inline __attribute__((always_inline, noreturn)) void
context_jump(struct context *to, void *pass)
{
	register void *x0 __asm__("x0") = pass;
	register struct context *x2 __asm__("x2") = to;

	__asm__ volatile("mrs x5, fpcr\n\t"
	                 CONTEXT_LOAD
	                 :
	                 : "r"(x0), "r"(x2)
	                 : "memory");
	__builtin_unreachable();
}

/* Prepares a new context whose stack begins below top (16-byte aligned). */
static inline void context_make(struct context *c, void *top)
{
	c->sp = top;
	c->fp = NULL;		/* ends frame-pointer chains */
	c->pc = (void *)context_entry;
	c->fpcr = 0;		/* the state a program starts with */
}

/* isb and not yield, which processors without hardware threads take for a no-op: a pause
 * that does not pause hammers the line that is waited for. isb empties the pipeline,
 * which takes about as long as the pause of an x86. */
static inline void cpu_relax(void)
{
	__asm__ volatile("isb");
}

/* See platform/context.h. */
static inline struct m *m_self(void)
{
	struct m *mp;
	uintptr_t tp;

	__asm__ volatile("adrp %0, :gottprel:goro_tls_m\n\t"
	                 "ldr %0, [%0, #:gottprel_lo12:goro_tls_m]\n\t"
	                 "mrs %1, tpidr_el0\n\t"
	                 "ldr %0, [%1, %0]"
	                 : "=&r"(mp), "=&r"(tp));
	return mp;
}

#endif
