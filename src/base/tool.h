/*
 * tool.h - what ASan, LSan, TSan and valgrind have to be told of goroutines, and nothing
 * of them anywhere else.
 *
 * ASan must know the bounds of the stack that a switch goes to; TSan keeps a
 * shadow state a "fiber". A switch is announced just before it is made and, for
 * ASan, confirmed just after, on the other stack.
 *
 * LSan, which comes with ASan, looks for pointers where the program keeps its own:
 * what the runtime maps itself has to be named to it, and the stacks of goroutines
 * at rest, when it looks (tool.c).
 */
#ifndef GORO_TOOL_H
#define GORO_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "valgrind.h"

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

/* A function that looks at what others may be changing, and may be wrong. */
#if TOOL_TSAN
#define TOOL_UNORDERED __attribute__((noinline, no_sanitize("thread")))
#else
#define TOOL_UNORDERED
#endif

#if TOOL_ASAN

void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *saved, const void **bottom_old, size_t *size_old);
void __asan_unpoison_memory_region(void const volatile *p, size_t n);
void __lsan_register_root_region(const void *p, size_t n);
void __lsan_unregister_root_region(const void *p, size_t n);
void __lsan_do_leak_check(void);

struct tool_fiber {
	void *fake;
	const void *bottom;
	size_t size;
};

static inline void tool_fiber_make(struct tool_fiber *f, void *bottom, size_t size)
{
	f->fake = NULL;
	f->bottom = bottom;
	f->size = size;
}
/* The frames it ended in are still marked; the next may be given data there. */
static inline void tool_fiber_end(struct tool_fiber *f)
{
	__asan_unpoison_memory_region(f->bottom, f->size);
}
/* from NULL: the stack left is over. */
static inline void tool_switch_start(struct tool_fiber *from, struct tool_fiber *to)
{
	__sanitizer_start_switch_fiber(from ? &from->fake : NULL, to->bottom, to->size);
}
static inline void tool_switch_finish(struct tool_fiber *now)
{
	__sanitizer_finish_switch_fiber(now->fake, NULL, NULL);
}

#elif TOOL_TSAN

void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);

struct tool_fiber {
	void *tsan;
};

/* size 0: the thread that calls; it has a fiber already. */
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
/* With TSan's own synchronisation: both fibers run on this thread, one after the
 * other, which is all that the runtime relies on here as well. Inlined in any case: TSan
 * notes which functions each fiber is in, and a function of its own would be entered in one
 * and left in the other. */
static inline __attribute__((always_inline)) void tool_switch_start(struct tool_fiber *from, struct tool_fiber *to)
{
	(void)from;
	__tsan_switch_to_fiber(to->tsan, 0);
}
static inline void tool_switch_finish(struct tool_fiber *now) { (void)now; }

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
static inline void tool_switch_finish(struct tool_fiber *now) { (void)now; }

#endif

/* A thread's own stack, on that thread. */
static inline void tool_thread_make(struct tool_fiber *f, char *lo, char *hi)
{
#if TOOL_ASAN
	*f = (struct tool_fiber){ .bottom = lo, .size = (size_t)(hi - lo) };
#else
	(void)lo; (void)hi;
	tool_fiber_make(f, NULL, 0);
#endif
}
/* What a tool needs of a thread's stack beyond what the runtime does. */
static inline size_t tool_thread_stack_extra(void)
{
	return TOOL_ASAN || TOOL_TSAN ? 1 << 20 : 0;
}

/* Memory that was mapped and may hold the only pointers to what was allocated. */
static inline void tool_mapped(const void *p, size_t n)
{
#if TOOL_ASAN
	__lsan_register_root_region(p, n);
#else
	(void)p; (void)n;
#endif
}
static inline void tool_unmapped(const void *p, size_t n)
{
#if TOOL_ASAN
	__lsan_unregister_root_region(p, n);
#else
	(void)p; (void)n;
#endif
}

/*
 * Valgrind follows the stack pointer: it takes what lies below for dead, and a switch of
 * goroutines for one frame that grew, or ended, between two stacks. It tells a switch from
 * a frame where both stacks have been named to it. A request is a few instructions that do
 * nothing outside valgrind (arch/ARCH/valgrind.h), so each build of the library can run
 * under it. The names of the requests are those of valgrind/valgrind.h.
 */
enum {
	VALGRIND_RUNNING_ON_VALGRIND = 0x1001,
	VALGRIND_STACK_REGISTER = 0x1501,
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

/* The process ends: time to look for leaks. forked: in a child, that has no Ms. */
#if TOOL_ASAN
void tool_exit(bool forked);
#else
static inline void tool_exit(bool forked) { (void)forked; }
#endif

/* What one goroutine writes to a descriptor another may read from one: TSan does not see
 * the order that this makes. All descriptors are one to it. */
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
 * handler finds TSan itself at rest: a loop that calls nothing would never be
 * stopped. So the preemption signal is not its to keep (preempt.c), and its handler
 * looks first whether it has interrupted TSan, in which case nothing that is
 * instrumented may run: this says so. tool_init finds out where TSan lies; false:
 * that cannot be told (it is part of the program), and it is to keep the signals.
 */
#if TOOL_TSAN
bool tool_init(void);
bool tool_is_inside(uintptr_t pc);
#else
static inline bool tool_init(void) { return false; }
static inline bool tool_is_inside(uintptr_t pc) { (void)pc; return false; }
#endif

/* For functions that look at what others may be writing, without any order and
 * for people to read: TSan is not to mind. In them, peek reads once. */
#define TOOL_RACY __attribute__((no_sanitize("thread")))
/* .. and neither is ASan: they look at stacks, between variables, too. */
#define TOOL_UNCHECKED TOOL_RACY __attribute__((no_sanitize("address")))
#define peek(p) (*(const volatile __typeof__(*(p)) *)(p))

/* Threads that the tool itself runs in the process. */
#define TOOL_THREADS TOOL_TSAN

#endif
