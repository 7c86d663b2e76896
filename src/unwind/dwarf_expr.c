/*
 * dwarf_expr.c - DWARF expressions, as far as unwind information uses them
 *
 * A DWARF expression is a program for a small stack machine. Three kinds of code need
 * them: the signal frame (glibc's __restore_rt: each register is the word at rsp +
 * constant), entries of the procedure linkage table (the low bits of pc tell how much
 * they have pushed), and functions that realign their stack.
 *
 * The operations here are all that the unwind tables of 660 programs and libraries of
 * Debian have. None of them jumps, so every expression ends. Any other operation, and one
 * that fails, makes the expression fail. Memory is read only through unwind_load, from
 * the stack being walked: unwind expressions need no other.
 */
#include "unwind/cfi.h"

enum {
	OP_deref = 0x06, OP_const1u = 0x08, OP_const1s, OP_const2u, OP_const2s, OP_const4u,
	OP_const4s, OP_const8u, OP_const8s, OP_constu, OP_consts, OP_drop = 0x13, OP_and = 0x1a,
	OP_minus = 0x1c, OP_plus = 0x22, OP_plus_uconst, OP_shl, OP_ge = 0x2a, OP_lit0 = 0x30,
	OP_lit31 = 0x4f, OP_breg0 = 0x70, OP_breg31 = 0x8f,
};

#define STACK_SLOTS 32

struct machine {
	const struct unwind_frame *frame;
	bool bad;
	unsigned depth;
	uintptr_t stack[STACK_SLOTS];
};

static void push(struct machine *m, uintptr_t value)
{
	if (m->depth == STACK_SLOTS)
		m->bad = true;
	else
		m->stack[m->depth++] = value;
}

static uintptr_t pop(struct machine *m)
{
	if (m->depth == 0) {
		m->bad = true;
		return 0;
	}
	return m->stack[--m->depth];
}

static void push_register(struct machine *m, unsigned reg, int64_t offset)
{
	m->bad |= !unwind_regs_know(&m->frame->regs, reg);
	if (!m->bad)
		push(m, m->frame->regs.reg[reg] + (uintptr_t)offset);
}

/* a is the entry below the top, b the top. */
static void binary(struct machine *m, uint8_t op)
{
	uintptr_t b = pop(m), a = pop(m);

	switch (op) {
	case OP_and: push(m, a & b); break;
	case OP_minus: push(m, a - b); break;
	case OP_plus: push(m, a + b); break;
	case OP_shl: push(m, b < 64 ? a << b : 0); break;
	case OP_ge: push(m, (intptr_t)a >= (intptr_t)b); break;
	default: m->bad = true;
	}
}

static void step(struct machine *m, uint8_t op, struct reader *r)
{
	uintptr_t a = 0;

	if (op >= OP_lit0 && op <= OP_lit31) {
		push(m, op - OP_lit0);
		return;
	}
	if (op >= OP_breg0 && op <= OP_breg31) {
		push_register(m, op - OP_breg0, reader_sleb(r));
		return;
	}
	switch (op) {
	case OP_const1u: push(m, reader_u8(r)); break;
	case OP_const1s: push(m, (uintptr_t)(intptr_t)(int8_t)reader_u8(r)); break;
	case OP_const2u: push(m, reader_u16(r)); break;
	case OP_const2s: push(m, (uintptr_t)(intptr_t)(int16_t)reader_u16(r)); break;
	case OP_const4u: push(m, reader_u32(r)); break;
	case OP_const4s: push(m, (uintptr_t)(intptr_t)(int32_t)reader_u32(r)); break;
	case OP_const8u:
	case OP_const8s: push(m, reader_u64(r)); break;
	case OP_constu: push(m, reader_uleb(r)); break;
	case OP_consts: push(m, (uintptr_t)reader_sleb(r)); break;
	case OP_drop: pop(m); break;
	case OP_plus_uconst: push(m, pop(m) + reader_uleb(r)); break;
	case OP_deref:
		m->bad |= !unwind_load(m->frame, pop(m), &a);
		push(m, a);
		break;
	default: binary(m, op);
	}
}

bool dwarf_expr_eval(struct reader ops, const struct unwind_frame *f, const uintptr_t *first,
		     uintptr_t *result)
{
	struct machine m = { .frame = f, .bad = ops.bad };

	if (first)
		push(&m, *first);
	while (reader_left(&ops) && !m.bad)
		step(&m, reader_u8(&ops), &ops);
	*result = pop(&m);
	return !m.bad && !ops.bad;
}
