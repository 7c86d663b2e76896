/*
 * copy.h (aarch64) - a copy that may fault: then it fails. Defined in copy.S.
 */
#ifndef GORO_ARCH_COPY_H
#define GORO_ARCH_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

/* False if it cannot all be read and written; then what is at to is anything. */
bool copy_or_fail(void *to, const void *from, size_t n);

/* The instructions that may fault, and where to go on then. */
extern const char copy_begin[], copy_end[], copy_failed[];

/* In the handler of a fault: true if it was the copy's, which goes on and fails. */
static inline bool copy_fail(void *ucontext)
{
	ucontext_t *uc = ucontext;
	unsigned long long *pc = &uc->uc_mcontext.pc;

	if ((uintptr_t)*pc < (uintptr_t)copy_begin || (uintptr_t)*pc >= (uintptr_t)copy_end)
		return false;
	*pc = (unsigned long long)(uintptr_t)copy_failed;
	return true;
}

#endif
