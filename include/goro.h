/*
 * goro.h - goroutines for C.
 *
 *	#include <goro.h>
 *
 *	static void worker(goro_chan *results, int i)
 *	{
 *		int square = i * i;
 *
 *		goro_chan_send(results, &square);
 *	}
 *
 *	static int start(int argc, char **argv)
 *	{
 *		goro_chan *results = goro_chan_of(int, 0);
 *
 *		for (int i = 0; i < 10; i++)
 *			go(worker, results, i);
 *		...
 *	}
 *	GORO_MAIN(start)
 *
 * Conventions
 *   - Every name starts with goro_ or GORO_. The one short name is go(), which
 *     -DGORO_NO_SHORT_NAMES turns off.
 *   - What can fail for reasons outside the program returns 0 (or a count) on
 *     success and a negative errno value on failure. errno itself is never the
 *     way to report; it is kept across every call.
 *   - Misuse that Go turns into a panic panics here, with Go's message.
 *   - Every blocking call works in a goroutine, which it parks, and in a plain
 *     thread that the program made itself, which it blocks.
 *   - Durations and times are int64_t nanoseconds; times are CLOCK_MONOTONIC.
 *   - Types whose size is public (goro_waitgroup, ...) are valid when zeroed.
 *   - An object may be freed or go out of scope as soon as a call shows that
 *     nobody needs it any more, even while the call on the other side has not
 *     returned yet: a waitgroup once goro_waitgroup_wait returns, a channel once
 *     its last value or its close has been received.
 */
#ifndef GORO_H
#define GORO_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#define GORO_API __attribute__((visibility("default")))

#define GORO_NORETURN __attribute__((noreturn))

#ifdef __cplusplus
#include <type_traits>
extern "C" {
#endif

/* ---------------------------------------------------------------- program */

/* Starts the runtime if it is not running, runs main_fn as a goroutine (id 1 in
 * the first call) and returns what it returns. As in Go, other goroutines do
 * not keep it waiting; they go on until the process ends. It may be called again
 * later, and by several threads. GORO_MAIN(fn) is a main() that does this. */
GORO_API int goro_run(int (*main_fn)(int argc, char **argv), int argc, char **argv);
#define GORO_MAIN(fn) \
	int main(int argc, char **argv) { return goro_run(fn, argc, argv); }

/* ------------------------------------------------------------- goroutines */

/* go(f, a, b, ...) starts f(a, b, ...) as a goroutine: zero to six arguments,
 * each an integer, a pointer, an enum or a bool, evaluated now. The call is
 * type-checked at compile time as f(a, b, ...) would be; a float or a struct
 * argument does not compile, and f's parameters must be of such types too. What
 * f returns is dropped. 0, or -ENOMEM with nothing started. */
#define goro_go(...) GORO_GO_PICK(__VA_ARGS__, GORO_GO_6, GORO_GO_5, GORO_GO_4, \
	GORO_GO_3, GORO_GO_2, GORO_GO_1, GORO_GO_0, GORO_GO_NONE)(__VA_ARGS__)
#ifndef GORO_NO_SHORT_NAMES
#define go(...) goro_go(__VA_ARGS__)
#endif

struct goro_attr {
	size_t stack_size;     /* bytes of address space to reserve; 0: default   */
	const char *name;      /* shown in dumps, traces and profiles; copied     */
	unsigned flags;        /* 0                                               */
};
/* Starts fn(arg), where arg points to a private copy of the n bytes at data,
 * which lives as long as the goroutine. attr may be NULL. */
GORO_API int goro_go_copy(const struct goro_attr *attr, void (*fn)(void *arg),
                          const void *data, size_t n);
GORO_API int goro_go_attr(const struct goro_attr *attr, void (*fn)(void *arg), void *arg);

GORO_API uint64_t goro_id(void);            /* 0 outside a goroutine           */
GORO_API void goro_set_name(const char *name);
GORO_API void goro_gosched(void);           /* lets others run first           */
/* Ends the calling goroutine after running its defers. */
GORO_API GORO_NORETURN void goro_goexit(void);
/* Ties the goroutine to its thread until as many unlocks; nests. A goroutine
 * that ends locked ends its thread. */
GORO_API void goro_lock_os_thread(void);
GORO_API void goro_unlock_os_thread(void);

/* How many goroutines run at once. Returns the previous setting; n < 1 only
 * asks. The default follows the CPUs and the cgroup's quota, or GORO_MAXPROCS. */
GORO_API int goro_gomaxprocs(int n);
GORO_API void goro_set_default_gomaxprocs(void);   /* follow the machine again */
GORO_API int goro_num_cpu(void);            /* affinity and cgroup quota seen  */
GORO_API size_t goro_num_goroutine(void);

/* Goroutine-local storage. Destructors run when the goroutine ends. */
typedef struct goro_key goro_key;
GORO_API goro_key *goro_key_make(void (*destroy)(void *value));
GORO_API void goro_local_set(goro_key *key, void *value);
GORO_API void *goro_local_get(goro_key *key);

/* ---------------------------------------------------- panic, defer, recover */

/* Unrecovered, a panic prints "panic: MESSAGE" and the goroutine's stack on
 * stderr and ends the process with status 2. */
GORO_API GORO_NORETURN void goro_panic(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

/* Runs fn(arg) at the end of the innermost goro_try, or of the goroutine,
 * last deferred first, also on panic and goexit. */
GORO_API void goro_defer(void (*fn)(void *arg), void *arg);

/* Runs fn(arg). NULL if it returned; the message if it panicked (valid until
 * this goroutine's next goro_try). Defers made inside have run. */
GORO_API const char *goro_try(void (*fn)(void *arg), void *arg);

/* --------------------------------------------------------------- channels */

/* A Go channel of fixed-size elements. NULL is Go's nil channel: send and
 * receive block forever, close panics. Reference counted: goro_chan_make gives
 * one reference; the last goro_chan_unref frees it. */
typedef struct goro_chan goro_chan;
GORO_API goro_chan *goro_chan_make(size_t elem_size, size_t capacity); /* NULL: no memory */
#define goro_chan_of(T, capacity) goro_chan_make(sizeof(T), (capacity))
GORO_API goro_chan *goro_chan_ref(goro_chan *c);
GORO_API void goro_chan_unref(goro_chan *c);

GORO_API void goro_chan_send(goro_chan *c, const void *elem);  /* c <- elem    */
/* elem, ok := <-c. false: closed and drained, *elem zeroed. elem may be NULL. */
GORO_API bool goro_chan_recv(goro_chan *c, void *elem);
GORO_API bool goro_chan_try_send(goro_chan *c, const void *elem); /* false: would block */
enum goro_recv { GORO_RECV_EMPTY = -1, GORO_RECV_CLOSED = 0, GORO_RECV_OK = 1 };
GORO_API enum goro_recv goro_chan_try_recv(goro_chan *c, void *elem);
GORO_API void goro_chan_close(goro_chan *c);
GORO_API size_t goro_chan_len(const goro_chan *c);
GORO_API size_t goro_chan_cap(const goro_chan *c);

/* ------------------------------------------------------------------- time */

#define GORO_MICROSECOND INT64_C(1000)
#define GORO_MILLISECOND INT64_C(1000000)
#define GORO_SECOND      INT64_C(1000000000)

GORO_API int64_t goro_now(void);

/* ------------------------------------------------------------------- sync */

typedef struct { uint64_t opaque[2]; } goro_waitgroup;  /* sync.WaitGroup      */
GORO_API void goro_waitgroup_add(goro_waitgroup *wg, int delta);
GORO_API void goro_waitgroup_done(goro_waitgroup *wg);
GORO_API void goro_waitgroup_wait(goro_waitgroup *wg);

/* ----------------------------------------------------------- observability */

/* All goroutines with their states, wait reasons and stacks, in the layout of
 * Go's own dump. SIGQUIT does this and exits with status 2. */
GORO_API void goro_dump(FILE *out);

/* ------------------------------------------------------ what the above needs */

/* A thread's errno may be another's after a call that parks, and the C library
 * lets compilers remember its address. This one they look up every time. */
GORO_API int *goro_errno(void);
#ifndef GORO_NO_ERRNO
#undef errno
#define errno (*goro_errno())
#endif

GORO_API int goro_start(void (*fn)(void), uintptr_t a, uintptr_t b, uintptr_t c,
                        uintptr_t d, uintptr_t e, uintptr_t f);

#ifdef __cplusplus
}
#endif

#define GORO_GO_PICK(f, a1, a2, a3, a4, a5, a6, n, ...) n

#ifndef __cplusplus

/* An argument as a register's worth. A float selects a struct, which does not
 * convert; so does a struct. */
struct goro_not_an_integer_or_pointer { int unused; };
#define GORO_WORD(x) ((uintptr_t)_Generic((x),                                  \
	float: (struct goro_not_an_integer_or_pointer){ 0 },                    \
	double: (struct goro_not_an_integer_or_pointer){ 0 },                   \
	long double: (struct goro_not_an_integer_or_pointer){ 0 },              \
	default: (x)))
/* Never evaluated; there for the compiler to check the call. */
#define GORO_CALL_CHECK(call) ((void)sizeof((call), 0))
#define GORO_FN(f) ((void (*)(void))(f))

#define GORO_GO_0(f) (GORO_CALL_CHECK((f)()), \
	goro_start(GORO_FN(f), 0, 0, 0, 0, 0, 0))
#define GORO_GO_1(f, a) (GORO_CALL_CHECK((f)(a)), \
	goro_start(GORO_FN(f), GORO_WORD(a), 0, 0, 0, 0, 0))
#define GORO_GO_2(f, a, b) (GORO_CALL_CHECK((f)(a, b)), \
	goro_start(GORO_FN(f), GORO_WORD(a), GORO_WORD(b), 0, 0, 0, 0))
#define GORO_GO_3(f, a, b, c) (GORO_CALL_CHECK((f)(a, b, c)), \
	goro_start(GORO_FN(f), GORO_WORD(a), GORO_WORD(b), GORO_WORD(c), 0, 0, 0))
#define GORO_GO_4(f, a, b, c, d) (GORO_CALL_CHECK((f)(a, b, c, d)), \
	goro_start(GORO_FN(f), GORO_WORD(a), GORO_WORD(b), GORO_WORD(c), \
	           GORO_WORD(d), 0, 0))
#define GORO_GO_5(f, a, b, c, d, e) (GORO_CALL_CHECK((f)(a, b, c, d, e)), \
	goro_start(GORO_FN(f), GORO_WORD(a), GORO_WORD(b), GORO_WORD(c), \
	           GORO_WORD(d), GORO_WORD(e), 0))
#define GORO_GO_6(f, a, b, c, d, e, g) (GORO_CALL_CHECK((f)(a, b, c, d, e, g)), \
	goro_start(GORO_FN(f), GORO_WORD(a), GORO_WORD(b), GORO_WORD(c), \
	           GORO_WORD(d), GORO_WORD(e), GORO_WORD(g)))

#else

/* In C++ each argument is converted to its parameter's type first, as a call
 * would do it. */
namespace goro_detail {

template <typename P> struct word {
	static_assert(std::is_integral<P>::value || std::is_pointer<P>::value ||
	              std::is_enum<P>::value || std::is_null_pointer<P>::value,
	              "go(): parameters must be integers, pointers, enums or bools");
	template <typename A> static uintptr_t of(A a)
	{
		static_assert(!std::is_floating_point<A>::value && !std::is_class<A>::value,
		              "go(): arguments must be integers, pointers, enums or bools");
		P p = a;
		if constexpr (std::is_null_pointer<P>::value)
			return 0;
		else
			return (uintptr_t)p;
	}
};

template <typename R, typename... P, typename... A>
inline int start(R (*f)(P...), A... a)
{
	static_assert(sizeof...(P) == sizeof...(A), "go(): wrong number of arguments");
	static_assert(sizeof...(P) <= 6, "go(): at most six arguments");
	const uintptr_t w[7] = { word<P>::of(a)..., 0 };
	return goro_start((void (*)(void))f, w[0], sizeof...(P) > 1 ? w[1] : 0,
	                  sizeof...(P) > 2 ? w[2] : 0, sizeof...(P) > 3 ? w[3] : 0,
	                  sizeof...(P) > 4 ? w[4] : 0, sizeof...(P) > 5 ? w[5] : 0);
}

}

#define GORO_GO_0 goro_detail::start
#define GORO_GO_1 goro_detail::start
#define GORO_GO_2 goro_detail::start
#define GORO_GO_3 goro_detail::start
#define GORO_GO_4 goro_detail::start
#define GORO_GO_5 goro_detail::start
#define GORO_GO_6 goro_detail::start

#endif

#endif
