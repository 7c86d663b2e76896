/* cfi.h - call frame information: where a function keeps its caller's registers. Defined
 * in cfi.c, dwarf_expr.c and unwind_guess.c. */
#ifndef GORO_CFI_H
#define GORO_CFI_H

#include "unwind/reader.h"
#include "unwind/unwind.h"

/* How to find the caller's value of a register. The canonical frame address (CFA) is the
 * caller's sp at the call. */
enum cfi_how {
	CFI_UNSPECIFIED,	/* no rule: unchanged by convention */
	CFI_UNDEFINED,		/* lost; for the return address: there is no caller */
	CFI_SAME,		/* still in the register */
	CFI_OFFSET,		/* saved in memory at CFA + offset */
	CFI_VAL_OFFSET,		/* CFA + offset is the value */
	CFI_REGISTER,		/* in another register, number `offset` */
	CFI_EXPRESSION,		/* saved in memory at the expression's result */
	CFI_VAL_EXPRESSION,	/* the expression's result is the value */
};

struct cfi_rule {
	enum cfi_how how;
	union {
		int64_t offset;
		const uint8_t *expr;	/* a checked ULEB128 length, then operations */
	};
};

/* The unwind table's row for one instruction. */
struct cfi_row {
	uintptr_t function;		/* where the function begins */
	struct cfi_rule cfa;		/* CFI_VAL_OFFSET or CFI_VAL_EXPRESSION */
	uint64_t cfa_reg;		/* the register that CFI_VAL_OFFSET adds to */
	struct cfi_rule reg[UNWIND_NREG];
	unsigned ra_column;		/* the register of the return address */
	bool ra_signed;			/* it has a pointer authentication code */
	bool signal_frame;		/* the "caller" was interrupted by a signal */
};

/* Finds the row for the instruction at pc. False if there is none that can be used. */
bool cfi_find_row(uintptr_t pc, struct cfi_row *row);

/* The operations of an expression rule. */
struct reader cfi_expr(const struct cfi_rule *rule);

/* Computes the expression `ops` over frame f's registers and stack. If first is not NULL,
 * the machine's stack begins with *first. False if an operation is not known, or needs an
 * unknown register or memory outside the stack. */
bool dwarf_expr_eval(struct reader ops, const struct unwind_frame *f, const uintptr_t *first,
		     uintptr_t *result);

/* Finds the frame pointer of frame f. False if the row does not need it, if it is known
 * already, or if it cannot be found. */
bool unwind_guess_fp(const struct unwind_frame *f, const struct cfi_row *row, uintptr_t *fp);

#endif
