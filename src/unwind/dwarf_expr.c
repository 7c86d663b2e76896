/*
 * dwarf_expr.c - DWARF expressions, as far as unwind information uses them
 *
 * A DWARF expression is a program for a small stack machine. The ones that matter
 * here describe the signal frame (glibc's __restore_rt: every register is "the word
 * at rsp + constant"), entries of the procedure linkage table (how much has been
 * pushed depends on the low bits of pc), and functions that realign their stack.
 *
 * The machine refuses rather than guesses: any operation that fails makes the whole
 * expression fail. Memory is read through unwind_load only, that is, from the stack
 * being walked: unwind expressions have no other business. A budget of operations
 * ends loops.
 */
#include "dwarf_expr.h"

enum {
	OP_addr = 0x03, OP_deref = 0x06, OP_const1u = 0x08, OP_const1s, OP_const2u,
	OP_const2s, OP_const4u, OP_const4s, OP_const8u, OP_const8s, OP_constu, OP_consts,
	OP_dup = 0x12, OP_drop, OP_over, OP_pick, OP_swap, OP_rot, OP_abs = 0x19, OP_and,
	OP_div, OP_minus, OP_mod, OP_mul, OP_neg, OP_not, OP_or, OP_plus, OP_plus_uconst,
	OP_shl, OP_shr, OP_shra, OP_xor, OP_bra, OP_eq, OP_ge, OP_gt, OP_le, OP_lt, OP_ne,
	OP_skip, OP_lit0 = 0x30, OP_lit31 = 0x4f, OP_breg0 = 0x70, OP_breg31 = 0x8f,
	OP_bregx = 0x92, OP_deref_size = 0x94, OP_nop = 0x96,
};

#define STACK_SLOTS 32
#define OPS_MAX 512

struct machine {
	const struct unwind_frame *frame;
	const uint8_t *start;		/* jumps must not leave [start, ops.end) */
	struct reader ops;
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

/* Pushes the entry that is `index` below the top. */
static void pick(struct machine *m, unsigned index)
{
	if (index >= m->depth)
		m->bad = true;
	else
		push(m, m->stack[m->depth - 1 - index]);
}

/* The top goes below the two under it. */
static void rotate(struct machine *m)
{
	uintptr_t a = pop(m), b = pop(m), c = pop(m);

	push(m, a);
	push(m, c);
	push(m, b);
}

static void push_register(struct machine *m, uint64_t reg, int64_t offset)
{
	if (reg >= UNWIND_NREG || !unwind_regs_know(&m->frame->regs, (unsigned)reg))
		m->bad = true;
	else
		push(m, m->frame->regs.reg[reg] + (uintptr_t)offset);
}

/* `size` bytes of the stack; they may be anywhere within one aligned word. */
static void load(struct machine *m, unsigned size)
{
	uintptr_t addr = pop(m), word;
	unsigned within = addr % sizeof(word);

	if (size == 0 || size > sizeof(word) || within + size > sizeof(word) ||
	    !unwind_load(m->frame, addr - within, &word)) {
		m->bad = true;
		return;
	}
	word >>= 8 * within;
	if (size < sizeof(word))
		word &= ((uintptr_t)1 << 8 * size) - 1;
	push(m, word);
}

static void jump(struct machine *m, int16_t distance, bool taken)
{
	if (!taken)
		return;
	if (distance < m->start - m->ops.at || distance > m->ops.end - m->ops.at)
		m->bad = true;
	else
		m->ops.at += distance;
}

static uintptr_t divide(struct machine *m, intptr_t a, intptr_t b)
{
	if (b == 0 || (a == INTPTR_MIN && b == -1)) {
		m->bad = true;
		return 0;
	}
	return (uintptr_t)(a / b);
}

static uintptr_t modulo(struct machine *m, uintptr_t a, uintptr_t b)
{
	if (b == 0) {
		m->bad = true;
		return 0;
	}
	return a % b;
}

static uintptr_t shift_arithmetic(uintptr_t a, uintptr_t b)
{
	uintptr_t sign = (intptr_t)a < 0 ? UINTPTR_MAX : 0;

	if (b >= 64)
		return sign;
	return b ? a >> b | sign << (64 - b) : a;
}

/* a is the entry below the top, b the top. */
static void binary(struct machine *m, uint8_t op)
{
	uintptr_t b = pop(m), a = pop(m);
	intptr_t sa = (intptr_t)a, sb = (intptr_t)b;

	switch (op) {
	case OP_and: push(m, a & b); break;
	case OP_div: push(m, divide(m, sa, sb)); break;
	case OP_minus: push(m, a - b); break;
	case OP_mod: push(m, modulo(m, a, b)); break;
	case OP_mul: push(m, a * b); break;
	case OP_or: push(m, a | b); break;
	case OP_plus: push(m, a + b); break;
	case OP_shl: push(m, b < 64 ? a << b : 0); break;
	case OP_shr: push(m, b < 64 ? a >> b : 0); break;
	case OP_shra: push(m, shift_arithmetic(a, b)); break;
	case OP_xor: push(m, a ^ b); break;
	case OP_eq: push(m, a == b); break;
	case OP_ge: push(m, sa >= sb); break;
	case OP_gt: push(m, sa > sb); break;
	case OP_le: push(m, sa <= sb); break;
	case OP_lt: push(m, sa < sb); break;
	case OP_ne: push(m, a != b); break;
	case OP_swap: push(m, b); push(m, a); break;
	default: m->bad = true;
	}
}

static void step(struct machine *m, uint8_t op)
{
	struct reader *r = &m->ops;
	uintptr_t a;

	if (op >= OP_lit0 && op <= OP_lit31) {
		push(m, op - OP_lit0);
		return;
	}
	if (op >= OP_breg0 && op <= OP_breg31) {
		push_register(m, op - OP_breg0, reader_sleb(r));
		return;
	}
	switch (op) {
	case OP_addr:
	case OP_const8u:
	case OP_const8s: push(m, reader_u64(r)); break;
	case OP_const1u: push(m, reader_u8(r)); break;
	case OP_const1s: push(m, (uintptr_t)(intptr_t)(int8_t)reader_u8(r)); break;
	case OP_const2u: push(m, reader_u16(r)); break;
	case OP_const2s: push(m, (uintptr_t)(intptr_t)(int16_t)reader_u16(r)); break;
	case OP_const4u: push(m, reader_u32(r)); break;
	case OP_const4s: push(m, (uintptr_t)(intptr_t)(int32_t)reader_u32(r)); break;
	case OP_constu: push(m, reader_uleb(r)); break;
	case OP_consts: push(m, (uintptr_t)reader_sleb(r)); break;
	case OP_bregx: a = reader_uleb(r); push_register(m, a, reader_sleb(r)); break;
	case OP_deref: load(m, sizeof(uintptr_t)); break;
	case OP_deref_size: load(m, reader_u8(r)); break;
	case OP_dup: pick(m, 0); break;
	case OP_over: pick(m, 1); break;
	case OP_pick: pick(m, reader_u8(r)); break;
	case OP_drop: pop(m); break;
	case OP_rot: rotate(m); break;
	case OP_abs: a = pop(m); push(m, (intptr_t)a < 0 ? -a : a); break;
	case OP_neg: push(m, -pop(m)); break;
	case OP_not: push(m, ~pop(m)); break;
	case OP_plus_uconst: a = pop(m); push(m, a + reader_uleb(r)); break;
	case OP_skip: a = reader_u16(r); jump(m, (int16_t)a, true); break;
	case OP_bra: a = reader_u16(r); jump(m, (int16_t)a, pop(m) != 0); break;
	case OP_nop: break;
	default: binary(m, op);
	}
}

bool dwarf_expr_eval(struct reader ops, const struct unwind_frame *f, const uintptr_t *first,
		     uintptr_t *result)
{
	struct machine m;

	m.frame = f;
	m.start = ops.at;
	m.ops = ops;
	m.bad = ops.bad;
	m.depth = 0;
	if (first)
		push(&m, *first);
	for (int budget = OPS_MAX; reader_left(&m.ops) && !m.bad; budget--) {
		if (budget == 0)
			return false;
		step(&m, reader_u8(&m.ops));
	}
	*result = pop(&m);
	return !m.bad && !m.ops.bad;
}
