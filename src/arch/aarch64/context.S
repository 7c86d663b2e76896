/*
 * context.S (aarch64) - where a goroutine's stack begins. The switch itself is in
 * context.h.
 */
	.text

/* void context_entry(void); the argument for g_start comes in x0, and stays */
	.globl	context_entry
	.hidden	context_entry
	.type	context_entry, @function
	.p2align 4
context_entry:
	.cfi_startproc
	.cfi_undefined x30
	hint	#34		/* bti c */
	bl	g_start
	udf	#0
	.cfi_endproc
	.size	context_entry, .-context_entry

/* That the pad is there, for a linker that asks: in a build for branch target
 * identification one object that does not say so turns it off. */
#ifdef __ARM_FEATURE_BTI_DEFAULT
	.section .note.gnu.property, "a"
	.p2align 3
	.word	4, 16, 5	/* sizes of name and contents, NT_GNU_PROPERTY_TYPE_0 */
	.asciz	"GNU"
	.word	0xc0000000, 4	/* GNU_PROPERTY_AARCH64_FEATURE_1_AND, its size */
	.word	1, 0		/* BTI; padding */
#endif

	.section .note.GNU-stack, "", @progbits
