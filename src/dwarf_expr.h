/*
 * dwarf_expr.h - DWARF expressions, as far as unwind information uses them
 */
#ifndef GORO_DWARF_EXPR_H
#define GORO_DWARF_EXPR_H

#include "reader.h"
#include "unwind.h"

/*
 * Computes the expression `ops` over frame f's registers and stack. `first` is on
 * the expression's stack when it begins, unless NULL. False if the expression is
 * not understood, or needs an unknown register or memory that is not in the stack.
 * Async-signal-safe.
 */
bool dwarf_expr_eval(struct reader ops, const struct unwind_frame *f, const uintptr_t *first,
		     uintptr_t *result);

#endif
