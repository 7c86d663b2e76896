/*
 * restart.S (x86-64) - calls that are made for one that our signal interrupted. See
 * restart.c. At %rsp is a struct restart_frame; every register but those that a
 * system call changes is what the interrupted call is to return with.
 */
#define DONE	0
#define RDI	8
#define RSI	16
#define RDX	24
#define R10	32
#define R8	40
#define RIP	48
#define NR	56
#define FRAME	(88 + 128)	/* and the red zone above it */

	.text

	.macro entry name
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.p2align 4
	nop			/* unwinders look one byte before the address */
\name:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_def_cfa %rsp, FRAME
	.cfi_offset %rip, RIP - FRAME
	.cfi_offset %rdi, RDI - FRAME
	.cfi_offset %rsi, RSI - FRAME
	.cfi_offset %rdx, RDX - FRAME
	.cfi_offset %r10, R10 - FRAME
	.cfi_offset %r8, R8 - FRAME
	movq	NR(%rsp), %rax
	syscall
	.globl	\name\()_returned
	.hidden	\name\()_returned
\name\()_returned:
	.endm

	/* Goes on with the result in %rax. */
	.macro go_on name
	movq	RDI(%rsp), %rdi
	movq	RSI(%rsp), %rsi
	movq	RDX(%rsp), %rdx
	movq	R10(%rsp), %r10
	movq	R8(%rsp), %r8
	movq	RIP(%rsp), %rcx
	leaq	FRAME(%rsp), %rsp
	.cfi_def_cfa %rsp, 0
	.cfi_register %rip, %rcx
	jmpq	*%rcx
	.cfi_endproc
	.size	\name, .-\name
	.endm

	.globl	restart_code
	.hidden	restart_code
restart_code:

/* void restart_rest(void): the rest of a transfer that was cut short. */
	entry	restart_rest
	testq	%rax, %rax
	jle	1f		/* failed or nothing came: what was done counts */
	addq	%rax, DONE(%rsp)
1:	movq	DONE(%rsp), %rax
	go_on	restart_rest

/* void restart_timed(void): a call for the time that is left. */
	entry	restart_timed
	go_on	restart_timed

	.globl	restart_code_end
	.hidden	restart_code_end
restart_code_end:

	.section .note.GNU-stack, "", @progbits
