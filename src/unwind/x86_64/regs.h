/*
 * regs.h (x86-64) - what the unwinder knows of this processor
 *
 * Registers have their DWARF numbers, which are not the processor's own order. Number 16
 * is the "return address column"; a register set holds the program counter there.
 */
#ifndef GORO_ARCH_REGS_H
#define GORO_ARCH_REGS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

enum {
	UNWIND_RAX, UNWIND_RDX, UNWIND_RCX, UNWIND_RBX,
	UNWIND_RSI, UNWIND_RDI, UNWIND_RBP, UNWIND_RSP,
	UNWIND_R8, UNWIND_R9, UNWIND_R10, UNWIND_R11,
	UNWIND_R12, UNWIND_R13, UNWIND_R14, UNWIND_R15,
	UNWIND_RIP,
	UNWIND_NREG,

	UNWIND_FP = UNWIND_RBP,
	UNWIND_SP = UNWIND_RSP,
	UNWIND_PC = UNWIND_RIP,
};

enum regs_call { REGS_CALL_NONE, REGS_CALL_DIRECT, REGS_CALL_INDIRECT };

/* What regs_capture() fills in: the callee-saved registers and pc. */
#define REGS_CAPTURED                                                       \
	(1ull << UNWIND_RBX | 1ull << UNWIND_RBP | 1ull << UNWIND_RSP |     \
	 1ull << UNWIND_R12 | 1ull << UNWIND_R13 | 1ull << UNWIND_R14 |     \
	 1ull << UNWIND_R15 | 1ull << UNWIND_RIP)

/* A frame record (saved frame pointer, return address) ends where the caller's begins. */
#define REGS_RECORD_ENDS_FRAME 1

/* A call pushes its return address. */
#define REGS_CALL_PUSHES 1

/* The distance from a signal frame's sp, in the trampoline, to the ucontext. */
#define REGS_SIGRETURN_UCONTEXT 0

/* The pc that a signal interrupted. Macros, for TOOL_RACY code: see tool.h. */
#define REGS_UCONTEXT_PC(uc) ((uintptr_t)((const ucontext_t *)(uc))->uc_mcontext.gregs[REG_RIP])

/* Whether a system call returns to pc. */
#define REGS_AFTER_SYSCALL(pc) \
	(((const uint8_t *)(pc))[-2] == 0x0f && ((const uint8_t *)(pc))[-1] == 0x05)

/* Whether the kernel restarts, at pc, a system call that the signal interrupted. */
#define REGS_AT_SYSCALL(pc) \
	(((const uint8_t *)(pc))[0] == 0x0f && ((const uint8_t *)(pc))[1] == 0x05)

/* All registers that the signal interrupted. */
static inline void regs_from_ucontext(uintptr_t reg[UNWIND_NREG], const void *ucontext)
{
	static const uint8_t greg[UNWIND_NREG] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
		REG_R9,	 REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
	};
	const ucontext_t *uc = ucontext;

	for (int i = 0; i < UNWIND_NREG; i++)
		reg[i] = (uintptr_t)uc->uc_mcontext.gregs[greg[i]];
}

/* Stores REGS_CAPTURED. One asm statement, so that pc and sp belong together. */
static inline __attribute__((always_inline)) void regs_capture(uintptr_t reg[UNWIND_NREG])
{
	__asm__ volatile("leaq 0(%%rip), %%rax\n\t"
			 "movq %%rax, 128(%0)\n\t"
			 "movq %%rbx, 24(%0)\n\t"
			 "movq %%rbp, 48(%0)\n\t"
			 "movq %%rsp, 56(%0)\n\t"
			 "movq %%r12, 96(%0)\n\t"
			 "movq %%r13, 104(%0)\n\t"
			 "movq %%r14, 112(%0)\n\t"
			 "movq %%r15, 120(%0)"
			 :
			 : "r"(reg)
			 : "rax", "memory");
}

/* Are these eight bytes of code the start of the sigreturn trampoline? glibc's is
 * `mov $15, %rax; syscall`, musl's the same with %eax, one byte shorter than eight. */
static inline bool regs_is_sigreturn(uint64_t code)
{
	return code == 0x0f0000000fc0c748 || (code & 0x00ffffffffffffff) == 0x00050f0000000fb8;
}

/* Are the `size` bytes at code a call by a register or by memory? */
static inline bool regs_is_indirect_call(const uint8_t *code, unsigned size)
{
	uint8_t mod = code[1] >> 6, rm = code[1] & 7;
	unsigned sib = mod != 3 && rm == 4;
	unsigned displacement = mod == 1 ? 1 : mod == 2 || (mod == 0 && rm == 5) ? 4 : 0;

	return code[0] == 0xff && (code[1] & 0x38) == 0x10 && size == 2 + sib + displacement;
}

/* The kind of call that ends at ra. Reads nothing below start. Sets *target if direct. */
static inline enum regs_call regs_call_before(uintptr_t ra, uintptr_t start, uintptr_t *target)
{
	const uint8_t *end = (const uint8_t *)ra;
	int32_t distance;

	if (ra - start >= 5 && end[-5] == 0xe8) {
		memcpy(&distance, end - 4, sizeof(distance));
		*target = ra + (uintptr_t)(intptr_t)distance;
		return REGS_CALL_DIRECT;
	}
	for (unsigned size = 2; size <= 7 && size <= ra - start; size++)
		if (regs_is_indirect_call(end - size, size))
			return REGS_CALL_INDIRECT;
	return REGS_CALL_NONE;
}

/* No pointer authentication on this processor. */
static inline uintptr_t regs_strip_signature(uintptr_t pc)
{
	return pc;
}

#endif
