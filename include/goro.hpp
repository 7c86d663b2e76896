/*
 * goro.hpp - goroutines for C++: C++17 or 20, header only, over goro.h.
 *
 *	#include <goro.hpp>
 *
 *	static int start(int, char **)
 *	{
 *		goro::chan<std::string> words(10);
 *
 *		goro::go([words]() mutable {
 *			words.send("hello");
 *			words.close();
 *		});
 *		for (const std::string &word : words)
 *			std::puts(word.c_str());
 *		return 0;
 *	}
 *	GORO_MAIN(start)
 *
 * Conventions
 *   - All of goro.h may be used beside it; get() of an object is the C object within.
 *   - Durations are std::chrono durations. Deadlines are time points of goro::clock, of
 *     steady_clock, or of any other clock. What is too far away is never.
 *   - Handles (chan, context) are counted, and a copy is another handle of the same thing.
 *     All other types own what they hold, and most cannot be copied.
 *   - What finds no memory throws std::bad_alloc. With -fno-exceptions it panics.
 *   - Do not write `using namespace goro`: goro.h has a go() of its own.
 */
#ifndef GORO_HPP
#define GORO_HPP

#if __cplusplus < 201703L
#error "goro.hpp needs C++17"
#endif

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

/* goro_pool_stats is a struct and a function, as in POSIX stat is. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include "goro.h"
#pragma GCC diagnostic pop

namespace goro {

/* -------------------------------------------------------------------- time */

/* The clock of goro_now(): that of all sleeps, timers and deadlines. */
struct clock {
	using duration = std::chrono::nanoseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<clock, duration>;
	static constexpr bool is_steady = true;

	static time_point now() noexcept
	{
		return time_point(duration(goro_now()));
	}
};

namespace detail {

/* A duration in nanoseconds; rounded up, and held within what an int64_t has. */
template <class Rep, class Period>
constexpr std::int64_t ns(std::chrono::duration<Rep, Period> d) noexcept
{
	using std::chrono::nanoseconds;
	using wide = std::chrono::duration<long double, std::nano>;

	if (wide(d) >= wide(nanoseconds::max()))
		return INT64_MAX;
	if (wide(d) <= wide(nanoseconds::min()))
		return INT64_MIN;
	return static_cast<std::int64_t>(std::chrono::ceil<nanoseconds>(d).count());
}

template <class Clock, class Duration>
std::int64_t deadline(const std::chrono::time_point<Clock, Duration> &at)
{
	std::int64_t t;

	/* On Linux steady_clock is CLOCK_MONOTONIC, as goro_now() is. */
	if constexpr (std::is_same_v<Clock, clock> ||
	              std::is_same_v<Clock, std::chrono::steady_clock>)
		t = ns(at.time_since_epoch());
	else if (at == std::chrono::time_point<Clock, Duration>::max())
		t = GORO_FOREVER;
	else
		t = goro_deadline_in(ns(at - Clock::now()));
	return t > GORO_NOW ? t : GORO_NOW;
}

template <class Rep, class Period>
std::int64_t deadline(const std::chrono::duration<Rep, Period> &in)
{
	const std::int64_t t = ns(in);

	return t > 0 ? goro_deadline_in(t) : GORO_NOW;
}

[[noreturn]] inline void no_memory()
{
#ifdef __cpp_exceptions
	throw std::bad_alloc();
#else
	goro_panic("goro.hpp: out of memory");
#endif
}

template <class P> P *must(P *p)
{
	if (!p)
		no_memory();
	return p;
}

}

template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period> &d)
{
	goro_sleep(detail::ns(d));
}

template <class Clock, class Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration> &at)
{
	const std::int64_t t = detail::deadline(at), now = goro_now();

	goro_sleep(t > now ? t - now : 0);
}

/* -------------------------------------------------------------- goroutines */

namespace detail {

/* A goroutine's function travels in the six words that goro_start passes on, or, if it is
 * larger or cannot be copied as bytes, in memory of its own. */
template <class F> constexpr bool fits_words =
	std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F> &&
	sizeof(F) <= 6 * sizeof(std::uintptr_t) && alignof(F) <= alignof(std::uintptr_t);

template <class F>
void run_words(std::uintptr_t a, std::uintptr_t b, std::uintptr_t c, std::uintptr_t d,
               std::uintptr_t e, std::uintptr_t f)
{
	const std::uintptr_t words[6] = { a, b, c, d, e, f };
	alignas(F) unsigned char bytes[sizeof(F)];

	std::memcpy(bytes, words, sizeof(F));
	std::invoke(std::move(*std::launder(reinterpret_cast<F *>(bytes))));
}

template <class F> void run_owned(F *owned)
{
	/* Freed when the function ends, however it does. */
	std::unique_ptr<F> f(owned);

	std::invoke(std::move(*f));
}

template <class F> __attribute__((always_inline)) inline void start(F &&f)
{
	using D = std::decay_t<F>;

	if constexpr (fits_words<D>) {
		std::uintptr_t w[6] = {};
		const D copy(std::forward<F>(f));

		std::memcpy(w, static_cast<const void *>(std::addressof(copy)), sizeof(D));
		if (goro_start(reinterpret_cast<void (*)()>(run_words<D>), w[0], w[1], w[2],
		               w[3], w[4], w[5]) != 0)
			no_memory();
	} else {
		auto owned = std::make_unique<D>(std::forward<F>(f));

		if (goro_start(reinterpret_cast<void (*)()>(run_owned<D>),
		               reinterpret_cast<std::uintptr_t>(owned.get()), 0, 0, 0, 0, 0) != 0)
			no_memory();
		static_cast<void>(owned.release());
	}
}

/* f with its arguments, all moved or copied in. */
template <class F, class... A> auto bound(F &&f, A &&...args)
{
	return [f = std::decay_t<F>(std::forward<F>(f)),
	        args = std::tuple<std::decay_t<A>...>(std::forward<A>(args)...)]() mutable
	       -> decltype(auto) {
		return std::apply(std::move(f), std::move(args));
	};
}

}

/* Starts f(args...) as a goroutine. f and the arguments are moved or copied in, as by
 * std::thread: std::ref for a reference. An exception that leaves f ends the program. */
template <class F> __attribute__((always_inline)) inline void go(F &&f)
{
	static_assert(std::is_invocable_v<std::decay_t<F>>, "goro::go(): f() is no call");
	detail::start(std::forward<F>(f));
}

template <class F, class A, class... More>
__attribute__((always_inline)) inline void go(F &&f, A &&first, More &&...more)
{
	static_assert(std::is_invocable_v<std::decay_t<F>, std::decay_t<A>, std::decay_t<More>...>,
	              "goro::go(): f does not take these arguments");
	detail::start(detail::bound(std::forward<F>(f), std::forward<A>(first),
	                            std::forward<More>(more)...));
}

/* The same with a stack of another size, or with a name. */
template <class F> void go_attr(const goro_attr &attr, F &&f)
{
	using D = std::decay_t<F>;
	auto owned = std::make_unique<D>(std::forward<F>(f));
	void (*const run)(void *) = [](void *arg) { detail::run_owned(static_cast<D *>(arg)); };

	if (goro_go_attr(&attr, run, owned.get()) != 0)
		detail::no_memory();
	static_cast<void>(owned.release());
}

inline std::uint64_t id()
{
	return goro_id();
}

inline void yield()
{
	goro_gosched();
}

namespace detail {

/* Runs f() within call(fn, arg), a function of goro.h, and returns what f does. */
template <class Call, class F> decltype(auto) within(Call call, F &&f)
{
	using R = std::invoke_result_t<F>;

	if constexpr (std::is_void_v<R>) {
		call([](void *arg) { std::invoke(*static_cast<std::remove_reference_t<F> *>(arg)); },
		     const_cast<void *>(static_cast<const void *>(std::addressof(f))));
	} else {
		static_assert(!std::is_reference_v<R>, "goro.hpp: the function returns a reference");
		struct both {
			std::remove_reference_t<F> *f;
			std::optional<R> result;
		} b = { std::addressof(f), std::nullopt };

		call([](void *arg) {
			both *p = static_cast<both *>(arg);

			p->result.emplace(std::invoke(*p->f));
		}, &b);
		return R(std::move(*b.result));
	}
}

}

/* f() is about to block in the kernel: others run meanwhile. Returns what f does. */
template <class F> std::invoke_result_t<F> blocking(F &&f)
{
	return detail::within([](void (*fn)(void *), void *arg) { goro_blocking(fn, arg); },
	                      std::forward<F>(f));
}

/* Runs f(). The message if it panicked, nothing if it returned. */
template <class F> std::optional<std::string> catch_panic(F &&f)
{
	const char *message = goro_try(
		[](void *arg) { std::invoke(*static_cast<std::remove_reference_t<F> *>(arg)); },
		const_cast<void *>(static_cast<const void *>(std::addressof(f))));

	return message ? std::optional<std::string>(message) : std::nullopt;
}

/* Runs f() at the end of the scope: goro::defer d([&] { ... }); */
template <class F> class defer {
public:
	explicit defer(F fn) : f(std::move(fn)) {}
	~defer() noexcept(noexcept(f())) { f(); }
	defer(const defer &) = delete;
	defer &operator=(const defer &) = delete;

private:
	F f;
};

/* ---------------------------------------------------------------- contexts */

/* A goro_ctx; counted. The end of the last handle of a context cancels it. */
class context {
public:
	/* The background: never done. */
	context() noexcept : c(goro_ctx_background()) {}
	/* Takes over a reference. */
	explicit context(goro_ctx *adopted) noexcept : c(adopted) {}
	context(const context &other) noexcept : c(goro_ctx_ref(other.c)) {}
	context(context &&other) noexcept : c(std::exchange(other.c, goro_ctx_background())) {}
	context &operator=(context other) noexcept
	{
		std::swap(c, other.c);
		return *this;
	}
	~context() { goro_ctx_unref(c); }

	static context background() noexcept { return context(); }
	context with_cancel() const { return made(goro_ctx_with_cancel(c)); }
	template <class Rep, class Period>
	context with_timeout(const std::chrono::duration<Rep, Period> &d) const
	{
		return made(goro_ctx_with_timeout(c, detail::ns(d)));
	}
	template <class Clock, class Duration>
	context with_deadline(const std::chrono::time_point<Clock, Duration> &at) const
	{
		return made(goro_ctx_with_deadline(c, detail::deadline(at)));
	}
	context with_value(const void *key, void *value) const
	{
		return made(goro_ctx_with_value(c, key, value));
	}
	context without_cancel() const { return made(goro_ctx_without_cancel(c)); }

	void cancel() { goro_ctx_cancel(c); }
	void cancel(int cause) { goro_ctx_cancel_cause(c, cause); }
	bool done() const { return goro_ctx_err(c) != 0; }
	int err() const { return goro_ctx_err(c); }
	int cause() const { return goro_ctx_cause(c); }
	void *value(const void *key) const { return goro_ctx_value(c, key); }
	clock::time_point deadline() const
	{
		return clock::time_point(clock::duration(goro_ctx_deadline(c)));
	}
	/* Waits until it is done, and returns err(). */
	int wait() const
	{
		goro_chan_recv(goro_ctx_done(c), nullptr);
		return err();
	}
	goro_ctx *get() const noexcept { return c; }

private:
	static context made(goro_ctx *c) { return context(detail::must(c)); }

	goro_ctx *c;
};

/* ---------------------------------------------------------------- channels */

/* What a receive that does not wait came to: GORO_RECV_OK, _CLOSED or _EMPTY. */
using received = enum ::goro_recv;

namespace detail {

/* A channel's elements are copied as bytes. What cannot be copied so is sent as a pointer
 * to it, which the receiver frees. */
template <class T> constexpr bool is_bytes =
	std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>;

template <class T> using wire = std::conditional_t<is_bytes<T>, T, T *>;

template <class T> T unwire(wire<T> &w)
{
	if constexpr (is_bytes<T>) {
		return w;
	} else {
		std::unique_ptr<T> owned(w);

		return std::move(*owned);
	}
}

/* Handles of a channel of pointers are counted here, so that the last of them frees what
 * nobody has received. Those of a channel of bytes are counted by the channel. */
struct counted_chan {
	goro_chan *c;
	void (*drop)(void *element);
	std::atomic<std::size_t> handles{ 1 };

	counted_chan(goro_chan *chan, void (*fn)(void *)) : c(chan), drop(fn) {}
	counted_chan(const counted_chan &) = delete;
	counted_chan &operator=(const counted_chan &) = delete;
	~counted_chan()
	{
		void *element;

		while (goro_chan_try_recv(c, &element) == GORO_RECV_OK)
			drop(element);
		goro_chan_unref(c);
	}
};

}

/* A channel of any type that can be moved. Counted: a copy is another handle. */
template <class T> class chan {
	static_assert(std::is_move_constructible_v<T> && !std::is_reference_v<T> &&
	              !std::is_const_v<T>, "goro::chan: elements must be movable objects");
	static constexpr bool bytes = detail::is_bytes<T>;
	using wire = detail::wire<T>;

public:
	using value_type = T;

	/* Without a buffer each send waits for its receiver. */
	explicit chan(std::size_t capacity = 0)
	{
		goro_chan *made = detail::must(goro_chan_make(sizeof(wire), capacity));

		if constexpr (bytes) {
			h = made;
		} else {
			h = new (std::nothrow) detail::counted_chan(
				made, [](void *element) { delete static_cast<T *>(element); });
			if (!h) {
				goro_chan_unref(made);
				detail::no_memory();
			}
		}
	}
	/* Go's nil channel: it is never ready. */
	explicit chan(std::nullptr_t) noexcept : h(nullptr) {}
	/* A channel of goro.h whose elements are T; takes over a reference. */
	static chan adopt(goro_chan *c) noexcept
	{
		static_assert(bytes, "goro::chan: only bytes go through a channel of goro.h");
		chan made(nullptr);

		made.h = c;
		return made;
	}
	chan(const chan &other) noexcept : h(ref(other.h)) {}
	chan(chan &&other) noexcept : h(std::exchange(other.h, nullptr)) {}
	chan &operator=(chan other) noexcept
	{
		std::swap(h, other.h);
		return *this;
	}
	~chan() { unref(h); }

	/* Panics if the channel is closed, as in Go. */
	void send(T value)
	{
		if constexpr (bytes) {
			goro_chan_send(get(), &value);
		} else {
			auto boxed = std::make_unique<T>(std::move(value));
			T *element = boxed.get();

			goro_chan_send(get(), &element);
			static_cast<void>(boxed.release());
		}
	}
	/* False: it would have to wait, and value is as it was. */
	bool try_send(T &&value) { return send_before(GORO_NOW, value); }
	bool try_send(const T &value)
	{
		T copy(value);

		return send_before(GORO_NOW, copy);
	}
	/* The same, waiting until a time or for so long. */
	template <class When> bool send_until(const When &when, T &&value)
	{
		return send_before(detail::deadline(when), value);
	}
	template <class When> bool send_until(const When &when, const T &value)
	{
		T copy(value);

		return send_before(detail::deadline(when), copy);
	}

	/* Nothing: the channel is closed and drained. */
	std::optional<T> recv()
	{
		wire w{};

		if (!goro_chan_recv(get(), &w))
			return std::nullopt;
		return std::optional<T>(detail::unwire<T>(w));
	}
	/* GORO_RECV_OK with *value, GORO_RECV_CLOSED, or GORO_RECV_EMPTY: it would have to wait. */
	received try_recv(std::optional<T> &value)
	{
		wire w{};
		const received r = goro_chan_try_recv(get(), &w);

		return taken(r, w, value);
	}
	/* The same, waiting until a time or for so long. */
	template <class When> received recv_until(const When &when, std::optional<T> &value)
	{
		wire w{};
		bool ok = false;
		const goro_case one = { get(), &w, &ok, nullptr, false };
		const int won = goro_select_n(&one, 1, detail::deadline(when));

		return taken(won < 0 ? GORO_RECV_EMPTY : ok ? GORO_RECV_OK : GORO_RECV_CLOSED, w, value);
	}

	void close() { goro_chan_close(get()); }
	std::size_t size() const { return goro_chan_len(get()); }
	std::size_t capacity() const { return goro_chan_cap(get()); }
	explicit operator bool() const noexcept { return h != nullptr; }
	bool operator==(const chan &other) const noexcept { return h == other.h; }
	bool operator!=(const chan &other) const noexcept { return h != other.h; }
	/* Its elements are T, or pointers to T where T cannot be copied as bytes. */
	goro_chan *get() const noexcept
	{
		if constexpr (bytes)
			return h;
		else
			return h ? h->c : nullptr;
	}

	/* for (T &value : c): receives until the channel is closed and drained. */
	struct end_of {};
	class iterator {
	public:
		using iterator_category = std::input_iterator_tag;
		using value_type = T;
		using difference_type = std::ptrdiff_t;
		using pointer = T *;
		using reference = T &;

		explicit iterator(chan &of) : c(&of), value(of.recv()) {}
		T &operator*() { return *value; }
		T *operator->() { return &*value; }
		iterator &operator++()
		{
			std::optional<T> next = c->recv();

			value.reset();
			if (next)
				value.emplace(std::move(*next));
			return *this;
		}
		bool operator==(end_of) const { return !value; }
		bool operator!=(end_of) const { return value.has_value(); }

	private:
		chan *c;
		std::optional<T> value;
	};
	iterator begin() { return iterator(*this); }
	end_of end() { return {}; }

private:
	using handle = std::conditional_t<bytes, goro_chan *, detail::counted_chan *>;

	static handle ref(handle of) noexcept
	{
		if constexpr (bytes)
			return of ? goro_chan_ref(of) : nullptr;
		else if (of)
			of->handles.fetch_add(1, std::memory_order_relaxed);
		return of;
	}
	static void unref(handle of) noexcept
	{
		if constexpr (bytes) {
			if (of)
				goro_chan_unref(of);
		} else {
			/* The last sees all that the others have done. */
			if (of && of->handles.fetch_sub(1, std::memory_order_acq_rel) == 1)
				delete of;
		}
	}
	static received taken(received r, wire &w, std::optional<T> &value)
	{
		value.reset();
		if (r == GORO_RECV_OK)
			value.emplace(detail::unwire<T>(w));
		return r;
	}
	/* Moves value away only if it is sent. */
	bool send_before(std::int64_t until, T &value)
	{
		if constexpr (bytes) {
			const goro_case one = { get(), nullptr, nullptr, &value, true };

			return goro_select_n(&one, 1, until) == 0;
		} else {
			auto boxed = std::make_unique<T>(std::move(value));
			T *element = boxed.get();
			const goro_case one = { get(), nullptr, nullptr, &element, true };

			if (goro_select_n(&one, 1, until) == 0) {
				static_cast<void>(boxed.release());
				return true;
			}
			value = std::move(*boxed);
			return false;
		}
	}

	handle h;
};

/* ------------------------------------------------------------------ select */

namespace detail {

struct ignore_all {
	template <class... A> void operator()(A &&...) const noexcept {}
};

/* A case of select. Each has its goro_case, a deadline of its own, and what it does if it
 * wins; one without a channel is never ready and can win only by its deadline. */
template <class T, class F> struct recv_case {
	chan<T> c;
	F f;
	wire<T> w{};
	bool ok = false;

	goro_case prepare() { return { c.get(), &w, &ok, nullptr, false }; }
	static constexpr std::int64_t until() { return GORO_FOREVER; }
	void won() { std::invoke(f, ok ? std::optional<T>(unwire<T>(w)) : std::optional<T>()); }
	void lost() {}
};

template <class T, class F> struct send_case {
	chan<T> c;
	T &value;
	F f;
	std::unique_ptr<T> boxed{};
	T *element = nullptr;

	goro_case prepare()
	{
		if constexpr (is_bytes<T>)
			return { c.get(), nullptr, nullptr, &value, true };
		boxed = std::make_unique<T>(std::move(value));
		element = boxed.get();
		return { c.get(), nullptr, nullptr, &element, true };
	}
	static constexpr std::int64_t until() { return GORO_FOREVER; }
	void won()
	{
		static_cast<void>(boxed.release());
		std::invoke(f);
	}
	void lost()
	{
		if (boxed)
			value = std::move(*boxed);
	}
};

template <class F> struct done_case {
	context of;
	F f;

	goro_case prepare() { return { goro_ctx_done(of.get()), nullptr, nullptr, nullptr, false }; }
	static constexpr std::int64_t until() { return GORO_FOREVER; }
	void won() { std::invoke(f); }
	void lost() {}
};

template <class F> struct time_case {
	std::int64_t at;
	F f;

	goro_case prepare() { return { nullptr, nullptr, nullptr, nullptr, false }; }
	std::int64_t until() const { return at; }
	void won() { std::invoke(f); }
	void lost() {}
};

}

/* The cases of goro::select: each with what is called if it is the one.
 *
 *	goro::select(
 *		goro::on_recv(c, [&](std::optional<int> x) { ... }),     nothing: closed
 *		goro::on_send(d, y, [&] { ... }),                        y is moved away
 *		goro::on_done(ctx, [&] { ... }),
 *		goro::on_timeout(10ms, [&] { ... }),                     or a time point
 *		goro::on_default([&] { ... }));
 */
template <class T, class F = detail::ignore_all>
detail::recv_case<T, F> on_recv(const chan<T> &c, F f = F())
{
	return { c, std::move(f) };
}

/* value is moved from only if it is sent. */
template <class T, class F = detail::ignore_all>
detail::send_case<T, F> on_send(const chan<T> &c, T &value, F f = F())
{
	return { c, value, std::move(f) };
}

template <class F = detail::ignore_all>
detail::done_case<F> on_done(const context &c, F f = F())
{
	return { c, std::move(f) };
}

template <class When, class F = detail::ignore_all>
detail::time_case<F> on_timeout(const When &when, F f = F())
{
	return { detail::deadline(when), std::move(f) };
}

template <class F = detail::ignore_all> detail::time_case<F> on_default(F f = F())
{
	return { GORO_NOW, std::move(f) };
}

/* Waits until one case can go, does it, calls its function, and returns its index. Among
 * several that can go each is as likely. */
template <class... C> int select(C &&...cases)
{
	static_assert(sizeof...(C) > 0, "goro::select(): no cases");
	const goro_case all[] = { cases.prepare()... };
	const std::int64_t until[] = { cases.until()... };
	std::size_t first = 0, i = 0;

	for (std::size_t k = 1; k < sizeof...(C); k++)
		if (until[k] < until[first])
			first = k;
	const int chosen = goro_select_n(all, sizeof...(C), until[first]);
	const std::size_t index = chosen < 0 ? first : static_cast<std::size_t>(chosen);
	/* What was not sent is with the caller again before a function may throw. */
	((i++ == index ? void() : cases.lost()), ...);
	i = 0;
	((i++ == index ? cases.won() : void()), ...);
	return static_cast<int>(index);
}

/* ------------------------------------------------------- timers, tickers */

/* Sends the time on its channel once. */
class timer {
public:
	template <class Rep, class Period>
	explicit timer(const std::chrono::duration<Rep, Period> &d)
		: t(detail::must(goro_timer_make(detail::ns(d)))) {}
	timer(timer &&other) noexcept : t(std::exchange(other.t, nullptr)) {}
	timer &operator=(timer &&other) noexcept
	{
		std::swap(t, other.t);
		return *this;
	}
	~timer()
	{
		if (t)
			goro_timer_free(t);
	}

	chan<clock::time_point> channel() const
	{
		return chan<clock::time_point>::adopt(goro_chan_ref(goro_timer_chan(t)));
	}
	bool stop() { return goro_timer_stop(t); }
	template <class Rep, class Period> bool reset(const std::chrono::duration<Rep, Period> &d)
	{
		return goro_timer_reset(t, detail::ns(d));
	}
	goro_timer *get() const noexcept { return t; }

private:
	goro_timer *t;
};

/* Sends the time on its channel again and again. */
class ticker {
public:
	template <class Rep, class Period>
	explicit ticker(const std::chrono::duration<Rep, Period> &period)
		: t(detail::must(goro_ticker_make(detail::ns(period)))) {}
	ticker(ticker &&other) noexcept : t(std::exchange(other.t, nullptr)) {}
	ticker &operator=(ticker &&other) noexcept
	{
		std::swap(t, other.t);
		return *this;
	}
	~ticker()
	{
		if (t)
			goro_ticker_free(t);
	}

	chan<clock::time_point> channel() const
	{
		return chan<clock::time_point>::adopt(goro_chan_ref(goro_ticker_chan(t)));
	}
	template <class Rep, class Period> void reset(const std::chrono::duration<Rep, Period> &period)
	{
		goro_ticker_reset(t, detail::ns(period));
	}
	goro_ticker *get() const noexcept { return t; }

private:
	goro_ticker *t;
};

/* ------------------------------------------------------------------- locks */

/* std::lock_guard, std::unique_lock and std::scoped_lock take these; std::shared_lock
 * takes an rw_mutex. */
class mutex {
public:
	constexpr mutex() noexcept = default;
	mutex(const mutex &) = delete;
	mutex &operator=(const mutex &) = delete;
	void lock() { goro_mutex_lock(&m); }
	bool try_lock() { return goro_mutex_try_lock(&m); }
	void unlock() { goro_mutex_unlock(&m); }
	goro_mutex *get() noexcept { return &m; }

private:
	goro_mutex m = {};
};

class rw_mutex {
public:
	constexpr rw_mutex() noexcept = default;
	rw_mutex(const rw_mutex &) = delete;
	rw_mutex &operator=(const rw_mutex &) = delete;
	void lock() { goro_rwmutex_lock(&m); }
	bool try_lock() { return goro_rwmutex_try_lock(&m); }
	void unlock() { goro_rwmutex_unlock(&m); }
	void lock_shared() { goro_rwmutex_rlock(&m); }
	bool try_lock_shared() { return goro_rwmutex_try_rlock(&m); }
	void unlock_shared() { goro_rwmutex_runlock(&m); }
	goro_rwmutex *get() noexcept { return &m; }

private:
	goro_rwmutex m = {};
};

/* Holds a lock of goro.h until the end of the scope. */
class lock_guard {
public:
	explicit lock_guard(goro_mutex &held) : m(&held) { goro_mutex_lock(m); }
	explicit lock_guard(goro_rwmutex &held) : rw(&held) { goro_rwmutex_lock(rw); }
	explicit lock_guard(mutex &held) : lock_guard(*held.get()) {}
	explicit lock_guard(rw_mutex &held) : lock_guard(*held.get()) {}
	lock_guard(const lock_guard &) = delete;
	lock_guard &operator=(const lock_guard &) = delete;
	~lock_guard()
	{
		if (m)
			goro_mutex_unlock(m);
		else
			goro_rwmutex_unlock(rw);
	}

private:
	goro_mutex *m = nullptr;
	goro_rwmutex *rw = nullptr;
};

/* The same, as a reader. */
class shared_guard {
public:
	explicit shared_guard(goro_rwmutex &held) : m(&held) { goro_rwmutex_rlock(m); }
	explicit shared_guard(rw_mutex &held) : shared_guard(*held.get()) {}
	shared_guard(const shared_guard &) = delete;
	shared_guard &operator=(const shared_guard &) = delete;
	~shared_guard() { goro_rwmutex_runlock(m); }

private:
	goro_rwmutex *m;
};

class cond {
public:
	constexpr cond() noexcept = default;
	cond(const cond &) = delete;
	cond &operator=(const cond &) = delete;
	void wait(std::unique_lock<mutex> &held) { goro_cond_wait(&c, held.mutex()->get()); }
	template <class Predicate> void wait(std::unique_lock<mutex> &held, Predicate holds)
	{
		while (!holds())
			wait(held);
	}
	void notify_one() { goro_cond_signal(&c); }
	void notify_all() { goro_cond_broadcast(&c); }
	goro_cond *get() noexcept { return &c; }

private:
	goro_cond c = {};
};

class semaphore {
public:
	explicit semaphore(std::int64_t units) { goro_sema_init(&s, units); }
	semaphore(const semaphore &) = delete;
	semaphore &operator=(const semaphore &) = delete;
	void acquire(std::int64_t units = 1)
	{
		static_cast<void>(goro_sema_acquire(&s, units, GORO_FOREVER));
	}
	bool try_acquire(std::int64_t units = 1) { return goro_sema_try_acquire(&s, units); }
	/* Until a time or for so long. */
	template <class When> bool acquire_until(const When &when, std::int64_t units = 1)
	{
		return goro_sema_acquire(&s, units, detail::deadline(when)) == 0;
	}
	void release(std::int64_t units = 1) { goro_sema_release(&s, units); }
	goro_sema *get() noexcept { return &s; }

private:
	goro_sema s;
};

/* Runs a function once. An exception passes through the call that runs it, and counts as
 * an end. */
class once {
public:
	constexpr once() noexcept = default;
	once(const once &) = delete;
	once &operator=(const once &) = delete;
	template <class F> void call(F &&f)
	{
		goro_once_do(&o,
			[](void *arg) { std::invoke(*static_cast<std::remove_reference_t<F> *>(arg)); },
			const_cast<void *>(static_cast<const void *>(std::addressof(f))));
	}
	goro_once *get() noexcept { return &o; }

private:
	goro_once o = {};
};

class wait_group {
public:
	constexpr wait_group() noexcept = default;
	wait_group(const wait_group &) = delete;
	wait_group &operator=(const wait_group &) = delete;
	void add(int delta = 1) { goro_waitgroup_add(&wg, delta); }
	void done() { goro_waitgroup_done(&wg); }
	void wait() { goro_waitgroup_wait(&wg); }
	/* Starts f() as a goroutine that the group waits for. */
	template <class F> void go(F &&f)
	{
		counted one(*this);

		goro::go([one = std::move(one), f = std::decay_t<F>(std::forward<F>(f))]() mutable {
			std::invoke(std::move(f));
		});
	}
	goro_waitgroup *get() noexcept { return &wg; }

private:
	/* What the group waits for: one, while the object lives. */
	struct counted {
		goro_waitgroup *of;

		explicit counted(wait_group &w) : of(&w.wg) { goro_waitgroup_add(of, 1); }
		counted(counted &&other) noexcept : of(std::exchange(other.of, nullptr)) {}
		~counted()
		{
			if (of)
				goro_waitgroup_done(of);
		}
	};

	goro_waitgroup wg = {};
};

/* ------------------------------------------------------------------- tasks */

namespace detail {

struct nothing {};

/* What a task and its goroutine share. The end of the goroutine closes done. */
template <class T> struct task_state {
	goro_chan *done = must(goro_chan_make(0, 0));
	std::atomic<int> users{ 2 };
	std::optional<std::conditional_t<std::is_void_v<T>, nothing, T>> value;
#ifdef __cpp_exceptions
	std::exception_ptr error;
#endif

	task_state() = default;
	task_state(const task_state &) = delete;
	task_state &operator=(const task_state &) = delete;
	~task_state() { goro_chan_unref(done); }

	template <class F> void run(F &f)
	{
#ifdef __cpp_exceptions
		try {
			keep(f);
		} catch (...) {
			error = std::current_exception();
			/* A panic on its way has no exception, and goes on by itself. */
			if (!error)
				throw;
		}
#else
		keep(f);
#endif
	}
	template <class F> void keep(F &f)
	{
		if constexpr (std::is_void_v<T>) {
			std::invoke(std::move(f));
			value.emplace();
		} else {
			value.emplace(std::invoke(std::move(f)));
		}
	}
	void drop()
	{
		if (users.fetch_sub(1, std::memory_order_acq_rel) == 1)
			delete this;
	}
};

}

/* A goroutine whose result is wanted: goro::spawn starts one. Its end is waited for by
 * join, or at the latest when the task is destroyed. */
template <class T> class [[nodiscard]] task {
	static_assert(!std::is_reference_v<T>, "goro::task: the function returns a reference");
	using state = detail::task_state<T>;

public:
	task() noexcept = default;
	template <class F> explicit task(F &&f) : s(new state)
	{
		/* Runs at the goroutine's end even if that is goro_goexit. */
		auto body = [of = s, fn = std::decay_t<F>(std::forward<F>(f))]() mutable {
			goro_defer([](void *arg) {
				state *ended = static_cast<state *>(arg);

				goro_chan_close(ended->done);
				ended->drop();
			}, of);
			of->run(fn);
		};
#ifdef __cpp_exceptions
		try {
			goro::go(std::move(body));
		} catch (...) {
			delete s;
			throw;
		}
#else
		goro::go(std::move(body));
#endif
	}
	task(task &&other) noexcept : s(std::exchange(other.s, nullptr)) {}
	task &operator=(task &&other) noexcept
	{
		task old(std::move(*this));

		s = std::exchange(other.s, nullptr);
		return *this;
	}
	/* Waits. An exception that nobody has joined for is dropped. */
	~task()
	{
		if (s) {
			wait();
			s->drop();
		}
	}

	/* Waits for the goroutine's end. What its function returned; or throws what it threw.
	 * Only once. Panics if the goroutine ended by goro_goexit. */
	T join()
	{
		if (!s)
			goro_panic("goro::task: join of a task that has no goroutine");
		wait();
		std::unique_ptr<state, dropper> ended(std::exchange(s, nullptr));
#ifdef __cpp_exceptions
		if (ended->error)
			std::rethrow_exception(std::exchange(ended->error, nullptr));
#endif
		if (!ended->value)
			goro_panic("goro::task: the goroutine ended without a result");
		if constexpr (!std::is_void_v<T>)
			return std::move(*ended->value);
	}
	void wait() const { goro_chan_recv(s->done, nullptr); }
	/* Until a time or for so long. True: the goroutine has ended. */
	template <class When> bool wait_until(const When &when) const
	{
		const goro_case one = { s->done, nullptr, nullptr, nullptr, false };

		return goro_select_n(&one, 1, detail::deadline(when)) == 0;
	}
	bool joinable() const noexcept { return s != nullptr; }
	/* Lets the goroutine run on alone. */
	void detach()
	{
		if (s)
			std::exchange(s, nullptr)->drop();
	}

private:
	struct dropper {
		void operator()(state *of) const { of->drop(); }
	};

	state *s = nullptr;
};

/* Starts f(args...) as a goroutine, moved or copied in as by goro::go. */
template <class F, class... A>
task<std::invoke_result_t<std::decay_t<F>, std::decay_t<A>...>> spawn(F &&f, A &&...args)
{
	using T = std::invoke_result_t<std::decay_t<F>, std::decay_t<A>...>;

	if constexpr (sizeof...(A) == 0)
		return task<T>(std::forward<F>(f));
	else
		return task<T>(detail::bound(std::forward<F>(f), std::forward<A>(args)...));
}

/* ------------------------------------------------------------------ groups */

/* Goroutines that work on one thing. The first that returns other than 0 or throws
 * cancels the context of all. Functions take a const context &, or nothing; they return
 * 0, a negative errno value, or nothing. */
class group {
public:
	/* limit: how many may run at once; 0: any number. */
	explicit group(const context &parent = context(), int limit = 0)
		: g(detail::must(goro_group_make(parent.get(), limit))) {}
	group(const group &) = delete;
	group &operator=(const group &) = delete;
	/* Waits. What went wrong is dropped. */
	~group()
	{
		if (g)
			static_cast<void>(goro_group_wait(g));
	}

	context ctx() const { return context(goro_ctx_ref(goro_group_ctx(g))); }
	/* Starts f in the group, when the limit allows. */
	template <class F> void go(F &&f)
	{
		auto owned = pack(std::forward<F>(f));

		if (goro_group_go(g, run<std::decay_t<F>>, owned.get()) != 0)
			detail::no_memory();
		static_cast<void>(owned.release());
	}
	/* The same without waiting. False: not started. */
	template <class F> bool try_go(F &&f)
	{
		auto owned = pack(std::forward<F>(f));

		if (!goro_group_try_go(g, run<std::decay_t<F>>, owned.get()))
			return false;
		static_cast<void>(owned.release());
		return true;
	}
	/* Waits for all to end. 0 or the first error; or throws the first exception. Only
	 * once. */
	int wait()
	{
		const int result = goro_group_wait(std::exchange(g, nullptr));

#ifdef __cpp_exceptions
		if (error)
			std::rethrow_exception(std::exchange(error, nullptr));
#endif
		return result;
	}

private:
	template <class F> struct packed {
		F f;
		group *of;
	};
	template <class F> std::unique_ptr<packed<std::decay_t<F>>> pack(F &&f)
	{
		return std::unique_ptr<packed<std::decay_t<F>>>(
			new packed<std::decay_t<F>>{ std::forward<F>(f), this });
	}
	template <class F> static int call(F &f, const context &c)
	{
		if constexpr (std::is_invocable_v<F, const context &>) {
			if constexpr (std::is_void_v<std::invoke_result_t<F, const context &>>)
				return std::invoke(f, c), 0;
			else
				return std::invoke(f, c);
		} else if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
			return std::invoke(f), 0;
		} else {
			return std::invoke(f);
		}
	}
	template <class F> static int run(goro_ctx *c, void *arg)
	{
		std::unique_ptr<packed<F>> p(static_cast<packed<F> *>(arg));
		const context own(goro_ctx_ref(c));

#ifdef __cpp_exceptions
		try {
			return call(p->f, own);
		} catch (...) {
			std::exception_ptr thrown = std::current_exception();

			/* A panic on its way has no exception, and goes on by itself. */
			if (!thrown)
				throw;
			p->of->failed(own, std::move(thrown));
			return -ECANCELED;
		}
#else
		return call(p->f, own);
#endif
	}
#ifdef __cpp_exceptions
	/* Only the first is kept, as only the first error is. */
	void failed(const context &c, std::exception_ptr thrown)
	{
		const lock_guard held(m);

		if (!c.done() && !error)
			error = std::move(thrown);
	}

	mutex m;
	std::exception_ptr error;
#endif
	goro_group *g;
};

}

#endif
