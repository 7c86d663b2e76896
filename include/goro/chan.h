/*
 * goro/chan.h - channels.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_CHAN
#define GORO_H_CHAN

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A Go channel of fixed-size elements. NULL is Go's nil channel: send and
 * receive block forever, close panics. Reference counted: goro_chan_make gives
 * one reference; the last goro_chan_unref frees it, or, while a goroutine still
 * waits on it, leaves that to the last who does.
 *
 * A goroutine that is started does not get a reference by itself. Give it one, which it
 * drops at its end:
 *
 *	go(worker, goro_chan_ref(c), i);      worker ends with goro_chan_unref(c)
 *	goro_chan_unref(c);                   yours: the channel lives on for the worker
 *
 * Without the goro_chan_ref the worker uses a channel that is gone. GORO_DEBUG=chan=1
 * keeps freed channels, so that their use panics ("send on freed channel"). See
 * docs/channels.md. */
typedef struct goro_chan goro_chan;
/* NULL: no memory */
GORO_API goro_chan *goro_chan_make(size_t elem_size, size_t capacity);
#define goro_chan_of(T, capacity) goro_chan_make(sizeof(T), (capacity))
GORO_API goro_chan *goro_chan_ref(goro_chan *c);
GORO_API void goro_chan_unref(goro_chan *c);

GORO_API void goro_chan_send(goro_chan *c, const void *elem);  /* c <- elem    */
/* elem, ok := <-c. false: closed and drained, *elem zeroed. elem may be NULL. */
GORO_API bool goro_chan_recv(goro_chan *c, void *elem);
GORO_API bool goro_chan_try_send(goro_chan *c, const void *elem); /* false: would block */
/* What a receive that does not wait came to: none is there; closed and drained; a value
 * was received. In C it is always written with enum, and so differs from goro_recv(), the
 * call that receives from a socket. */
enum goro_recv { GORO_RECV_EMPTY = -1, GORO_RECV_CLOSED = 0, GORO_RECV_OK = 1 };
GORO_API enum goro_recv goro_chan_try_recv(goro_chan *c, void *elem);
GORO_API void goro_chan_close(goro_chan *c);
GORO_API size_t goro_chan_len(const goro_chan *c);
GORO_API size_t goro_chan_cap(const goro_chan *c);

/* Element types. The calls above copy as many bytes as the channel's elements have,
 * whatever elem points to. There are two ways to have the types checked.
 *
 * At compile time: GORO_CHAN_TYPE(NAME, T); at file scope declares a type of channel,
 * NAME, whose elements are of type T (no array), and its calls. They are the calls above,
 * by other names, and only T goes through:
 *
 *	GORO_CHAN_TYPE(int_chan, int);
 *
 *	int_chan *c = int_chan_make(10);
 *	go(worker, int_chan_ref(c));
 *	int_chan_send(c, 42);                  int_chan_try_send(c, 42)
 *	while (int_chan_recv(c, &x)) ...       int_chan_try_recv(c, &x)
 *	int_chan_close(c);
 *	int_chan_unref(c);
 *	goro_select(int_chan_recv_case(c, &x, &ok), int_chan_send_case(d, &y));
 *	goro_chan_len(int_chan_chan(c));       for all else: the goro_chan that it is
 *
 * At run time: with GORO_CHECK_CHANNELS defined (cc -DGORO_CHECK_CHANNELS) the calls
 * above and the cases of select compare sizeof(*elem) with the size of the channel's
 * elements, and panic: "goro_chan_send: 4-byte element on a channel of 8-byte elements".
 * An array counts as a whole. A void pointer says nothing, and is not checked. */
#define GORO_CHAN_TYPE(name, ...)                                                      \
	typedef struct name name;                                                      \
	typedef __VA_ARGS__ name##_elem;                                               \
	GORO_CHAN_TYPE_CHECK(name)                                                     \
	GORO_CHAN_CALL name *name##_make(size_t capacity)                              \
	{                                                                              \
		return (name *)goro_chan_make(sizeof(name##_elem), capacity);          \
	}                                                                              \
	GORO_CHAN_CALL goro_chan *name##_chan(name *c)                                 \
	{                                                                              \
		return (goro_chan *)c;                                                 \
	}                                                                              \
	GORO_CHAN_CALL name *name##_ref(name *c)                                       \
	{                                                                              \
		return (name *)goro_chan_ref((goro_chan *)c);                          \
	}                                                                              \
	GORO_CHAN_CALL void name##_unref(name *c)                                      \
	{                                                                              \
		goro_chan_unref((goro_chan *)c);                                       \
	}                                                                              \
	GORO_CHAN_CALL void name##_send(name *c, name##_elem elem)                     \
	{                                                                              \
		goro_chan_send((goro_chan *)c, &elem);                                 \
	}                                                                              \
	GORO_CHAN_CALL bool name##_try_send(name *c, name##_elem elem)                 \
	{                                                                              \
		return goro_chan_try_send((goro_chan *)c, &elem);                      \
	}                                                                              \
	GORO_CHAN_CALL bool name##_recv(name *c, name##_elem *elem)                    \
	{                                                                              \
		return goro_chan_recv((goro_chan *)c, elem);                           \
	}                                                                              \
	GORO_CHAN_CALL enum goro_recv name##_try_recv(name *c, name##_elem *elem)      \
	{                                                                              \
		return goro_chan_try_recv((goro_chan *)c, elem);                       \
	}                                                                              \
	GORO_CHAN_CALL void name##_close(name *c)                                      \
	{                                                                              \
		goro_chan_close((goro_chan *)c);                                       \
	}                                                                              \
	GORO_CHAN_CALL struct goro_case name##_send_case(name *c, const name##_elem *elem) \
	{                                                                              \
		struct goro_case one = GORO_SEND((goro_chan *)c, elem);                \
		return one;                                                            \
	}                                                                              \
	GORO_CHAN_CALL struct goro_case name##_recv_case(name *c, name##_elem *elem, bool *ok) \
	{                                                                              \
		struct goro_case one = GORO_RECV_OKP((goro_chan *)c, elem, ok);        \
		return one;                                                            \
	}                                                                              \
	struct name
#define GORO_CHAN_CALL __attribute__((unused)) static inline
#ifndef __cplusplus
#define GORO_CHAN_TYPE_CHECK(name) typedef name##_elem name##_elem_is_no_array(void);
#else
#define GORO_CHAN_TYPE_CHECK(name)                                                     \
	static_assert(std::is_trivially_copyable<name##_elem>::value &&                \
	              !std::is_array<name##_elem>::value,                              \
	              "GORO_CHAN_TYPE(): elements are copied as bytes, and no arrays");
#endif

/* Private: c; panics if its elements are of another size. size 0: not known. */
GORO_API goro_chan *goro_chan_check(goro_chan *c, size_t size, const char *call);

#ifdef __cplusplus
}
#endif

/* ------------------------------------------------- private: GORO_CHECK_CHANNELS */

/* What GORO_CHECK_CHANNELS adds: macros of the functions' names. The element may hold
 * commas, (struct pair){ 1, 2 }, and is evaluated by the call alone. */
#ifdef GORO_CHECK_CHANNELS
#define GORO_CASE(c, elem) goro_chan_check((c), GORO_ELEM_SIZE(elem), "goro_select")
#define GORO_CHECKED(call, c, ...) \
	(call)(goro_chan_check((c), GORO_ELEM_SIZE(__VA_ARGS__), #call), __VA_ARGS__)
#define goro_chan_send(c, ...)     GORO_CHECKED(goro_chan_send, c, __VA_ARGS__)
#define goro_chan_recv(c, ...)     GORO_CHECKED(goro_chan_recv, c, __VA_ARGS__)
#define goro_chan_try_send(c, ...) GORO_CHECKED(goro_chan_try_send, c, __VA_ARGS__)
#define goro_chan_try_recv(c, ...) GORO_CHECKED(goro_chan_try_recv, c, __VA_ARGS__)
#else
#define GORO_CASE(c, elem) (c)
#endif

#ifndef __cplusplus
/* Of what (elem) points to; 0 for a void pointer, NULL and 0. In the operand of sizeof
 * the last two stand for a char *, since the other choices have to be valid, too. */
#define GORO_ELEM_SIZE(...)                                                            \
	(_Generic((__VA_ARGS__), void *: 1, const void *: 1, int: 1, default: 0) ? 0 : \
	 GORO_IS_ARRAY(__VA_ARGS__) ? sizeof(__typeof__(__VA_ARGS__)) :                \
	 sizeof(*_Generic((__VA_ARGS__), void *: (char *)0, const void *: (char *)0,   \
	                  int: (char *)0, default: (__VA_ARGS__))))
/* An array becomes a pointer there. */
#define GORO_IS_ARRAY(...)                                   \
	(!__builtin_types_compatible_p(__typeof__(__VA_ARGS__), \
	                               __typeof__(1 ? (__VA_ARGS__) : (__VA_ARGS__))))
#else
#define GORO_ELEM_SIZE(...) goro_detail::elem_size<decltype((__VA_ARGS__))>()
#endif

#ifdef __cplusplus
namespace goro_detail {

template <typename E> constexpr size_t elem_size()
{
	using T = typename std::remove_reference<E>::type;
	using P = typename std::remove_pointer<T>::type;

	if constexpr (std::is_array<T>::value)
		return sizeof(T);
	else if constexpr (std::is_pointer<T>::value && !std::is_void<P>::value)
		return sizeof(P);
	else
		return 0;
}

}
#endif

#endif
