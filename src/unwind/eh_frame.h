/*
 * eh_frame.h - the unwind records of a module
 *
 * Async-signal-safe throughout. What the programs in the records mean is the
 * business of cfi.c.
 */
#ifndef GORO_EH_FRAME_H
#define GORO_EH_FRAME_H

#include "module.h"
#include "reader.h"

struct eh_cie {
	uint64_t code_factor;		/* unit of instruction addresses */
	int64_t data_factor;		/* unit of stack offsets */
	uint64_t ra_column;		/* the register that stands for the return address */
	uint8_t fde_encoding;
	bool has_data;			/* FDEs carry augmentation data as well */
	bool signal_frame;
	struct reader program;
};

struct eh_fde {
	uintptr_t start;		/* of the function */
	uintptr_t size;
	struct eh_cie cie;
	struct reader program;
};

/* The FDE of the function that holds the instruction at pc. */
bool eh_frame_find(const struct module *m, uintptr_t pc, struct eh_fde *fde);

/*
 * A pointer in one of the encodings of .eh_frame. data: what "data relative"
 * pointers are relative to. The "indirect" bit is ignored: only personality
 * routines use it, and those are only ever skipped.
 */
uintptr_t eh_frame_pointer(struct reader *r, uint8_t encoding, const uint8_t *data);

#endif
