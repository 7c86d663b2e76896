/*
 * cfi.h - call frame information: where a function keeps its caller's registers, at
 * a given instruction
 */
#ifndef GORO_CFI_H
#define GORO_CFI_H

#include "reader.h"
#include "unwind.h"

/*
 * How to find the caller's value of a register. The canonical frame address (CFA)
 * is the caller's sp at the call.
 */
enum cfi_how {
	CFI_UNSPECIFIED,	/* nothing said: untouched by convention */
	CFI_UNDEFINED,		/* lost; for the return address: there is no caller */
	CFI_SAME,		/* still in the register */
	CFI_OFFSET,		/* saved in memory at CFA + offset */
	CFI_VAL_OFFSET,		/* it is CFA + offset */
	CFI_REGISTER,		/* in another register, number `offset` */
	CFI_EXPRESSION,		/* saved in memory at the address the expression gives */
	CFI_VAL_EXPRESSION,	/* it is what the expression gives */
};

struct cfi_rule {
	enum cfi_how how;
	union {
		int64_t offset;
		const uint8_t *expr;	/* a ULEB128 length, known to be right, and operations */
	};
};

/* The unwind table's row for one instruction. */
struct cfi_row {
	uintptr_t function;		/* where the function begins */
	struct cfi_rule cfa;		/* CFI_VAL_OFFSET, of register cfa_reg; */
	uint64_t cfa_reg;		/* or CFI_VAL_EXPRESSION */
	struct cfi_rule reg[UNWIND_NREG];
	unsigned ra_column;		/* the caller's value of this is the return address */
	bool ra_signed;			/* ... with a pointer authentication code */
	bool signal_frame;		/* the "caller" was interrupted: its pc is exact */
};

/*
 * Looks up the row for the instruction at pc; false if there is no (usable)
 * information. Async-signal-safe.
 */
bool cfi_find_row(uintptr_t pc, struct cfi_row *row);

/* The operations of an expression rule. */
struct reader cfi_expr(const struct cfi_rule *rule);

#endif
