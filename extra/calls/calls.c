/*
 * calls.c - libgoro-calls: libc's blocking calls, which hand their processor over first.
 *
 * goro finds a goroutine asleep in a call that nobody announced, but it takes sysmon a
 * look or two. This library defines such calls under libc's own names (table.h), and so
 * stands before libc for the program and for all its libraries. Each function asks
 * whether another goroutine waits for the caller's processor or may soon, and whether the
 * call is about to sleep. If so it hands the processor over. Then it makes the call,
 * once, as it was meant: the next function of that name, which is libc's, a sanitizer's,
 * or that of another library that stands before libc.
 *
 * Nothing is done after the call. So its result, its errno, its cancellation point and
 * the signals that interrupt it are the caller's as without the library, and a longjmp,
 * an exception or a thread's end may leave it. The goroutine runs on without a processor,
 * on the same thread, until it calls goro: see "Handed over" in syscall.c.
 *
 * A plain thread, a process without goro, the runtime itself, an announced call, and a
 * child made by fork or vfork go straight through: goro_is_awaited is false there, or not
 * there at all. The library names goro weakly: it may be preloaded into any program.
 *
 * The next functions are looked up when the library is loaded, since dlsym must not be
 * called in a signal handler; or before, by a constructor that makes such a call.
 *
 * Rejected: goro_syscall_enter before the call and goro_syscall_exit after it. What is
 * longjmp'ed out of would never end, a signal handler that calls goro would find its
 * goroutine in an announced call, and the goroutine would wait for a processor after each
 * call, also where it makes the next one at once.
 *
 * Rejected: a try that does not wait, in place of the call: recv with MSG_DONTWAIT for
 * read. It has other meanings at the edges: less than SO_RCVLOWAT, a part of a large
 * write, a file that is half in the page cache.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <aio.h>
#include <dlfcn.h>
#include <mqueue.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <termios.h>
#include <threads.h>

#include "sleeps.h"

/* As in goro.h, whose errno would have to be there, too. */
bool goro_is_awaited(void) __attribute__((weak));
void goro_hand_over(void) __attribute__((weak));

/* ThreadSanitizer's functions stand before these and call them in a state in which it
 * sees no atomic operation. It would report goro's locks as races, so nothing is handed
 * over. */
void __tsan_init(void) __attribute__((weak));

/* ------------------------------------------------- the next of that name */

enum call {
#define CALL(result, name, params, args, sleeps) CALL_##name,
#define CALL_AS CALL
#include "table.h"
#undef CALL
#undef CALL_AS
	CALLS
};

static const char *const names[CALLS] = {
#define CALL(result, name, params, args, sleeps) #name,
#define CALL_AS CALL
#include "table.h"
#undef CALL
#undef CALL_AS
};

static void *nexts[CALLS];

/* Stands for a function that this libc has not got. */
static long no_such_call(void)
{
	errno = ENOSYS;
	return -1;
}

/* glibc on x86-64 has a second pthread_cond_wait, for programs of the year 2002, and
 * dlsym does not say which it finds. */
static void *look_up(const char *name)
{
	void *fn = NULL;

#if defined(__GLIBC__) && defined(__x86_64__)
	if (strcmp(name, "pthread_cond_wait") == 0 || strcmp(name, "pthread_cond_timedwait") == 0)
		fn = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
#endif
	return fn ? fn : dlsym(RTLD_NEXT, name);
}

static __attribute__((noinline, cold)) void *find(enum call c)
{
	int saved = errno;
	void *fn = look_up(names[c]);

	if (!fn)
		fn = (void *)no_such_call;
	__atomic_store_n(&nexts[c], fn, __ATOMIC_RELAXED);
	errno = saved;
	return fn;
}

static inline void *next_of(enum call c)
{
	void *fn = __atomic_load_n(&nexts[c], __ATOMIC_RELAXED);

	return __builtin_expect(fn != NULL, 1) ? fn : find(c);
}

__attribute__((constructor(101))) static void find_all(void)
{
	for (enum call c = 0; c < CALLS; c++)
		next_of(c);
}

/* --------------------------------------------------------------- the calls */

static inline bool is_awaited(void)
{
	return goro_is_awaited && !__tsan_init && __builtin_expect(goro_is_awaited(), 0);
}

#define CALL_AS(result, name, params, args, sleeps)                                       \
	__attribute__((visibility("default"))) result call_##name params __asm__(#name);  \
	result call_##name params                                                         \
	{                                                                                 \
		if (is_awaited()) {                                                       \
			int saved = errno;                                                \
                                                                                          \
			if (sleeps)                                                       \
				goro_hand_over();                                         \
			errno = saved;                                                    \
		}                                                                         \
		return ((result (*) params)next_of(CALL_##name)) args;                    \
	}

#define CALL(result, name, params, args, sleeps)                                          \
	_Static_assert(__builtin_types_compatible_p(__typeof__(name), result params),     \
	               #name ": not libc's prototype");                                   \
	CALL_AS(result, name, params, args, sleeps)

#include "table.h"
