/*
 * trace_hook.h - where the scheduler tells the execution trace what happens.
 *
 * The trace is a room above, which fills the table when the library is loaded
 * (trace_event.c). Each call below tests one byte while nothing is traced. The busiest
 * paths do not even that: sched.tracing is a byte of sched.heed, which they test anyway.
 *
 * The owner of a P, or the holder of sched.lock, may call these. So no thread does while
 * the world is stopped and the lock is held, and the trace can begin, end or change its
 * generation. The M is the calling thread's, except where a parameter is named `of`.
 */
#ifndef GORO_TRACE_HOOK_H
#define GORO_TRACE_HOOK_H

#include "sched/rt.h"
#include "sched/types.h"

/* What p_given has changed, for p_given_undo. */
struct trace_undo {
	struct g_trace g;
	struct p_trace p;
	uint32_t used;
	int64_t last;
	bool written;
};

#define TRACE_CALLS_MAX 100

/* X(name, parameters, arguments): a member of the table, and a function that calls it and
 * has trace_ before the name. */
#define TRACE_HOOK_LIST(X)                                                         \
	/* With a P. gp becomes runnable: its status still says from what. */      \
	X(go_ready, (struct m *mp, struct g *gp), (mp, gp))                      \
	X(go_start, (struct m *mp, struct g *gp), (mp, gp))                      \
	/* gp is about to wait. */                                                 \
	X(go_block, (struct m *mp, struct g *gp), (mp, gp))                      \
	X(go_end, (struct m *mp), (mp))                                          \
	X(go_named, (struct m *mp), (mp))                                        \
	/* An owned P becomes mp's, and is mp's no longer. */                      \
	X(p_start, (struct m *mp, struct p *pp), (mp, pp))                       \
	X(p_stop, (struct m *mp), (mp))                                          \
	/* An announced call begins, with the P left behind; it ends with the P. */ \
	X(call_begin, (struct m *mp), (mp))                                      \
	X(call_end, (struct m *mp), (mp))                                        \
	/* A P that was left behind is the caller's now. */                        \
	X(p_stolen, (struct p *pp), (pp))                                        \
	X(world_stop, (struct m *mp, const char *why), (mp, why))                \
	X(world_start, (struct m *mp), (mp))                                     \
	/* GOMAXPROCS has changed. */                                              \
	X(procs, (struct m *mp, int procs), (mp, procs))                         \
	/* With sched.lock, and perhaps no P. The P of an M in user code was taken; \
	 * its goroutine was in these calls, if n > 0. */                          \
	X(p_taken, (struct m *of, struct p *pp, const uintptr_t *pcs, size_t n),  \
	  (of, pp, pcs, n))                                                       \
	/* mp, which lost its P, is back in the runtime, and its goroutine runnable. */ \
	X(go_back, (struct m *mp, struct g *gp), (mp, gp))                       \
	/* An M without a P makes a parked goroutine ready, or starts a new one. */ \
	X(ready_outside, (struct m *mp, struct g *gp), (mp, gp))                 \
	X(create_outside, (struct m *mp, struct g *gp), (mp, gp))

struct trace_hook {
#define X(name, params, args) void (*name)params;
	TRACE_HOOK_LIST(X)
#undef X
	/* With sched.lock: see trace_p_given. */
	struct trace_undo (*p_given)(struct m *of, struct p *pp);
	void (*p_given_undo)(struct m *of, struct p *pp, const struct trace_undo *undo);
	/* Any state. Stores the calls of a goroutine asleep in the kernel; how many. */
	size_t (*asleep_in)(struct m *of, uintptr_t *pcs);
	/* Any state; takes sched.lock. */
	void (*thread_end)(struct m *mp);
};
extern struct trace_hook trace_hook __attribute__((visibility("hidden")));

static inline bool trace_on(void)
{
	return unlikely(load_relaxed(&sched.tracing));
}

#define X(name, params, args)                \
	static inline void trace_##name params \
	{                                    \
		if (trace_on())              \
			trace_hook.name args; \
	}
TRACE_HOOK_LIST(X)
#undef X

/* A P is about to be given to an M in user code without one. */
static inline struct trace_undo trace_p_given(struct m *of, struct p *pp)
{
	return trace_on() ? trace_hook.p_given(of, pp) : (struct trace_undo){ .written = false };
}

/* It was not given after all. */
static inline void trace_p_given_undo(struct m *of, struct p *pp, const struct trace_undo *undo)
{
	if (undo->written)
		trace_hook.p_given_undo(of, pp, undo);
}

/* A plain thread ends. Does nothing if no trace has shown it. */
static inline void trace_thread_end(struct m *mp)
{
	if (mp->trace.of_g.named_in != 0)
		trace_hook.thread_end(mp);
}

#endif
