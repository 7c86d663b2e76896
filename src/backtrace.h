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

struct backtrace {
	size_t n;
	bool in_call;			/* the innermost are the runtime's, which the program called */
	uintptr_t pc[BACKTRACE_MAX];	/* pc[0] exact, the others return addresses */
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
