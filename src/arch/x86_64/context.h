/*
 * context.h (x86-64) - what a switched-out goroutine looks like.
 *
 * A context at rest is its stack pointer; everything else lies on the stack,
 * in this order from the saved stack pointer up. context.S has the same layout.
 *
 *	sp ->	mxcsr (4 bytes), x87 control word (2), unused (2)
 *		r15 r14 r13 r12 rbx rbp
 *		address to go on at
 *
 * The floating-point control words are in it since the ABI counts them among
 * what a call preserves: a rounding mode belongs to the goroutine that set it.
 * A signal mask is not: it belongs to the thread.
 */
#ifndef GORO_ARCH_CONTEXT_H
#define GORO_ARCH_CONTEXT_H

#include <stdint.h>

struct context_frame {
	uint32_t mxcsr;
	uint16_t fpucw;
	uint16_t unused;
	uint64_t r15, r14, r13, r12, rbx, rbp;
	uint64_t pc;
};
_Static_assert(sizeof(struct context_frame) == 64, "context.S pushes 64 bytes");

/* Saves this context in *save, goes on in the one at rest at load, which sees
 * pass as the result of its own call. */
void *context_switch(void **save, void *load, void *pass);
/* The same without saving: this context is over. */
_Noreturn void context_jump(void *load, void *pass);
/* Where a new context begins: calls g_start(pass). Its return address is
 * undefined in the unwind tables, so that every unwinder stops here. */
void context_entry(void);

/* Prepares a new context below top (16-byte aligned). */
static inline void *context_make(void *top)
{
	struct context_frame *f = (struct context_frame *)top - 1;

	f->mxcsr = 0x1f80;	/* the state a program starts with */
	f->fpucw = 0x037f;
	f->rbp = 0;		/* ends frame-pointer chains */
	f->pc = (uint64_t)(uintptr_t)context_entry;
	return f;
}

static inline void cpu_relax(void)
{
	__builtin_ia32_pause();
}

/* A full barrier where an atomic read-modify-write came just before: here that
 * was one. */
#define fence_after_rmw() __asm__ volatile("" ::: "memory")

/*
 * The current M, read anew at every call. A compiler may keep the address of a
 * thread-local variable across a call that comes back on another thread; a
 * volatile asm it may neither keep nor merge.
 */
struct m;
extern __thread struct m *goro_tls_m __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline struct m *m_self(void)
{
	struct m *mp;

	__asm__ volatile("movq goro_tls_m@gottpoff(%%rip), %0\n\t"
	                 "movq %%fs:(%0), %0"
	                 : "=r"(mp));
	return mp;
}

#endif
