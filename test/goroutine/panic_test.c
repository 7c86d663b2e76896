/*
 * panic_test.c - defers run in order whatever ends the goroutine; a panic comes
 * back to the innermost goro_try or ends the process in Go's words.
 */
/* test: procs */
/* test: leaks */
#include <goro.h>
#include <pthread.h>
#include <sys/resource.h>

#include "await.h"
#include "limit_memory.h"
#include "sched/runtime.h"
#include "test.h"

/* The steps of a test, in one string. */
static char steps[256];

static void step(void *what)
{
	strcat(steps, what);
}

static goro_chan *over;

static void say_over(void *arg)
{
	(void)arg;
	goro_chan_close(over);
}

/* Runs f as a goroutine until its defers have run. */
static void run_to_end(void (*f)(void))
{
	over = goro_chan_of(char, 0);
	go(f);
	CHECK(!goro_chan_recv(over, NULL));
	goro_chan_unref(over);
}

/* ------------------------------------------------------------------- defers */

static void defer_three(void)
{
	goro_defer(say_over, NULL);
	goro_defer(step, "3");
	goro_defer(step, "2");
	goro_defer(step, "1");
	step("0");
}

GO_TEST(defers_run_last_first_at_the_end_of_the_goroutine)
{
	run_to_end(defer_three);
	CHECK_STR(steps, "0123");
}

static void defer_more(void *arg)
{
	step(arg);
	goro_defer(step, "c");
	goro_defer(step, "b");
}

static void defer_in_defer(void)
{
	goro_defer(say_over, NULL);
	goro_defer(step, "d");
	goro_defer(defer_more, "a");
}

GO_TEST(a_defer_made_in_a_defer_runs_before_those_made_earlier)
{
	run_to_end(defer_in_defer);
	CHECK_STR(steps, "abcd");
}

static void defer_three_then_goexit(void)
{
	defer_three();
	goro_goexit();
}

GO_TEST(goexit_runs_the_defers)
{
	run_to_end(defer_three_then_goexit);
	CHECK_STR(steps, "0123");
}

static void yield_and_step(void *arg)
{
	for (int i = 0; i < 100; i++)
		goro_gosched();
	step(arg);
}

static void defers_that_yield(void)
{
	goro_defer(say_over, NULL);
	goro_defer(yield_and_step, "b");
	goro_defer(yield_and_step, "a");
	goro_goexit();
}

GO_TEST(defers_may_yield)
{
	run_to_end(defers_that_yield);
	CHECK_STR(steps, "ab");
}

/* -------------------------------------------------------------- try and panic */

static void nothing(void *arg)
{
	(void)arg;
}

static void panic_with_number(void *arg)
{
	goro_panic("number %d", *(int *)arg);
}

GO_TEST(try_returns_null_or_the_message)
{
	int n = 17;

	CHECK(goro_try(nothing, NULL) == NULL);
	CHECK_STR(goro_try(panic_with_number, &n), "number 17");
	CHECK(goro_try(nothing, NULL) == NULL);
}

static void panic_without_preemption(void *arg)
{
	goro_preempt_disable();
	panic_with_number(arg);
}

GO_TEST(preemption_is_on_again_after_a_panic_where_it_was_off)
{
	int n = 17;

	goro_preempt_disable();
	CHECK_STR(goro_try(panic_without_preemption, &n), "number 17");
	CHECK_EQ(m_self()->curg->preempt_off, 1);
	goro_preempt_enable();
	CHECK_STR(goro_try(panic_without_preemption, &n), "number 17");
	CHECK_EQ(m_self()->curg->preempt_off, 0);
}

/* ------------------------------------------------------- out of a blocking call */

static void block_and_panic(void *n)
{
	goro_blocking(panic_with_number, n);
}

/* While the goroutines are in their calls, their Ps go to other Ms. */
static void panic_in_blocking_calls(goro_waitgroup *wg)
{
	for (int i = 0; i < 20; i++) {
		char number[32];

		snprintf(number, sizeof number, "number %d", i);
		CHECK_STR(goro_try(block_and_panic, &i), number);
		goro_gosched();
	}
	goro_waitgroup_done(wg);
}

GO_TEST(a_panic_comes_back_from_a_blocking_call)
{
	goro_waitgroup wg = { { 0 } };

	goro_waitgroup_add(&wg, 20);
	for (int i = 0; i < 20; i++)
		go(panic_in_blocking_calls, &wg);
	goro_waitgroup_wait(&wg);
}

static void defer_yield_and_panic(void *arg)
{
	goro_defer(yield_and_step, "a");
	panic_with_number(arg);
}

static void block_defer_and_panic(void *n)
{
	goro_blocking(defer_yield_and_panic, n);
}

GO_TEST(defers_of_a_panic_in_a_blocking_call_may_yield)
{
	int n = 1;

	CHECK_STR(goro_try(block_defer_and_panic, &n), "number 1");
	CHECK_STR(steps, "a");
}

static void catch_in_blocking(void *n)
{
	CHECK_STR(goro_try(panic_with_number, n), "number 2");
}

GO_TEST(a_panic_may_be_caught_inside_of_a_blocking_call)
{
	int n = 2;

	goro_blocking(catch_in_blocking, &n);
	goro_gosched();
	goro_syscall_enter();
	catch_in_blocking(&n);
	goro_syscall_exit();
	goro_gosched();
}

static void exit_from_blocking(void *arg)
{
	(void)arg;
	goro_goexit();
}

static void block_and_exit(void)
{
	goro_defer(say_over, NULL);
	goro_defer(yield_and_step, "b");
	goro_blocking(exit_from_blocking, NULL);
}

GO_TEST(goexit_leaves_a_blocking_call)
{
	run_to_end(block_and_exit);
	CHECK_STR(steps, "b");
}

static void panic_long(void *arg)
{
	goro_panic("%s%s", (char *)arg, (char *)arg);
}

GO_TEST(a_message_may_be_long)
{
	enum { N = 100000 };
	char *text = malloc(N + 1);
	const char *message;

	memset(text, 'x', N);
	text[N] = '\0';
	message = goro_try(panic_long, text);
	CHECK_EQ(strlen(message), 2 * N);
	free(text);
}

static void defer_and_panic(void *arg)
{
	goro_defer(step, "b");
	goro_defer(step, "a");
	goro_panic("%s", (char *)arg);
}

static void defer_and_return(void *arg)
{
	goro_defer(step, arg);
}

GO_TEST(try_runs_the_defers_made_inside_and_no_others)
{
	goro_defer(step, "outside");
	CHECK_STR(goro_try(defer_and_panic, "p"), "p");
	CHECK_STR(steps, "ab");
	CHECK(goro_try(defer_and_return, "c") == NULL);
	CHECK_STR(steps, "abc");
}

static void inner(void *arg)
{
	CHECK_STR(goro_try(defer_and_panic, "inner"), "inner");
	step("c");
	goro_panic("outer %s", (char *)arg);
}

GO_TEST(tries_nest)
{
	CHECK_STR(goro_try(inner, "one"), "outer one");
	CHECK_STR(steps, "abc");
	CHECK_STR(goro_try(inner, "two"), "outer two");
}

static void nest(void *arg)
{
	int depth = (int)(intptr_t)arg;

	if (depth == 0)
		goro_panic("bottom");
	const char *message = goro_try(nest, (void *)(intptr_t)(depth - 1));
	CHECK(message);
	goro_panic("%d %s", depth, message);
}

/* The message of one try is an argument of the next panic. */
GO_TEST(a_message_is_valid_until_the_next_try)
{
	CHECK_STR(goro_try(nest, (void *)5), "5 4 3 2 1 bottom");
}

static void panic_in_defer(void *arg)
{
	step("x");
	goro_panic("%s", (char *)arg);
}

static void panic_twice(void *arg)
{
	(void)arg;
	goro_defer(step, "y");
	goro_defer(panic_in_defer, "second");
	goro_panic("first");
}

GO_TEST(a_panic_in_a_defer_takes_the_place_of_the_first)
{
	CHECK_STR(goro_try(panic_twice, NULL), "second");
	CHECK_STR(steps, "xy");
}

static void panic_in_last_defer(void *arg)
{
	goro_defer(step, "y");
	goro_defer(panic_in_defer, arg);
}

GO_TEST(a_panic_in_a_defer_after_a_normal_return_is_the_try_s)
{
	CHECK_STR(goro_try(panic_in_last_defer, "late"), "late");
	CHECK_STR(steps, "xy");
}

static void try_in_defer(void *arg)
{
	int n = 5;

	CHECK_STR(goro_try(panic_with_number, &n), "number 5");
	step(arg);
}

static void panic_over_try(void *arg)
{
	goro_defer(try_in_defer, "t");
	goro_panic("%s", (char *)arg);
}

GO_TEST(a_defer_may_try_while_a_panic_passes)
{
	CHECK_STR(goro_try(panic_over_try, "kept"), "kept");
	CHECK_STR(steps, "t");
}

static void yield_then_panic(void *arg)
{
	for (int i = 0; i < 10; i++)
		goro_gosched();
	goro_panic("%d", (int)(intptr_t)arg);
}

static void try_often(int me, goro_waitgroup *wg)
{
	char expected[16];

	for (int i = 0; i < 50; i++) {
		snprintf(expected, sizeof expected, "%d", me * 1000 + i);
		CHECK_STR(goro_try(yield_then_panic, (void *)(intptr_t)(me * 1000 + i)), expected);
		goro_gosched();
	}
	goro_waitgroup_done(wg);
}

GO_TEST(panics_of_many_goroutines_do_not_mix)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 100);
	for (int i = 0; i < 100; i++)
		go(try_often, i, &wg);
	goro_waitgroup_wait(&wg);
}

/* -------------------------------------------------------------------- goexit */

static void goexit_in_try(void *arg)
{
	goro_defer(step, arg);
	goro_goexit();
}

static void goexit_in_nested_tries(void *arg)
{
	goro_defer(step, "b");
	goro_try(goexit_in_try, arg);
	FAIL("goexit was stopped by a try");
}

static void goexit_through_tries(void)
{
	goro_defer(say_over, NULL);
	goro_defer(step, "c");
	goro_try(goexit_in_nested_tries, "a");
	FAIL("goexit was stopped by a try");
}

GO_TEST(goexit_passes_through_tries_and_runs_all_defers)
{
	run_to_end(goexit_through_tries);
	CHECK_STR(steps, "abc");
}

static void goexit_with_panicking_defer(void *arg)
{
	goro_defer(step, "b");
	goro_defer(panic_in_defer, arg);
	goro_goexit();
}

static void goexit_past_a_panic(void)
{
	goro_defer(say_over, NULL);
	goro_try(goexit_with_panicking_defer, "ignored");
	FAIL("goexit was stopped by a panic that was recovered");
}

GO_TEST(goexit_goes_on_after_a_panic_in_a_defer_inside_a_try)
{
	run_to_end(goexit_past_a_panic);
	CHECK_STR(steps, "xb");
}

static void exit_in_defer(void *arg)
{
	step(arg);
	goro_goexit();
}

static void goexit_while_panicking(void)
{
	goro_defer(say_over, NULL);
	goro_defer(step, "b");
	goro_defer(exit_in_defer, "a");
	goro_panic("given up by goexit");
}

GO_TEST(goexit_in_a_defer_ends_a_panic)
{
	run_to_end(goexit_while_panicking);
	CHECK_STR(steps, "ab");
}

static void fresh_state(goro_chan *c)
{
	int n = 3;

	CHECK_STR(goro_try(panic_with_number, &n), "number 3");
	goro_chan_send(c, &n);
}

/* A goroutine ends by goexit inside tries. The next one on its stack finds nothing of
 * it. */
GO_TEST(a_new_goroutine_starts_without_tries_and_defers)
{
	goro_chan *c = goro_chan_of(int, 0);

	goro_gomaxprocs(1);
	for (int i = 0; i < 100; i++) {
		steps[0] = '\0';
		run_to_end(i % 2 ? goexit_through_tries : goexit_while_panicking);
		go(fresh_state, c);
		CHECK(goro_chan_recv(c, NULL));
	}
	goro_chan_unref(c);
}

/* ------------------------------------------------------------- plain threads */

static void *plain_try(void *arg)
{
	int n = 8;

	(void)arg;
	CHECK(goro_try(nothing, NULL) == NULL);
	CHECK_STR(goro_try(panic_with_number, &n), "number 8");
	CHECK_STR(goro_try(inner, "thread"), "outer thread");
	return (void *)1;
}

TEST(plain_threads_try_and_panic)
{
	pthread_t t;
	void *result;

	CHECK(plain_try(NULL));
	for (int i = 0; i < 10; i++) {
		steps[0] = '\0';
		pthread_create(&t, NULL, plain_try, NULL);
		pthread_join(t, &result);
		CHECK(result);
		CHECK_STR(steps, "abc");
	}
}

static void *plain_defer(void *arg)
{
	goro_defer(step, arg);
	return NULL;
}

static void *plain_panic_without_defers(void *arg)
{
	int n = 1;

	(void)arg;
	goro_try(panic_with_number, &n);
	goro_goexit();
}

/* A thread's defers run when it ends, and never in another thread. */
TEST(defers_of_a_plain_thread_run_when_it_ends)
{
	pthread_t t;

	pthread_create(&t, NULL, plain_defer, "a");
	pthread_join(t, NULL);
	CHECK_STR(steps, "a");
	pthread_create(&t, NULL, plain_panic_without_defers, NULL);
	pthread_join(t, NULL);
	CHECK_STR(steps, "a");
}

static void *plain_goexit(void *arg)
{
	goro_defer(step, "b");
	goro_try(goexit_in_try, arg);
	return (void *)1;
}

TEST(goexit_ends_a_plain_thread)
{
	pthread_t t;
	void *result;

	pthread_create(&t, NULL, plain_goexit, "a");
	pthread_join(t, &result);
	CHECK(result == NULL);
	CHECK_STR(steps, "ab");
	steps[0] = '\0';
	pthread_create(&t, NULL, plain_try, NULL);	/* on the first's G */
	pthread_join(t, &result);
	CHECK(result);
	CHECK_STR(steps, "abc");
}

/* --------------------------------------------------------- ends of the process */

/* Ends with the status and what the runtime prints first. */
static void ended_with(const struct test_output *o, const char *text)
{
	CHECK_EQ(o->status, 2);
	if (strncmp(o->err, text, strlen(text)) != 0)
		FAIL("it begins otherwise than \"%s\"", text);
}

static void ends_with(void (*program)(void), const char *text)
{
	struct test_output o;

	test_run_child(program, &o);
	ended_with(&o, text);
}

static int run_f(int argc, char **argv)
{
	(void)argc;
	((void (*)(void))(void *)argv)();
	return 0;
}

static void run_in_main(void (*f)(void))
{
	goro_run(run_f, 0, (char **)(void *)f);
}

static void panic_plainly(void)
{
	goro_panic("bad %s", "thing");
}

static void panic_in_main(void)
{
	run_in_main(panic_plainly);
}

/* malloc has not a byte left afterwards. */
static void use_up_malloc(void)
{
	setrlimit(RLIMIT_AS, &(struct rlimit){ 0, 0 });
	for (size_t n = 1 << 20; n >= 8; n /= 2)
		while (malloc(n))
			;
}

static void panic_about(void *what)
{
	goro_panic("no room for %s", (const char *)what);
}

static void panic_without_memory(void)
{
	const char *message;

	AWAIT(runtime_is_whole());
	use_up_malloc();
	message = goro_try(panic_about, "one");
	if (!message || strcmp(message, "(out of memory)") != 0)
		_exit(1);
	if (goro_try(step, "2"))
		_exit(1);
	panic_about("three");
}

static void panic_in_main_without_memory(void)
{
	run_in_main(panic_without_memory);
}

TEST(a_panic_needs_no_memory)
{
	needs_memory_limit();
	ends_with(panic_in_main_without_memory, "panic: no room for three\n\ngoroutine 1 [running]:\n");
}

TEST(a_panic_prints_its_message_and_the_stack)
{
	ends_with(panic_in_main, "panic: bad thing\n\ngoroutine 1 [running]:\n");
	CHECK_CONTAINS(test_last_output.err, "panic_plainly(...)\n\t");
	CHECK_CONTAINS(test_last_output.err, "panic_test.c:");
}

static void start_panic(void)
{
	goro_chan *c = goro_chan_of(char, 0);

	go(panic_plainly);
	goro_chan_recv(c, NULL);
}

static void panic_in_goroutine(void)
{
	run_in_main(start_panic);
}

TEST(a_panic_in_a_goroutine_ends_the_process)
{
	ends_with(panic_in_goroutine, "panic: bad thing\n\ngoroutine ");
	CHECK(!strstr(test_last_output.err, "goroutine 1 ["));
	CHECK_CONTAINS(test_last_output.err, "created by start_panic in goroutine 1\n");
}

static void panic_a_b_c(void)
{
	goro_defer(panic_in_defer, "c");
	goro_defer(panic_in_defer, "b");
	goro_panic("a");
}

static void nested_panics(void)
{
	run_in_main(panic_a_b_c);
}

TEST(nested_panics_are_all_printed)
{
	ends_with(nested_panics, "panic: a\n\tpanic: b\n\tpanic: c\n\ngoroutine 1 [running]:\n");
}

static void print_line(void *arg)
{
	dprintf(1, "%s\n", (char *)arg);
}

static void defer_and_die(void)
{
	goro_defer(print_line, "second");
	goro_defer(print_line, "first");
	goro_panic("over");
}

static void defers_then_death(void)
{
	run_in_main(defer_and_die);
}

TEST(defers_run_before_an_unrecovered_panic_ends_the_process)
{
	ends_with(defers_then_death, "panic: over\n\ngoroutine 1 [running]:\n");
	CHECK_STR(test_last_output.out, "first\nsecond\n");
}

static void panic_after_recovery(void)
{
	int n = 1;

	goro_try(panic_with_number, &n);
	goro_panic("two");
}

static void recovered_first(void)
{
	run_in_main(panic_after_recovery);
}

TEST(a_recovered_panic_is_not_printed_with_the_next)
{
	ends_with(recovered_first, "panic: two\n\ngoroutine 1 [running]:\n");
}

TEST(a_panic_in_a_plain_thread_ends_the_process)
{
	ends_with(panic_plainly, "panic: bad thing\n\n");
	CHECK_CONTAINS(test_last_output.err, "panic_plainly(...)\n\t");
}

static void goexit_main(void)
{
	run_in_main(goro_goexit);
}

static void call(void (*program)(void))
{
	program();
}

TEST(goexit_of_main_is_a_deadlock_once_all_others_are_gone)
{
	struct test_output o;

	test_needs_deadlocks();
	test_run_anew(call, goexit_main, &o);
	ended_with(&o, "fatal error: no goroutines (main called runtime.Goexit) - deadlock!\n");
}

static void exit_7(void)
{
	for (int i = 0; i < 1000; i++)
		goro_gosched();
	exit(7);
}

static void main_goexits_first(void)
{
	go(exit_7);
	goro_goexit();
}

static void goexit_main_with_others(void)
{
	run_in_main(main_goexits_first);
}

TEST(goexit_of_main_lets_the_others_go_on)
{
	struct test_output o;

	test_run_child(goexit_main_with_others, &o);
	CHECK_EQ(o.status, 7);
}
