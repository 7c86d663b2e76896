/*
 * debug.h - the GORO_DEBUG switches, as GODEBUG: "name=value,name=value". They are parsed
 * once, when the runtime starts, and are constant afterwards.
 *
 * Each heuristic beyond Go's own design has a switch, so that its gain can be checked
 * again (bench/ablations.json). A switch is tested where its mechanism is entered, never
 * in each switch of goroutines or each operation on a channel.
 */
#ifndef GORO_DEBUG_H
#define GORO_DEBUG_H

#include <stdint.h>

#include "base/config.h"

#define DEBUG_SWITCH_LIST(X)                                              \
	/* What is shown, and what tests need. */                         \
	X(schedtrace)	/* print a line about the scheduler every N ms */ \
	X(scheddetail)	/* the line, and all Ps, Ms and Gs */             \
	X(migrate)	/* send every readied goroutine to another P */   \
	X(linger)	/* pause N us where races are: linger.h */        \
	X(chan)		/* keeps what is freed, to find its use: freed.h; -1: not */ \
	X(ringfirst)	/* what waits for a disk: always by io_uring */   \
	X(noattach)	/* goro dump PID and goro top PID are refused */  \
	/* Preemption. */                                                 \
	X(asyncpreemptoff)	/* send no signal to running goroutines */ \
	X(slice)	/* time slices of N us */                         \
	/* As if the kernel had not: */                                   \
	X(nourgent)	/* real-time threads: sysmon is like any other */ \
	X(nomembarrier)	/* membarrier */                                  \
	X(noguard)	/* 1: guard markers; 2: guards at all */          \
	X(nopwait2)	/* epoll_pwait2 */                                \
	X(nonowait)	/* RWF_NOWAIT for pipes, RWF_NOSIGNAL */          \
	X(nouring)	/* io_uring */                                    \
	X(nouserfault)	/* userfaultfd */                                 \
	/* Without a mechanism, to see what it gains. */                  \
	X(batch)	/* 1: socket calls are put off in long turns, too; -1: never */ \
	X(evacuate)	/* stacks after N ms, however few or often; -1: never */ \
	X(noalone)	/* locks where one P runs alone: alone.h */       \
	X(notrial)	/* stealing on trial: steal_trial.c */            \
	X(nowaited)	/* leaving what has not waited: steal.c */       \
	X(nodoze)	/* dozing thieves: "Spinning and dozing", steal.c */ \
	X(nofirst)	/* "Who goes first", park.c */                    \
	X(nofresh)	/* fresh goroutines before others: whose_turn, runq.c */ \
	X(noslack)	/* dense timers together: "Many timers", timers.c */ \
	X(nofar)	/* far sleeps beside the heap: timer_far.c */     \
	X(noahead)	/* stacks prepared ahead: stack.c */              \
	X(nounneeded)	/* Ps left idle for lack of CPUs: p_to_spare */   \
	X(nobrisk)	/* leaving the poller to brisk Ps: p_for_events */ \
	X(noattended)	/* leaving the poller to a P that looks: netpoll_attended */ \
	X(noshare)	/* sysmon rests for its share: "Its share", sysmon.c */ \
	X(noconvoy)	/* convoy.c */                                    \
	X(noblockers)	/* blockers.c */                                  \
	X(nosteady)	/* steady slices are not looked at: STEADY_SLICES, retake.c */

struct debug {
#define X(name) int name;
	DEBUG_SWITCH_LIST(X)
#undef X
};
extern struct debug debug __attribute__((visibility("hidden")));

void debug_init(void);

/* How long a goroutine may run while only goroutines wait that have had their slice. */
static inline int64_t slice_ns(void)
{
	return debug.slice > 0 ? debug.slice * INT64_C(1000) : SLICE_NS;
}

#endif
