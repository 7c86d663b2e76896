/*
 * g.h - a goroutine's end, and the pools of dead ones. Defined in g.c.
 */
#ifndef GORO_G_H
#define GORO_G_H

#include <stddef.h>

#include "stack.h"
#include "types.h"

void g_init(void);
/* Where a goroutine begins; called by context_entry. */
struct m *g_start(struct m *mp);
/* Ends the current goroutine, gp; its defers have run. In user code. */
_Noreturn void g_end(struct g *gp);
/* Resets what gp's function has set with goro_set_name and goro_preempt_disable, so that
 * the next goroutine on the same stack, or the next task of a worker, does not inherit it.
 * Called by gp's own thread. */
void g_forget(struct g *gp);
size_t g_pool_cached_bytes(void);

/* gp is over. */
static inline void g_set_dead(struct g *gp)
{
	store_relaxed(&gp->stack_hi, (char *)gp);
	store_relaxed(&gp->status, G_DEAD);
}

/* Its stack was left for good: puts it with the dead. */
void g_ended(struct m *mp, struct g *gp);

/* The same for one whose stack this thread, the owner of pp, is still on, but about to leave,
 * and starts nothing before: from the P's own dead nobody else takes it. (When there are too many
 * of these the oldest go where others take from, not this one.) False: nothing is done, since it
 * is of those that go there at once, or TSan is to hear only of one that is gone. */
static inline bool g_ended_before_rest(struct p *pp, struct g *gp)
{
	if (TOOL_TSAN || gp->stack_class != stack_default_class || pp->gfree_n == P_GFREE_MAX)
		return false;
	tool_fiber_end(&gp->tool);
	g_set_dead(gp);
	store_relaxed(&gp->mp, NULL);	/* a dead one has no context that this could be about */
	pp->gfree[pp->gfree_n++] = gp;
	return true;
}

#endif
