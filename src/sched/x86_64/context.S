/*
 * context.S (x86-64) - where a goroutine's stack begins. The switch itself is in
 * context.h.
 */
	.text

/* void context_entry(void); its argument is in %rax. sched_exit is as if called from
 * here. */
	.globl	context_entry
	.hidden	context_entry
	.type	context_entry, @function
	.p2align 4
context_entry:
	.cfi_startproc
	.cfi_personality 0x1b, thread_end_personality	/* relative to the pc */
	.cfi_undefined %rip
	movq	%rax, %rdi
	call	g_start
	movq	%rax, %rdi
	leaq	1f(%rip), %rax
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	jmp	sched_exit
1:	ud2
	.cfi_endproc
	.size	context_entry, .-context_entry

	.section .note.GNU-stack, "", @progbits
