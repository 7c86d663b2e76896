/*
 * retake_decide.h - what is done about a P that has been in one slice for a while.
 *
 * sysmon gathers what it sees of the P and of the M that owns it (retake.c);
 * retake_decide is a pure function from that view to an action. Some facts cost a system
 * call: they begin as unknown, and where the decision depends on one, the action is to
 * look it up and to decide again.
 */
#ifndef GORO_RETAKE_DECIDE_H
#define GORO_RETAKE_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"

/* When a P may be taken from an M in an announced call. Go's number. */
#define SYSCALL_GRACE_NS 20000

/* For so many short slices a goroutine without a CPU is exempt, where CPUs are short. */
#define LACKS_CPU_SLICES 4
/* With many goroutines stopped a slice is CPU time, for no longer than this. */
#define STARVED_NS SLICE_NS
/* A slice of which so little is left, or a tenth, counts as over. */
#define SLICE_NEARLY_NS 100000

/* An M that has not come to the handler by then has no CPU, or blocks the signal. */
#define UNANSWERED_NS 200000

/* Looks sooner than LOOK_NS. After a take: where one thread blocks others soon will. */
#define LOOK_SOON_NS  50000
/* After a request to give way: the next goroutine may block on the former's lock. */
#define LOOK_AFTER_NS 50000
/* In a slice that began with a wake: a lock that it wanted before it wants at once. */
#define LOOK_EARLY_NS 20000

/* A fact that costs a system call. */
enum retake_fact { FACT_UNKNOWN, FACT_NO, FACT_YES };

struct retake_view {
	/* The slice. */
	int64_t age;		/* ns since it began, or since sysmon first saw it */
	int64_t allowed;	/* ns that it may take; TIMER_NEVER: nobody waits */
	bool single;		/* one goroutine has had all of it */
	bool resumed;		/* the slice began when the M was woken for it */

	/* The M. */
	bool announced;		/* in a call announced by goro_syscall_enter */
	bool user;		/* in user code; else in the runtime */
	bool steady;		/* used up its last slices and was never found asleep */
	bool unanswered;	/* signalled a while ago, and not in the handler since */
	bool preempt_off;	/* its goroutine is not to be preempted */
	int64_t put_off;	/* ns to the try that the handler asked for; <= 0: now */

	/* Around it. */
	bool convoy;		/* goroutines compete for a lock on this P: look often */
	bool cpus_short;	/* Ps are left, but no CPUs for them */
	bool brisk;		/* the other Ps get through their work quickly */
	bool many_stopped;	/* many preempted goroutines wait, each with its thread */
	int64_t look;		/* ns to the next look, if none is needed before */

	/* Looked up when asked for. */
	enum retake_fact clock_stands;	/* the M's CPU clock has not moved since a look */
	enum retake_fact asleep;	/* the M sleeps in the kernel */
	enum retake_fact used_known;	/* used is set; FACT_NO: it cannot be known */
	int64_t used;			/* ns of CPU time that the M used in the slice */

	bool take_failed;	/* at this look no M was there to run the P */
};

enum retake_what {
	RETAKE_LEAVE,		/* look again after next */
	RETAKE_TAKE,		/* take the P and hand it on */
	RETAKE_ANOTHER_P,	/* start an idle P for the goroutine that waits */
	RETAKE_PUT_OFF,		/* the slice is over; the handler's next try is later */
	RETAKE_YIELD,		/* the slice is over: ask the goroutine to give way */

	/* Look a fact up and decide again. */
	RETAKE_SEE_CLOCK,
	RETAKE_SEE_ASLEEP,
	RETAKE_SEE_USED,
};

struct retake_action {
	enum retake_what what;
	int64_t next;		/* ns until the next look; TIMER_NEVER: none for this P */
};

struct retake_action retake_decide(const struct retake_view *v);

#endif
