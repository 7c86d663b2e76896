/*
 * tool.h - what ASan, LSan, TSan and valgrind have to be told of goroutines. No other
 * file tells them.
 *
 * ASan must know the bounds of the stack that a switch goes to. TSan keeps a shadow state
 * for each "fiber". A switch is announced just before it is made and, for ASan, confirmed
 * just after, on the other stack.
 *
 * LSan, which comes with ASan, looks for pointers where the program keeps its own. The
 * runtime has to name to it what it maps itself, and the stacks of goroutines at rest,
 * when it looks (tool.c).
 *
 * Every build of the library tells ASan and LSan, if the program has them. A build with
 * TSan tells TSan.
 */
#ifndef GORO_TOOL_H
#define GORO_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include "platform/x86_64/valgrind.h"
#else
#include "platform/aarch64/valgrind.h"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define TOOL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TOOL_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TOOL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TOOL_TSAN 1
#endif
#endif
#ifndef TOOL_ASAN
#define TOOL_ASAN 0
#endif
#ifndef TOOL_TSAN
#define TOOL_TSAN 0
#endif

/* A function that reads what other threads may be changing, and may be wrong. */
#if TOOL_TSAN
#define TOOL_UNORDERED __attribute__((noinline, no_sanitize("thread")))
#else
#define TOOL_UNORDERED
#endif

/* ------------------------------------------------------------------- ASan */

void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size)
	__attribute__((weak));
void __sanitizer_finish_switch_fiber(void *saved, const void **bottom_old, size_t *size_old)
	__attribute__((weak));
void __asan_unpoison_memory_region(void const volatile *p, size_t n) __attribute__((weak));

/* Whether the program has ASan. See "A sanitized program" in tool.c. */
static inline bool tool_asan(void)
{
	return TOOL_ASAN || (&__sanitizer_start_switch_fiber && &__asan_unpoison_memory_region);
}
/* The switch to the stack from lo to hi is next. *fake is for tool_asan_arrive, after the
 * switch back. fake NULL: this stack is left for good. */
static inline void tool_asan_leave(void **fake, const void *lo, const void *hi)
{
	__sanitizer_start_switch_fiber(fake, lo, (size_t)((const char *)hi - (const char *)lo));
}
/* fake: NULL on a new stack. */
static inline void tool_asan_arrive(void *fake)
{
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
}
/* A goroutine is over, and the frames it ended in are still marked. */
static inline void tool_asan_end(const void *lo, const void *hi)
{
	__asan_unpoison_memory_region(lo, (size_t)((const char *)hi - (const char *)lo));
}

/* ------------------------------------------------------------------- TSan */

#if TOOL_TSAN

void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);

struct tool_fiber {
	void *tsan;
};

/* size 0: the calling thread, which has a fiber already. */
static inline void tool_fiber_make(struct tool_fiber *f, void *bottom, size_t size)
{
	(void)bottom;
	f->tsan = size ? __tsan_create_fiber(0) : __tsan_get_current_fiber();
}
static inline void tool_fiber_end(struct tool_fiber *f)
{
	__tsan_destroy_fiber(f->tsan);
	f->tsan = NULL;
}
/* With TSan's own synchronisation: both fibers run on this thread, one after the other,
 * which is all that the runtime relies on here as well. Always inlined: TSan notes which
 * functions each fiber is in, and would see one entered on the one fiber and left on the
 * other. */
static inline __attribute__((always_inline)) void tool_switch_start(struct tool_fiber *from, struct tool_fiber *to)
{
	(void)from;
	__tsan_switch_to_fiber(to->tsan, 0);
}

#else

struct tool_fiber {
};
static inline void tool_fiber_make(struct tool_fiber *f, void *bottom, size_t size)
{
	(void)f; (void)bottom; (void)size;
}
static inline void tool_fiber_end(struct tool_fiber *f) { (void)f; }
static inline void tool_switch_start(struct tool_fiber *from, struct tool_fiber *to)
{
	(void)from; (void)to;
}

#endif

/* What a tool needs of a thread's stack beyond what the runtime does. */
static inline size_t tool_thread_stack_extra(void)
{
	return TOOL_TSAN || tool_asan() ? 1 << 20 : 0;
}

/* ------------------------------------------------------------------- LSan */

void __lsan_register_root_region(const void *p, size_t n) __attribute__((weak));
void __lsan_unregister_root_region(const void *p, size_t n) __attribute__((weak));
void __lsan_do_leak_check(void) __attribute__((weak));

/* Whether the program looks for leaks. */
static inline bool tool_lsan(void)
{
	return TOOL_ASAN || (&__lsan_register_root_region && &__lsan_unregister_root_region &&
	                     &__lsan_do_leak_check);
}
/* Memory that was mapped, and may hold the only pointers to allocated blocks. */
static inline void tool_mapped(const void *p, size_t n)
{
	if (tool_lsan())
		__lsan_register_root_region(p, n);
}
static inline void tool_unmapped(const void *p, size_t n)
{
	if (tool_lsan())
		__lsan_unregister_root_region(p, n);
}
/* The process ends: looks for leaks. forked: in a child, which has no Ms. */
void tool_exit(bool forked);

/* --------------------------------------------------------------- valgrind */

/*
 * Valgrind follows the stack pointer: it takes what lies below for dead, and a switch of
 * goroutines for one frame that grew, or ended, between two stacks. It tells a switch
 * from a frame if both stacks have been named to it. A request is a few instructions that
 * do nothing outside valgrind (ARCH/valgrind.h), so each build of the library can run
 * under it. The names of the requests are those of valgrind/valgrind.h.
 */
enum {
	VALGRIND_RUNNING_ON_VALGRIND = 0x1001,
	VALGRIND_STACK_REGISTER = 0x1501,
	VALGRIND_CHANGE_ERR_DISABLEMENT = 0x1801,
	MEMCHECK_MAKE_MEM_UNDEFINED = ('M' << 24 | 'C' << 16) + 1,
};
static inline bool tool_on_valgrind(void)
{
	return valgrind_request(VALGRIND_RUNNING_ON_VALGRIND, 0, 0) != 0;
}
/* A stack pointer may be hi: nothing has been pushed then. */
static inline void tool_stack_made(const char *lo, const char *hi)
{
	valgrind_request(VALGRIND_STACK_REGISTER, (uintptr_t)lo, (uintptr_t)hi);
}
/* A handler is about to write a frame below the stack pointer of what it interrupted. */
static inline void tool_stack_grows(const void *frame, size_t bytes)
{
	valgrind_request(MEMCHECK_MAKE_MEM_UNDEFINED, (uintptr_t)frame, bytes);
}
/* In between, the thread reads below a stack pointer: valgrind reports nothing. */
static inline void tool_reads_below_begin(void)
{
	valgrind_request(VALGRIND_CHANGE_ERR_DISABLEMENT, 1, 0);
}
static inline void tool_reads_below_end(void)
{
	valgrind_request(VALGRIND_CHANGE_ERR_DISABLEMENT, (uintptr_t)-1, 0);
}

/* What is written to a descriptor comes before what is read: TSan does not see that. */
#if TOOL_TSAN
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#define tool_sent(p) __tsan_release(p)
#define tool_received(p) __tsan_acquire(p)
#else
#define tool_sent(p) ((void)(p))
#define tool_received(p) ((void)(p))
#endif

/*
 * TSan keeps a signal until its thread next makes a call that may wait, so that the
 * handler finds TSan itself at rest. A loop that calls nothing would never be preempted.
 * So the runtime installs the preemption signal without TSan (preempt.c). The handler
 * first asks tool_is_inside whether it has interrupted TSan: then nothing that is
 * instrumented may run. tool_init finds out where TSan lies. False: that is unknown,
 * since it is part of the program, and TSan is to keep the signals.
 */
#if TOOL_TSAN
bool tool_init(void);
bool tool_is_inside(uintptr_t pc);
#else
static inline bool tool_init(void) { return false; }
static inline bool tool_is_inside(uintptr_t pc) { (void)pc; return false; }
#endif

/* For functions that read, for people, what other threads may be writing, without any
 * order: TSan is not to report that. In them, peek reads once. */
#define TOOL_RACY __attribute__((no_sanitize("thread")))
/* The same for ASan, too: they read stacks, between variables as well. */
#define TOOL_UNCHECKED TOOL_RACY __attribute__((no_sanitize("address")))
#define peek(p) (*(const volatile __typeof__(*(p)) *)(p))

/* Threads that the tool itself runs in the process. */
#define TOOL_THREADS TOOL_TSAN

#endif
