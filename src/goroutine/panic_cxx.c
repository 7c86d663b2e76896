/*
 * panic_cxx.c - a panic calls the destructors between goro_panic and its goro_try.
 *
 * A panic jumps over the frames in between. Where those are of C++, objects in them have
 * destructors, which unlock and free. So in a program with C++ the panic unwinds these
 * frames first, in the way that pthread_exit does, by the unwinder that the C++ runtime
 * brings along (_Unwind_ForcedUnwind). The defers have run before, on top of the stack
 * that panicked.
 *
 * Which destructors run is up to how the frames were compiled: with exceptions, all; with
 * -fno-exceptions, and in C, none, and the unwinder passes. It stops early where it finds
 * no unwind tables. goro_try returns all the same.
 *
 * A panic is no exception. A catch (...) block on the way runs, since for C++ that is a
 * place for clean-up, but it cannot keep the panic: at the end of the block the panic
 * goes on. A noexcept function on the way calls std::terminate, as for pthread_exit.
 *
 * Rejected: to throw an exception of our own. A catch (...) could swallow it, and the
 * search for a handler would run before the unwinding, twice the time.
 */
#include "goroutine/panic_cxx.h"

#include <stddef.h>

#include "sched/cxx.h"
#include "sched/runtime.h"

/* Of libgcc or libunwind. at: the unwinder's view of a frame. */
typedef int stop_fn(int version, int actions, uint64_t kind, struct panic_unwinding *u, void *at,
                    void *arg);
extern int _Unwind_ForcedUnwind(struct panic_unwinding *u, stop_fn *stop, void *arg)
	__attribute__((weak));
extern uintptr_t _Unwind_GetCFA(void *at) __attribute__((weak));

#define END_OF_STACK 16		/* of actions */
#define NO_REASON    0

/* Before each frame: the stack pointer there tells whether it is outside of goro_try. */
static int stop_at_try(int version, int actions, uint64_t kind, struct panic_unwinding *u, void *at,
                       void *arg)
{
	(void)version, (void)kind, (void)arg;
	if ((actions & END_OF_STACK) || _Unwind_GetCFA(at) > (uintptr_t)u)
		u->back(u->arg);
	return NO_REASON;
}

/* A catch (...) block has ended without throwing on: called in its frame. */
static void go_on_after_catch(int reason, struct panic_unwinding *u)
{
	(void)reason;
	_Unwind_ForcedUnwind(u, stop_at_try, NULL);
	u->back(u->arg);
}

void panic_unwind(struct panic_unwinding *u, void (*back)(void *arg), void *arg)
{
	if (!cxx_of_thread() || !_Unwind_ForcedUnwind || !_Unwind_GetCFA)
		return;
	*u = (struct panic_unwinding){
		.kind = CXX_PANIC, .caught = go_on_after_catch, .back = back, .arg = arg,
	};
	_Unwind_ForcedUnwind(u, stop_at_try, NULL);
}
