/*
 * panic_cxx_test.cc - a panic calls the destructors between goro_panic and its goro_try.
 */
/* test: procs */
#include <goro.hpp>

#include <exception>
#include <stdexcept>
#include <string>

#include "test.h"

/* The message of the panic in f. */
template <class F> static std::string panic_of(F f)
{
	return goro::catch_panic(f).value_or("none");
}

/* Says its letter when it ends. */
struct says {
	std::string &to;
	char letter;

	~says() { to += letter; }
};

/* A new object in each frame. */
[[gnu::noinline]] static void panic_below(std::string &to, int depth)
{
	says one = { to, static_cast<char>('0' + depth) };

	if (to.size() == 1000)
		return;		/* never; compilers warn of a recursion without an end */
	if (depth > 0)
		panic_below(to, depth - 1);
	else
		goro_panic("bottom");
	to += "not reached";
}

GO_TEST(a_panic_calls_destructors_from_the_inside_out)
{
	std::string said;

	CHECK(panic_of([&] { panic_below(said, 3); }) == "bottom");
	CHECK_STR(said.c_str(), "0123");
	said = "";
	{
		says outside = { said, 'o' };

		CHECK(goro::catch_panic([&] { panic_below(said, 0); }).has_value());
		CHECK_STR(said.c_str(), "0");	/* none beyond the try */
	}
}

GO_TEST(defers_run_before_the_destructors)
{
	static std::string said;

	said = "";
	goro::catch_panic([&] {
		says one = { said, 'd' };

		goro_defer([](void *) { said += "defer "; }, nullptr);
		goro_panic("now");
	});
	CHECK_STR(said.c_str(), "defer d");
}

GO_TEST(misuse_calls_destructors)
{
	goro::chan<int> c;
	goro_mutex m = {};
	bool deferred = false;

	c.close();
	CHECK(goro::catch_panic([&] {
		goro::lock_guard held(m);
		goro::defer d([&] { deferred = true; });

		c.send(1);
	}).has_value());
	CHECK(goro_mutex_try_lock(&m));
	CHECK(deferred);
}

GO_TEST(a_panic_in_a_catch_block_ends_the_block)
{
	static std::string said;
	struct thrown {
		~thrown() { said += "t"; }
	};

	said = "";
	CHECK(panic_of([] {
		try {
			throw thrown();
		} catch (const thrown &) {
			goro_panic("in a catch block");
		}
	}) == "in a catch block");
	CHECK_STR(said.c_str(), "t");
	CHECK(std::current_exception() == nullptr);
	CHECK_EQ(std::uncaught_exceptions(), 0);
}

GO_TEST(a_catch_block_cannot_keep_a_panic)
{
	std::string said;

	CHECK(panic_of([&] {
		says outer = { said, 'o' };

		try {
			says inner = { said, 'i' };

			goro_panic("goes on");
		} catch (const std::exception &) {
			said += "exception ";
		} catch (...) {
			said += "c";	/* where C++ runs it for what is no exception */
		}
		said += "not reached";
	}) == "goes on");
	CHECK(said == "ico" || said == "io");
	said = "";
	CHECK(panic_of([&] {
		says outer = { said, 'o' };

		try {
			goro_panic("thrown on");
		} catch (...) {
			throw;
		}
	}) == "thrown on");
	CHECK_STR(said.c_str(), "o");
}

GO_TEST(exceptions_are_as_they_were_around_the_try)
{
	try {
		throw 17;
	} catch (int) {
		std::string said;

		CHECK(goro::catch_panic([&] { panic_below(said, 1); }).has_value());
		CHECK_STR(said.c_str(), "01");
		try {
			throw;
		} catch (int again) {
			CHECK_EQ(again, 17);
		}
	}
}

GO_TEST(a_destructor_may_panic_and_catch_it)
{
	static std::string said;
	struct tries {
		~tries()
		{
			said += *goro::catch_panic([] { panic_below(said, 1); });
		}
	};

	said = "";
	CHECK(panic_of([] {
		tries t;

		goro_panic("outer");
	}) == "outer");
	CHECK_STR(said.c_str(), "01bottom");
}

GO_TEST(a_panic_in_a_deferred_function_leaves_its_scope)
{
	std::string said;

	CHECK(panic_of([&] {
		says outer = { said, 'o' };
		goro::defer d([] { goro_panic("at the end"); });
	}) == "at the end");
	CHECK_STR(said.c_str(), "o");
}

GO_TEST(a_panic_passes_blocking_and_once_and_leaves_those_outside_alone)
{
	goro::once outer, inner;
	std::string said;
	bool early = true;

	outer.call([&] {
		CHECK(goro::catch_panic([&] {
			inner.call([&] { goro::blocking([&] { panic_below(said, 1); }); });
		}).has_value());
		goro::go([&] {
			outer.call([] {});
			early = false;
		});
		goro::sleep_for(std::chrono::milliseconds(1));
		CHECK(early);	/* the outer call still runs */
	});
	inner.call([&] { said += "again"; });
	CHECK_STR(said.c_str(), "01");
	while (early)
		goro::yield();
}

/* Waits in its destructor. */
struct parks {
	int &ended;

	~parks()
	{
		goro::sleep_for(std::chrono::microseconds(10));
		goro::yield();
		CHECK_EQ(std::uncaught_exceptions(), 0);
		ended++;
	}
};

GO_TEST(destructors_may_wait_while_a_panic_passes)
{
	goro::wait_group all;

	for (int i = 0; i < 50; i++)
		all.go([i] {
			for (int round = 0; round < 5; round++) {
				const std::string message = std::to_string(i);
				int ended = 0;

				CHECK(*goro::catch_panic([&] {
					parks a = { ended }, b = { ended };

					goro_panic("%s", message.c_str());
				}) == message);
				CHECK_EQ(ended, 2);
			}
		});
	all.wait();
}

/* Nothing is unwound where nobody catches: the report shows where it was. */
TEST(a_panic_that_nobody_catches_calls_no_destructor)
{
	test_output o;

	test_run_child([] {
		exit(goro_run([](int, char **) {
			static std::string said;
			goro::defer d([] { printf("destructor\n"); });

			panic_below(said, 2);
			return 0;
		}, 0, nullptr));
	}, &o);
	CHECK_EQ(o.status, 2);
	CHECK_STR(o.out, "");
	CHECK_CONTAINS(o.err, "panic: bottom\n\ngoroutine 1 [running]:\n");
	CHECK_CONTAINS(o.err, "\npanic_below(...)");
}
