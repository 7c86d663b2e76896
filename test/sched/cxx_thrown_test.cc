/*
 * cxx_thrown_test.cc - the report of an exception that nobody catches says what it is.
 */
#include <goro.h>

#include <exception>
#include <stdexcept>
#include <string>

#include "test.h"

namespace app {

struct plain {
	int n;
};
struct error : std::runtime_error {
	using std::runtime_error::runtime_error;
};
struct first {
	virtual ~first() = default;
	long filler = 1;
};
struct second : first, error {
	second() : error("the second base") {}
};
struct virtual_base : virtual std::exception {
	const char *what() const noexcept override { return "a virtual base"; }
};
struct diamond : first, virtual_base {};
struct hidden : private std::runtime_error {
	hidden() : std::runtime_error("not to be seen") {}
};

}

static void (*thrower)();

/* The first line of the report of a goroutine that runs f. */
static std::string first_line(void (*f)())
{
	test_output o;

	thrower = f;
	test_run_child([] {
		exit(goro_run([](int, char **) {
			go(thrower);
			goro_sleep(10 * GORO_SECOND);
			return 0;
		}, 0, nullptr));
	}, &o);
	CHECK_EQ(o.signal, SIGABRT);
	CHECK_CONTAINS(o.err, "\n\ngoroutine 2 [running]:\n");
	std::string err = o.err;
	return err.substr(0, err.find('\n'));
}

#define THROWN(expression, line) \
	CHECK(first_line([] { expression; }) == "panic: uncaught C++ exception " line)

TEST(the_report_has_the_type_and_what)
{
	THROWN(throw std::runtime_error("why"), "std::runtime_error: why");
	THROWN(throw 17, "int: 17");
	THROWN(throw "words", "char const*: words");
	THROWN(throw app::plain{ 1 }, "app::plain");
}

TEST(what_is_found_in_any_public_base)
{
	THROWN(throw app::error("of a class"), "app::error: of a class");
	THROWN(throw app::second(), "app::second: the second base");
	THROWN(throw app::diamond(), "app::diamond: a virtual base");
	THROWN(throw app::hidden(), "app::hidden");
}

TEST(an_exception_that_is_thrown_again_is_the_same)
{
	THROWN(std::rethrow_exception(std::make_exception_ptr(app::second())),
	       "app::second: the second base");
	THROWN(try { throw app::error("again"); } catch (...) { throw; }, "app::error: again");
}
