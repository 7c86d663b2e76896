/*
 * g_test.c - goroutines are started with their arguments, on stacks of the size
 * asked for, and leave nothing behind.
 */
#include <goro.h>

#include <sys/resource.h>

#include "platform/atomic.h"
#include "await.h"
#include "limit_memory.h"
#include "base/mem.h"
#include "sched/runtime.h"
#include "stack/stack.h"
#include "test.h"

/* ---------------------------------------------------------------- arguments */

enum colour { RED = -1, GREEN, BLUE = 1 << 30 };

static goro_chan *done;

static void finish(void)
{
	goro_chan_send(done, &(char){ 1 });
}

static void wait_for(int n)
{
	for (int i = 0; i < n; i++)
		CHECK(goro_chan_recv(done, NULL));
}

static void take_0(void)
{
	finish();
}

static void take_1(int a)
{
	CHECK_EQ(a, -7);
	finish();
}

static void take_2(unsigned a, int64_t b)
{
	CHECK_EQ(a, 0xfffffff0u);
	CHECK(b == INT64_MIN);
	finish();
}

static void take_3(const char *a, enum colour b, bool c)
{
	CHECK_STR(a, "text");
	CHECK_EQ(b, RED);
	CHECK(c == true);
	finish();
}

static void take_4(short a, signed char b, unsigned char c, unsigned short d)
{
	CHECK_EQ(a, -300);
	CHECK_EQ(b, -3);
	CHECK_EQ(c, 250);
	CHECK_EQ(d, 65000);
	finish();
}

static void take_5(uint64_t a, int b, void *c, bool d, long e)
{
	CHECK(a == UINT64_MAX);
	CHECK_EQ(b, INT32_MIN);
	CHECK(c == NULL);
	CHECK(d == false);
	CHECK_EQ(e, -1);
	finish();
}

static void take_6(int a, int *b, uint8_t c, enum colour d, int64_t e, void (*f)(void))
{
	CHECK_EQ(a, -1);
	CHECK_EQ(*b, 42);
	CHECK_EQ(c, 255);
	CHECK_EQ(d, BLUE);
	CHECK(e == INT64_C(-5000000000));
	f();
}

GO_TEST(arguments_of_every_kind_arrive)
{
	static int n = 42;
	int minus = -7;

	done = goro_chan_of(char, 0);
	CHECK_EQ(go(take_0), 0);
	CHECK_EQ(go(take_1, minus), 0);
	CHECK_EQ(go(take_2, 0xfffffff0u, INT64_MIN), 0);
	CHECK_EQ(go(take_3, "text", RED, true), 0);
	CHECK_EQ(go(take_4, -300, -3, 250, 65000), 0);
	CHECK_EQ(go(take_5, UINT64_MAX, INT32_MIN, NULL, false, -1L), 0);
	CHECK_EQ(go(take_6, -1, &n, 255, BLUE, INT64_C(-5000000000), finish), 0);
	wait_for(7);
}

static void take_wide(int64_t a, uint64_t b, int64_t c)
{
	CHECK(a == -1);
	CHECK(b == UINT64_MAX);
	CHECK(c == 0xffffffffLL);
	finish();
}

/* As a call would convert them. */
GO_TEST(narrow_arguments_are_widened_with_their_sign)
{
	int minus = -1;
	unsigned ones = ~0u;

	done = goro_chan_of(char, 0);
	go(take_wide, minus, minus, ones);
	wait_for(1);
}

static int returns_something(int n)
{
	finish();
	return n;
}

static void times_ten(int *n)
{
	*n *= 10;
	finish();
}

GO_TEST(arguments_are_evaluated_once_and_now)
{
	int a[3] = { 1, 2, 3 }, i = 0;

	done = goro_chan_of(char, 0);
	go(times_ten, &a[i++]);
	go(times_ten, &a[i++]);
	CHECK_EQ(i, 2);
	wait_for(2);
	CHECK_EQ(a[0], 10);
	CHECK_EQ(a[1], 20);
	CHECK_EQ(a[2], 3);
	go(returns_something, i);
	wait_for(1);
}

GO_TEST(a_function_pointer_can_be_started)
{
	void (*f[2])(void) = { take_0, finish };

	done = goro_chan_of(char, 0);
	for (int i = 0; i < 2; i++)
		go(f[i]);
	wait_for(2);
}

/* In a register a bool is a byte: with these it must not be that of what it comes
 * from. */
static volatile int high_byte = 0x100, wide = 0x12345678;
static _Alignas(256) char aligned;
static char *volatile low_byte_is_zero = &aligned;

static void take_bool(bool a)
{
	CHECK_EQ((int)a, 1);
	finish();
}

static void take_converted(bool a, signed char b, unsigned short c, long d, enum colour e, bool f)
{
	CHECK_EQ((int)a, 1);
	CHECK_EQ(b, 0x78);
	CHECK_EQ(c, 0x5678);
	CHECK_EQ(d, 0x12345678);
	CHECK_EQ(e, RED);
	CHECK_EQ((int)f, 1);
	finish();
}

static __attribute__((noreturn)) void take_and_exit(long a)
{
	CHECK_EQ(a, -1);
	finish();
	goro_goexit();
}

struct two_words { long a, b; };

static struct two_words return_two_words(bool a)
{
	CHECK_EQ((int)a, 1);
	finish();
	return (struct two_words){ 1, 2 };
}

/* Where an argument has another type than its parameter, and the compiler does not say
 * no. */
__extension__ typedef __int128 int128;
static uint32_t arrived;

static void take_last(long a, int128 b)
{
	fetch_add_relaxed(&arrived, a == -1 && b == 7);
}

static void take_first(int128 a, unsigned short b)
{
	fetch_add_relaxed(&arrived, a == -9 && b == 0xfffe);
}

static void take_between(short a, long b, int128 c, bool d)
{
	fetch_add_relaxed(&arrived, a == -2 && b == -3 && c == -4 && d);
}

GO_TEST(an_int128_beside_an_argument_that_is_converted_is_whole)
{
#ifdef __clang__
	SKIP("clang does not tell functions that return from others");
#endif
	go(take_last, -1, 7);
	go(take_first, -9, -2);
	go(take_between, -2, -3, -4, high_byte);
	AWAIT(goro_num_goroutine() == 1);
	CHECK_EQ(load_relaxed(&arrived), 3);
}

GO_TEST(arguments_are_converted_as_in_a_call)
{
	void (*take)(bool) = take_bool;

	done = goro_chan_of(char, 0);
	CHECK_EQ(go(take_bool, high_byte), 0);
	CHECK_EQ(go(take_bool, low_byte_is_zero), 0);
	CHECK_EQ(go(take, high_byte), 0);
	CHECK_EQ(go(take_converted, low_byte_is_zero, wide, wide, wide, RED, high_byte), 0);
	CHECK_EQ(go(take_and_exit, -1), 0);
	CHECK_EQ(go(return_two_words, high_byte), 0);
	wait_for(6);
	goro_chan_unref(done);
}

static void know_the_caller(bool a, uintptr_t begin)
{
	uintptr_t from = (uintptr_t)m_self()->curg->created_at;

	(void)a;
	CHECK(from > begin && from - begin < 4096);
	finish();
}

/* What go compiles to calls the runtime in two ways. */
static __attribute__((noinline)) void start_both_ways(void)
{
	CHECK_EQ(go(know_the_caller, (bool)true, (uintptr_t)start_both_ways), 0);
	CHECK_EQ(go(know_the_caller, high_byte, (uintptr_t)start_both_ways), 0);
}

GO_TEST(a_goroutine_knows_where_it_was_started)
{
	done = goro_chan_of(char, 0);
	start_both_ways();
	wait_for(2);
	goro_chan_unref(done);
}

static int evaluated;

GO_TEST(arguments_are_evaluated_once)
{
	done = goro_chan_of(char, 0);
	CHECK_EQ(go(take_bool, (evaluated++, high_byte)), 0);
	CHECK_EQ(go(take_1, (evaluated++, -7)), 0);
	CHECK_EQ(evaluated, 2);
	wait_for(2);
	goro_chan_unref(done);
}

/* --------------------------------------------------------------------- copy */

static unsigned char pattern(size_t i)
{
	return (unsigned char)(i * 31 + i / 256 + 7);
}

static size_t copy_bytes;
static goro_chan *changed;

static void check_copy(void *arg)
{
	const unsigned char *p = arg;

	goro_chan_recv(changed, NULL);
	CHECK_EQ((uintptr_t)p % 64, 0);
	for (size_t i = 0; i < copy_bytes; i++)
		if (p[i] != pattern(i))
			FAIL("byte %zu of %zu is not what it was", i, copy_bytes);
	finish();
}

static void copy_of(size_t n)
{
	unsigned char *data = malloc(n + 1);

	copy_bytes = n;
	changed = goro_chan_of(char, 0);
	for (size_t i = 0; i < n; i++)
		data[i] = pattern(i);
	CHECK_EQ(goro_go_copy(NULL, check_copy, n ? data : NULL, n), 0);
	memset(data, 0xee, n + 1);
	goro_gosched();
	free(data);
	goro_chan_close(changed);
	wait_for(1);
}

GO_TEST(a_copy_is_private_aligned_and_whole)
{
	static const size_t size[] = { 0, 1, 63, 64, 65, 100, 4096, 100000, 1 << 20 };

	done = goro_chan_of(char, 0);
	for (size_t i = 0; i < sizeof size / sizeof *size; i++)
		copy_of(size[i]);
}

static void write_all(void *arg)
{
	memset(arg, 0x55, copy_bytes);
	goro_gosched();
	for (size_t i = 0; i < copy_bytes; i++)
		CHECK_EQ(((unsigned char *)arg)[i], 0x55);
	finish();
}

GO_TEST(a_copy_may_be_written_and_goroutines_do_not_share_it)
{
	unsigned char data[1000] = { 1 };

	done = goro_chan_of(char, 0);
	copy_bytes = sizeof data;
	for (int i = 0; i < 100; i++)
		CHECK_EQ(goro_go_copy(NULL, write_all, data, sizeof data), 0);
	wait_for(100);
	CHECK_EQ(data[0], 1);
}

static void use_stack(size_t bytes);

static void copy_and_stack(void *arg)
{
	CHECK_EQ(*(unsigned char *)arg, 9);
	use_stack(200 << 10);
	CHECK_EQ(*(unsigned char *)arg, 9);
	finish();
}

GO_TEST(a_large_copy_does_not_take_the_stack_s_room)
{
	size_t n = 200 << 10;
	unsigned char *data = malloc(n);

	done = goro_chan_of(char, 0);
	memset(data, 9, n);
	CHECK_EQ(goro_go_copy(NULL, copy_and_stack, data, n), 0);
	free(data);
	wait_for(1);
}

static void never(void *arg)
{
	(void)arg;
	FAIL("this was not to be started");
}

GO_TEST(a_copy_that_is_too_large_is_refused)
{
	size_t before = goro_num_goroutine();

	CHECK_EQ(goro_go_copy(NULL, never, &before, (size_t)2 << 30), -ENOMEM);
	CHECK_EQ(goro_go_copy(NULL, never, &before, SIZE_MAX), -ENOMEM);
	CHECK_EQ(goro_go_copy(NULL, never, &before, SIZE_MAX - 62), -ENOMEM);
	CHECK_EQ(goro_num_goroutine(), before);
}

/* ------------------------------------------------------------------- stacks */

/* Touches the stack down to here, a kilobyte a call. */
__attribute__((noinline)) static void use_stack_to(const char *low)
{
	volatile char room[1024];

	for (size_t i = 0; i < sizeof room; i++)
		room[i] = (char)i;
	if ((const char *)__builtin_frame_address(0) - 2 * sizeof room > low)
		use_stack_to(low);
	CHECK_EQ(room[sizeof room - 1], (char)(sizeof room - 1));
}

static void use_stack(size_t bytes)
{
	use_stack_to((const char *)__builtin_frame_address(0) - bytes);
}

static void use_most(void *arg)
{
	use_stack(*(size_t *)arg);
	finish();
}

/* What the guard (a sixteenth, at least a page) and the goroutine's own
 * structure leave. */
static size_t usable(size_t stack)
{
	size_t guard = stack / 16 < 4096 ? 4096 : stack / 16;

	return stack - guard - 2048;
}

GO_TEST(a_stack_of_the_size_asked_for_can_be_used)
{
	static const size_t kib[] = { 16, 17, 32, 64, 100, 256, 1024, 8 << 10, 64 << 10 };

	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("frames are much larger with sanitizers");
	done = goro_chan_of(char, 0);
	for (size_t i = 0; i < sizeof kib / sizeof *kib; i++) {
		struct goro_attr attr = { .stack_size = kib[i] << 10 };
		size_t bytes = usable(attr.stack_size);

		for (int k = 0; k < 3; k++) {
			CHECK_EQ(goro_go_attr(&attr, use_most, &bytes), 0);
			wait_for(1);
		}
	}
}

static void just_finish(void *arg)
{
	(void)arg;
	finish();
}

GO_TEST(the_largest_stack_is_a_gibibyte)
{
	struct goro_attr attr = { .stack_size = (size_t)1 << 30 };

	done = goro_chan_of(char, 0);
	CHECK_EQ(goro_go_attr(&attr, just_finish, NULL), 0);
	wait_for(1);
	attr.stack_size++;
	CHECK_EQ(goro_go_attr(&attr, never, NULL), -ENOMEM);
	attr.stack_size = SIZE_MAX;
	CHECK_EQ(goro_go_attr(&attr, never, NULL), -ENOMEM);
	AWAIT(goro_num_goroutine() == 1);
}

GO_TEST(a_tiny_stack_size_is_made_the_smallest)
{
	struct goro_attr attr = { .stack_size = 1 };

	done = goro_chan_of(char, 0);
	CHECK_EQ(goro_go_attr(&attr, just_finish, NULL), 0);
	wait_for(1);
}

GO_TEST(unknown_flags_are_refused)
{
	struct goro_attr attr = { .flags = 1 };

	CHECK_EQ(goro_go_attr(&attr, never, NULL), -EINVAL);
	CHECK_EQ(goro_go_copy(&attr, never, "x", 1), -EINVAL);
	attr.flags = 1u << 31;
	CHECK_EQ(goro_go_attr(&attr, never, NULL), -EINVAL);
}

static void dump_self(void *arg)
{
	char **text = arg;
	size_t n;
	FILE *f = open_memstream(text, &n);

	goro_dump(f);
	fclose(f);
	finish();
}

GO_TEST(a_long_name_is_cut)
{
	char *name = malloc(10001), *text;
	struct goro_attr attr = { .name = name };

	done = goro_chan_of(char, 0);
	memset(name, 'n', 10000);
	name[10000] = '\0';
	CHECK_EQ(goro_go_attr(&attr, dump_self, &text), 0);
	free(name);		/* it was copied */
	wait_for(1);
	CHECK_CONTAINS(text, "\"nnnnnnnnnn");
	CHECK(!strstr(text, "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"));
}

GO_TEST(a_name_does_not_pass_to_the_next_goroutine_on_the_stack)
{
	struct goro_attr attr = { .name = "namesake" };
	char *text;

	done = goro_chan_of(char, 0);
	goro_gomaxprocs(1);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(goro_go_attr(&attr, just_finish, NULL), 0);
		wait_for(1);
	}
	CHECK_EQ(goro_go_attr(NULL, dump_self, &text), 0);
	wait_for(1);
	CHECK(!strstr(text, "namesake"));
}

/* ---------------------------------------------------------------- recycling */

static uintptr_t places[64];
static int places_n;

static void note_place(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)0xffff;
	int i = 0;

	while (i < places_n && places[i] != here)
		i++;
	if (i == places_n && places_n < 64)
		places[places_n++] = here;
	finish();
}

GO_TEST(the_stack_of_an_ended_goroutine_is_used_again)
{
	done = goro_chan_of(char, 0);
	goro_gomaxprocs(1);
	for (int i = 0; i < 1000; i++) {
		go(note_place);
		wait_for(1);
	}
	CHECK(places_n >= 1 && places_n <= 2);
}

static long status_kib(const char *what)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (kib < 0 && fgets(line, sizeof line, f))
		if (!strncmp(line, what, strlen(what)))
			kib = atol(line + strlen(what) + 1);
	fclose(f);
	return kib;
}

static int alive;

static void live(goro_chan *until)
{
	fetch_add_relaxed(&alive, 1);
	goro_chan_recv(until, NULL);
}

static int many(void)
{
	return TOOL_ASAN || TOOL_TSAN ? 5000 : GORO_CHECKS ? 100000 : 1000000;
}

static void start_at(goro_chan *until, int n)
{
	store_relaxed(&alive, 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(go(live, until), 0);
	AWAIT(load_relaxed(&alive) == n);
	CHECK_EQ(goro_num_goroutine(), n + 1);
}

static void end_at(goro_chan *until)
{
	goro_chan_close(until);
	AWAIT(goro_num_goroutine() == 1);
	goro_chan_unref(until);
}

static void start_and_end_many(int n)
{
	goro_chan *until = goro_chan_of(char, 0);

	start_at(until, n);
	end_at(until);
}

/* The sanitizers keep notes about every stack, and do not give those back. */
static void not_with_sanitizers(void)
{
	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("what is measured is the sanitizer's own");
}

GO_TEST_TIMEOUT(a_million_live_at_once, 120)
{
	start_and_end_many(many());
}

static void count_slot(struct g *gp, void *n)
{
	(void)gp;
	++*(int *)n;
}

static void nothing(void)
{
}

/* Each stack that is taken from the system is a page that is touched. */
GO_TEST(a_program_of_few_goroutines_has_few_stacks)
{
	int n = 0;

	go(nothing);
	goro_gosched();
	stack_each(count_slot, &n);
	CHECK(n >= 1 && n <= 4 * goro_gomaxprocs(0) + 4);
}

/* Waits as one who has little to do: while a program runs stacks are given back
 * slowly. */
#define AWAIT_IDLY(cond)                                \
	do {                                            \
		while (!(cond))                         \
			goro_sleep(50 * GORO_MILLISECOND); \
	} while (0)

/* An emulator keeps notes about every page, of more memory than is compared here. */
static void resident_memory_is_ours(void)
{
	not_with_sanitizers();
	if (test_emulated())
		SKIP("what is measured is the emulator's own");
}

GO_TEST_TIMEOUT(the_memory_of_many_is_given_back, 120)
{
	long before = status_kib("VmRSS");
	int n = many() / 4;

	resident_memory_is_ours();
	start_and_end_many(n);
	AWAIT_IDLY(status_kib("VmRSS") < before + n / 2 + 20000);
}

/* Slowly, while the program runs: a tenth of it takes a second. */
GO_TEST_TIMEOUT(a_busy_program_gives_memory_back_too, 60)
{
	int n = 20000;
	long most;

	not_with_sanitizers();
	start_and_end_many(n);
	most = status_kib("VmRSS");
	AWAIT(status_kib("VmRSS") < most - n * 4 / 10);
}

/* An idle process gives it back too: nothing runs while it waits. */
TEST_TIMEOUT(memory_is_given_back_when_all_is_idle, 120)
{
	long limit;

	resident_memory_is_ours();
	goro_gosched();
	limit = status_kib("VmRSS") + many() / 4 + 20000;
	for (int round = 0; round < 2; round++) {
		goro_chan *until = goro_chan_of(char, 0);
		int n = many() / 4;

		alive = 0;
		for (int i = 0; i < n; i++)
			CHECK_EQ(go(live, until), 0);
		while (load_relaxed(&alive) != n)
			usleep(1000);
		goro_chan_close(until);
		while (status_kib("VmRSS") >= limit)
			usleep(10000);
	}
}

GO_TEST_TIMEOUT(address_space_does_not_grow_when_stacks_come_and_go, 120)
{
	long after_first;

	not_with_sanitizers();
	start_and_end_many(SCALED(10000));
	after_first = status_kib("VmSize");
	for (int i = 0; i < 20; i++)
		start_and_end_many(SCALED(10000));
	CHECK(status_kib("VmSize") < after_first + (1 << 20));
}

static void deep(goro_chan *until)
{
	use_stack(100 << 10);
	live(until);
	use_stack(100 << 10);
}

/* Stacks whose memory was given back work as new ones do. */
GO_TEST_TIMEOUT(stacks_given_back_are_usable_again, 120)
{
	int n = SCALED(2000);

	not_with_sanitizers();
	goro_gomaxprocs(2);	/* each P keeps some stacks for itself */
	for (int round = 0; round < 3; round++) {
		goro_chan *until = goro_chan_of(char, 0);
		long most;

		alive = 0;
		for (int i = 0; i < n; i++)
			CHECK_EQ(go(deep, until), 0);
		AWAIT(load_relaxed(&alive) == n);
		most = status_kib("VmRSS");
		CHECK(most > n * 100);
		goro_chan_close(until);
		AWAIT(goro_num_goroutine() == 1);
		AWAIT_IDLY(status_kib("VmRSS") < most - n * 50);
	}
}

/* -------------------------------------------------------------- without memory */

/* None for structures of the runtime's until the limit is put back: the old one. */
static struct rlimit use_up_memory(void)
{
	struct rlimit old, limit;
	struct m *mp;
	unsigned long pages;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	CHECK_EQ(getrlimit(RLIMIT_AS, &old), 0);
	limit = (struct rlimit){ pages * (unsigned long)sysconf(_SC_PAGESIZE), old.rlim_max };
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
	mp = rt_enter();
	while (mem_alloc(CACHE_LINE))
		;
	rt_exit(mp);
	return old;
}

/* So many live at once, on the stacks that there are. (Some may have been given back.) */
static void live_and_end(goro_chan *until, int n, int stacks)
{
	int used = 0;

	start_at(until, n);
	stack_each(count_slot, &used);
	CHECK(used > n && used <= stacks);
	end_at(until);
}

/* The dead are kept in an array; their stacks are given back, if there is no memory for
 * that. Whichever way, each stack is used again, once, and none is made anew. */
GO_TEST(the_dead_are_kept_without_memory_for_it)
{
	enum { FEW = 600, MANY = 3000, ROUNDS = 3 };
	goro_chan *until = goro_chan_of(char, 0), *next[ROUNDS];
	struct rlimit old;
	int stacks = 0;

	needs_memory_limit();
	goro_gomaxprocs(1);
	AWAIT(runtime_is_whole());
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(go(live, until), 0);
	AWAIT(load_relaxed(&alive) == MANY);
	stack_each(count_slot, &stacks);
	for (int i = 0; i < ROUNDS; i++)
		next[i] = goro_chan_of(char, 0);
	old = use_up_memory();
	goro_chan_close(until);
	AWAIT(goro_num_goroutine() == 1);
	for (int round = 0; round < ROUNDS; round++)
		live_and_end(next[round], MANY, stacks);
	CHECK_EQ(setrlimit(RLIMIT_AS, &old), 0);	/* now some both ways */
	for (int round = 0; round < ROUNDS; round++) {
		live_and_end(goro_chan_of(char, 0), FEW, stacks);
		live_and_end(goro_chan_of(char, 0), MANY, stacks);
	}
}

/* ------------------------------------------------- state of its own that it leaves */

static void (*leave)(void);

static void be_clean_and_leave_state(void)
{
	struct g *gp = m_self()->curg;

	CHECK_EQ(gp->preempt_off, 0);
	CHECK_EQ(gp->lock_depth, 0);
	CHECK_STR(gp->name, "");
	finish();
	goro_set_name("a name");
	goro_preempt_disable();
	goro_preempt_disable();
	if (leave)
		leave();
}

/* One after the other: each is likely to have the stack of the one before. */
static void run_in_turn(int n)
{
	goro_gomaxprocs(1);
	done = goro_chan_of(char, 0);
	for (int i = 0; i < n; i++) {
		go(be_clean_and_leave_state);
		wait_for(1);
		goro_gosched();
	}
	goro_chan_unref(done);
}

GO_TEST(preemption_is_on_again_after_a_goroutine_that_returns_with_it_off)
{
	run_in_turn(50);
}

GO_TEST(preemption_is_on_again_after_a_goroutine_that_exits_with_it_off)
{
	leave = goro_goexit;
	run_in_turn(50);
}
