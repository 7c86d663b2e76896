/*
 * unwind_guess.h - a frame pointer that nobody told us
 */
#ifndef GORO_UNWIND_GUESS_H
#define GORO_UNWIND_GUESS_H

#include "cfi.h"
#include "unwind.h"

/*
 * Finds the value the frame pointer must have in frame f, whose row needs it.
 * False if the row has no use for it, it is known, or it cannot be found.
 */
bool unwind_guess_fp(const struct unwind_frame *f, const struct cfi_row *row, uintptr_t *fp);

#endif
