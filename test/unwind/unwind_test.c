/*
 * unwind_test.c - walks over stacks good and bad
 *
 * Expected addresses come from __builtin_return_address(0), which is right in every
 * function, with or without a frame pointer. An empty asm after each call keeps the
 * compiler from inlining it or making it a jump.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <time.h>

#include "random.h"
#include "test.h"
#include "platform/tool.h"
#include "unwind/unwind.h"

#define NOINLINE    __attribute__((noinline))
#define KEEP_CALL() __asm__ volatile("" ::: "memory")
#define MAX         64

static uintptr_t stack_lo, stack_hi;
static uintptr_t expected[MAX];
static size_t expected_count;
static uintptr_t pcs[MAX];
static size_t pc_count;

static void find_stack(void)
{
	pthread_attr_t attr;
	void *lo;
	size_t size;

	CHECK_EQ(pthread_getattr_np(pthread_self(), &attr), 0);
	CHECK_EQ(pthread_attr_getstack(&attr, &lo, &size), 0);
	pthread_attr_destroy(&attr);
	stack_lo = (uintptr_t)lo;
	stack_hi = stack_lo + size;
}

#define EXPECT_RETURN() (expected[expected_count++] = (uintptr_t)__builtin_return_address(0))

/* Are the expected addresses in pcs, in order, from pcs[first] on? */
static void check_expected(size_t first)
{
	CHECK(expected_count > 0);
	CHECK(pc_count >= first + expected_count);
	for (size_t i = 0; i < expected_count; i++)
		CHECK_EQ(pcs[first + i], expected[expected_count - 1 - i]);
}

static size_t find_pc(uintptr_t pc)
{
	for (size_t i = 0; i < pc_count; i++)
		if (pcs[i] == pc)
			return i;
	FAIL("%#lx is not in the trace", (long)pc);
}

/* ------------------------------------------------------------- own stack */

static bool sp_and_pc_only;

static NOINLINE void walk_here(void)
{
	struct unwind_regs regs;

	EXPECT_RETURN();
	unwind_regs_here(&regs);
	if (sp_and_pc_only)
		regs.valid = 1ull << UNWIND_PC | 1ull << UNWIND_SP;
	pc_count = unwind_walk(&regs, stack_lo, stack_hi, pcs, MAX);
}

static NOINLINE int three(int n)
{
	char padding[24];

	EXPECT_RETURN();
	memset(padding, n, sizeof(padding));
	__asm__ volatile("" ::"r"(padding) : "memory");
	walk_here();
	KEEP_CALL();
	return padding[n];
}

/* A frame of variable size, which is found by the frame pointer. */
static NOINLINE int two(int n)
{
	char *varying = __builtin_alloca((size_t)n * 16);

	EXPECT_RETURN();
	memset(varying, n, (size_t)n * 16);
	__asm__ volatile("" ::"r"(varying) : "memory");
	n = three(n);
	KEEP_CALL();
	return n + varying[n];
}

/* A frame that is aligned beyond what the caller guarantees. */
static NOINLINE int one(int n)
{
	__attribute__((aligned(128))) char aligned[128];

	EXPECT_RETURN();
	memset(aligned, n, sizeof(aligned));
	__asm__ volatile("" ::"r"(aligned) : "memory");
	n = two(n);
	KEEP_CALL();
	return n + aligned[n];
}

TEST(calls_up_to_main_in_order)
{
	find_stack();
	one(3);
	KEEP_CALL();
	check_expected(1);
	/* The test's body, its runner in test.h, main, libc's start. */
	CHECK(pc_count > expected_count + 2);
	CHECK(pc_count < MAX);
}

/* Finds frames, the innermost and others, by a frame pointer that is not known. */
TEST(calls_up_to_main_by_pc_and_sp_alone)
{
	find_stack();
	sp_and_pc_only = true;
	one(3);
	KEEP_CALL();
	check_expected(1);
	CHECK(pc_count > expected_count + 2);
}

TEST(output_is_bounded)
{
	uintptr_t few[4] = { 0, 0, 0, 42 };
	struct unwind_regs regs;

	find_stack();
	unwind_regs_here(&regs);
	CHECK_EQ(unwind_walk(&regs, stack_lo, stack_hi, few, 3), 3);
	CHECK_EQ(few[3], 42);
	CHECK_EQ(unwind_walk(&regs, stack_lo, stack_hi, few, 0), 0);
	regs.valid &= ~(1ull << UNWIND_PC);
	CHECK_EQ(unwind_walk(&regs, stack_lo, stack_hi, few, 3), 0);
}

/* Nothing outside the bounds is read, even if good frames are there. */
TEST(walk_stays_within_the_stack)
{
	struct unwind_regs regs;

	find_stack();
	unwind_regs_here(&regs);
	CHECK_EQ(unwind_walk(&regs, regs.reg[UNWIND_SP], regs.reg[UNWIND_SP], pcs, MAX), 1);
	CHECK_EQ(unwind_walk(&regs, stack_hi, stack_hi + 4096, pcs, MAX), 1);
	CHECK_EQ(unwind_walk(&regs, stack_lo, stack_lo + 64, pcs, MAX), 1);
}

/* ----------------------------------------------------- goroutine entries */

/* As a goroutine's first function, its row says that it has no caller. */

static NOINLINE void outermost(void)
{
#if defined(__x86_64__)
	__asm__ volatile(".cfi_remember_state\n\t.cfi_undefined rip");
#else
	__asm__ volatile(".cfi_remember_state\n\t.cfi_undefined x30");
#endif
	walk_here();
	__asm__ volatile(".cfi_restore_state" ::: "memory");
}

TEST(walk_ends_at_undefined_return_address)
{
	find_stack();
	outermost();
	KEEP_CALL();
	check_expected(1);
	CHECK_EQ(pc_count, 2);
}

/* ---------------------------------------------------------------- signals */

static uintptr_t interrupted_pc;

static void on_signal(int sig, siginfo_t *info, void *uc)
{
	struct unwind_regs regs;

	(void)sig, (void)info;
	unwind_regs_from_ucontext(&regs, uc);
	interrupted_pc = regs.reg[UNWIND_PC];
	unwind_regs_here(&regs);
	pc_count = unwind_walk(&regs, stack_lo, stack_hi, pcs, MAX);
}

static void on_signal_from_ucontext(int sig, siginfo_t *info, void *uc)
{
	struct unwind_regs regs;

	(void)sig, (void)info;
	unwind_regs_from_ucontext(&regs, uc);
	interrupted_pc = regs.reg[UNWIND_PC];
	pc_count = unwind_walk(&regs, stack_lo, stack_hi, pcs, MAX);
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

	CHECK_EQ(sigaction(sig, &sa, NULL), 0);
}

static NOINLINE void trap(void)
{
	EXPECT_RETURN();
#if defined(__x86_64__)
	__asm__ volatile("ud2\n");
#else
	__asm__ volatile("udf #0\n");
#endif
}

static void skip_trap(void *uc)
{
#if defined(__x86_64__)
	((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP] += 2;
#else
	((ucontext_t *)uc)->uc_mcontext.pc += 4;
#endif
}

static void on_trap(int sig, siginfo_t *info, void *uc)
{
	on_signal(sig, info, uc);
	KEEP_CALL();
	skip_trap(uc);
}

static void on_trap_from_ucontext(int sig, siginfo_t *info, void *uc)
{
	on_signal_from_ucontext(sig, info, uc);
	KEEP_CALL();
	skip_trap(uc);
}

static NOINLINE void call_trap(void)
{
	EXPECT_RETURN();
	trap();
	KEEP_CALL();
}

TEST(through_a_signal_frame)
{
	find_stack();
	handle(SIGILL, on_trap, 0);
	call_trap();
	KEEP_CALL();
	/* Stored plus one: a trace looks it up at pc - 1, as it does all others. */
	check_expected(find_pc(interrupted_pc + 1) + 1);
}

TEST(from_the_registers_of_a_signal)
{
	static char alternate[1 << 16];
	stack_t ss = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	find_stack();
	CHECK_EQ(sigaltstack(&ss, NULL), 0);
	handle(SIGILL, on_trap_from_ucontext, SA_ONSTACK);
	call_trap();
	KEEP_CALL();
	CHECK_EQ(pcs[0], interrupted_pc);
	check_expected(1);
}

static sigjmp_buf *out_of_here;

static void on_segv(int sig, siginfo_t *info, void *uc)
{
	on_signal_from_ucontext(sig, info, uc);
	siglongjmp(*out_of_here, 1);
}

static NOINLINE void call_pointer(void (*fn)(void))
{
	EXPECT_RETURN();
	fn();
	KEEP_CALL();
}

/* The commonest crash of all: the trace must show the caller. */
TEST(call_of_a_null_pointer_shows_its_caller)
{
	sigjmp_buf buf;
	void (*volatile fn)(void) = NULL;

	find_stack();
	handle(SIGSEGV, on_segv, 0);
	out_of_here = &buf;
	if (sigsetjmp(buf, 1) == 0)
		call_pointer(fn);
	CHECK_EQ(pcs[0], 0);
	CHECK(pc_count >= 3);
	CHECK_EQ(pcs[2], expected[0]);
}

/* ------------------------------------------------- every single instruction */

#if defined(__x86_64__)

#define TRAP_FLAG 0x100

static size_t steps, wrong;
static uintptr_t first_wrong;
static volatile bool stepping;

/* While `stepping`, asks for another trap after the next instruction. */
static void on_step(int sig, siginfo_t *info, void *uc)
{
	greg_t *flags = &((ucontext_t *)uc)->uc_mcontext.gregs[REG_EFL];
	struct unwind_regs regs;
	size_t n, i = 0;

	(void)sig, (void)info;
	unwind_regs_from_ucontext(&regs, uc);
	n = unwind_walk(&regs, stack_lo, stack_hi, pcs, MAX);
	while (i < n && pcs[i] != expected[0])
		i++;
	steps++;
	if (i == n && wrong++ == 0)
		first_wrong = regs.reg[UNWIND_PC];
	*flags = stepping ? *flags | TRAP_FLAG : *flags & ~TRAP_FLAG;
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void single_step(void)
{
	int numbers[] = { 3, 1, 2 };
	char text[64];

	EXPECT_RETURN();
	stepping = true;
	raise(SIGTRAP);
	one(3);
	qsort(numbers, 3, sizeof(numbers[0]), compare);
	snprintf(text, sizeof(text), "%s %g", "text", numbers[0] * 1.5);
	getppid();
	stepping = false;
	KEEP_CALL();
}

/* A signal in a prologue, an epilogue, a linkage table, the dynamic linker or a system
 * call: the walk finds the way out of all. */
TEST(from_every_instruction)
{
	static char alternate[1 << 17];
	stack_t ss = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	GLIBC_ONLY("musl's functions have no unwind tables");
	if (TOOL_TSAN)
		SKIP("TSan puts signals off");
	find_stack();
	CHECK_EQ(sigaltstack(&ss, NULL), 0);
	handle(SIGTRAP, on_step, SA_ONSTACK);
	single_step();
	KEEP_CALL();
	CHECK(steps > 1000);
	if (wrong)
		FAIL("lost at %zu of %zu instructions, first at %#lx", wrong, steps,
		     (long)first_wrong);
}

#endif

/* ---------------------------------------------------------- other threads */

struct sleeper {
	pthread_t thread;
	int tid;
	uintptr_t lo, hi;
	uintptr_t asleep_in;	/* return address of nap() */
};

static NOINLINE void nap(struct sleeper *s)
{
	struct timespec long_time = { .tv_sec = 1000 };

	s->asleep_in = (uintptr_t)__builtin_return_address(0);
	__atomic_store_n(&s->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	nanosleep(&long_time, NULL);
	KEEP_CALL();
}

static NOINLINE void *sleeper_main(void *arg)
{
	struct sleeper *s = arg;

	find_stack();
	s->lo = stack_lo;
	s->hi = stack_hi;
	nap(s);
	KEEP_CALL();
	return NULL;
}

/* Waits until the thread is in a system call, and takes sp and pc from the kernel. */
static bool read_sp_pc(int tid, struct unwind_regs *regs)
{
	char path[64], line[256];
	unsigned long sp, pc;
	long nr;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	for (int tries = 0; tries < 5000; tries++) {
		int fd = open(path, O_RDONLY);
		ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

		if (fd >= 0)
			close(fd);
		if (n < 0)
			return false;
		line[n] = 0;
		if (sscanf(line, "%ld %*s %*s %*s %*s %*s %*s %lx %lx", &nr, &sp, &pc) == 3 &&
		    (nr == SYS_clock_nanosleep || nr == SYS_nanosleep)) {
			regs->valid = 0;
			unwind_regs_set(regs, UNWIND_SP, sp);
			unwind_regs_set(regs, UNWIND_PC, pc);
			return true;
		}
		usleep(1000);
	}
	return false;
}

TEST(sleeping_thread_by_pc_and_sp_alone)
{
	struct sleeper s = { 0 };
	struct unwind_regs regs;
	int tid;

	GLIBC_ONLY("musl's functions have no unwind tables");
	CHECK_EQ(pthread_create(&s.thread, NULL, sleeper_main, &s), 0);
	while ((tid = __atomic_load_n(&s.tid, __ATOMIC_ACQUIRE)) == 0)
		usleep(1000);
	if (!read_sp_pc(tid, &regs))
		SKIP("no /proc/self/task/TID/syscall here");
	pc_count = unwind_walk(&regs, s.lo, s.hi, pcs, MAX);
	CHECK(pc_count > 2);
	find_pc(s.asleep_in);
}

/* ---------------------------------------------------------------- garbage */

/* Words as a damaged stack has them: noise, small numbers, stack and code addresses. */
static uintptr_t random_value(uintptr_t lo, size_t size, const uintptr_t *code, size_t codes)
{
	switch (random_word() % 8) {
	case 0: return random_word();
	case 1: return random_word() % 64;
	case 2: return lo + random_word() % size;
	case 3:
	case 4: return (lo + random_word() % size) & ~(uintptr_t)15;
	case 5: return code[random_word() % codes] + random_word() % 4096;
	default: return code[random_word() % codes];
	}
}

TEST(garbage_never_crashes_nor_hangs)
{
	enum { WORDS = 512, ROUNDS = 20000 };
	static uintptr_t stack[WORDS];
	uintptr_t lo = (uintptr_t)stack, code[MAX];
	size_t codes, longest = 0;

	find_stack();
	handle(SIGILL, on_trap, 0);
	call_trap();	/* return addresses of a real walk, signal trampoline included */
	KEEP_CALL();
	codes = pc_count;
	memcpy(code, pcs, sizeof(code));
	code[codes++] = (uintptr_t)nanosleep;
	code[codes++] = (uintptr_t)one;
	for (int round = 0; round < ROUNDS; round++) {
		struct unwind_regs regs = { .valid = random_word() | random_word() };

		for (int i = 0; i < WORDS; i++)
			stack[i] = random_value(lo, sizeof(stack), code, codes);
		for (int i = 0; i < UNWIND_NREG; i++)
			regs.reg[i] = random_value(lo, sizeof(stack), code, codes);
		if (round % 2) {
			unwind_regs_set(&regs, UNWIND_PC, code[random_word() % codes]);
			unwind_regs_set(&regs, UNWIND_SP, lo + random_word() % 256 * 8);
		}
		pc_count = unwind_walk(&regs, lo, lo + sizeof(stack), pcs, MAX);
		CHECK(pc_count <= MAX);
		if (pc_count > longest)
			longest = pc_count;
	}
	/* If no walk got this far, the garbage does not look enough like frames. */
	CHECK(longest > 3);
}

/* A copy of the stack at lo. Frame pointers in it point into the copy. */
__attribute__((no_sanitize_address, no_sanitize_thread))
static void copy_stack(uintptr_t *copy, uintptr_t lo, size_t size)
{
	for (size_t i = 0; i < size / 8; i++) {
		uintptr_t word = ((const volatile uintptr_t *)lo)[i];

		copy[i] = word - lo < size ? word - lo + (uintptr_t)copy : word;
	}
}

/* Real frames with some words overwritten. */
TEST(scribbled_stack_never_crashes)
{
	enum { ROUNDS = 10000 };
	static uintptr_t copy[1 << 16];
	struct unwind_regs start;
	uintptr_t sp;
	size_t size;

	find_stack();
	unwind_regs_here(&start);
	sp = start.reg[UNWIND_SP];
	size = stack_hi - sp < sizeof(copy) ? stack_hi - sp : sizeof(copy);
	for (int round = 0; round < ROUNDS; round++) {
		struct unwind_regs regs = start;
		uintptr_t lo = (uintptr_t)copy;

		copy_stack(copy, sp, size);
		for (uint64_t i = random_word() % 16; i > 0; i--)
			copy[random_word() % 256] = random_value(lo, size, copy, 256);
		regs.reg[UNWIND_SP] = lo;
		regs.reg[UNWIND_FP] += lo - sp;
		pc_count = unwind_walk(&regs, lo, lo + size, pcs, MAX);
		CHECK(pc_count >= 1 && pc_count <= MAX);
	}
}

/* ---------------------------------------------------------- frame pointers */

TEST(frame_pointers_lead_out_of_unknown_code)
{
	uintptr_t stack[64] = { 0 }, lo = (uintptr_t)stack;
	struct unwind_regs regs = { 0 };

	/* Two records, and code that belongs to no module. */
	stack[10] = lo + 20 * 8;
	stack[11] = 0x1000;
	stack[20] = 0;
	stack[21] = 0x2000;
	unwind_regs_set(&regs, UNWIND_PC, 0x500);
	unwind_regs_set(&regs, UNWIND_SP, lo);
	CHECK_EQ(unwind_walk(&regs, lo, lo + sizeof(stack), pcs, MAX), 1);
	unwind_regs_set(&regs, UNWIND_FP, lo + 10 * 8);
	CHECK_EQ(unwind_walk(&regs, lo, lo + sizeof(stack), pcs, MAX), 3);
	CHECK_EQ(pcs[1], 0x1000);
	CHECK_EQ(pcs[2], 0x2000);
	/* A record that points at itself is the end, not a loop. */
	stack[10] = lo + 10 * 8;
	CHECK_EQ(unwind_walk(&regs, lo, lo + sizeof(stack), pcs, MAX), 2);
}
