/*
 * hpp_test.cc - goro.hpp: goroutines of lambdas, tasks, channels of any movable type,
 * select, locks, contexts and groups. cxx_compilers_test.sh runs this by other compilers,
 * without exceptions, and as C++20.
 */
/* test: procs */
/* test: leaks */
#include <goro.hpp>

#include <array>
#include <memory>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test.h"

using namespace std::chrono_literals;

/* Neither copied nor assigned to by accident; counted while it lives. */
struct token {
	static std::atomic<int> alive;
	int n;

	explicit token(int of) : n(of) { alive++; }
	token(token &&other) noexcept : n(std::exchange(other.n, -1)) { alive++; }
	token &operator=(token &&other) noexcept
	{
		n = std::exchange(other.n, -1);
		return *this;
	}
	~token() { alive--; }
};
std::atomic<int> token::alive{ 0 };

/* The message of the panic in f, until the next one; "" if there is none. */
template <class F> static const char *panic_of(F f)
{
	static std::string message;

	message = goro::catch_panic(f).value_or("");
	return message.c_str();
}

/* -------------------------------------------------------------- goroutines */

GO_TEST(go_runs_a_lambda_with_small_captures)
{
	goro::chan<int> c;
	int n = 0;

	goro::go([c, k = 7]() mutable { c.send(k); });
	n = c.recv().value();
	CHECK_EQ(n, 7);
}

GO_TEST(go_carries_words_to_the_last_one)
{
	std::array<long, 5> words = { { 1, 2, 3, 4, 5 } };
	static goro_chan *c;
	long sum = 0;

	c = goro_chan_of(long, 0);
	goro::go([words, more = 6L] {
		long all = more;

		for (long w : words)
			all += w;
		goro_chan_send(c, &all);
	});
	goro_chan_recv(c, &sum);
	CHECK_EQ(sum, 21);
	goro_chan_unref(c);
}

GO_TEST(go_moves_what_cannot_be_copied_and_frees_it_at_the_end)
{
	goro::wait_group done;

	done.add();
	goro::go([&done, t = token(3), big = std::string(1000, 'x')] {
		CHECK_EQ(t.n, 3);
		CHECK_EQ(big.size(), 1000);
		goro::yield();
		CHECK_EQ(t.n, 3);
		done.done();
	});
	done.wait();
	while (token::alive != 0)
		goro::yield();
}

static void add_to(std::atomic<int> &sum, int a, const std::string &b)
{
	sum += a + static_cast<int>(b.size());
}

struct adder {
	int base;
	void operator()(std::atomic<int> &sum, std::unique_ptr<int> more) { sum += base + *more; }
};

GO_TEST(go_takes_arguments_as_std_thread_does)
{
	std::atomic<int> sum{ 0 };

	goro::go(add_to, std::ref(sum), 10, "four");
	goro::go(adder{ 100 }, std::ref(sum), std::make_unique<int>(1000));
	while (sum != 1114)
		goro::yield();
}

GO_TEST(go_attr_names_the_goroutine)
{
	goro_attr attr = {};
	goro::chan<std::uint64_t> id;

	attr.name = "named";
	goro::go_attr(attr, [id, keep = std::string("kept")]() mutable {
		CHECK_STR(keep.c_str(), "kept");
		id.send(goro::id());
	});
	CHECK(id.recv().value() != 0);
}

GO_TEST(a_scope_ends_with_its_defers_last_first)
{
	std::string said;
	{
		goro::defer a([&] { said += "a"; });
		goro::defer b([&] { said += "b"; });
	}
	CHECK_STR(said.c_str(), "ba");
}

GO_TEST(blocking_returns_what_the_function_does)
{
	std::unique_ptr<int> owned = goro::blocking([] { return std::make_unique<int>(4); });
	bool ran = false;

	CHECK_EQ(*owned, 4);
	goro::blocking([&] { ran = true; });
	CHECK(ran);
}

GO_TEST(catch_panic_tells_the_message)
{
	CHECK(!goro::catch_panic([] {}));
	CHECK_STR(panic_of([] { goro_panic("no %s", "way"); }), "no way");
}

/* ------------------------------------------------------------------- tasks */

GO_TEST(a_task_gives_its_result)
{
	goro::task<int> t = goro::spawn([](int a, int b) { return a * b; }, 6, 7);
	auto moved = goro::spawn([t = token(5)]() mutable { return std::move(t); });
	auto none = goro::spawn([] {});

	CHECK_EQ(t.join(), 42);
	CHECK(!t.joinable());
	CHECK_EQ(moved.join().n, 5);
	none.join();
	CHECK(!goro::task<int>().joinable());
}

GO_TEST(a_task_that_is_destroyed_is_waited_for)
{
	bool ended = false;
	{
		auto t = goro::spawn([&] {
			goro::sleep_for(2ms);
			ended = true;
		});
	}
	CHECK(ended);
}

GO_TEST(a_task_that_is_assigned_to_is_waited_for)
{
	std::atomic<int> ended{ 0 };
	auto t = goro::spawn([&] { goro::sleep_for(1ms), ended++; });

	t = goro::spawn([&] { ended += 10; });
	CHECK(ended == 1 || ended == 11);
	t.join();
	CHECK_EQ(ended.load(), 11);
}

GO_TEST(waiting_for_a_task_has_a_deadline)
{
	goro::chan<int> go_on;
	auto t = goro::spawn([go_on]() mutable { return go_on.recv().value(); });

	CHECK(!t.wait_until(1ms));
	CHECK(!t.wait_until(goro::clock::now() + 1ms));
	go_on.send(9);
	CHECK(t.wait_until(std::chrono::hours::max()));
	CHECK_EQ(t.join(), 9);
}

GO_TEST(a_detached_task_frees_itself)
{
	goro::chan<int> c;

	goro::spawn([c]() mutable { c.send(1); return std::string(100, 'y'); }).detach();
	CHECK_EQ(c.recv().value(), 1);
}

GO_TEST(joining_a_task_that_ended_by_goexit_panics)
{
	auto t = goro::spawn([]() -> int { goro_goexit(); });

	CHECK_STR(panic_of([&] { t.join(); }),
	          "goro::task: the goroutine ended without a result");
	CHECK_STR(panic_of([&] { t.join(); }),
	          "goro::task: join of a task that has no goroutine");
}

TEST(a_plain_thread_may_join)
{
	int got = 0;

	std::thread([&] {
		got = goro::spawn([] { return 3; }).join();
	}).join();
	CHECK_EQ(got, 3);
}

#ifdef __cpp_exceptions
GO_TEST(a_task_rethrows)
{
	auto t = goro::spawn([]() -> int { throw std::runtime_error("from the task"); });
	std::string said;

	try {
		t.join();
	} catch (const std::runtime_error &e) {
		said = e.what();
	}
	CHECK_STR(said.c_str(), "from the task");
}

GO_TEST(an_exception_frees_what_a_send_would_have_sent)
{
	goro::chan<token> c(1);

	try {
		goro::select(goro::on_recv(c), goro::on_default([] { throw 1; }));
		FAIL("nothing was thrown");
	} catch (int) {
	}
	c.send(token(1));
	CHECK_EQ(token::alive.load(), 1);
}

GO_TEST(once_passes_an_exception_and_counts_it_as_an_end)
{
	goro::once o;
	int ran = 0;

	for (int i = 0; i < 2; i++)
		try {
			o.call([&] { ran++; throw 5; });
		} catch (int e) {
			CHECK_EQ(e, 5);
			ran += 10;
		}
	CHECK_EQ(ran, 11);
}

GO_TEST(a_group_cancels_and_rethrows_the_first_exception)
{
	goro::group g;
	std::string said;

	g.go([] { throw std::runtime_error("first"); });
	g.go([](const goro::context &c) {
		c.wait();
		throw std::runtime_error("second");
	});
	try {
		g.wait();
	} catch (const std::runtime_error &e) {
		said = e.what();
	}
	CHECK_STR(said.c_str(), "first");
}

GO_TEST(a_lock_is_unlocked_by_an_exception)
{
	goro_mutex m = {};

	try {
		goro::lock_guard held(m);
		CHECK(!goro_mutex_try_lock(&m));
		throw 1;
	} catch (int) {
	}
	CHECK(goro_mutex_try_lock(&m));
}

/* An exception ends the program where nobody joins. */
static void throw_in_a_goroutine(const char *)
{
	exit(goro_run([](int, char **) {
		goro::go([] { throw std::out_of_range("of a lambda"); });
		goro::sleep_for(10s);
		return 0;
	}, 0, nullptr));
}

TEST(an_exception_that_leaves_a_goroutine_ends_the_program)
{
	test_output o;

	test_run_child([] { throw_in_a_goroutine(""); }, &o);
	CHECK_EQ(o.signal, SIGABRT);
	CHECK_CONTAINS(o.err, "goroutine ");
	CHECK_CONTAINS(o.err, "of a lambda");
}
#endif

/* ---------------------------------------------------------------- channels */

GO_TEST(a_channel_carries_bytes_and_objects)
{
	goro::chan<int> numbers(2);
	goro::chan<std::string> words;
	goro::chan<std::unique_ptr<int>> owned(1);

	numbers.send(1);
	numbers.send(2);
	CHECK_EQ(numbers.size(), 2);
	CHECK_EQ(numbers.capacity(), 2);
	CHECK_EQ(numbers.recv().value() + numbers.recv().value(), 3);
	goro::go([words]() mutable { words.send(std::string(100, 'w')); });
	CHECK_EQ(words.recv()->size(), 100);
	owned.send(std::make_unique<int>(5));
	CHECK_EQ(**owned.recv(), 5);
}

GO_TEST(a_range_ends_when_the_channel_is_closed_and_drained)
{
	goro::chan<token> c(3);
	int sum = 0;

	goro::go([c]() mutable {
		for (int i = 1; i <= 10; i++)
			c.send(token(i));
		c.close();
	});
	for (token &t : c)
		sum += t.n;
	CHECK_EQ(sum, 55);
	CHECK(!c.recv());
	CHECK_EQ(token::alive.load(), 0);
}

GO_TEST(elements_that_nobody_receives_are_freed_with_the_last_handle)
{
	goro::chan<token> c(3);
	goro::chan<token> other(c);

	c.send(token(1));
	c.send(token(2));
	CHECK(c == other);
	c = goro::chan<token>(nullptr);
	CHECK(!c);
	CHECK_EQ(token::alive.load(), 2);
	other = c;
	CHECK_EQ(token::alive.load(), 0);
}

GO_TEST(what_is_not_sent_stays)
{
	goro::chan<token> full(1);
	goro::chan<int> bytes;
	token t(8);

	CHECK(full.try_send(token(1)));
	CHECK(!full.try_send(std::move(t)));
	CHECK_EQ(t.n, 8);
	CHECK(!full.send_until(1ms, std::move(t)));
	CHECK_EQ(t.n, 8);
	CHECK(!bytes.try_send(3));
	full.recv();
	CHECK(full.try_send(std::move(t)));
	CHECK_EQ(t.n, -1);
}

GO_TEST(a_receive_tells_empty_from_closed)
{
	goro::chan<std::string> c(1);
	std::optional<std::string> got("old");

	CHECK_EQ(c.try_recv(got), GORO_RECV_EMPTY);
	CHECK(!got);
	CHECK_EQ(c.recv_until(1ms, got), GORO_RECV_EMPTY);
	c.send("new");
	CHECK_EQ(c.recv_until(goro::clock::now(), got), GORO_RECV_OK);
	CHECK_STR(got->c_str(), "new");
	c.close();
	CHECK_EQ(c.try_recv(got), GORO_RECV_CLOSED);
	CHECK_EQ(c.recv_until(1h, got), GORO_RECV_CLOSED);
	CHECK(!got);
	CHECK_STR(panic_of([&] { c.send("late"); }), "send on closed channel");
}

/* Values of many senders arrive once each. */
template <class T, class Make, class Number> static void cross(Make make, Number number)
{
	goro::chan<T> c(4);
	goro::wait_group senders;
	long sum = 0;

	for (int s = 0; s < 8; s++)
		senders.go([c, s, make]() mutable {
			for (int i = 0; i < 100; i++)
				c.send(make(s * 100 + i));
		});
	goro::go([&senders, c]() mutable {
		senders.wait();
		c.close();
	});
	for (T &value : c)
		sum += number(value);
	CHECK_EQ(sum, 799 * 800 / 2);
}

GO_TEST(values_of_many_senders_arrive_once)
{
	cross<int>([](int i) { return i; }, [](int i) { return i; });
	cross<std::string>([](int i) { return std::to_string(i); },
	                   [](const std::string &s) { return std::stoi(s); });
	cross<token>([](int i) { return token(i); }, [](const token &t) { return t.n; });
	CHECK_EQ(token::alive.load(), 0);
}

GO_TEST(a_channel_of_goro_h_is_adopted)
{
	goro::chan<int> c = goro::chan<int>::adopt(goro_chan_of(int, 1));
	int n = 4;

	goro_chan_send(c.get(), &n);
	CHECK_EQ(c.recv().value(), 4);
}

/* ------------------------------------------------------------------ select */

GO_TEST(select_does_the_case_that_can_go)
{
	goro::chan<std::string> words(1);
	goro::chan<int> numbers(1), never(nullptr);
	std::string said, word = "sent";
	int n = 3;

	CHECK_EQ(goro::select(goro::on_recv(never),
	                      goro::on_send(words, word, [&] { said = "sent"; })), 1);
	CHECK_STR(said.c_str(), "sent");
	CHECK_STR(word.c_str(), "");
	CHECK_EQ(goro::select(goro::on_send(words, said),
	                      goro::on_recv(words, [&](std::optional<std::string> w) { word = *w; }),
	                      goro::on_recv(never)), 1);
	CHECK_STR(word.c_str(), "sent");
	CHECK_STR(said.c_str(), "sent");	/* not sent: still there */
	CHECK_EQ(goro::select(goro::on_send(numbers, n)), 0);
	CHECK_EQ(n, 3);
	numbers.close();
	bool closed = false;
	numbers.recv();
	goro::select(goro::on_recv(numbers, [&](std::optional<int> x) { closed = !x; }));
	CHECK(closed);
}

GO_TEST(select_has_a_default_and_timeouts)
{
	goro::chan<int> never;
	std::string how;

	CHECK_EQ(goro::select(goro::on_recv(never), goro::on_default([&] { how += "d"; })), 1);
	CHECK_EQ(goro::select(goro::on_timeout(1h), goro::on_recv(never),
	                      goro::on_timeout(1ms, [&] { how += "t"; })), 2);
	CHECK_EQ(goro::select(goro::on_timeout(std::chrono::steady_clock::now() + 1ms)), 0);
	CHECK_EQ(goro::select(goro::on_timeout(std::chrono::system_clock::now() + 1ms)), 0);
	CHECK_STR(how.c_str(), "dt");
}

GO_TEST(select_wakes_for_a_context)
{
	goro::context c = goro::context::background().with_cancel();
	goro::chan<int> never;

	goro::go([c]() mutable { c.cancel(-EPIPE); });
	CHECK_EQ(goro::select(goro::on_recv(never), goro::on_done(c)), 1);
	CHECK_EQ(c.err(), -ECANCELED);
	CHECK_EQ(c.cause(), -EPIPE);
}

/* -------------------------------------------------------------------- time */

GO_TEST(durations_and_time_points_are_those_of_chrono)
{
	auto begin = goro::clock::now();

	goro::sleep_for(1500us);
	CHECK(goro::clock::now() - begin >= 1500us);
	goro::sleep_until(begin + 3ms);
	CHECK(goro::clock::now() - begin >= 3ms);
	goro::sleep_until(std::chrono::steady_clock::now() + 1ms);
	CHECK(goro::clock::now() - begin >= 4ms);
	goro::sleep_for(-1h);
	CHECK_EQ(goro::detail::ns(std::chrono::hours::max()), INT64_MAX);
	CHECK_EQ(goro::detail::ns(std::chrono::hours::min()), INT64_MIN);
	CHECK_EQ(goro::detail::ns(std::chrono::duration<double>(1.5)), 1500000000);
	CHECK_EQ(goro::detail::deadline(std::chrono::system_clock::time_point::max()), GORO_FOREVER);
	CHECK_EQ(goro::detail::deadline(goro::clock::time_point::min()), GORO_NOW);
}

GO_TEST(timers_and_tickers_send_the_time)
{
	goro::timer t(1ms);
	goro::ticker every(1ms);
	auto ticks = every.channel();

	auto sent = t.channel().recv().value();
	CHECK(sent <= goro::clock::now());
	CHECK(!t.reset(1h));
	CHECK(t.stop());
	auto first = ticks.recv().value();
	CHECK(ticks.recv().value() > first);
}

/* ------------------------------------------------------------------- locks */

GO_TEST(standard_guards_take_goro_locks)
{
	goro::mutex m, n;
	goro::rw_mutex rw;
	int sum = 0;
	{
		goro::wait_group all;

		for (int i = 0; i < 10; i++)
			all.go([&] {
				std::scoped_lock both(m, n);
				int was = sum;

				goro::yield();
				sum = was + 1;
			});
		all.wait();
	}
	CHECK_EQ(sum, 10);
	{
		std::shared_lock<goro::rw_mutex> reader(rw);

		CHECK(rw.try_lock_shared());
		rw.unlock_shared();
		CHECK(!rw.try_lock());
	}
	std::unique_lock<goro::rw_mutex> writer(rw, std::try_to_lock);
	CHECK(writer.owns_lock());
}

GO_TEST(guards_hold_the_locks_of_goro_h)
{
	goro_mutex m = {};
	goro_rwmutex rw = {};
	{
		goro::lock_guard a(m);
		goro::shared_guard b(rw);

		CHECK(!goro_mutex_try_lock(&m));
		CHECK(goro_rwmutex_try_rlock(&rw));
		goro_rwmutex_runlock(&rw);
		CHECK(!goro_rwmutex_try_lock(&rw));
	}
	goro::lock_guard a(m), b(rw);
	CHECK(!goro_rwmutex_try_rlock(&rw));
}

GO_TEST(a_condition_is_waited_for)
{
	goro::mutex m;
	goro::cond c;
	int n = 0;

	goro::go([&] {
		const std::lock_guard<goro::mutex> held(m);
		n = 1;
		c.notify_all();
	});
	std::unique_lock<goro::mutex> held(m);
	c.wait(held, [&] { return n == 1; });
	CHECK_EQ(n, 1);
}

GO_TEST(a_semaphore_has_units_and_deadlines)
{
	goro::semaphore s(2);

	s.acquire();
	CHECK(s.try_acquire());
	CHECK(!s.try_acquire());
	CHECK(!s.acquire_until(1ms));
	s.release(2);
	CHECK(s.acquire_until(goro::clock::now() + 1h, 2));
}

/* ---------------------------------------------------- contexts, groups */

GO_TEST(contexts_form_a_tree_and_the_last_handle_cancels)
{
	static const char key = 0;
	int value = 5;
	goro::context background;
	goro::context parent = background.with_cancel();
	goro::context child = parent.with_value(&key, &value).with_timeout(1h);
	goro::context apart = child.without_cancel();

	CHECK(child.value(&key) == &value);
	CHECK(child.deadline() > goro::clock::now());
	CHECK_EQ(background.with_deadline(goro::clock::now()).err(), -ETIMEDOUT);
	parent.cancel();
	CHECK(child.done());
	CHECK_EQ(child.wait(), -ECANCELED);
	CHECK(!apart.done());

	goro::context last = background.with_cancel();
	goro::context below = last.with_cancel();
	last = background;
	CHECK(!below.done());	/* it keeps its parent */
}

GO_TEST(a_group_tells_its_first_error)
{
	goro::group g(goro::context(), 2);

	g.go([] {});
	g.go([] { return -EIO; });
	g.go([t = token(1)](const goro::context &c) {
		c.wait();
		return -EPIPE;
	});
	CHECK_EQ(g.wait(), -EIO);
	CHECK_EQ(token::alive.load(), 0);
}

GO_TEST(a_group_that_is_destroyed_is_waited_for)
{
	int ran = 0;
	{
		goro::group g;

		CHECK(g.try_go([&] { ran = 1; }));
	}
	CHECK_EQ(ran, 1);
}
