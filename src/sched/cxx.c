/*
 * cxx.c - C++ exceptions in goroutines.
 *
 * Whose exceptions
 *
 * The C++ runtime keeps two words for each thread: a list of the exceptions that are
 * being handled, and a count of those that are being thrown. A goroutine that waits in a
 * catch block may go on on another thread, and its thread runs others meanwhile. So the
 * function that switches keeps the words on the goroutine's stack and puts them back when
 * it runs again (sched.c). A thread that is between two goroutines has zeros there.
 *
 * Only a program that has a C++ runtime pays for it (PROGRAM_CXX in sched.heed). One that
 * a C program loads with dlopen after goro has started is not seen.
 *
 * Rejected: __cxa_get_globals of our own, with the words in the G. The C++ runtime calls
 * ours only where the linker happens to let it.
 *
 * Through our frames
 *
 * The functions of ours that call the program's are C: an exception passes their frames,
 * and what stands behind the call does not run. Where something must, a personality
 * routine does it (CXX_PERSONALITY). The unwinder calls that twice: to ask whether the
 * exception is caught here, which it never is, and when the frame is about to go. We do
 * what is to be done right there, and need no landing pad, no tables and nothing of
 * libgcc's.
 *
 * No exception may leave a goroutine's function, a deferred function or a destructor of
 * goro_key_make: there is nothing left that could catch it, or a panic cannot be left
 * halfway. The search ends there with a report, and the C++ runtime calls std::terminate.
 * cxx_thrown.c tells what the exception is.
 */
#include "sched/cxx.h"

#include <unistd.h>

#include "base/print.h"
#include "base/throw.h"
#include "sched/runtime.h"

/* Of libstdc++ or libc++abi. */
extern void *__cxa_get_globals(void) __attribute__((weak));

/* What a personality routine answers to end the search. */
#define NOBODY_CATCHES 3

void cxx_init(void)
{
	if (&__cxa_get_globals)
		store_relaxed(&sched.program, sched.program | PROGRAM_CXX);
}

struct cxx_state *cxx_of_thread(void)
{
	return load_relaxed(&sched.program) & PROGRAM_CXX ? __cxa_get_globals() : NULL;
}

/* As a panic is reported. Leaves out the frames inside of the one that goes on at pc. */
static void report(uint64_t kind, void *exception, uintptr_t pc)
{
	struct printer pr = print_to_fd(STDERR_FILENO);

	print_str(&pr, "panic: uncaught C++ exception ");
	cxx_print_thrown(&pr, kind, exception);
	print_str(&pr, "\n");
	print_flush(&pr);
	fatal_dump(CULPRIT_PANIC, pc);
}

CXX_ROUTINE(cxx_no_way_out)
{
	if (CXX_UNWINDS)
		return CXX_GO_ON;	/* pthread_exit or a panic: no frame can refuse */
	report(kind, exception, (uintptr_t)__builtin_return_address(0));
	return NOBODY_CATCHES;
}
