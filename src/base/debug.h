/*
 * debug.h - the GORO_DEBUG switches, as GODEBUG: "name=value,name=value".
 * Parsed once at the start; constant afterwards.
 */
#ifndef GORO_DEBUG_H
#define GORO_DEBUG_H

#include <stdint.h>

#include "config.h"

#define DEBUG_SWITCH_LIST(X)                                              \
	X(schedtrace)	/* print a line about the scheduler every N ms */ \
	X(scheddetail)	/* .. and all Ps, Ms and Gs */                    \
	X(migrate)	/* send every readied goroutine to another P */   \
	X(linger)	/* pause N us where races are: linger.h */        \
	X(asyncpreemptoff)	/* send no signal to running goroutines */ \
	X(slice)	/* time slices of N us */                         \
	X(nourgent)	/* sysmon's thread is like any other */           \
	X(nomembarrier)	/* as if the kernel had no membarrier */          \
	X(noguard)	/* 1: as if it had no guard markers; 2: no guards */ \
	X(nopwait2)	/* .. no epoll_pwait2 */                          \
	X(nonowait)	/* .. no RWF_NOWAIT for pipes, and no RWF_NOSIGNAL */ \
	X(nouring)	/* as if it had no io_uring */                    \
	X(post)		/* writes are put off, if somebody waits; -1: never */ \
	X(ringfirst)	/* files by io_uring, however few there are */     \
	X(evacuate)	/* stacks after N ms, however few or often; -1: never */ \
	X(chan)		/* what is freed is kept, to be found out: freed.h; -1: not */ \
	X(noattach)	/* goro dump PID and goro top PID are refused */   \
	X(nouserfault)	/* as if it had no userfaultfd */

struct debug {
#define X(name) int name;
	DEBUG_SWITCH_LIST(X)
#undef X
};
extern struct debug debug __attribute__((visibility("hidden")));

void debug_init(void);

/* How long a goroutine may run while only goroutines that have had their slice wait. */
static inline int64_t slice_ns(void)
{
	return debug.slice > 0 ? debug.slice * INT64_C(1000) : SLICE_NS;
}

#endif
