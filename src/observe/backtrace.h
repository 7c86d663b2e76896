/*
 * backtrace.h - the calls a goroutine is in: the room's main header. Defined in
 * backtrace.c.
 *
 * The room shows what the program does: backtraces, dumps, fatal signals, leaks and
 * counts. It may use every room except profile, trace and http. It offers what
 * goro/observe.h declares, except traces and profiles, and backtraces to those two rooms.
 */
#ifndef GORO_BACKTRACE_H
#define GORO_BACKTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/unwind.h"

struct g;
struct m;
struct goro_stats;

#define BACKTRACE_MAX 100	/* frames kept, as Go's tracebacks */

/* Where a walk began: it decides which frames are the program's. See frame.h. */
enum frames {
	FRAMES_ALL,		/* anywhere: all frames are shown */
	FRAMES_USER,		/* in user code; much of a goro_ call is user code, too */
	FRAMES_RUNTIME,		/* in the runtime, which the program has called */
};

struct backtrace {
	size_t n;
	enum frames from;
	/* pc[0] is exact, the others are return addresses. A goroutine's stack ends in
	 * the address of its function plus one: that may have left by a tail call. */
	uintptr_t pc[BACKTRACE_MAX];
};

/* The calling goroutine's or thread's. */
void backtrace_here(struct backtrace *bt);
/* From registers, on the stack of gp's or mp's that sp lies on. Each may be NULL.
 * mp->state is as it was when the registers had these values. */
void backtrace_regs(struct backtrace *bt, const struct unwind_regs *regs, const struct g *gp,
                    const struct m *mp);
/* A goroutine's at rest, which stays so meanwhile. */
void backtrace_parked(struct backtrace *bt, const struct g *gp);
/* What another thread executes now. A thread that sleeps in the kernel is not disturbed.
 * False: the thread did not answer. */
bool backtrace_thread(struct backtrace *bt, struct m *mp, const struct g *gp);
/* Any goroutine's but the caller's: at rest, or on a thread, where it runs, is preempted
 * or is on its way to rest. Empty: its thread did not answer. */
void backtrace_any(struct backtrace *bt, const struct g *gp);
/* gp's if its thread mp sleeps in the kernel; else empty. Any thread may call it. */
void backtrace_asleep(struct backtrace *bt, struct m *mp, const struct g *gp);

/* The end of the stack that sp is on: gp's, mp's own or its signal stack. Each may be
 * NULL. 0: another stack. */
uintptr_t backtrace_stack_end(uintptr_t sp, const struct g *gp, const struct m *mp);

/* Reads a file in /proc/self/task/TID as text. 0: it cannot be read; errno says why. */
size_t backtrace_thread_file(int tid, const char *name, char *out, size_t size);
/* The words with 0x in a thread's "/syscall". Asleep, the last are sp and pc; before them
 * come a system call's arguments. Running, there are none. Returns their number. */
#define SYSCALL_WORDS 8
size_t backtrace_syscall_words(const char *line, uintptr_t word[SYSCALL_WORDS]);
/* The number in hex at *at, which moves behind it. */
uintptr_t backtrace_parse_hex(const char **at);

/* metrics.c: the scheduler's counts, of one moment. runnable: the global queue's. */
void metrics_sched(struct goro_stats *s);

/* The half of backtrace_thread that runs in the handler. Always false: it goes on. */
bool backtrace_on_signal(struct m *mp, const void *ucontext);

#endif
