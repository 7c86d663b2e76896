/*
 * dwarf_expr_test.c - the expression machine, on small programs
 */
#include "unwind/cfi.h"
#include "test.h"

enum {
	DEREF = 0x06, CONST1U = 0x08, CONST1S = 0x09, CONST2U = 0x0a, CONST4S = 0x0d, CONST8U = 0x0e,
	CONSTU = 0x10, CONSTS = 0x11, DUP = 0x12, DROP = 0x13, AND = 0x1a, DIV = 0x1b, MINUS = 0x1c,
	PLUS = 0x22, PLUS_UCONST = 0x23, SHL = 0x24, BRA = 0x28, GE = 0x2a, SKIP_ = 0x2f, LIT0 = 0x30,
	BREG0 = 0x70,
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
	GIVES(6, LIT(14), LIT(7), AND);
	GIVES(12, LIT(3), LIT(2), SHL);
	GIVES(0, LIT(1), CONST1U, 64, SHL);
	GIVES(131, LIT(3), PLUS_UCONST, 0x80, 0x01);
	GIVES(0, CONST1S, 0xff, LIT(1), GE);
	GIVES(1, LIT(1), LIT(1), GE);
	GIVES(1, LIT(1), LIT(2), DROP);
	FAILS(LIT(1), PLUS);
	FAILS(DROP);
}

/* As linkers write it for entries of a linkage table, at both sides of its push. */
TEST(a_linkage_table)
{
	for (uintptr_t pc = 0x1000; pc < 0x1010; pc++) {
		unwind_regs_set(&frame.regs, UNWIND_SP, (uintptr_t)words);
		unwind_regs_set(&frame.regs, UNWIND_FP, pc);	/* stands for pc */
		GIVES((uintptr_t)words + 8 + (pc % 16 >= 11 ? 8 : 0), BREG0 + UNWIND_SP, 8,
		      BREG0 + UNWIND_FP, 0, LIT(15), AND, LIT(11), GE, LIT(3), SHL, PLUS);
	}
}

TEST(registers_and_memory)
{
	frame.regs.valid = 0;
	FAILS(BREG0 + UNWIND_SP, 0);
	unwind_regs_set(&frame.regs, UNWIND_SP, (uintptr_t)words);
	GIVES((uintptr_t)words + 8, BREG0 + UNWIND_SP, 8);
	GIVES(words[1], BREG0 + UNWIND_SP, 8, DEREF);
	FAILS(BREG0 + UNWIND_SP, 32, DEREF);		/* beyond the stack */
	FAILS(BREG0 + UNWIND_SP, 0x78, DEREF);		/* below it */
	FAILS(BREG0 + UNWIND_SP, 1, DEREF);		/* not aligned */
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
	FAILS(LIT(1), DUP);
	FAILS(LIT(2), LIT(1), DIV);
	FAILS(LIT(1), SKIP_, 0xfc, 0xff);
	FAILS(LIT(1), LIT(1), BRA, 0, 0);
}
