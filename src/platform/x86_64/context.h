/*
 * context.h (x86-64) - the switch between goroutines.
 *
 * A context at rest is a stack pointer, a frame pointer, the address to go on at, and the
 * floating-point control words. The switch is inlined, and tells the compiler that it
 * changes every other register: what is live the compiler saves on the stack itself,
 * where the unwind tables find it again.
 *
 * Why inlined. A processor predicts a return by the calls it has seen. A switch that is a
 * function of its own and leaves by a jump leaves its call unmatched, and every return
 * after it is mispredicted, up to the goroutine's own code. One that leaves by a return
 * is right only if both sides called it from the same place. Without a call of its own
 * the switch leaves the predictor in step: goroutines that parked in the same function
 * are resumed without a miss.
 *
 * For the same reason a goroutine's function returns, up to where it began, and is left
 * from there by a jump. Then the calls that led to the last switch are again the latest
 * that the predictor has seen, as if the ended goroutine had been called from there. A
 * goroutine that waits for what it has started comes back to that. (Rejected: to leave
 * from within the last calls. Each of their returns is a miss.)
 *
 * The control words are part of the context since the ABI counts them among what a call
 * preserves: a rounding mode belongs to the goroutine that set it. A signal mask does
 * not: it belongs to the thread.
 */
#ifndef GORO_ARCH_CONTEXT_H
#define GORO_ARCH_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

struct context {
	void *sp, *fp, *pc;
	uint32_t mxcsr;
	uint16_t fpucw;
};
_Static_assert(offsetof(struct context, sp) == 0 && offsetof(struct context, fp) == 8 &&
               offsetof(struct context, pc) == 16 && offsetof(struct context, mxcsr) == 24 &&
               offsetof(struct context, fpucw) == 28, "the asm below has these offsets");

/* From (%rsi); the value passed is in %rax. */
#define CONTEXT_LOAD               \
	"ldmxcsr 24(%%rsi)\n\t"    \
	"fldcw 28(%%rsi)\n\t"      \
	"movq 8(%%rsi), %%rbp\n\t" \
	"movq (%%rsi), %%rsp\n\t"  \
	"jmpq *16(%%rsi)\n\t"

/* The upper registers too, if the compiler may use them. */
#ifdef __AVX512F__
#define CONTEXT_CLOBBERS_AVX512                                                        \
	"xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23",        \
	"xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0",  \
	"k1", "k2", "k3", "k4", "k5", "k6", "k7",
#else
#define CONTEXT_CLOBBERS_AVX512
#endif

/* Saves this context and goes on in the one in *to, which sees pass as its call's
 * result. */
static inline __attribute__((always_inline)) void *
context_switch(struct context *from, struct context *to, void *pass)
{
	__asm__ volatile("leaq 1f(%%rip), %%rcx\n\t"
	                 "stmxcsr 24(%%rdi)\n\t"
	                 "fnstcw 28(%%rdi)\n\t"
	                 "movq %%rsp, (%%rdi)\n\t"
	                 "movq %%rbp, 8(%%rdi)\n\t"
	                 "movq %%rcx, 16(%%rdi)\n\t"
	                 CONTEXT_LOAD
	                 "1:"
	                 : "+a"(pass), "+D"(from), "+S"(to)
	                 :
	                 : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
	                   "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
	                   "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
	                   CONTEXT_CLOBBERS_AVX512 "cc", "memory");
	return pass;
}

/* The same without saving: this context is over. */
static inline __attribute__((always_inline, noreturn)) void
context_jump(struct context *to, void *pass)
{
	__asm__ volatile(CONTEXT_LOAD : : "a"(pass), "S"(to) : "memory");
	__builtin_unreachable();
}

/* Prepares a new context whose stack begins below top (16-byte aligned). */
static inline void context_make(struct context *c, void *top)
{
	c->sp = top;
	c->fp = NULL;		/* ends frame-pointer chains */
	c->pc = (void *)context_entry;
	c->mxcsr = 0x1f80;	/* the state a program starts with */
	c->fpucw = 0x037f;
}

static inline void cpu_relax(void)
{
	__builtin_ia32_pause();
}

/* See platform/context.h. */
static inline struct m *m_self(void)
{
	struct m *mp;

	__asm__ volatile("movq goro_tls_m@gottpoff(%%rip), %0\n\t"
	                 "movq %%fs:(%0), %0"
	                 : "=r"(mp));
	return mp;
}

#endif
