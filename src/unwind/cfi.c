/*
 * cfi.c - call frame information: where a function keeps its caller's registers
 *
 * The compiler describes, for every instruction, how to undo the function's prologue so
 * far: a table with a row per instruction and a column per register. It stores programs
 * that produce the table. The CIE's program makes the row that all its functions begin
 * with. The FDE's program changes that row on its way through the function, and is run
 * until it is past the instruction.
 */
#include "unwind/cfi.h"

#include "base/throw.h"
#include "unwind/eh_frame.h"

enum {
	CFA_advance_loc = 0x40, CFA_offset = 0x80, CFA_restore = 0xc0, CFA_PACKED = 0xc0,
	CFA_nop = 0x00, CFA_set_loc, CFA_advance_loc1, CFA_advance_loc2, CFA_advance_loc4,
	CFA_offset_extended, CFA_restore_extended, CFA_undefined, CFA_same_value,
	CFA_register, CFA_remember_state, CFA_restore_state, CFA_def_cfa,
	CFA_def_cfa_register, CFA_def_cfa_offset, CFA_def_cfa_expression, CFA_expression,
	CFA_offset_extended_sf, CFA_def_cfa_sf, CFA_def_cfa_offset_sf, CFA_val_offset,
	CFA_val_offset_sf, CFA_val_expression, CFA_advance_loc8 = 0x1d,
	CFA_negate_ra_state_with_pc = 0x2c, CFA_negate_ra_state = 0x2d,
	CFA_args_size = 0x2e, CFA_negative_offset_extended = 0x2f,
};

/* Compilers nest remembered rows one or two deep. */
#define REMEMBER_MAX 4

struct runner {
	const struct eh_cie *cie;
	uintptr_t pc;			/* stop before the row that starts after this */
	uintptr_t loc;			/* the instruction the current row starts at */
	struct cfi_row *row;
	struct cfi_row initial;		/* the row that the CIE made, for "restore" */
	unsigned depth;
	struct cfi_row remembered[REMEMBER_MAX];
};

/* Rules of other registers (vector registers, pseudo registers) are read and dropped. */
static void set_rule(struct runner *s, uint64_t reg, enum cfi_how how, int64_t offset)
{
	if (reg < UNWIND_NREG)
		s->row->reg[reg] = (struct cfi_rule){ .how = how, .offset = offset };
}

/* Multiplied without sign: an overflow, by a damaged table, must not be undefined. */
static int64_t factored(const struct runner *s, int64_t offset)
{
	return (int64_t)((uint64_t)offset * (uint64_t)s->cie->data_factor);
}

static void set_factored(struct runner *s, enum cfi_how how, struct reader *r, bool has_sign)
{
	uint64_t reg = reader_uleb(r);
	int64_t offset = has_sign ? reader_sleb(r) : (int64_t)reader_uleb(r);

	set_rule(s, reg, how, factored(s, offset));
}

static void set_initial(struct runner *s, uint64_t reg)
{
	if (reg < UNWIND_NREG)
		s->row->reg[reg] = s->initial.reg[reg];
}

#define LENGTH_BYTES_MAX 10	/* of a 64-bit number; more would be padding */

/* Checks the expression's length here, where the end of the record is known. */
static const uint8_t *take_expr(struct reader *r)
{
	const uint8_t *expr = r->at;
	uint64_t size = reader_uleb(r);

	if (r->at - expr > LENGTH_BYTES_MAX)
		reader_fail(r);
	reader_skip(r, size);
	return expr;
}

static void set_expr(struct runner *s, uint64_t reg, enum cfi_how how, struct reader *r)
{
	const uint8_t *expr = take_expr(r);

	if (reg < UNWIND_NREG)
		s->row->reg[reg] = (struct cfi_rule){ .how = how, .expr = expr };
}

static void set_cfa(struct runner *s, uint64_t reg, int64_t offset)
{
	s->row->cfa_reg = reg;
	s->row->cfa = (struct cfi_rule){ .how = CFI_VAL_OFFSET, .offset = offset };
}

static void advance(struct runner *s, uint64_t delta)
{
	s->loc += delta * s->cie->code_factor;
}

static void remember(struct runner *s, struct reader *r)
{
	if (s->depth == REMEMBER_MAX)
		reader_fail(r);
	else
		s->remembered[s->depth++] = *s->row;
}

static void recall(struct runner *s, struct reader *r)
{
	if (s->depth == 0)
		reader_fail(r);
	else
		*s->row = s->remembered[--s->depth];
}

static void run_packed(struct runner *s, uint8_t op, struct reader *r)
{
	uint8_t operand = op & ~CFA_PACKED;

	switch (op & CFA_PACKED) {
	case CFA_advance_loc: advance(s, operand); break;
	case CFA_offset:
		set_rule(s, operand, CFI_OFFSET, factored(s, (int64_t)reader_uleb(r)));
		break;
	case CFA_restore: set_initial(s, operand); break;
	}
}

static void run_one(struct runner *s, uint8_t op, struct reader *r)
{
	uint64_t reg;

	if (op & CFA_PACKED) {
		run_packed(s, op, r);
		return;
	}
	switch (op) {
	case CFA_nop: break;
	case CFA_set_loc: s->loc = eh_frame_pointer(r, s->cie->fde_encoding, NULL); break;
	case CFA_advance_loc1: advance(s, reader_u8(r)); break;
	case CFA_advance_loc2: advance(s, reader_u16(r)); break;
	case CFA_advance_loc4: advance(s, reader_u32(r)); break;
	case CFA_advance_loc8: advance(s, reader_u64(r)); break;

	case CFA_undefined: set_rule(s, reader_uleb(r), CFI_UNDEFINED, 0); break;
	case CFA_same_value: set_rule(s, reader_uleb(r), CFI_SAME, 0); break;
	case CFA_restore_extended: set_initial(s, reader_uleb(r)); break;
	case CFA_register:
		reg = reader_uleb(r);
		set_rule(s, reg, CFI_REGISTER, (int64_t)reader_uleb(r));
		break;
	case CFA_offset_extended: set_factored(s, CFI_OFFSET, r, false); break;
	case CFA_offset_extended_sf: set_factored(s, CFI_OFFSET, r, true); break;
	case CFA_negative_offset_extended:
		reg = reader_uleb(r);
		set_rule(s, reg, CFI_OFFSET, factored(s, -(int64_t)(reader_uleb(r) & INT64_MAX)));
		break;
	case CFA_val_offset: set_factored(s, CFI_VAL_OFFSET, r, false); break;
	case CFA_val_offset_sf: set_factored(s, CFI_VAL_OFFSET, r, true); break;
	case CFA_expression: set_expr(s, reader_uleb(r), CFI_EXPRESSION, r); break;
	case CFA_val_expression: set_expr(s, reader_uleb(r), CFI_VAL_EXPRESSION, r); break;

	case CFA_def_cfa:
		reg = reader_uleb(r);
		set_cfa(s, reg, (int64_t)reader_uleb(r));
		break;
	case CFA_def_cfa_sf:
		reg = reader_uleb(r);
		set_cfa(s, reg, factored(s, reader_sleb(r)));
		break;
	case CFA_def_cfa_register: set_cfa(s, reader_uleb(r), s->row->cfa.offset); break;
	case CFA_def_cfa_offset: set_cfa(s, s->row->cfa_reg, (int64_t)reader_uleb(r)); break;
	case CFA_def_cfa_offset_sf: set_cfa(s, s->row->cfa_reg, factored(s, reader_sleb(r))); break;
	case CFA_def_cfa_expression:
		s->row->cfa = (struct cfi_rule){ .how = CFI_VAL_EXPRESSION, .expr = take_expr(r) };
		break;

	case CFA_remember_state: remember(s, r); break;
	case CFA_restore_state: recall(s, r); break;
	case CFA_args_size: reader_uleb(r); break;
	case CFA_negate_ra_state:
	case CFA_negate_ra_state_with_pc: s->row->ra_signed = !s->row->ra_signed; break;
	default: reader_fail(r);	/* the length of its operands is not known */
	}
}

static bool run(struct runner *s, struct reader program)
{
	while (reader_left(&program) && s->loc <= s->pc)
		run_one(s, reader_u8(&program), &program);
	return !program.bad;
}

bool cfi_find_row(uintptr_t pc, struct cfi_row *row)
{
	struct module m;
	struct eh_fde fde;
	struct runner s;

	if (!module_find(pc, &m) || !eh_frame_find(&m, pc, &fde))
		return false;
	memset(row, 0, sizeof(*row));
	row->function = fde.start;
	row->ra_column = (unsigned)fde.cie.ra_column;
	row->signal_frame = fde.cie.signal_frame;
	s.cie = &fde.cie;
	s.pc = pc;
	s.loc = fde.start;
	s.row = row;
	s.depth = 0;
	memset(&s.initial, 0, sizeof(s.initial));
	if (!run(&s, fde.cie.program))
		return false;
	s.initial = *row;
	return run(&s, fde.program);
}

struct reader cfi_expr(const struct cfi_rule *rule)
{
	check(rule->how == CFI_EXPRESSION || rule->how == CFI_VAL_EXPRESSION);
	/* take_expr has checked the length. */
	struct reader r = reader_make(rule->expr, LENGTH_BYTES_MAX);
	uint64_t size = reader_uleb(&r);

	return reader_make(r.at, size);
}
