/*
 * goro/go.h - goroutines: go(), and what a goroutine calls about itself.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_GO
#define GORO_H_GO

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* go(f, a, b, ...) starts f(a, b, ...) as a goroutine: zero to six arguments,
 * each an integer, a pointer, an enum or a bool, evaluated now. The call is
 * type-checked at compile time as f(a, b, ...) would be, and its arguments are
 * converted as there; a float, a struct or an integer of more than 64 bits does not
 * compile, as an argument or as a parameter. What f returns is dropped; a large struct
 * does not compile. 0, or -ENOMEM with nothing started. A NULL f ends the process
 * with "fatal error: go of nil func value", here as in all that starts goroutines. */
#define goro_go(...) GORO_GO_PICK(__VA_ARGS__, GORO_GO_6, GORO_GO_5, GORO_GO_4, \
	GORO_GO_3, GORO_GO_2, GORO_GO_1, GORO_GO_0, GORO_GO_NONE)(__VA_ARGS__)
#if !defined GORO_NO_SHORT_NAMES && !defined __cplusplus
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

/* Between these the goroutine is not stopped in favour of others, however long
 * it runs; they nest. For code that must not be descheduled. The end of a goroutine or
 * of a pool's task, and a panic that goro_try catches, undo what was disabled since. */
GORO_API void goro_preempt_disable(void);
GORO_API void goro_preempt_enable(void);

/* How many goroutines run at once. Returns the previous setting; n < 1 only
 * asks. The default follows the CPUs and the cgroup's quota, or GORO_MAXPROCS. */
GORO_API int goro_gomaxprocs(int n);
GORO_API void goro_set_default_gomaxprocs(void);   /* follow the machine again */
GORO_API int goro_num_cpu(void);            /* affinity and cgroup quota seen  */
GORO_API size_t goro_num_goroutine(void);

/* How many threads there may be, 10,000 unless set: debug.SetMaxThreads. The
 * previous setting. A goroutine keeps its thread while it is in a blocking call or
 * locked to it; a program that needs more threads ends with a report of how many do,
 * and where. */
GORO_API int goro_set_max_threads(int n);

/* Goroutine-local storage. Destructors run when the goroutine ends. */
typedef struct goro_key goro_key;
GORO_API goro_key *goro_key_make(void (*destroy)(void *value));
GORO_API void goro_local_set(goro_key *key, void *value);
GORO_API void *goro_local_get(goro_key *key);

/* Private: what go() calls. */
GORO_API int goro_start(void (*fn)(void), uintptr_t a, uintptr_t b, uintptr_t c,
                        uintptr_t d, uintptr_t e, uintptr_t f);

#ifdef __cplusplus
}
#endif

/* ----------------------------------------------------------- private: go() */

#define GORO_GO_PICK(f, a1, a2, a3, a4, a5, a6, n, ...) n

#ifndef __cplusplus

/*
 * go() in C. If each argument has its parameter's type the words of the arguments are
 * those that a call of f would pass, and go() calls goro_start with them. Otherwise, as
 * with an int for a bool, the compiler has to convert: go() calls goro_go_entry, as if it
 * were f, with the same arguments. That takes the words from the registers and starts f.
 * What words cannot carry is rejected at compile time.
 */

/* The type of an argument: arrays are pointers, and nothing is const. */
#define GORO_TYPE(x) __typeof__(((void)0, (x)))

/* The same, but a pointer is one to what is const. Classes up to 4 are kinds of integers,
 * 5 is pointers. clang warns of const before a function's type, which no pragma switches
 * off; it finds by GORO_PROBE what gcc finds by this. */
#define GORO_IS_INTEGER(x) (__builtin_classify_type(x) < 5)
#ifdef __clang__
#define GORO_CONST_TYPE(x) GORO_TYPE(x)
#else
#define GORO_CONST_TYPE(x) __typeof__(__builtin_choose_expr(GORO_IS_INTEGER(x), (x), \
	(const __typeof__(*__builtin_choose_expr(GORO_IS_INTEGER(x), (int *)0, (x))) *)0))
#endif

#define GORO_WORD(x) ((uintptr_t)(x))
#define GORO_IS_WORD(x) \
	(__builtin_classify_type(x) <= 5 && sizeof(GORO_TYPE(x)) <= sizeof(uintptr_t))

/* In place of an integer, in a call that is never made: what the compiler converts to an
 * integer, an enum, a bool or a pointer (the warnings are switched off), but not to a
 * float. To clang that is a pointer, to gcc a constant that no float can hold, for which
 * it has a warning of its own, though not in what is not evaluated. */
#ifdef __clang__
struct goro_parameters_must_be_integers_pointers_enums_or_bools;
#define GORO_NO_FLOAT ((struct goro_parameters_must_be_integers_pointers_enums_or_bools *)0)
#define GORO_PROBING(call) (void)sizeof(call, 0)
#else
#define GORO_NO_FLOAT (((__int128)1 << 100) + 1)
#define GORO_PROBING(call) do { if (0) (void)(call); } while (0)
#endif
/* By x's type alone: the warning is not for what is inside of x. */
#define GORO_PROBE(x) __builtin_choose_expr(GORO_IS_INTEGER(*(GORO_TYPE(x) *)0), GORO_NO_FLOAT, \
	*(GORO_TYPE(x) *)0)

/* What f returns comes back in registers and can be dropped there. */
#define GORO_IS_DROPPED(...) (sizeof(__typeof__(__VA_ARGS__)) <= 2 * sizeof(uintptr_t) && \
	!__builtin_types_compatible_p(__typeof__(__VA_ARGS__), long double))

/* Whether no parameter is narrower than an int: then f is compatible with a function of
 * which no parameters are known. C23 has no such functions. */
#if __STDC_VERSION__ <= 201710L
#define GORO_IS_WIDE(f, call) __builtin_types_compatible_p(__typeof__(*(f)), __typeof__(call)())
#define GORO_IS_PLAIN(f, call) \
	__builtin_types_compatible_p(__typeof__(&*(f)), __typeof__(call)(*)())
#else
#define GORO_IS_WIDE(f, call) 0
#define GORO_IS_PLAIN(f, call) 0
#endif

/* The compiler must not believe that a call of goro_go_entry does not return: a function
 * that does not is called with words. gcc can tell which ones these are, by an attribute
 * of the name or by the pointer; clang cannot, and calls all wide ones with words. */
#ifdef __clang__
#define GORO_MAY_NOT_RETURN(f, call) GORO_IS_WIDE(f, call)
#else
#define GORO_MAY_NOT_RETURN(f, call) (__builtin_has_attribute((f), noreturn) || \
	(GORO_IS_WIDE(f, call) && !GORO_IS_PLAIN(f, call)))
#endif

struct goro_call {
	void (*fn)(void);
	int result;
};
/* To be called as if it were call->fn, with call as the static chain. */
GORO_API extern void (*const goro_go_entry)(void);

/* Whether f's parameters are of type K, which words do not carry, or of the arguments'
 * types. Of four and more one is K, or all are. A K beside a parameter that has neither
 * type is found by GORO_PROBE; but not an __int128, which arrives whole where
 * goro_go_entry is called. */
#define GORO_IS(f, call, types) \
	__builtin_types_compatible_p(__typeof__(*(f)), __typeof__(call)types)
#define GORO_HAS_1(K, f, call, A) GORO_IS(f, call, (K))
#define GORO_HAS_2(K, f, call, A, B) \
	(GORO_IS(f, call, (K, B)) || GORO_IS(f, call, (A, K)) || GORO_IS(f, call, (K, K)))
#define GORO_HAS_3(K, f, call, A, B, C) \
	(GORO_IS(f, call, (K, B, C)) || GORO_IS(f, call, (A, K, C)) || \
	 GORO_IS(f, call, (A, B, K)) || GORO_IS(f, call, (K, K, C)) || \
	 GORO_IS(f, call, (K, B, K)) || GORO_IS(f, call, (A, K, K)) || \
	 GORO_IS(f, call, (K, K, K)))
#define GORO_HAS_4(K, f, call, A, B, C, D) \
	(GORO_IS(f, call, (K, B, C, D)) || GORO_IS(f, call, (A, K, C, D)) || \
	 GORO_IS(f, call, (A, B, K, D)) || GORO_IS(f, call, (A, B, C, K)) || \
	 GORO_IS(f, call, (K, K, K, K)))
#define GORO_HAS_5(K, f, call, A, B, C, D, E) \
	(GORO_IS(f, call, (K, B, C, D, E)) || GORO_IS(f, call, (A, K, C, D, E)) || \
	 GORO_IS(f, call, (A, B, K, D, E)) || GORO_IS(f, call, (A, B, C, K, E)) || \
	 GORO_IS(f, call, (A, B, C, D, K)) || GORO_IS(f, call, (K, K, K, K, K)))
#define GORO_HAS_6(K, f, call, A, B, C, D, E, F) \
	(GORO_IS(f, call, (K, B, C, D, E, F)) || GORO_IS(f, call, (A, K, C, D, E, F)) || \
	 GORO_IS(f, call, (A, B, K, D, E, F)) || GORO_IS(f, call, (A, B, C, K, E, F)) || \
	 GORO_IS(f, call, (A, B, C, D, K, F)) || GORO_IS(f, call, (A, B, C, D, E, K)) || \
	 GORO_IS(f, call, (K, K, K, K, K, K)))
#define GORO_NO_WORD(has, ...)                                                  \
	(has(double, __VA_ARGS__) || has(float, __VA_ARGS__) ||                 \
	 has(long double, __VA_ARGS__) || has(__int128, __VA_ARGS__) ||         \
	 has(unsigned __int128, __VA_ARGS__))

#define GORO_FN(f) ((void (*)(void))(f))
/* What f may be called with, and how it is: types, words and probes in parentheses, since
 * they have commas; are_words and no_word, conditions on the arguments and the
 * parameters. */
#define GORO_GO(f, types, words, probes, are_words, no_word, ...) __extension__ ({              \
	(void)sizeof((f)(__VA_ARGS__), 0);                                                      \
	_Pragma("GCC diagnostic push")                                                          \
	_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")                                  \
	_Pragma("GCC diagnostic ignored \"-Woverflow\"")                                        \
	_Pragma("GCC diagnostic ignored \"-Wincompatible-pointer-types\"")                      \
	_Pragma("GCC diagnostic ignored \"-Wstrict-prototypes\"")                               \
	_Pragma("GCC diagnostic ignored \"-Wunused-result\"")                                   \
	_Pragma("GCC diagnostic ignored \"-Wshadow\"")                                          \
	_Pragma("GCC diagnostic ignored \"-Wpedantic\"")                                        \
	_Static_assert(are_words, "go(): arguments must be integers of at most 64 bits, "       \
	                          "pointers, enums or bools");                                  \
	_Static_assert(!no_word, "go(): parameters must be integers of at most 64 bits, "       \
	                         "pointers, enums or bools");                                   \
	_Static_assert(GORO_IS_DROPPED((f)(__VA_ARGS__)),                                       \
	               "go(): the function must not return a large struct or a long double");   \
	_Pragma("GCC diagnostic push")                                                          \
	_Pragma("GCC diagnostic error \"-Wfloat-conversion\"")                                  \
	GORO_PROBING((f)probes);                                                                \
	_Pragma("GCC diagnostic pop")                                                           \
	int goro_go_result;                                                                     \
	__builtin_choose_expr(                                                                  \
		GORO_IS(f, (f)(__VA_ARGS__), types) ||                                          \
			GORO_MAY_NOT_RETURN(f, (f)(__VA_ARGS__)),                               \
		(void)(goro_go_result = goro_start words),                                      \
		__extension__ ({                                                                \
			struct goro_call goro_go_call = { GORO_FN(f), 0 };                      \
			__typeof__(&*(f)) goro_go_fn = (__typeof__(&*(f)))goro_go_entry;        \
			(void)__builtin_call_with_static_chain(goro_go_fn(__VA_ARGS__),         \
			                                       &goro_go_call);                  \
			(void)(goro_go_result = goro_go_call.result);                           \
		}));                                                                            \
	_Pragma("GCC diagnostic pop")                                                           \
	goro_go_result;                                                                         \
})

#define GORO_GO_0(f) __extension__ ({                                                           \
	_Static_assert(GORO_IS_DROPPED((f)()),                                                  \
	               "go(): the function must not return a large struct or a long double");   \
	goro_start(GORO_FN(f), 0, 0, 0, 0, 0, 0);                                               \
})
#define GORO_GO_1(f, a) GORO_GO(f, \
	(GORO_TYPE(a)), \
	(GORO_FN(f), GORO_WORD(a), 0, 0, 0, 0, 0), \
	(GORO_PROBE(a)), \
	(GORO_IS_WORD(a)), \
	(GORO_NO_WORD(GORO_HAS_1, f, (f)(a), GORO_TYPE(a)) || \
	 GORO_NO_WORD(GORO_HAS_1, f, (f)(a), GORO_CONST_TYPE(a))), a)
#define GORO_GO_2(f, a, b) GORO_GO(f, \
	(GORO_TYPE(a), GORO_TYPE(b)), \
	(GORO_FN(f), GORO_WORD(a), GORO_WORD(b), 0, 0, 0, 0), \
	(GORO_PROBE(a), GORO_PROBE(b)), \
	(GORO_IS_WORD(a) && GORO_IS_WORD(b)), \
	(GORO_NO_WORD(GORO_HAS_2, f, (f)(a, b), GORO_TYPE(a), GORO_TYPE(b)) || \
	 GORO_NO_WORD(GORO_HAS_2, f, (f)(a, b), GORO_CONST_TYPE(a), GORO_CONST_TYPE(b))), a, \
	 b)
#define GORO_GO_3(f, a, b, c) GORO_GO(f, \
	(GORO_TYPE(a), GORO_TYPE(b), GORO_TYPE(c)), \
	(GORO_FN(f), GORO_WORD(a), GORO_WORD(b), GORO_WORD(c), 0, 0, 0), \
	(GORO_PROBE(a), GORO_PROBE(b), GORO_PROBE(c)), \
	(GORO_IS_WORD(a) && GORO_IS_WORD(b) && GORO_IS_WORD(c)), \
	(GORO_NO_WORD(GORO_HAS_3, f, (f)(a, b, c), GORO_TYPE(a), GORO_TYPE(b), GORO_TYPE(c)) \
	 || \
	 GORO_NO_WORD(GORO_HAS_3, f, (f)(a, b, c), GORO_CONST_TYPE(a), GORO_CONST_TYPE(b), \
	 GORO_CONST_TYPE(c))), a, b, c)
#define GORO_GO_4(f, a, b, c, d) GORO_GO(f, \
	(GORO_TYPE(a), GORO_TYPE(b), GORO_TYPE(c), GORO_TYPE(d)), \
	(GORO_FN(f), GORO_WORD(a), GORO_WORD(b), GORO_WORD(c), GORO_WORD(d), 0, 0), \
	(GORO_PROBE(a), GORO_PROBE(b), GORO_PROBE(c), GORO_PROBE(d)), \
	(GORO_IS_WORD(a) && GORO_IS_WORD(b) && GORO_IS_WORD(c) && GORO_IS_WORD(d)), \
	(GORO_NO_WORD(GORO_HAS_4, f, (f)(a, b, c, d), GORO_TYPE(a), GORO_TYPE(b), \
	 GORO_TYPE(c), GORO_TYPE(d)) || \
	 GORO_NO_WORD(GORO_HAS_4, f, (f)(a, b, c, d), GORO_CONST_TYPE(a), GORO_CONST_TYPE(b), \
	 GORO_CONST_TYPE(c), GORO_CONST_TYPE(d))), a, b, c, d)
#define GORO_GO_5(f, a, b, c, d, e) GORO_GO(f, \
	(GORO_TYPE(a), GORO_TYPE(b), GORO_TYPE(c), GORO_TYPE(d), GORO_TYPE(e)), \
	(GORO_FN(f), GORO_WORD(a), GORO_WORD(b), GORO_WORD(c), GORO_WORD(d), GORO_WORD(e), 0), \
	(GORO_PROBE(a), GORO_PROBE(b), GORO_PROBE(c), GORO_PROBE(d), GORO_PROBE(e)), \
	(GORO_IS_WORD(a) && GORO_IS_WORD(b) && GORO_IS_WORD(c) && GORO_IS_WORD(d) && \
	 GORO_IS_WORD(e)), \
	(GORO_NO_WORD(GORO_HAS_5, f, (f)(a, b, c, d, e), GORO_TYPE(a), GORO_TYPE(b), \
	 GORO_TYPE(c), GORO_TYPE(d), GORO_TYPE(e)) || \
	 GORO_NO_WORD(GORO_HAS_5, f, (f)(a, b, c, d, e), GORO_CONST_TYPE(a), \
	 GORO_CONST_TYPE(b), GORO_CONST_TYPE(c), GORO_CONST_TYPE(d), GORO_CONST_TYPE(e))), a, \
	 b, c, d, e)
#define GORO_GO_6(f, a, b, c, d, e, g) GORO_GO(f, \
	(GORO_TYPE(a), GORO_TYPE(b), GORO_TYPE(c), GORO_TYPE(d), GORO_TYPE(e), GORO_TYPE(g)), \
	(GORO_FN(f), GORO_WORD(a), GORO_WORD(b), GORO_WORD(c), GORO_WORD(d), GORO_WORD(e), \
	 GORO_WORD(g)), \
	(GORO_PROBE(a), GORO_PROBE(b), GORO_PROBE(c), GORO_PROBE(d), GORO_PROBE(e), \
	 GORO_PROBE(g)), \
	(GORO_IS_WORD(a) && GORO_IS_WORD(b) && GORO_IS_WORD(c) && GORO_IS_WORD(d) && \
	 GORO_IS_WORD(e) && GORO_IS_WORD(g)), \
	(GORO_NO_WORD(GORO_HAS_6, f, (f)(a, b, c, d, e, g), GORO_TYPE(a), GORO_TYPE(b), \
	 GORO_TYPE(c), GORO_TYPE(d), GORO_TYPE(e), GORO_TYPE(g)) || \
	 GORO_NO_WORD(GORO_HAS_6, f, (f)(a, b, c, d, e, g), GORO_CONST_TYPE(a), \
	 GORO_CONST_TYPE(b), GORO_CONST_TYPE(c), GORO_CONST_TYPE(d), GORO_CONST_TYPE(e), \
	 GORO_CONST_TYPE(g))), a, b, c, d, e, g)

#else

/* In C++ each argument is converted to its parameter's type first, as a call
 * would do it. */
namespace goro_detail {

template <typename P> struct word {
	static_assert((std::is_integral<P>::value || std::is_pointer<P>::value ||
	               std::is_enum<P>::value || std::is_null_pointer<P>::value) &&
	              sizeof(P) <= sizeof(uintptr_t),
	              "go(): parameters must be integers of at most 64 bits, pointers, enums "
	              "or bools");
	template <typename A> static uintptr_t of(A a)
	{
		static_assert(!std::is_floating_point<A>::value && !std::is_class<A>::value &&
		              sizeof(A) <= sizeof(uintptr_t),
		              "go(): arguments must be integers of at most 64 bits, pointers, "
		              "enums or bools");
		if constexpr (std::is_pointer<P>::value && std::is_integral<A>::value) {
			return (uintptr_t)a;	/* NULL: the call was checked */
		} else if constexpr (std::is_null_pointer<P>::value) {
			return 0;
		} else {
			P p = a;
			return (uintptr_t)p;
		}
	}
};

/* What f returns comes back in registers and can be dropped there. */
template <typename R> struct is_dropped {
	static const bool value = std::is_trivially_copyable<R>::value &&
	                          sizeof(R) <= 2 * sizeof(uintptr_t) &&
	                          !std::is_same<R, long double>::value;
};
template <> struct is_dropped<void> {
	static const bool value = true;
};

template <typename R, typename... P, typename... A>
inline int start(R (*f)(P...), A... a)
{
	static_assert(sizeof...(P) == sizeof...(A), "go(): wrong number of arguments");
	static_assert(sizeof...(P) <= 6, "go(): at most six arguments");
	static_assert(is_dropped<R>::value,
	              "go(): the function must not return a class, a large struct or a long double");
	const uintptr_t w[7] = { word<P>::of(a)..., 0 };
	return goro_start((void (*)(void))f, w[0], sizeof...(P) > 1 ? w[1] : 0,
	                  sizeof...(P) > 2 ? w[2] : 0, sizeof...(P) > 3 ? w[3] : 0,
	                  sizeof...(P) > 4 ? w[4] : 0, sizeof...(P) > 5 ? w[5] : 0);
}

}

/* The call is there for the compiler to check, and never made. */
#define GORO_GO_CXX(f, ...) \
	((void)sizeof((f)(__VA_ARGS__), 0), goro_detail::start(f, __VA_ARGS__))
#define GORO_GO_0(f) ((void)sizeof((f)(), 0), goro_detail::start(f))
#define GORO_GO_1 GORO_GO_CXX
#define GORO_GO_2 GORO_GO_CXX
#define GORO_GO_3 GORO_GO_CXX
#define GORO_GO_4 GORO_GO_CXX
#define GORO_GO_5 GORO_GO_CXX
#define GORO_GO_6 GORO_GO_CXX

#ifndef GORO_NO_SHORT_NAMES

/* In C++ go() is a function, so that a class may have a member of this name. Each
 * argument is converted as in a call of f; one that go() does not take meets the second
 * overload. */
namespace goro_detail {

template <typename P> struct as_declared {
	typedef P type;
};

template <typename... A> struct any_rejected {
	static const bool value = false;
};
template <typename A, typename... More> struct any_rejected<A, More...> {
	static const bool value = std::is_floating_point<A>::value || std::is_class<A>::value ||
	                          std::is_union<A>::value || sizeof(A) > sizeof(uintptr_t) ||
	                          any_rejected<More...>::value;
};

}

template <typename R, typename... P>
__attribute__((always_inline)) inline int go(R (*f)(P...),
                                             typename goro_detail::as_declared<P>::type... args)
{
	return goro_detail::start(f, args...);
}

/* A floating-point number, a class, a union or a wider integer as an argument. */
template <typename R, typename... P, typename... A>
typename std::enable_if<goro_detail::any_rejected<A...>::value, int>::type
go(R (*)(P...), A...)
{
	static_assert(!goro_detail::any_rejected<A...>::value,
	              "go(): arguments must be integers of at most 64 bits, pointers, enums or bools");
	return 0;
}

#endif

#endif

#endif
