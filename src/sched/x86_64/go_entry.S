/*
 * go_entry.S (x86-64) - what go() calls as if it were the goroutine's function, where the
 * arguments have to be converted.
 */
	.text

/* The arguments are in registers, the struct goro_call is the static chain, in %r10.
 * Calls go_called with them, that as the seventh and our return address as the eighth. */
	.globl	go_entry
	.hidden	go_entry
	.type	go_entry, @function
	.p2align 4
go_entry:
	.cfi_startproc
	endbr64
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	pushq	8(%rsp)
	.cfi_adjust_cfa_offset 8
	pushq	%r10
	.cfi_adjust_cfa_offset 8
	call	go_called
	addq	$24, %rsp
	.cfi_adjust_cfa_offset -24
	ret
	.cfi_endproc
	.size	go_entry, .-go_entry

	.section .note.GNU-stack, "", @progbits
