/* eh_frame.h - the unwind records of a module. cfi.c runs the programs in them. */
#ifndef GORO_EH_FRAME_H
#define GORO_EH_FRAME_H

#include "platform/module.h"
#include "unwind/reader.h"

struct eh_cie {
	uint64_t code_factor;		/* unit of instruction addresses */
	int64_t data_factor;		/* unit of stack offsets */
	uint64_t ra_column;		/* the register of the return address */
	uint8_t fde_encoding;
	bool has_data;			/* its FDEs have augmentation data, too */
	bool signal_frame;
	struct reader program;
};

struct eh_fde {
	uintptr_t start;		/* the function is [start, start + size) */
	uintptr_t size;
	struct eh_cie cie;
	struct reader program;
};

/* Finds the FDE of the function that holds the instruction at pc. */
bool eh_frame_find(const struct module *m, uintptr_t pc, struct eh_fde *fde);

/* Reads a pointer in an encoding of .eh_frame. data is what "data relative" pointers are
 * relative to. The "indirect" bit is ignored: only pointers to personality routines have
 * it, and those are skipped. */
uintptr_t eh_frame_pointer(struct reader *r, uint8_t encoding, const uint8_t *data);

#endif
