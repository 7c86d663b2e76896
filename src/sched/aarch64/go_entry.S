/*
 * go_entry.S (aarch64) - what go() calls as if it were the goroutine's function, where
 * the arguments have to be converted.
 */
	.text

/* The arguments are in registers, the struct goro_call is the static chain, in x18. Calls
 * go_called with them, that as the seventh and our return address as the eighth. */
	.globl	go_entry
	.hidden	go_entry
	.type	go_entry, @function
	.p2align 4
go_entry:
	.cfi_startproc
	hint	#34		/* bti c */
	stp	x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	mov	x29, sp
	mov	x6, x18
	mov	x7, x30
	bl	go_called
	ldp	x29, x30, [sp], #16
	.cfi_restore x30
	.cfi_restore x29
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size	go_entry, .-go_entry

#include "bti.inc"

	.section .note.GNU-stack, "", @progbits
