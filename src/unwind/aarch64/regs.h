/*
 * regs.h (aarch64) - what the unwinder knows of this processor
 *
 * Registers have their DWARF numbers: x0 to x30, sp, pc. Vector registers (64 and up) are
 * left out: no frame is found by them.
 */
#ifndef GORO_ARCH_REGS_H
#define GORO_ARCH_REGS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

enum {
	UNWIND_X0,
	UNWIND_X19 = 19,
	UNWIND_X29 = 29,
	UNWIND_X30 = 30,
	UNWIND_XSP = 31,
	UNWIND_XPC = 32,
	UNWIND_NREG,

	UNWIND_FP = UNWIND_X29,
	UNWIND_LR = UNWIND_X30,
	UNWIND_SP = UNWIND_XSP,
	UNWIND_PC = UNWIND_XPC,
};

enum regs_call { REGS_CALL_NONE, REGS_CALL_DIRECT, REGS_CALL_INDIRECT };

/* What regs_capture() fills in: the callee-saved registers (x19 to x29), sp and pc. */
#define REGS_CAPTURED (((1ull << 11) - 1) << UNWIND_X19 | 1ull << UNWIND_XSP | 1ull << UNWIND_XPC)

/* A frame record lies at the bottom of its frame: the caller's may begin far above it. */
#define REGS_RECORD_ENDS_FRAME 0

/* A call leaves its return address in x30. */
#define REGS_CALL_PUSHES 0

/* The distance from a signal frame's sp to the ucontext: a siginfo_t lies between. */
#define REGS_SIGRETURN_UCONTEXT 128

/* The pc that a signal interrupted. Macros, for TOOL_RACY code: see tool.h. */
#define REGS_UCONTEXT_PC(uc) ((uintptr_t)((const ucontext_t *)(uc))->uc_mcontext.pc)

/* Whether a system call returns to pc. */
#define REGS_AFTER_SYSCALL(pc) (((const uint32_t *)(pc))[-1] == 0xd4000001)

/* Whether the kernel restarts, at pc, a system call that the signal interrupted. */
#define REGS_AT_SYSCALL(pc) (((const uint32_t *)(pc))[0] == 0xd4000001)

/* All registers that the signal interrupted. */
static inline void regs_from_ucontext(uintptr_t reg[UNWIND_NREG], const void *ucontext)
{
	const ucontext_t *uc = ucontext;

	for (int i = 0; i <= UNWIND_X30; i++)
		reg[i] = uc->uc_mcontext.regs[i];
	reg[UNWIND_XSP] = uc->uc_mcontext.sp;
	reg[UNWIND_XPC] = uc->uc_mcontext.pc;
}

/* Stores REGS_CAPTURED. One asm statement, so that pc and sp belong together. */
static inline __attribute__((always_inline)) void regs_capture(uintptr_t reg[UNWIND_NREG])
{
	__asm__ volatile("adr x9, .\n\t"
			 "mov x10, sp\n\t"
			 "stp x10, x9, [%0, #248]\n\t"
			 "stp x19, x20, [%0, #152]\n\t"
			 "stp x21, x22, [%0, #168]\n\t"
			 "stp x23, x24, [%0, #184]\n\t"
			 "stp x25, x26, [%0, #200]\n\t"
			 "stp x27, x28, [%0, #216]\n\t"
			 "str x29, [%0, #232]"
			 :
			 : "r"(reg)
			 : "x9", "x10", "memory");
}

/* Are these eight bytes of code the sigreturn trampoline, `mov x8, #139; svc #0`? */
static inline bool regs_is_sigreturn(uint64_t code)
{
	return code == 0xd4000001d2801168;
}

/* The kind of call that ends at ra. Reads nothing below start. Sets *target if direct. */
static inline enum regs_call regs_call_before(uintptr_t ra, uintptr_t start, uintptr_t *target)
{
	uint32_t insn;

	if (ra - start < sizeof(insn))
		return REGS_CALL_NONE;
	memcpy(&insn, (const void *)(ra - sizeof(insn)), sizeof(insn));
	/* bl: a signed distance of 26 bits, in instructions */
	if ((insn & 0xfc000000) == 0x94000000) {
		*target = ra - sizeof(insn) + (uintptr_t)((intptr_t)((uint64_t)insn << 38) >> 36);
		return REGS_CALL_DIRECT;
	}
	/* blr, and its forms that authenticate the pointer */
	if ((insn & 0xfffffc1f) == 0xd63f0000 || (insn & 0xfefff800) == 0xd63f0800)
		return REGS_CALL_INDIRECT;
	return REGS_CALL_NONE;
}

/* A return address without its pointer authentication code. xpaclri is written as a hint:
 * assemblers and processors without the extension take it for a no-op. */
static inline uintptr_t regs_strip_signature(uintptr_t pc)
{
	register uintptr_t x30 __asm__("x30") = pc;

	__asm__("hint #7" : "+r"(x30));
	return x30;
}

#endif
