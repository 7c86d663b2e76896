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
 *		goro_chan_unref(results);
 *	}
 *
 *	static int start(int argc, char **argv)
 *	{
 *		goro_chan *results = goro_chan_of(int, 0);
 *
 *		for (int i = 0; i < 10; i++)
 *			go(worker, goro_chan_ref(results), i);
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
 *   - A C++ exception stays with the goroutine that throws it, and passes through
 *     goro_blocking, goro_try and goro_once_do. One that leaves a goroutine's function,
 *     a deferred function or a destructor of goro_key_make ends the program with a
 *     report, by std::terminate.
 *   - Types whose size is public (goro_mutex, ...) are valid when zeroed.
 *   - An object may be freed or go out of scope as soon as a call shows that
 *     nobody needs it any more, even while the call on the other side has not
 *     returned yet: a waitgroup once goro_waitgroup_wait returns, a channel once
 *     its last value or its close has been received, a mutex once its last holder
 *     has unlocked it.
 */
#ifndef GORO_H
#define GORO_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GORO_API __attribute__((visibility("default")))

#define GORO_NORETURN __attribute__((noreturn))

#ifdef __cplusplus
#include <initializer_list>
#include <type_traits>
extern "C" {
#endif

/* The system's own types, without the headers that define them: those declare send,
 * recv, select and many more, and a program may have functions of its own with such
 * names. Who calls goro_recvmsg and the like includes <sys/socket.h>, <sys/uio.h>. */
typedef long ssize_t;
typedef long off_t;
typedef unsigned int socklen_t;
struct iovec;
struct msghdr;
struct sockaddr;

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
 * type-checked at compile time as f(a, b, ...) would be, and its arguments are
 * converted as there; a float, a struct or an integer of more than 64 bits does not
 * compile, as an argument or as a parameter. What f returns is dropped; a large struct
 * does not compile. 0, or -ENOMEM with nothing started. A NULL f ends the process
 * with "fatal error: go of nil func value", here as in all that starts goroutines. */
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
 * At run time: with GORO_CHECK_CHANNELS defined (cc -DGORO_CHECK_CHANNELS) the calls above
 * and the cases of select compare sizeof(*elem) with the size of the channel's elements,
 * and panic: "goro_chan_send: 4-byte element on a channel of 8-byte elements". An array
 * counts as a whole. A void pointer says nothing, and is not checked. */
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

/* ----------------------------------------------------------------- select */

struct goro_case {
	goro_chan *chan;       /* NULL: never ready                               */
	void *recv;            /* receive into here; NULL: drop what is received  */
	bool *ok;              /* false if it was a close; may be NULL            */
	const void *send;      /* or send from here,                              */
	bool is_send;          /*   if this is set                                */
};

#define GORO_FOREVER INT64_MAX
#define GORO_NOW     INT64_C(0)

/* Waits until one case can go, does it, and returns its index; among several
 * ready ones each is as likely. With a deadline (a goro_now() time) in the past,
 * GORO_NOW included, it is Go's select with a default: -1 if none can go. With
 * one in the future it waits until then: -1 if none could go. */
GORO_API int goro_select_n(const struct goro_case *cases, size_t n, int64_t deadline);

/*	switch (goro_select(GORO_RECV(a, &x), GORO_SEND(b, &y))) {
 *	case 0: ...    x was received
 *	case 1: ...    y was sent
 *	}
 * goro_select_until(deadline, ...) takes a deadline, too. */
#ifndef __cplusplus
#define GORO_SEND(c, elemp) \
	((struct goro_case){ .chan = GORO_CASE(c, elemp), .send = (elemp), .is_send = true })
#define GORO_RECV(c, elemp) \
	((struct goro_case){ .chan = GORO_CASE(c, elemp), .recv = (elemp) })
#define GORO_RECV_OKP(c, elemp, okp) \
	((struct goro_case){ .chan = GORO_CASE(c, elemp), .recv = (elemp), .ok = (okp) })
#define goro_select_until(deadline, ...)                                     \
	goro_select_n((const struct goro_case[]){ __VA_ARGS__ },             \
	              sizeof((const struct goro_case[]){ __VA_ARGS__ }) /    \
	                      sizeof(struct goro_case), (deadline))
#else
#define GORO_SEND(c, elemp) \
	goro_detail::send_case(GORO_CASE(c, elemp), (elemp))
#define GORO_RECV(c, elemp) \
	goro_detail::recv_case(GORO_CASE(c, elemp), (elemp), nullptr)
#define GORO_RECV_OKP(c, elemp, okp) \
	goro_detail::recv_case(GORO_CASE(c, elemp), (elemp), (okp))
#define goro_select_until(deadline, ...) \
	goro_detail::select_until((deadline), { __VA_ARGS__ })
#endif
#define goro_select(...) goro_select_until(GORO_FOREVER, __VA_ARGS__)

/* ------------------------------------------------------------------- time */

#define GORO_MICROSECOND INT64_C(1000)
#define GORO_MILLISECOND INT64_C(1000000)
#define GORO_SECOND      INT64_C(1000000000)

GORO_API int64_t goro_now(void);
GORO_API void goro_sleep(int64_t ns);

/* A timer sends the time, a goro_now(), on its channel once, ns from now (at once
 * if ns <= 0). Nobody need be there to receive it: one value is kept, though the
 * channel shows a length and a capacity of 0. NULL: no memory.
 *
 * The channel belongs to the timer; take a reference to keep it for longer. The
 * timer may be freed at any time, stopped or not. Nobody is woken by that: who
 * waits on the channel waits on, as after a stop. */
typedef struct goro_timer goro_timer;
GORO_API goro_timer *goro_timer_make(int64_t ns);
GORO_API goro_chan *goro_timer_chan(goro_timer *t);
/* Stops the timer. True: that was in time, the value of this run was not received
 * and will not be. After it, and after a reset, nothing is received that the timer
 * sent before. Any number of goroutines may stop and reset a timer at once. */
GORO_API bool goro_timer_stop(goro_timer *t);
/* Stops it and starts it again, as if made anew. True as for a stop. */
GORO_API bool goro_timer_reset(goro_timer *t, int64_t ns);
GORO_API void goro_timer_free(goro_timer *t);

/* A timer without a channel (goro_timer_chan is NULL) that starts fn(arg) as a
 * goroutine. Stopped in time, fn does not run; freed, too. Stopping does not wait
 * for an fn that has been started. */
GORO_API goro_timer *goro_after_func(int64_t ns, void (*fn)(void *), void *arg);

/* A ticker sends the time again and again, a period apart. If nobody has received
 * the last tick, the next is dropped: they do not queue. Panics if period <= 0. */
typedef struct goro_ticker goro_ticker;
GORO_API goro_ticker *goro_ticker_make(int64_t period);   /* NULL: no memory */
GORO_API goro_chan *goro_ticker_chan(goro_ticker *t);     /* belongs to the ticker */
/* The next tick comes a period from now; none of before is received. */
GORO_API void goro_ticker_reset(goro_ticker *t, int64_t period);
GORO_API void goro_ticker_free(goro_ticker *t);           /* at any time; stops it */

/* ------------------------------------------------------------------- sync */

/* All of these are ready to use when zeroed, except goro_sema. They may be locked
 * in one goroutine or thread and unlocked in another, are not recursive, and must
 * not be copied or moved once in use. */

typedef struct { uint32_t opaque[2]; } goro_mutex;      /* sync.Mutex          */
/* Who has waited for a millisecond is served before all newcomers. Unlocking what
 * is not locked ends the process. */
GORO_API void goro_mutex_lock(goro_mutex *m);
GORO_API bool goro_mutex_try_lock(goro_mutex *m);
GORO_API void goro_mutex_unlock(goro_mutex *m);

typedef struct { uint64_t opaque[4]; } goro_rwmutex;    /* sync.RWMutex        */
/* Any number of readers, or one writer. A writer that waits keeps new readers out,
 * so a goroutine must not rlock twice; readers that waited go before the next
 * writer. */
GORO_API void goro_rwmutex_rlock(goro_rwmutex *m);
GORO_API bool goro_rwmutex_try_rlock(goro_rwmutex *m);
GORO_API void goro_rwmutex_runlock(goro_rwmutex *m);
GORO_API void goro_rwmutex_lock(goro_rwmutex *m);
GORO_API bool goro_rwmutex_try_lock(goro_rwmutex *m);
GORO_API void goro_rwmutex_unlock(goro_rwmutex *m);

typedef struct { uint64_t opaque[2]; } goro_waitgroup;  /* sync.WaitGroup      */
/* wait returns when the counter is zero. Add before what is to be waited for
 * starts. A counter below zero panics. */
GORO_API void goro_waitgroup_add(goro_waitgroup *wg, int delta);
GORO_API void goro_waitgroup_done(goro_waitgroup *wg);  /* add(wg, -1)         */
GORO_API void goro_waitgroup_wait(goro_waitgroup *wg);

typedef struct { uint64_t opaque[2]; } goro_once;       /* sync.Once           */
/* Runs fn(arg) if this is the first call with o; all calls return when that is
 * over. A panic in fn passes through the first call, and counts as an end. */
GORO_API void goro_once_do(goro_once *o, void (*fn)(void *), void *arg);

typedef struct { uint64_t opaque[4]; } goro_cond;       /* sync.Cond           */
/* wait unlocks m, which the caller has locked, sleeps until it is notified, and
 * locks m again. There are no notifications for nothing, but what was waited for
 * may be over by then: wait in a loop. signal wakes the one who waits longest, if
 * any; broadcast all. They may be called with or without m locked. */
GORO_API void goro_cond_wait(goro_cond *c, goro_mutex *m);
GORO_API void goro_cond_signal(goro_cond *c);
GORO_API void goro_cond_broadcast(goro_cond *c);

/* golang.org/x/sync/semaphore: so many units, acquired and released any number at
 * a time, served strictly in order. Zeroed has no units: init it. */
typedef struct { uint64_t opaque[4]; } goro_sema;
GORO_API void goro_sema_init(goro_sema *s, int64_t units);
/* 0, or -ETIMEDOUT with nothing acquired: always that once the deadline (a
 * goro_now() time; GORO_FOREVER: none) has passed, even if there are units. More
 * than there are in all is waited for in vain. */
GORO_API int goro_sema_acquire(goro_sema *s, int64_t units, int64_t deadline);
GORO_API bool goro_sema_try_acquire(goro_sema *s, int64_t units);
/* Panics if so many are not acquired. */
GORO_API void goro_sema_release(goro_sema *s, int64_t units);

/* -------------------------------------------------------------------- I/O */

/* The POSIX calls of the same names, parking the goroutine instead of the
 * thread. The result, or -errno; -ETIMEDOUT past the descriptor's deadline.
 *
 * Any descriptor will do: sockets, pipes, terminals, eventfds, regular files,
 * inherited ones; what the program opened itself is taken in on first use, and
 * O_NONBLOCK need not be set (only accept sets it). Those made by the calls below are
 * non-blocking and closed on exec. Reading and writing may go on at once, in any
 * number of goroutines.
 *
 * Writes (and sends, on streams) write everything, as a blocking write does; less
 * only if an error, a deadline or a close came in between, which the next call
 * reports. Where nobody reads any more the result is -EPIPE and there is no
 * SIGPIPE, except from goro_write and goro_writev on descriptors 1 and 2. */
GORO_API ssize_t goro_read(int fd, void *buf, size_t n);
GORO_API ssize_t goro_write(int fd, const void *buf, size_t n);
GORO_API ssize_t goro_readv(int fd, const struct iovec *iov, int n);
GORO_API ssize_t goro_writev(int fd, const struct iovec *iov, int n);
/* As io.ReadFull: n, or less if the end came first, or -errno even if something was
 * read before. */
GORO_API ssize_t goro_read_full(int fd, void *buf, size_t n);
GORO_API ssize_t goro_write_full(int fd, const void *buf, size_t n);   /* n or -errno */

/* Regular files: other goroutines run while the disk works. */
GORO_API int goro_open(const char *path, int flags, ...);
GORO_API ssize_t goro_pread(int fd, void *buf, size_t n, off_t off);
GORO_API ssize_t goro_pwrite(int fd, const void *buf, size_t n, off_t off);
GORO_API int goro_fsync(int fd);

/* Wakes everyone blocked on the descriptor with -ECANCELED and closes it when they
 * have left, before which the number is not free: nobody who was in a call on it
 * ever touches another file that gets the same number. What the calls here made
 * must be closed by this, not by close(2). */
GORO_API int goro_close(int fd);

GORO_API int goro_socket(int domain, int type, int protocol);
GORO_API int goro_accept(int fd, struct sockaddr *addr, socklen_t *len);
GORO_API int goro_connect(int fd, const struct sockaddr *addr, socklen_t len);
GORO_API ssize_t goro_recv(int fd, void *buf, size_t n, int flags);
GORO_API ssize_t goro_send(int fd, const void *buf, size_t n, int flags);
GORO_API ssize_t goro_recvfrom(int fd, void *buf, size_t n, int flags,
                               struct sockaddr *addr, socklen_t *len);
GORO_API ssize_t goro_sendto(int fd, const void *buf, size_t n, int flags,
                             const struct sockaddr *addr, socklen_t len);
GORO_API ssize_t goro_recvmsg(int fd, struct msghdr *msg, int flags);
GORO_API ssize_t goro_sendmsg(int fd, const struct msghdr *msg, int flags);

/* Deadlines (goro_now() times) for pending and future calls; GORO_FOREVER removes one.
 * Past its deadline every call fails with -ETIMEDOUT at once, whatever there is to
 * read, until another one is set. */
GORO_API int goro_set_deadline(int fd, int64_t read_deadline, int64_t write_deadline);
/* Waits for POLLIN, POLLOUT, ... on one descriptor: the events, 0 past deadline. */
GORO_API int goro_poll(int fd, int events, int64_t deadline);

/* net.Listen and net.Dial: a descriptor for the calls above, or -errno.
 *
 * The networks are "tcp" and "udp", with a 4 or a 6 behind them for IPv4 or IPv6
 * alone, "unix", "unixgram" and "unixpacket". The address is "host:port" or
 * "[host]:port", the host in digits or a name, the port a number or a service's name;
 * for unix a path, or a name in the abstract namespace with an @ before it.
 *
 * Without a host, ":8080", one listens on all addresses of this machine, IPv4 and
 * IPv6, and dials this machine. Port 0 is for the system to choose: getsockname tells.
 * A listener on "udp" or "unixgram" is a socket to receive from. The file of a unix
 * listener stays when it is closed.
 *
 * Names are looked up without holding up other goroutines. If one has several
 * addresses, dial tries them in turn, and IPv4 beside IPv6 if one of them is slow; the
 * deadline is for all of it.
 *
 *	-EINVAL         no such network or service; no port, or a bad one
 *	-ENOENT         no such host
 *	-EAGAIN         the name servers do not answer for now
 *	-EIO            they said that they cannot
 *	-EAFNOSUPPORT   no address of the kind that the network asks for
 *	-ETIMEDOUT      the deadline has passed
 * or what connect, bind and the like say; of several addresses, for the first. */
GORO_API int goro_listen(const char *network, const char *address);
GORO_API int goro_dial(const char *network, const char *address, int64_t deadline);

/* --------------------------------------------------------- blocking calls */

/* Any call that blocks in the kernel gives up the processor to the others, even
 * without these; announced, it does so at once. Runs fn(arg) on this thread and
 * stack. */
GORO_API void goro_blocking(void (*fn)(void *), void *arg);
/* The same for code that does not fit in one function. Must pair; in between,
 * no other goro_ call. */
GORO_API void goro_syscall_enter(void);
GORO_API void goro_syscall_exit(void);

/* ---------------------------------------------------------------- signals */

/* os/signal.Notify: a channel on which the numbers (int) of these signals arrive
 * when they do; n 0: of all that can be had. Several channels may be for the same
 * signal, and all get it. As long as there is one, the signal's usual effect is
 * off. Nobody waits for the receiver: 128 signals find room on a channel, and what
 * comes when it is full is lost to it. Different signals may arrive in another
 * order than they were sent in.
 *
 * SIGKILL and SIGSTOP cannot be had. SIGSEGV and other signals that are faults come
 * here only if somebody sent them.
 *
 * The channel is the caller's, to be unref'd when it is stopped. NULL: no memory. */
GORO_API goro_chan *goro_signal_notify(const int *signals, size_t n);
/* Nothing is sent on c any more when this returns: what came before has been, and
 * what comes from now on has the effect it had before c, unless it is wanted on
 * another channel. No effect on a channel that is stopped or not of notify. */
GORO_API void goro_signal_stop(goro_chan *c);

/* ---------------------------------------------------------------- context */

/* Go's context.Context: what is to be done is over, when and why; and values that
 * go with it. Contexts form a tree: a child is done when its parent is, for the
 * same reason. Any number of goroutines and threads may use one at once.
 *
 * Reference counted. Each that is made comes with one reference, and keeps its
 * parent; the last goro_ctx_unref of it cancels it. NULL: no memory. A NULL parent
 * panics. */
typedef struct goro_ctx goro_ctx;
GORO_API goro_ctx *goro_ctx_ref(goro_ctx *c);
GORO_API void goro_ctx_unref(goro_ctx *c);

/* The root: never done, no values, no deadline. Not counted. */
GORO_API goro_ctx *goro_ctx_background(void);
/* Done when cancelled, or with its parent. */
GORO_API goro_ctx *goro_ctx_with_cancel(goro_ctx *parent);
/* Also done at the deadline, a goro_now() time, or at its parent's, if that is
 * earlier; one in the past is done already. */
GORO_API goro_ctx *goro_ctx_with_deadline(goro_ctx *parent, int64_t deadline);
GORO_API goro_ctx *goro_ctx_with_timeout(goro_ctx *parent, int64_t ns);
/* Has a value, too. A key is an address: that of a static variable of yours keeps
 * it apart from everybody else's. NULL panics. */
GORO_API goro_ctx *goro_ctx_with_value(goro_ctx *parent, const void *key, void *value);
/* Has its parent's values, and is never done. */
GORO_API goro_ctx *goro_ctx_without_cancel(goro_ctx *parent);

/* Cancels c and all below it, which is so when the call returns. No effect on one
 * that is done already, or never done. A cause, a negative errno value of your
 * choice, is what goro_ctx_cause tells of c and those below it. */
GORO_API void goro_ctx_cancel(goro_ctx *c);
GORO_API void goro_ctx_cancel_cause(goro_ctx *c, int cause);

/* A channel that is closed when c is done; NULL, on which one waits forever, if it
 * never is. Belongs to c. Receive with NULL for the element. */
GORO_API goro_chan *goro_ctx_done(goro_ctx *c);
GORO_API int goro_ctx_err(goro_ctx *c);     /* 0: not done; -ECANCELED, -ETIMEDOUT */
GORO_API int goro_ctx_cause(goro_ctx *c);   /* 0: not done; err if none was given  */
GORO_API int64_t goro_ctx_deadline(goro_ctx *c);           /* GORO_FOREVER if none */
/* The value for key of c, or of the nearest above it that has one; or NULL. */
GORO_API void *goro_ctx_value(goro_ctx *c, const void *key);

/* Starts fn(arg) as a goroutine once c is done. It does not count as a reference.
 * NULL: no memory. Every one that is not NULL is to be stopped once, also after fn
 * has run, which frees it. True: fn will not run. Stopping does not wait for an fn
 * that has been started. */
typedef struct goro_ctx_func goro_ctx_func;
GORO_API goro_ctx_func *goro_ctx_after_func(goro_ctx *c, void (*fn)(void *), void *arg);
GORO_API bool goro_ctx_func_stop(goro_ctx_func *f);

/* ------------------------------------------------- groups and worker pools */

/* golang.org/x/sync/errgroup: goroutines that work on one thing together. The
 * first of them to return other than 0 cancels the group's context, with that as
 * the cause; and that is what goro_group_wait returns.
 *
 * The context is a child of parent (NULL: of the background). limit is how many
 * may run at once; 0: any number. NULL: no memory. */
typedef struct goro_group goro_group;
GORO_API goro_group *goro_group_make(goro_ctx *parent, int limit);
GORO_API goro_ctx *goro_group_ctx(goro_group *g);   /* belongs to the group */
/* Starts fn(ctx, arg) in the group, when the limit allows. 0 or -ENOMEM. */
GORO_API int goro_group_go(goro_group *g, int (*fn)(goro_ctx *ctx, void *arg), void *arg);
/* The same without waiting. False: not started. */
GORO_API bool goro_group_try_go(goro_group *g, int (*fn)(goro_ctx *ctx, void *arg), void *arg);
/* Waits for all to end, cancels the context and frees the group. 0, or the first
 * error. Only once. */
GORO_API int goro_group_wait(goro_group *g);

/* Workers, goroutines that are there already, behind a queue of so many tasks. A
 * queue of 0 hands each task to a worker that is free. A task is like a goroutine's
 * function: a panic in it that nobody stops ends the process. Its defers run at its
 * end; what it keeps with goro_local_set is its worker's. NULL: no memory, or no
 * workers asked for. */
typedef struct goro_pool goro_pool;
GORO_API goro_pool *goro_pool_make(int workers, size_t queue);
/* Queues fn(arg), waiting for room until the deadline: a goro_now() time, GORO_NOW
 * or GORO_FOREVER. 0; -ETIMEDOUT: there was no room; -ESHUTDOWN: the pool is being
 * closed. Tasks are taken in the order in which they were submitted. */
GORO_API int goro_pool_submit(goro_pool *p, void (*fn)(void *), void *arg, int64_t deadline);
/* More workers, or fewer: those in excess finish the task they have. 0, -ENOMEM
 * with as many as could be had, -EINVAL if workers < 1, -ESHUTDOWN. */
GORO_API int goro_pool_resize(goro_pool *p, int workers);
/* Lets the workers do all that is queued, waits for them to end, and frees the
 * pool. Who waits to submit is refused. Not from a task of the pool. */
GORO_API void goro_pool_close(goro_pool *p);

/* Of one moment: submitted = completed + busy + queued. */
struct goro_pool_stats {
	uint64_t submitted;    /* tasks accepted                                  */
	uint64_t completed;    /* tasks done                                      */
	uint64_t rejected;     /* submits that failed                             */
	size_t queued;         /* tasks that wait for a worker                    */
	int workers;           /* how many there are to be                        */
	int busy;              /* workers with a task                             */
	int waiting;           /* submits that wait for room                      */
};
GORO_API void goro_pool_stats(goro_pool *p, struct goro_pool_stats *out);

/* ----------------------------------------------------------- observability */

/* All goroutines with their states, wait reasons and stacks, in the layout of
 * Go's own dump. SIGQUIT does this and exits with status 2. */
GORO_API void goro_dump(FILE *out);

/* What the runtime is doing. Nothing is stopped to find out, so the numbers are
 * of slightly different moments. */
struct goro_stats {
	/* Goroutines: all ever started, those that have not ended, and what the
	 * latter are doing: queued to run, running, waiting for something, in a
	 * blocking call. */
	uint64_t goroutines_created, goroutines_live;
	uint64_t runnable, running, waiting, in_syscall;
	/* OS threads of the runtime's, those of them asleep for want of work and
	 * those looking for work; GOMAXPROCS, and how much of it is unused. */
	uint64_t threads, idle_threads, gomaxprocs, idle_procs, spinning_threads;
	/* Since the start: goroutines that were given a processor; how often one
	 * processor took goroutines from another, and how many; goroutines that
	 * had to give way; processors taken from goroutines in blocking calls. */
	uint64_t context_switches, steals, stolen, preemptions, syscall_handoffs;
	/* Goroutines that the poller woke; timers set now; goroutines that began
	 * to wait; threads that were woken or made. */
	uint64_t netpoll_wakeups, timers, parks, thread_wakeups;
	/* Address space taken for stacks, and how much of it is kept for reuse. */
	uint64_t stack_bytes_reserved, stack_bytes_cached;
	/* Stacks of goroutines that wait for long, kept elsewhere, and the memory
	 * that they take there. */
	uint64_t stacks_evacuated, stack_bytes_evacuated;
};
GORO_API void goro_stats_read(struct goro_stats *out);

/* How long goroutines waited from ready to running, as a histogram in the layout
 * of Go's /sched/latencies:seconds: one in eight is counted. Bucket i holds
 * counts[i] times from upper_bounds_s[i - 1] to below upper_bounds_s[i] seconds;
 * the first holds those below 0, the last has no upper bound. At most max
 * buckets are filled in; either array may be NULL. The number of buckets there
 * are: goro_sched_latency(NULL, NULL, 0). */
GORO_API size_t goro_sched_latency(uint64_t *counts, double *upper_bounds_s, size_t max);

/* Goroutines that a piece of the program has left behind, e.g. a test:
 *
 *	uint64_t mark = goro_leak_mark();
 *	run_the_test();
 *	if (goro_leak_check(mark, GORO_SECOND, stderr) > 0)
 *		fail();
 *
 * They are those started since the mark, by anybody, that have not ended. The check
 * waits for them, up to grace (in ns), prints those that are left to out (if it is
 * not NULL) as goro_dump does, and returns their number. Give it some grace: a
 * goroutine whose last act was to say that it is done has not ended quite yet. The
 * caller itself does not count. From goroutines and plain threads; before goro_run
 * and after it, too. */
GORO_API uint64_t goro_leak_mark(void);
GORO_API size_t goro_leak_check(uint64_t mark, int64_t grace, FILE *out);

/* Profiles that `go tool pprof` opens, with names and lines in them; docs/profiling.md says
 * what each shows. "goroutine": where all goroutines are; "block": where they waited for
 * channels and locks; "mutex": who held the locks that others waited for; "threadcreate":
 * who made the threads; "goroutineleak": goroutines that wait for ever, since nothing that
 * can run has a pointer to what they wait for. Written to fd whole, however many calls that
 * takes; a goroutine parks meanwhile. 0, or -errno: -EINVAL if there is no such profile. */
GORO_API int goro_profile_write(const char *profile, int fd);

/* A CPU profile: a sample of every thread of the process after each 1/hz second that it
 * has run; hz 0: 100 a second. It is written to fd, which is to stay open so long, by stop;
 * nothing is said if that fails. 0, or -errno: -EBUSY if one runs already, -EINVAL for an hz
 * that makes no sense. Stopping what does not run does nothing. (GORO_CPUPROFILE=FILE in the
 * environment is a profile of the whole run; %p in FILE is the process id.) */
GORO_API int goro_profile_cpu_start(int fd, int hz);
GORO_API void goro_profile_cpu_stop(void);

/* Switches the block profile on, off with ns <= 0: of all time that goroutines wait one
 * wait in ns nanoseconds is counted; 1: every wait (runtime.SetBlockProfileRate). */
GORO_API void goro_profile_block_rate(int64_t ns);

/* Switches the mutex profile on, off with 0: one in rate contended unlocks is counted
 * (runtime.SetMutexProfileFraction). What it was; rate < 0 only asks. */
GORO_API int goro_profile_mutex_fraction(int rate);

/* Serves net/http/pprof, figures for Prometheus (/debug/metrics) and a live page on
 * http://ADDRESS/debug/. The address is "host:port"; ":port" or "port" alone is on the
 * loopback interface, "0.0.0.0:port" on all; or "unix:path". It is to be kept from those who
 * are not to see the program's insides. The server runs until the process ends, and as
 * in Go while it does there is no report of a deadlock. 0 or -errno, as goro_listen.
 * GORO_DEBUG_SERVE=address in the environment does the same. */
GORO_API int goro_debug_serve(const char *address);

/* Execution traces that `go tool trace` opens: what every goroutine, processor and
 * thread does, and when. See docs/tracing.md.
 *
 * start: to fd, which may be closed afterwards. 0; -EBUSY: one is on already; -EBADF:
 * fd cannot be written to; or another -errno. stop: all of it is written when this
 * returns. No effect if none is on. error: why the trace that is on, or the last one,
 * could not be written on from some moment, as -errno (-ENOBUFS: fd is too slow); or 0.
 *
 * With GORO_TRACE=FILE in the environment a program is traced from goro_run to its
 * exit; %p in FILE is the process id. A set-uid program ignores it. */
GORO_API int goro_trace_start(int fd);
GORO_API void goro_trace_stop(void);
GORO_API int goro_trace_error(void);
/* Annotations: runtime/trace's tasks, which several goroutines may work on, regions of
 * one goroutine, which nest, and logs; task 0 is none. They cost next to nothing while
 * no trace is on, and a task begun then is 0. */
GORO_API uint64_t goro_trace_task_begin(const char *name);
GORO_API void goro_trace_task_end(uint64_t task);
GORO_API void goro_trace_region_begin(uint64_t task, const char *name);
GORO_API void goro_trace_region_end(uint64_t task, const char *name);
GORO_API void goro_trace_log(uint64_t task, const char *key, const char *value);

/* ------------------------------------------------------ what the above needs */

/* A thread's errno may be another's after a call that parks, and the C library
 * lets compilers remember its address. This one they look up every time. */
GORO_API int *goro_errno(void);
#ifndef GORO_NO_ERRNO
#undef errno
#define errno (*goro_errno())
#endif

/* c; panics if its elements are of another size. size 0: not known. */
GORO_API goro_chan *goro_chan_check(goro_chan *c, size_t size, const char *call);

GORO_API int goro_start(void (*fn)(void), uintptr_t a, uintptr_t b, uintptr_t c,
                        uintptr_t d, uintptr_t e, uintptr_t f);

#ifdef __cplusplus
}
#endif

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
/* Of what (elem) points to; 0 for a void pointer, NULL and 0. In the operand of sizeof the
 * last two stand for a char *, since the other choices have to be valid, too. */
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

#define GORO_GO_PICK(f, a1, a2, a3, a4, a5, a6, n, ...) n

#ifndef __cplusplus

/*
 * go() in C. If each argument has its parameter's type, or no parameter is narrower than
 * an int, the words of the arguments are those that a call of f would pass, and go() calls
 * goro_start with them. Otherwise, as with an int for a bool, the compiler has to convert: go()
 * calls goro_go_entry, as if it were f, with the same arguments. That takes the words from the
 * registers and starts f. What words cannot carry is rejected at compile time.
 */

/* The type of an argument: arrays are pointers, and nothing is const. */
#define GORO_TYPE(x) __typeof__(((void)0, (x)))

/* The same, but a pointer is one to what is const. Classes up to 4 are kinds of integers, 5
 * is pointers. clang warns of const before a function's type, which no pragma switches
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

/* In place of an integer, in a call that is never made: clang converts a pointer to an
 * integer, an enum, a bool or a pointer (the warnings are switched off), but not to a float. */
#ifdef __clang__
struct goro_parameters_must_be_integers_pointers_enums_or_bools;
#define GORO_NO_FLOAT ((struct goro_parameters_must_be_integers_pointers_enums_or_bools *)0)
#define GORO_PROBE(x) __builtin_choose_expr(GORO_IS_INTEGER(x), GORO_NO_FLOAT, (x))
#else
#define GORO_PROBE(x) (x)
#endif

/* What f returns comes back in registers and can be dropped there. */
#define GORO_IS_DROPPED(...) (sizeof(__typeof__(__VA_ARGS__)) <= 2 * sizeof(uintptr_t) && \
	!__builtin_types_compatible_p(__typeof__(__VA_ARGS__), long double))

/* Whether no parameter is narrower than an int: then f is compatible with a function of
 * which no parameters are known. C23 has no such functions. */
#if __STDC_VERSION__ <= 201710L
#define GORO_IS_WIDE(f, call) __builtin_types_compatible_p(__typeof__(*(f)), __typeof__(call)())
#else
#define GORO_IS_WIDE(f, call) 0
#endif

/* The compiler must not believe that a call of goro_go_entry does not return. */
#if defined(__has_builtin) && !defined(__clang__)
#if __has_builtin(__builtin_has_attribute)
#define GORO_RETURNS(f) !__builtin_has_attribute(*(f), noreturn)
#endif
#endif
#ifndef GORO_RETURNS
#define GORO_RETURNS(f) 1
#endif

struct goro_call {
	void (*fn)(void);
	int result;
};
/* To be called as if it were call->fn, with call as the static chain. */
GORO_API extern void (*const goro_go_entry)(void);

/* Whether f's parameters are of type K, which words do not carry, or of the arguments' types.
 * Of four and more one is K, or all are. gcc does not find a K beside a parameter that has
 * neither type; clang does, by GORO_PROBE. */
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
 * they have commas; are_words and no_word, conditions on the arguments and the parameters. */
#define GORO_GO(f, types, words, probes, are_words, no_word, ...) __extension__ ({              \
	(void)sizeof((f)(__VA_ARGS__), 0);                                                      \
	_Pragma("GCC diagnostic push")                                                          \
	_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")                                  \
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
	(void)sizeof((f)probes, 0);                                                             \
	int goro_go_result;                                                                     \
	__builtin_choose_expr(                                                                  \
		GORO_IS(f, (f)(__VA_ARGS__), types) || GORO_IS_WIDE(f, (f)(__VA_ARGS__)) ||     \
			!GORO_RETURNS(f),                                                       \
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

inline goro_case send_case(goro_chan *c, const void *elem)
{
	return { c, nullptr, nullptr, elem, true };
}

inline goro_case recv_case(goro_chan *c, void *elem, bool *ok)
{
	return { c, elem, ok, nullptr, false };
}

inline int select_until(int64_t deadline, std::initializer_list<goro_case> cases)
{
	return goro_select_n(cases.begin(), cases.size(), deadline);
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

#endif

#endif
