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

struct trace_hook {
	/* With a P. */
	void (*go_ready)(struct m *mp, struct g *gp);
	void (*go_start)(struct m *mp, struct g *gp);
	void (*go_block)(struct m *mp, struct g *gp);
	void (*go_end)(struct m *mp);
	void (*go_named)(struct m *mp);
	void (*p_start)(struct m *mp, struct p *pp);
	void (*p_stop)(struct m *mp);
	void (*call_begin)(struct m *mp);
	void (*call_end)(struct m *mp);
	void (*p_stolen)(struct p *pp);
	void (*world_stop)(struct m *mp, const char *why);
	void (*world_start)(struct m *mp);
	void (*procs)(struct m *mp, int procs);

	/* With sched.lock, and perhaps no P. */
	void (*p_taken)(struct m *of, struct p *pp, const uintptr_t *pcs, size_t n);
	struct trace_undo (*p_given)(struct m *of, struct p *pp);
	void (*p_given_undo)(struct m *of, struct p *pp, const struct trace_undo *undo);
	void (*go_back)(struct m *mp, struct g *gp);
	void (*ready_outside)(struct m *mp, struct g *gp);
	void (*create_outside)(struct m *mp, struct g *gp);

	/* Any state. Stores the calls of a goroutine whose thread sleeps in the kernel,
	 * at most TRACE_CALLS_MAX, and returns how many. */
	size_t (*asleep_in)(struct m *of, uintptr_t *pcs);
	/* Any state; takes sched.lock. */
	void (*thread_end)(struct m *mp);
};
extern struct trace_hook trace_hook __attribute__((visibility("hidden")));

static inline bool trace_on(void)
{
	return unlikely(load_relaxed(&sched.tracing));
}

#define TRACE_HOOK(name, params, args)                   \
	static inline void trace_##name params           \
	{                                                \
		if (trace_on())                          \
			trace_hook.name args;            \
	}

/* gp becomes runnable. Its status still says from what. */
TRACE_HOOK(go_ready, (struct m *mp, struct g *gp), (mp, gp))
/* gp runs. */
TRACE_HOOK(go_start, (struct m *mp, struct g *gp), (mp, gp))
/* gp is about to wait. */
TRACE_HOOK(go_block, (struct m *mp, struct g *gp), (mp, gp))
TRACE_HOOK(go_end, (struct m *mp), (mp))
TRACE_HOOK(go_named, (struct m *mp), (mp))
/* An owned P becomes mp's, and is mp's no longer. */
TRACE_HOOK(p_start, (struct m *mp, struct p *pp), (mp, pp))
TRACE_HOOK(p_stop, (struct m *mp), (mp))
/* An announced call begins, with the P left behind; it ends with the P. */
TRACE_HOOK(call_begin, (struct m *mp), (mp))
TRACE_HOOK(call_end, (struct m *mp), (mp))
/* A P that was left behind is the caller's now. */
TRACE_HOOK(p_stolen, (struct p *pp), (pp))
TRACE_HOOK(world_stop, (struct m *mp, const char *why), (mp, why))
TRACE_HOOK(world_start, (struct m *mp), (mp))
/* GOMAXPROCS has changed. */
TRACE_HOOK(procs, (struct m *mp, int procs), (mp, procs))

/* The P of an M in user code was taken; its goroutine was in these calls, if n > 0. */
TRACE_HOOK(p_taken, (struct m *of, struct p *pp, const uintptr_t *pcs, size_t n), (of, pp, pcs, n))
/* mp, which lost its P, is back in the runtime, and its goroutine runnable. */
TRACE_HOOK(go_back, (struct m *mp, struct g *gp), (mp, gp))
/* A parked goroutine is made ready by an M without a P, or a new one is started. */
TRACE_HOOK(ready_outside, (struct m *mp, struct g *gp), (mp, gp))
TRACE_HOOK(create_outside, (struct m *mp, struct g *gp), (mp, gp))

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
