/*
 * backtrace.h - the calls a goroutine is in. Defined in backtrace.c.
 */
#ifndef GORO_BACKTRACE_H
#define GORO_BACKTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind.h"

struct g;
struct m;

#define BACKTRACE_MAX 100	/* frames kept, as Go's tracebacks */

/* Which frames of a stack are the program's depends on where the walk began. See frame.h. */
enum frames {
	FRAMES_ALL,		/* of whatever is there */
	FRAMES_USER,		/* in user code, where goro's calls do much of their work, too */
	FRAMES_RUNTIME,		/* in the runtime, which the program has called */
};

struct backtrace {
	size_t n;
	enum frames from;
	/* pc[0] is exact, the others are return addresses. The last one of a goroutine's stack is
	 * that of its function, plus one: that may have left by a tail call. */
	uintptr_t pc[BACKTRACE_MAX];
};

/* Of the calling goroutine or thread. */
void backtrace_here(struct backtrace *bt);
/* From registers, on whichever stack of gp's or mp's sp lies; each may be NULL. mp is where it
 * was when they had these values: in the runtime or in user code. */
void backtrace_regs(struct backtrace *bt, const struct unwind_regs *regs, const struct g *gp,
                    const struct m *mp);
/* Of a goroutine at rest; nobody may resume it meanwhile. */
void backtrace_parked(struct backtrace *bt, const struct g *gp);
/* Of what another thread executes now, without disturbing a sleeping one. False
 * if it did not answer. */
bool backtrace_thread(struct backtrace *bt, struct m *mp, const struct g *gp);
/* Of a goroutine other than the caller's, whatever it is doing: on a thread, in user code
 * or stopped or on its way to rest; or at rest. Empty: its thread did not answer. */
void backtrace_any(struct backtrace *bt, const struct g *gp);
/* .. if it sleeps in the kernel; none if not. Any thread. */
void backtrace_asleep(struct backtrace *bt, struct m *mp, const struct g *gp);
/* The signal handler's half of the above. True: the signal was for this. */
bool backtrace_on_signal(struct m *mp, const void *ucontext);

#endif
