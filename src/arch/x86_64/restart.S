/*
 * restart.S (x86-64) - the rest of a transfer that our signal cut short. See
 * restart.h. At %rsp is a struct restart_rest; every register but those that a
 * system call changes is what the interrupted call is to return with.
 */
#define DONE	0
#define RSI	8
#define RDX	16
#define RIP	24
#define NR	32
#define FRAME	(40 + 128)	/* and the red zone above it */

	.text

/* void restart_rest(void); */
	.globl	restart_rest
	.hidden	restart_rest
	.type	restart_rest, @function
	.p2align 4
	nop			/* unwinders look one byte before the address */
restart_rest:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_def_cfa %rsp, FRAME
	.cfi_offset %rip, RIP - FRAME
	.cfi_offset %rsi, RSI - FRAME
	.cfi_offset %rdx, RDX - FRAME
	movq	NR(%rsp), %rax
	syscall
	.globl	restart_rest_returned
	.hidden	restart_rest_returned
restart_rest_returned:
	testq	%rax, %rax
	jle	1f		/* failed or nothing came: what was done counts */
	addq	%rax, DONE(%rsp)
1:	movq	DONE(%rsp), %rax
	movq	RSI(%rsp), %rsi
	movq	RDX(%rsp), %rdx
	movq	RIP(%rsp), %rcx
	leaq	FRAME(%rsp), %rsp
	.cfi_def_cfa %rsp, 0
	.cfi_register %rip, %rcx
	jmpq	*%rcx
	.cfi_endproc
	.size	restart_rest, .-restart_rest

	.section .note.GNU-stack, "", @progbits
