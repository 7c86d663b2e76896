/*
 * copy.S (aarch64) - a copy that may fault, see copy.h. Nothing is saved, so that it can be
 * given up anywhere.
 */
	.text

/* bool copy_or_fail(void *to, const void *from, size_t n) */
	.globl	copy_or_fail, copy_begin, copy_end, copy_failed
	.hidden	copy_or_fail, copy_begin, copy_end, copy_failed
	.type	copy_or_fail, @function
	.p2align 4
copy_or_fail:
	.cfi_startproc
	hint	#34		/* bti c */
copy_begin:
	subs	x2, x2, #32
	b.lo	2f
1:	ldp	x3, x4, [x1], #16
	ldp	x5, x6, [x1], #16
	stp	x3, x4, [x0], #16
	stp	x5, x6, [x0], #16
	subs	x2, x2, #32
	b.hs	1b
2:	adds	x2, x2, #32
	b.eq	4f
3:	ldrb	w3, [x1], #1
	strb	w3, [x0], #1
	subs	x2, x2, #1
	b.ne	3b
copy_end:
4:	mov	w0, #1
	ret
copy_failed:
	mov	w0, #0
	ret
	.cfi_endproc
	.size	copy_or_fail, .-copy_or_fail

#include "bti.inc"

	.section .note.GNU-stack, "", @progbits
