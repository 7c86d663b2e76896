/*
 * dwarf_expr_test.c - the expression machine, on small programs
 */
#include "dwarf_expr.h"
#include "test.h"

enum {
	DEREF = 0x06, CONST1U = 0x08, CONST1S = 0x09, CONST2U = 0x0a, CONST4S = 0x0d, CONST8U = 0x0e,
	CONSTU = 0x10, CONSTS = 0x11, DUP = 0x12, DROP = 0x13, OVER = 0x14, PICK = 0x15, SWAP = 0x16,
	ROT = 0x17, ABS = 0x19, AND = 0x1a, DIV = 0x1b, MINUS = 0x1c, MOD = 0x1d, MUL = 0x1e,
	NEG = 0x1f, NOT = 0x20, OR = 0x21, PLUS = 0x22, PLUS_UCONST = 0x23, SHL = 0x24, SHR = 0x25,
	SHRA = 0x26, XOR = 0x27, BRA = 0x28, EQ = 0x29, GE = 0x2a, GT = 0x2b, LE = 0x2c, LT = 0x2d,
	NE = 0x2e, SKIP_ = 0x2f, LIT0 = 0x30, BREG0 = 0x70, BREGX = 0x92, DEREF_SIZE = 0x94,
	NOP = 0x96,
};

static uintptr_t words[4] = { 0x1122334455667788, 2, 3, 4 };
static struct unwind_frame frame;
static uintptr_t result;

static bool eval(const uint8_t *ops, size_t n)
{
	frame.stack_lo = (uintptr_t)words;
	frame.stack_hi = (uintptr_t)(words + 4);
	return dwarf_expr_eval(reader_make(ops, n), &frame, NULL, &result);
}

#define OPS(...)   ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })
#define GIVES(value, ...)                                                   \
	do {                                                                \
		CHECK(eval(OPS(__VA_ARGS__)));                              \
		CHECK_EQ(result, (uintptr_t)(value));                       \
	} while (0)
#define FAILS(...) CHECK(!eval(OPS(__VA_ARGS__)))
#define LIT(n)     (LIT0 + (n))

TEST(constants)
{
	GIVES(7, LIT(7));
	GIVES(200, CONST1U, 200);
	GIVES(-56, CONST1S, 200);
	GIVES(0x1234, CONST2U, 0x34, 0x12);
	GIVES(-2, CONST4S, 0xfe, 0xff, 0xff, 0xff);
	GIVES(0x8877665544332211, CONST8U, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88);
	GIVES(300, CONSTU, 0xac, 0x02);
	GIVES(-128, CONSTS, 0x80, 0x7f);
	FAILS(CONST2U, 1);
	FAILS(CONSTU, 0x80);
}

TEST(arithmetic)
{
	GIVES(5, LIT(2), LIT(3), PLUS);
	GIVES(-1, LIT(2), LIT(3), MINUS);
	GIVES(6, LIT(2), LIT(3), MUL);
	GIVES(-3, LIT(7), NEG, LIT(2), DIV);
	GIVES(1, LIT(7), LIT(2), MOD);
	GIVES(7, LIT(7), NEG, ABS);
	GIVES(-8, LIT(7), NOT);
	GIVES(6, LIT(14), LIT(7), AND);
	GIVES(15, LIT(14), LIT(7), OR);
	GIVES(9, LIT(14), LIT(7), XOR);
	GIVES(12, LIT(3), LIT(2), SHL);
	GIVES(3, LIT(12), LIT(2), SHR);
	GIVES(-2, LIT(7), NEG, LIT(2), SHRA);
	GIVES(0, LIT(1), CONST1U, 64, SHL);
	GIVES(-1, LIT(1), NEG, CONST1U, 200, SHRA);
	GIVES(131, LIT(3), PLUS_UCONST, 0x80, 0x01);
	FAILS(LIT(1), LIT(0), DIV);
	FAILS(LIT(1), LIT(0), MOD);
	FAILS(LIT(1), PLUS);
}

TEST(comparisons_are_signed)
{
	GIVES(1, LIT(1), NEG, LIT(1), LT);
	GIVES(0, LIT(1), NEG, LIT(1), GE);
	GIVES(1, LIT(2), LIT(1), GT);
	GIVES(1, LIT(1), LIT(1), LE);
	GIVES(1, LIT(1), LIT(1), EQ);
	GIVES(0, LIT(1), LIT(1), NE);
}

TEST(stack_operations)
{
	GIVES(4, LIT(2), DUP, PLUS);
	GIVES(1, LIT(1), LIT(2), DROP);
	GIVES(1, LIT(1), LIT(2), OVER);
	GIVES(1, LIT(1), LIT(2), LIT(3), PICK, 2);
	GIVES(-1, LIT(2), LIT(1), SWAP, MINUS);
	/* 1 2 3 becomes 3 1 2: 2 on top, 1 below it */
	GIVES(-1, LIT(1), LIT(2), LIT(3), ROT, MINUS);
	FAILS(DROP);
	FAILS(LIT(1), PICK, 1);
	FAILS(NOP);
}

TEST(jumps)
{
	GIVES(2, LIT(2), SKIP_, 1, 0, DROP);
	GIVES(2, LIT(2), LIT(1), BRA, 1, 0, DROP);
	GIVES(5, LIT(5), LIT(2), LIT(0), BRA, 1, 0, DROP);
	FAILS(LIT(2), SKIP_, 100, 0);
	FAILS(LIT(2), SKIP_, 0x80, 0xff);
	FAILS(SKIP_, 0xfd, 0xff);	/* back to itself, for ever */
}

TEST(endless_pushes_end)
{
	FAILS(LIT(1), SKIP_, 0xfc, 0xff);
}

TEST(registers_and_memory)
{
	frame.regs.valid = 0;
	FAILS(BREG0 + UNWIND_SP, 0);
	unwind_regs_set(&frame.regs, UNWIND_SP, (uintptr_t)words);
	GIVES((uintptr_t)words + 8, BREG0 + UNWIND_SP, 8);
	GIVES((uintptr_t)words - 8, BREGX, UNWIND_SP, 0x78);
	GIVES(words[1], BREG0 + UNWIND_SP, 8, DEREF);
	GIVES(0x88, BREG0 + UNWIND_SP, 0, DEREF_SIZE, 1);
	GIVES(0x5566, BREG0 + UNWIND_SP, 2, DEREF_SIZE, 2);
	FAILS(BREG0 + UNWIND_SP, 32, DEREF);		/* beyond the stack */
	FAILS(BREG0 + UNWIND_SP, 0x78, DEREF);		/* below it */
	FAILS(BREG0 + UNWIND_SP, 1, DEREF);		/* not aligned */
	FAILS(BREG0 + UNWIND_SP, 7, DEREF_SIZE, 2);
	FAILS(BREGX, 100, 0);
	FAILS(LIT(0), DEREF);
}

TEST(first_value_is_given)
{
	const uint8_t ops[] = { LIT(1), PLUS };
	uintptr_t first = 41;

	CHECK(dwarf_expr_eval(reader_make(ops, sizeof(ops)), &frame, &first, &result));
	CHECK_EQ(result, 42);
}

TEST(unknown_operations_fail)
{
	FAILS(LIT(1), 0xff);
	FAILS(LIT(1), LIT(1), 0x01);
	FAILS(LIT(1), LIT(1), 0x9c);
}
