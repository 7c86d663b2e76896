/*
 * context.S (aarch64) - where a goroutine's stack begins. The switch itself is in
 * context.h.
 */
	.text

/* void context_entry(void); the argument for g_start comes in x0, and stays; so does what
 * it returns. The return address that sched_exit finds is that of g_start's call. */
	.globl	context_entry
	.hidden	context_entry
	.type	context_entry, @function
	.p2align 4
context_entry:
	.cfi_startproc
	.cfi_personality 0x1b, thread_end_personality	/* relative to the pc */
	.cfi_undefined x30
	hint	#34		/* bti c */
	bl	g_start
	b	sched_exit
	udf	#0
	.cfi_endproc
	.size	context_entry, .-context_entry

#include "bti.inc"

	.section .note.GNU-stack, "", @progbits
