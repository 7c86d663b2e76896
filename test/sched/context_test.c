/*
 * context_test.c - the switch between contexts, without a scheduler around it.
 *
 * The archive's g_start and sched_exit are not linked. context_entry calls the two here:
 * one runs the function that the context was made for, the other leaves the context.
 */
#include <fenv.h>

#include "unwind/unwind.h"
#include "unwind/symbol.h"
/* test: in parts */
#include "test.h"

#define NOINLINE    __attribute__((noinline))
#define KEEP_CALL() __asm__ volatile("" ::: "memory")
#define MAX         64

struct coroutine {
	struct context context;		/* its own, at rest */
	struct context caller;		/* of who resumed it */
	void (*fn)(struct coroutine *);
	void (*at_end)(struct coroutine *);	/* or NULL */
	bool ended;
	_Alignas(16) char stack[1 << 16];
};

struct coroutine *g_start(struct coroutine *co);
__attribute__((used)) struct coroutine *g_start(struct coroutine *co)
{
	co->fn(co);
	KEEP_CALL();
	return co;
}

_Noreturn void sched_exit(struct coroutine *co);
_Noreturn __attribute__((used)) void sched_exit(struct coroutine *co)
{
	co->ended = true;
	if (co->at_end)
		co->at_end(co);
	context_jump(&co->caller, co);
}

/* For context_entry's unwind table; nothing unwinds here. */
int thread_end_personality(void);
int thread_end_personality(void)
{
	abort();
}

static void make(struct coroutine *co, void (*fn)(struct coroutine *))
{
	memset(co->stack, 0xa5, sizeof co->stack);
	co->fn = fn;
	co->at_end = NULL;
	co->ended = false;
	context_make(&co->context, co->stack + sizeof co->stack);
}

static NOINLINE void *resume(struct coroutine *co, void *pass)
{
	return context_switch(&co->caller, &co->context, pass);
}

static NOINLINE void *yield(struct coroutine *co, void *pass)
{
	return context_switch(&co->context, &co->caller, pass);
}

static struct coroutine one, two;

/* ------------------------------------------------------------ what is passed */

static void echo(struct coroutine *co)
{
	void *p = &one;

	for (int i = 0; i < 100; i++)
		p = yield(co, (char *)p + 1);
}

TEST(passed_value_arrives_both_ways)
{
	char *p = (char *)&one;

	make(&one, echo);
	CHECK(resume(&one, &one) == p + 1);
	for (int i = 1; i < 100; i++)
		CHECK(resume(&one, p + 7 * i) == p + 7 * i + 1);
	CHECK(!one.ended);
	CHECK(resume(&one, NULL) == &one);
	CHECK(one.ended);
}

/* ----------------------------------------------------------------- registers */

/*
 * void registers_across(void (*fn)(void *), void *arg, const uint64_t *in, uint64_t
 * *out); Fills the callee-saved registers from in, calls fn(arg), and writes to out what
 * they hold then.
 */
void registers_across(void (*fn)(void *), void *arg, const uint64_t *in, uint64_t *out);

#if defined(__x86_64__)
#define REGISTERS 6
__asm__(".text\n"
	"registers_across:\n"
	"	pushq %rbx\n	pushq %rbp\n	pushq %r12\n"
	"	pushq %r13\n	pushq %r14\n	pushq %r15\n"
	"	pushq %rcx\n"
	"	movq (%rdx), %rbx\n	movq 8(%rdx), %rbp\n	movq 16(%rdx), %r12\n"
	"	movq 24(%rdx), %r13\n	movq 32(%rdx), %r14\n	movq 40(%rdx), %r15\n"
	"	movq %rdi, %rax\n"
	"	movq %rsi, %rdi\n"
	"	call *%rax\n"
	"	popq %rcx\n"
	"	movq %rbx, (%rcx)\n	movq %rbp, 8(%rcx)\n	movq %r12, 16(%rcx)\n"
	"	movq %r13, 24(%rcx)\n	movq %r14, 32(%rcx)\n	movq %r15, 40(%rcx)\n"
	"	popq %r15\n	popq %r14\n	popq %r13\n"
	"	popq %r12\n	popq %rbp\n	popq %rbx\n"
	"	ret\n");
#else
#define REGISTERS 19
__asm__(".text\n"
	"registers_across:\n"
	"	stp x29, x30, [sp, #-176]!\n"
	"	stp x19, x20, [sp, #16]\n	stp x21, x22, [sp, #32]\n"
	"	stp x23, x24, [sp, #48]\n	stp x25, x26, [sp, #64]\n"
	"	stp x27, x28, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n	stp d14, d15, [sp, #144]\n"
	"	str x3, [sp, #160]\n"
	"	ldp x19, x20, [x2]\n	ldp x21, x22, [x2, #16]\n"
	"	ldp x23, x24, [x2, #32]\n	ldp x25, x26, [x2, #48]\n"
	"	ldp x27, x28, [x2, #64]\n	ldr x29, [x2, #80]\n"
	"	ldp d8, d9, [x2, #88]\n	ldp d10, d11, [x2, #104]\n"
	"	ldp d12, d13, [x2, #120]\n	ldp d14, d15, [x2, #136]\n"
	"	mov x9, x0\n"
	"	mov x0, x1\n"
	"	blr x9\n"
	"	ldr x3, [sp, #160]\n"
	"	stp x19, x20, [x3]\n	stp x21, x22, [x3, #16]\n"
	"	stp x23, x24, [x3, #32]\n	stp x25, x26, [x3, #48]\n"
	"	stp x27, x28, [x3, #64]\n	str x29, [x3, #80]\n"
	"	stp d8, d9, [x3, #88]\n	stp d10, d11, [x3, #104]\n"
	"	stp d12, d13, [x3, #120]\n	stp d14, d15, [x3, #136]\n"
	"	ldp x19, x20, [sp, #16]\n	ldp x21, x22, [sp, #32]\n"
	"	ldp x23, x24, [sp, #48]\n	ldp x25, x26, [sp, #64]\n"
	"	ldp x27, x28, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n	ldp d14, d15, [sp, #144]\n"
	"	ldp x29, x30, [sp], #176\n"
	"	ret\n");
#endif

static void check_across(void (*fn)(void *), void *arg, uint64_t seed)
{
	uint64_t in[REGISTERS], out[REGISTERS];

	for (unsigned i = 0; i < REGISTERS; i++)
		in[i] = (seed + i) * UINT64_C(0x9e3779b97f4a7c15);
	registers_across(fn, arg, in, out);
	for (unsigned i = 0; i < REGISTERS; i++)
		if (in[i] != out[i])
			FAIL("register %u: %#llx, not %#llx", i, (long long)out[i], (long long)in[i]);
}

static void yield_call(void *co)
{
	yield(co, NULL);
}

static void resume_call(void *co)
{
	resume(co, co);
}

static void yield_with_registers(struct coroutine *co)
{
	for (uint64_t i = 0; i < 10; i++)
		check_across(yield_call, co, 1000 * i);
}

TEST(registers_survive_on_both_sides)
{
	make(&one, yield_with_registers);
	for (uint64_t i = 0; !one.ended; i++)
		check_across(resume_call, &one, 77 * i + 1);
}

/* ------------------------------------------------------------- rounding mode */

static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };

static double third(void)
{
	volatile double a = 1, b = 3;

	return a / b;
}

static void yield_with_modes(struct coroutine *co)
{
	CHECK_EQ(fegetround(), FE_TONEAREST);	/* not that of who started it */
	for (int i = 0; i < 8; i++) {
		fesetround(modes[i % 4]);
		yield(co, NULL);
		CHECK_EQ(fegetround(), modes[i % 4]);
	}
}

TEST(rounding_mode_belongs_to_the_context)
{
	double up, down;

	fesetround(FE_UPWARD);
	up = third();
	fesetround(FE_DOWNWARD);
	down = third();
	CHECK(up > down);
	make(&one, yield_with_modes);
	for (int i = 1; !one.ended; i++) {
		fesetround(modes[i / 2 % 4]);
		resume(&one, &one);
		CHECK_EQ(fegetround(), modes[i / 2 % 4]);
		CHECK(i / 2 % 4 != 1 || third() == up);
		CHECK(i / 2 % 4 != 2 || third() == down);
	}
}

/* -------------------------------------------------------------------- stacks */

static uintptr_t frame_of_call, own_sp;

/* An aligned variable of 16 bytes needs no code if the stack is as the ABI says,
 * so it is misaligned if it is not. */
static NOINLINE void look_at_stack(struct coroutine *co)
{
	_Alignas(16) volatile char aligned[16] = { 0 };

	(void)co;
	own_sp = (uintptr_t)aligned;
	frame_of_call = (uintptr_t)__builtin_dwarf_cfa();
}

TEST(stack_is_aligned_at_entry)
{
	make(&one, look_at_stack);
	CHECK_EQ((uintptr_t)one.context.sp % 16, 0);
	CHECK_EQ((uintptr_t)one.context.sp, (uintptr_t)one.stack + sizeof one.stack);
	resume(&one, &one);
	CHECK(one.ended);
	CHECK_EQ(own_sp % 16, 0);
	CHECK_EQ(frame_of_call % 16, 0);
	CHECK(own_sp > (uintptr_t)one.stack && own_sp < (uintptr_t)one.stack + sizeof one.stack);
}

/* Nothing below the frames of a context at rest is needed, nothing above written. */
static void fill(struct coroutine *co)
{
	for (int i = 0; i < 3; i++)
		yield(co, NULL);
}

TEST(stacks_do_not_touch_each_other)
{
	make(&one, fill);
	make(&two, fill);
	for (int i = 0; i < 3; i++) {
		resume(&one, &one);
		memset(one.stack, i, (size_t)((char *)one.context.sp - one.stack));
		resume(&two, &two);
		memset(two.stack, i, (size_t)((char *)two.context.sp - two.stack));
	}
	resume(&one, &one);
	resume(&two, &two);
	CHECK(one.ended && two.ended);
}

/* -------------------------------------------------------------------- traces */

static uintptr_t pcs[MAX];
static size_t pc_count;

static NOINLINE void inner(struct coroutine *co)
{
	yield(co, NULL);
	KEEP_CALL();
}

static NOINLINE void outer(struct coroutine *co)
{
	inner(co);
	KEEP_CALL();
}

static const char *name_of(uintptr_t pc)
{
	static struct symbol s;

	return symbol_find(pc, &s) ? s.function : "";
}

/* From the frame that switched to the entry, and no further. */
TEST(walk_from_a_context_at_rest_ends_at_its_entry)
{
	static const char *const names[] = { "yield", "inner", "outer", "g_start", "context_entry" };
	struct unwind_regs regs;

	make(&one, outer);
	resume(&one, &one);
	context_regs(&regs, &one.context);
	pc_count = unwind_walk(&regs, (uintptr_t)one.stack,
	                       (uintptr_t)one.stack + sizeof one.stack, pcs, MAX);
	CHECK_EQ(pc_count, 5);
	for (int i = 0; i < 5; i++)
		CHECK_STR(name_of(pcs[i] - (i > 0)), names[i]);
}

TEST(walk_from_a_new_context_is_its_entry)
{
	struct unwind_regs regs;

	make(&one, outer);
	context_regs(&regs, &one.context);
	CHECK_EQ(unwind_walk(&regs, (uintptr_t)one.stack,
	                     (uintptr_t)one.stack + sizeof one.stack, pcs, MAX), 1);
	CHECK_STR(name_of(pcs[0]), "context_entry");
}

/* As C++ exceptions and pthread_exit do: <unwind.h>, which our own header hides. */
int _Unwind_Backtrace(int (*fn)(void *at, void *arg), void *arg);
uintptr_t _Unwind_GetIP(void *at);

static uintptr_t frames[MAX];
static int frame_count;

#ifdef __GLIBC__
static int note_frame(void *at, void *arg)
{
	(void)arg;
	if (frame_count < MAX && _Unwind_GetIP(at) != 0)
		frames[frame_count++] = _Unwind_GetIP(at);
	return 0;
}
#else
#define _Unwind_Backtrace(fn, arg) ((void)0)
#endif

static NOINLINE void walk_by_libgcc(struct coroutine *co)
{
	(void)co;
	_Unwind_Backtrace(note_frame, NULL);
	KEEP_CALL();
}

TEST(libgcc_walks_to_the_entry_and_stops)
{
	static const char *const names[] = { "walk_by_libgcc", "g_start", "context_entry" };

	GLIBC_ONLY("gcc's unwinder is made for glibc here");
	make(&one, walk_by_libgcc);
	resume(&one, &one);
	CHECK_EQ(frame_count, 3);
	for (int i = 0; i < 3; i++)
		CHECK_STR(name_of(frames[frame_count - 3 + i] - 1), names[i]);
}

static NOINLINE void nothing(struct coroutine *co)
{
	(void)co;
	KEEP_CALL();
}

/* The same from the entry's end, which is jumped to; the stack looks as after a call. */
TEST(walks_from_the_end_stop_at_the_entry)
{
	static const char *const names[] = { "walk_by_libgcc", "sched_exit", "context_entry" };
	struct unwind_regs regs;

	GLIBC_ONLY("gcc's unwinder is made for glibc here");
	make(&one, nothing);
	one.at_end = walk_by_libgcc;
	resume(&one, &one);
	CHECK(one.ended && frame_count >= 3);
	for (int i = 0; i < 3; i++)
		CHECK_STR(name_of((uintptr_t)frames[frame_count - 3 + i] - 1), names[i]);
	make(&one, nothing);
	one.at_end = outer;
	resume(&one, &one);
	context_regs(&regs, &one.context);
	pc_count = unwind_walk(&regs, (uintptr_t)one.stack,
	                       (uintptr_t)one.stack + sizeof one.stack, pcs, MAX);
	CHECK_EQ(pc_count, 5);
	CHECK_STR(name_of(pcs[3] - 1), "sched_exit");
	CHECK_STR(name_of(pcs[4] - 1), "context_entry");
	resume(&one, &one);
	CHECK(one.ended);
}
