/*
 * copy.S (x86-64) - a copy that may fault, see copy.h. (A fault leaves %rip at the instruction,
 * and the registers where it has come to.)
 */
	.text

/* bool copy_or_fail(void *to, const void *from, size_t n) */
	.globl	copy_or_fail, copy_begin, copy_end, copy_failed
	.hidden	copy_or_fail, copy_begin, copy_end, copy_failed
	.type	copy_or_fail, @function
	.p2align 4
copy_or_fail:
	.cfi_startproc
	movq	%rdx, %rcx
copy_begin:
	rep movsb
copy_end:
	movl	$1, %eax
	ret
copy_failed:
	xorl	%eax, %eax
	ret
	.cfi_endproc
	.size	copy_or_fail, .-copy_or_fail

	.section .note.GNU-stack, "", @progbits
