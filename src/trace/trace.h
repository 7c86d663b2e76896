/*
 * trace.h - the execution trace, as the rest of the runtime sees it.
 *
 * Where something happens that a trace tells of, one of the functions below is
 * called if trace_on(). The paths that matter for speed do not even ask: while
 * tracing, every goroutine that becomes runnable is "timed" (latency.h), and so both
 * becoming runnable and running lead to latency.c, where it is asked.
 *
 * Who may tell: whoever owns a P, or holds sched.lock. So when the world is stopped
 * and the lock is held nobody does, and the trace can begin, end or go on to its next
 * generation. Except where said otherwise, the M is the calling thread's.
 *
 * The files: trace.c (start, stop, generations), trace_event.c (what is told, and how
 * it stays consistent), trace_buffer.c (bytes, on their way to the writer),
 * trace_table.c and trace_stack.c (strings and stacks, told once and then by number),
 * trace_writer.c (to the file), trace_user.c (tasks, regions, logs).
 */
#ifndef GORO_TRACE_H
#define GORO_TRACE_H

#include "rt.h"
#include "types.h"

static inline bool trace_on(void)
{
	return unlikely(load_relaxed(&sched.tracing));
}

/* ---- with a P */

/* A goroutine becomes runnable: gp's status says from what. Before it does. */
void trace_go_ready(struct m *mp, struct g *gp);
void trace_go_start(struct m *mp, struct g *gp);	/* .. runs */
void trace_go_block(struct m *mp, struct g *gp);	/* .. is about to wait */
void trace_go_end(struct m *mp);
void trace_go_named(struct m *mp);
/* A P, owned, becomes mp's, and is mp's no longer. */
void trace_p_start(struct m *mp, struct p *pp);
void trace_p_stop(struct m *mp);
/* An announced call, with the P left behind; the M has it again. */
void trace_call_begin(struct m *mp);
void trace_call_end(struct m *mp);
/* A P that was left behind is the caller's now. */
void trace_p_stolen(struct p *pp);
void trace_world_stop(struct m *mp, const char *why);
void trace_world_start(struct m *mp);
void trace_procs(struct m *mp, int procs);

/* ---- with sched.lock held, and perhaps no P */

/* The P of mp, in user code, was taken; its goroutine was in these calls, if n > 0. */
void trace_p_taken(struct m *mp, struct p *pp, const uintptr_t *pcs, size_t n);
/* A P is about to be given to mp, in user code without one. undo: it was not. */
struct trace_undo {
	struct g_trace g;
	struct p_trace p;
	uint32_t used;
	int64_t last;
	bool written;
};
struct trace_undo trace_p_given(struct m *mp, struct p *pp);
void trace_p_given_undo(struct m *mp, struct p *pp, const struct trace_undo *undo);
/* mp, which lost its P, is back in the runtime, and its goroutine runnable. */
void trace_go_back(struct m *mp, struct g *gp);
/* .. the same, from where the lock is not held. */
void trace_go_back_unlocked(struct m *mp, struct g *gp);
/* A parked goroutine is made ready by somebody without a P; one is started so. The
 * status to give it. */
uint32_t trace_ready_outside(struct m *mp, struct g *gp);
uint32_t trace_create_outside(struct m *mp, struct g *gp);
/* A plain thread ends. Takes the lock. */
void trace_thread_end(struct m *mp);

/* ---- any state */

int trace_threads(void);	/* the writer, if there is one */
void trace_start_by_environment(void);	/* GORO_TRACE; in user code */
void trace_regions_end(struct g *gp);	/* those it is still in; in user code */

#endif
