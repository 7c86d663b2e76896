/* expr.c - DWARF expressions, over a frame with a little stack. */
#include "fuzz.h"
#include "unwind/cfi.h"

void fuzz_expr(const uint8_t *data, size_t n)
{
	static uintptr_t stack[16];
	struct unwind_frame f;
	uintptr_t first = (uintptr_t)stack, result;
	uint8_t *copy = malloc(n + 1);

	memcpy(copy, data, n);
	memset(&f, 0, sizeof f);
	for (int i = 0; i < UNWIND_NREG; i++)
		unwind_regs_set(&f.regs, (unsigned)i, (uintptr_t)&stack[i % 16]);
	f.stack_lo = f.floor = (uintptr_t)stack;
	f.stack_hi = (uintptr_t)(stack + 16);
	dwarf_expr_eval(reader_make(copy, n), &f, NULL, &result);
	dwarf_expr_eval(reader_make(copy, n), &f, &first, &result);
	free(copy);
}
