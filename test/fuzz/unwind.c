/* unwind.c - unwind records. The bytes are a module with .eh_frame_hdr at its start; the
 * first four are the distance of the pc from there. */
#include <sys/mman.h>

#include "fuzz.h"
#include "unwind/eh_frame.h"

#define cfi_find_row fuzz_cfi_find_row
#define cfi_expr     fuzz_cfi_expr
#include "../../src/unwind/cfi.c"
#undef cfi_find_row
#undef cfi_expr

static void find_row(const struct module *m, uintptr_t pc)
{
	static struct cfi_row row;
	static struct runner s;
	struct eh_fde fde;

	if (!eh_frame_find(m, pc, &fde))
		return;
	memset(&row, 0, sizeof row);
	s = (struct runner){ .cie = &fde.cie, .pc = pc, .loc = fde.start, .row = &row };
	if (!run(&s, fde.cie.program))
		return;
	s.initial = row;
	if (!run(&s, fde.program))
		return;
	for (int i = 0; i < UNWIND_NREG; i++)
		if (row.reg[i].how == CFI_EXPRESSION || row.reg[i].how == CFI_VAL_EXPRESSION) {
			struct reader r = fuzz_cfi_expr(&row.reg[i]);

			if (r.at < (const uint8_t *)m->start || r.end > (const uint8_t *)m->end)
				abort();
		}
}

void fuzz_unwind(const uint8_t *data, size_t n)
{
	uint32_t at;
	struct module m;
	uint8_t *copy;

	if (n < 8)
		return;
	memcpy(&at, data, 4);
	n -= 4;
	copy = malloc(n);
	memcpy(copy, data + 4, n);
	m = (struct module){ .start = (uintptr_t)copy, .end = (uintptr_t)copy + n, .bias = (uintptr_t)copy,
	                     .eh_frame_hdr = copy };
	find_row(&m, m.start + (uintptr_t)(intptr_t)(int32_t)at);
	free(copy);
}
