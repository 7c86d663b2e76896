/*
 * g.h - a goroutine's end, and the pools of dead ones. Defined in g.c.
 */
#ifndef GORO_G_H
#define GORO_G_H

#include <stddef.h>

#include "base/hook.h"
#include "stack/stack.h"
#include "sched/types.h"

void g_init(void);
/* Where a goroutine begins; called by context_entry. */
struct m *g_start(struct m *mp);
/* Ends the current goroutine, gp; its defers have run. In user code. */
_Noreturn void g_end(struct g *gp);
/* Resets what gp has set for itself, before another goroutine or a worker's next task has
 * its G. Called by gp's own thread. */
void g_forget(struct g *gp);

/* What a goroutine, or a plain thread, leaves behind when it ends: each function is
 * called in user code, on gp, in the order of these numbers. */
struct g_end_hook {
	void (*fn)(struct g *gp);
	int order;
	bool each_task;		/* also between two tasks of a worker (pool.c) */
	struct g_end_hook *next;
};
enum g_end_order { G_END_LOCALS, G_END_PANICS, G_END_REGIONS };
extern struct g_end_hook *g_end_hooks;
void g_end_run(struct g *gp);
void g_end_task(struct g *gp);

/* G_END(G_END_LOCALS, locals_end, .each_task = true); calls it from the start. */
#define G_END(place, function, ...)                                                  \
	ADD_AT_LOAD(g_end_##function, struct g_end_hook, g_end_hooks, .fn = (function), \
	            .order = (place), __VA_ARGS__)

/* Runs gp's defers, last first, down to but for until. In user code. By panic.c. */
extern void (*g_run_defers)(struct g *gp, struct defer *until);

/* gp is over. */
static inline void g_set_dead(struct g *gp)
{
	store_relaxed(&gp->stack.hi, (char *)gp);
	store_relaxed(&gp->status, G_DEAD);
}

/* Its stack was left for good: puts it with the dead. */
void g_ended(struct m *mp, struct g *gp);

/* The same for a goroutine whose stack this thread, the owner of pp, is about to leave,
 * starting nothing before. gp goes to the P's own list, from which no other thread takes.
 * False: nothing is done, since gp goes to the pool at once, or TSan is to hear of a
 * fiber only when it is gone. */
static inline bool g_ended_before_rest(struct p *pp, struct g *gp)
{
	if (TOOL_TSAN || gp->stack_class != stack_default_class || pp->gfree_n == P_GFREE_MAX)
		return false;
	tool_fiber_end(&gp->tool);
	g_set_dead(gp);
	store_relaxed(&gp->mp, NULL);	/* it has no context to be read */
	pp->gfree[pp->gfree_n++] = gp;
	return true;
}

#endif
