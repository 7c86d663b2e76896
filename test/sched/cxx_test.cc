/*
 * cxx_test.cc - C++ exceptions: each stays with the goroutine that threw it, wherever
 * that goes on; they pass through goro's calls, and end the program where nobody catches
 * them.
 */
/* test: procs */
#include <goro.h>

#include <exception>
#include <stdexcept>
#include <string>

#include "test.h"

/* ------------------------------------------- exceptions of goroutines that wait */

enum { GOROUTINES = 30, ROUNDS = 10 };

static goro_waitgroup all;

/* Gives way in one of the ways there are. */
static void give_way(int how)
{
	static goro_mutex m;

	switch (how % 4) {
	case 0:
		goro_gosched();
		break;
	case 1:
		goro_sleep(1000);
		break;
	case 2:
		goro_mutex_lock(&m);
		goro_gosched();
		goro_mutex_unlock(&m);
		break;
	default:
		goro_gosched();
		goro_sleep(0);
	}
}

/* Runs f(i) in several goroutines at once; some are locked to their threads. */
template <void f(int)> static void body(int i)
{
	if (i % 7 == 6)
		goro_lock_os_thread();
	for (int round = 0; round < ROUNDS; round++)
		f(i + round);
	CHECK_EQ(std::uncaught_exceptions(), 0);
	CHECK(std::current_exception() == nullptr);
	goro_waitgroup_done(&all);
}

template <void f(int)> static void run_all()
{
	goro_waitgroup_add(&all, GOROUTINES);
	for (int i = 0; i < GOROUTINES; i++)
		go(body<f>, i);
	goro_waitgroup_wait(&all);
}

static void rethrow_after_a_wait(int i)
{
	int caught = -1;

	try {
		try {
			throw i;
		} catch (int e) {
			CHECK_EQ(e, i);
			give_way(i);
			CHECK(std::current_exception() != nullptr);
			CHECK_EQ(std::uncaught_exceptions(), 0);
			give_way(i + 1);
			throw;
		}
	} catch (int e) {
		caught = e;
	}
	CHECK_EQ(caught, i);
}

GO_TEST(a_goroutine_that_waits_in_a_catch_block_rethrows_its_own_exception)
{
	run_all<rethrow_after_a_wait>();
}

static void catch_one_in_another(int i)
{
	try {
		throw std::to_string(i);
	} catch (const std::string &outer) {
		give_way(i);
		try {
			throw i + 1;
		} catch (int inner) {
			give_way(i + 1);
			CHECK_EQ(inner, i + 1);
		}
		give_way(i + 2);
		CHECK(outer == std::to_string(i));
	}
}

GO_TEST(nested_exceptions_stay_with_their_goroutine)
{
	run_all<catch_one_in_another>();
}

struct waits_at_its_end {
	int i;

	~waits_at_its_end()
	{
		CHECK_EQ(std::uncaught_exceptions(), 1);
		give_way(i);
		try {
			throw i;
		} catch (int e) {
			give_way(i + 1);
			CHECK_EQ(e, i);
		}
		give_way(i + 2);
		CHECK_EQ(std::uncaught_exceptions(), 1);
	}
};

static void throw_past_a_destructor(int i)
{
	try {
		waits_at_its_end w = { i };
		throw std::runtime_error(std::to_string(i));
	} catch (const std::exception &e) {
		give_way(i);
		CHECK(e.what() == std::to_string(i));
	}
}

GO_TEST(a_destructor_may_wait_while_an_exception_passes)
{
	run_all<throw_past_a_destructor>();
}

/* ------------------------------------ goroutines that leave a catch block otherwise */

static void exit_in_a_catch_block(int i)
{
	try {
		throw i;
	} catch (int) {
		goro_waitgroup_done(&all);
		goro_goexit();
	}
}

static void see_no_exception(int)
{
	CHECK_EQ(std::uncaught_exceptions(), 0);
	CHECK(std::current_exception() == nullptr);
	goro_waitgroup_done(&all);
}

GO_TEST(a_goroutine_that_exits_in_a_catch_block_leaves_no_exception_to_the_next)
{
	for (int i = 0; i < 100; i++) {
		goro_waitgroup_add(&all, 2);
		go(exit_in_a_catch_block, i);
		go(see_no_exception, i);
		goro_waitgroup_wait(&all);
	}
}

static void panic_in_a_catch_block(void *)
{
	try {
		throw 1;
	} catch (int) {
		goro_gosched();
		goro_panic("in a catch block");
	}
}

GO_TEST(a_panic_that_leaves_a_catch_block_leaves_the_exception)
{
	try {
		throw 17;
	} catch (int e) {
		CHECK_STR(goro_try(panic_in_a_catch_block, nullptr), "in a catch block");
		try {
			throw;
		} catch (int again) {
			CHECK_EQ(again, 17);
		}
	}
	CHECK(std::current_exception() == nullptr);
}

/* ------------------------------------------------- exceptions through goro's calls */

static void throw_number(void *number)
{
	throw *static_cast<int *>(number);
}

/* What call throws, or -1. */
template <typename F> static int thrown_by(F call)
{
	try {
		call();
	} catch (int e) {
		return e;
	}
	return -1;
}

static void throw_from_blocking_calls(int i)
{
	CHECK_EQ(thrown_by([&] { goro_blocking(throw_number, &i); }), i);
	goro_gosched();
}

GO_TEST(an_exception_passes_through_blocking)
{
	for (int i = 0; i < 10; i++)
		run_all<throw_from_blocking_calls>();
}

static void add_one(void *n)
{
	++*static_cast<int *>(n);
}

static void defer_and_throw(void *number)
{
	goro_defer(add_one, number);
	throw_number(number);
}

static void panic_now(void *message)
{
	goro_panic("%s", static_cast<char *>(message));
}

static char again[] = "again";

static void throw_from_tries(int i)
{
	int n = i;

	CHECK_EQ(thrown_by([&] { goro_try(defer_and_throw, &n); }), i);
	CHECK_EQ(n, i + 1);	/* the defer has run */
	CHECK_STR(goro_try(panic_now, again), "again");
}

GO_TEST(an_exception_passes_through_try_after_its_defers)
{
	run_all<throw_from_tries>();
}

static void throw_through_a_try(void *number)
{
	goro_try(defer_and_throw, number);
}

static void throw_through_and_panic(void *)
{
	int n = 5;

	CHECK_EQ(thrown_by([&] { throw_through_a_try(&n); }), 5);
	goro_panic("after it");
}

GO_TEST(after_an_exception_a_panic_comes_back_to_the_try_around_it)
{
	CHECK_STR(goro_try(throw_through_and_panic, nullptr), "after it");
}

static void defer_panic_and_throw(void *number)
{
	goro_defer(panic_now, again);
	throw_number(number);
}

GO_TEST(a_panic_in_a_defer_takes_the_place_of_the_exception)
{
	int n = 3;

	const char *message = nullptr;

	CHECK_EQ(thrown_by([&] { message = goro_try(defer_panic_and_throw, &n); }), -1);
	CHECK_STR(message, "again");
	CHECK_EQ(std::uncaught_exceptions(), 0);
}

struct thrown_once {
	goro_once once;
	goro_waitgroup left;
	int number;
};

static void yield_and_throw(void *arg)
{
	goro_gosched();
	throw_number(&static_cast<thrown_once *>(arg)->number);
}

/* Stays until all have returned: the end of once is not that of the goroutine. */
static void do_once(thrown_once *o, int *thrown)
{
	*thrown = thrown_by([&] { goro_once_do(&o->once, yield_and_throw, o); });
	goro_waitgroup_done(&o->left);
	goro_waitgroup_wait(&o->left);
}

GO_TEST(an_exception_passes_through_once_and_counts_as_an_end)
{
	static thrown_once o = { {}, {}, 8 };	/* main may leave before the others */
	int thrown[GOROUTINES], sum = 0;

	goro_waitgroup_add(&o.left, GOROUTINES);
	for (int i = 0; i < GOROUTINES; i++)
		go(do_once, &o, &thrown[i]);
	goro_waitgroup_wait(&o.left);
	for (int i = 0; i < GOROUTINES; i++)
		sum += thrown[i] + 1;
	CHECK_EQ(sum, 8 + 1);	/* one has had it; the others returned */
	CHECK_EQ(thrown_by([&] { goro_once_do(&o.once, yield_and_throw, &o); }), -1);
}

static void throw_in_once_in_blocking(void *arg)
{
	goro_blocking(throw_number, arg);
}

GO_TEST(an_exception_passes_through_several_calls)
{
	goro_once outer = {};
	static goro_once inner = {};
	int n = 4;

	CHECK_EQ(thrown_by([&] {
		goro_once_do(&outer, [](void *arg) {
			goro_once_do(&inner, throw_in_once_in_blocking, arg);
		}, &n);
	}), 4);
	goro_once_do(&outer, throw_number, &n);
	goro_once_do(&inner, throw_number, &n);
}

/* ------------------------------------------------------------------ arguments */

static volatile int high_byte = 0x100;
alignas(256) static char aligned;
static char *volatile low_byte_is_zero = &aligned;

static void take_converted(bool a, bool b, signed char c, long d)
{
	CHECK_EQ(static_cast<int>(a), 1);
	CHECK_EQ(static_cast<int>(b), 1);
	CHECK_EQ(c, 0);
	CHECK_EQ(d, 0x100);
	goro_waitgroup_done(&all);
}

GO_TEST(arguments_of_go_are_converted_as_in_a_call)
{
	goro_waitgroup_add(&all, 1);
	go(take_converted, high_byte, low_byte_is_zero, high_byte, high_byte);
	goro_waitgroup_wait(&all);
}

/* --------------------------------------------------------- exceptions uncaught */

static void throw_error(void *)
{
	throw std::runtime_error("nobody catches it");
}

static int throw_error_in_group(goro_ctx *, void *arg)
{
	throw_error(arg);
	return 0;
}

static void wait_for_the_end()
{
	goro_sleep(10 * GORO_SECOND);
}

/* Is to end with a report of a goroutine that threw. */
template <void f()> static void ends_uncaught()
{
	test_output o;

	test_run_child([] {
		exit(goro_run([](int, char **) { f(); wait_for_the_end(); return 0; }, 0, nullptr));
	}, &o);
	CHECK_EQ(o.signal, SIGABRT);
	CHECK_CONTAINS(o.err, "panic: uncaught C++ exception std::runtime_error: nobody catches it\n\n"
	                      "goroutine ");
	CHECK_CONTAINS(o.err, "throw_error");
}

static void in_a_goroutine()
{
	go(throw_error, nullptr);
}

static void in_main()
{
	throw_error(nullptr);
}

static void in_a_group()
{
	goro_group_go(goro_group_make(nullptr, 0), throw_error_in_group, nullptr);
}

static void in_a_pool()
{
	goro_pool_submit(goro_pool_make(1, 1), throw_error, nullptr, GORO_FOREVER);
}

static void after_a_time()
{
	goro_after_func(0, throw_error, nullptr);
}

static void after_a_context()
{
	goro_ctx *c = goro_ctx_with_cancel(goro_ctx_background());

	goro_ctx_after_func(c, throw_error, nullptr);
	goro_ctx_cancel(c);
}

static void in_a_destructor_of_a_local()
{
	go(goro_local_set, goro_key_make(throw_error), static_cast<void *>(again));
}

static void in_a_defer()
{
	go(goro_defer, throw_error, nullptr);
}

/* Not to be caught there: the goroutine is on its way to its end. */
static void in_a_defer_of_goexit()
{
	try {
		goro_defer(throw_error, nullptr);
		goro_goexit();
	} catch (...) {
		_exit(3);
	}
}

static void in_a_defer_of_a_panic()
{
	try {
		goro_defer(throw_error, nullptr);
		goro_panic("first");
	} catch (...) {
		_exit(3);
	}
}

TEST(an_uncaught_exception_ends_the_program_with_the_stack_of_its_goroutine)
{
	ends_uncaught<in_a_goroutine>();
	ends_uncaught<in_main>();
	ends_uncaught<in_a_group>();
	ends_uncaught<in_a_pool>();
}

TEST(an_uncaught_exception_of_a_timer_or_context_ends_the_program_the_same)
{
	ends_uncaught<after_a_time>();
	ends_uncaught<after_a_context>();
}

TEST(an_exception_out_of_a_defer_or_destructor_ends_the_program_the_same)
{
	ends_uncaught<in_a_destructor_of_a_local>();
	ends_uncaught<in_a_defer>();
	ends_uncaught<in_a_defer_of_goexit>();
	ends_uncaught<in_a_defer_of_a_panic>();
}
