/*
 * trace_user.c - the program's own events: tasks, regions, logs, as in runtime/trace.
 *
 * Regions of a goroutine nest. Go's reader rejects a trace in which a region ends that is
 * not the innermost. A mistake of the program's must not cost the trace, so each
 * goroutine has a list of the regions that it is in. To end a region ends the regions
 * inside it first. The end of one that has not begun, or not in this trace, is left out.
 *
 * While no trace is on, each call is one load.
 */
#include <stdlib.h>
#include <string.h>

#include <goro.h>

#include "sched/g.h"
#include "sched/runtime.h"
#include "trace/trace.h"

struct trace_region {
	struct trace_region *outer;
	uint64_t task;
	uint32_t gen;		/* in which it began, perhaps in an earlier trace */
	char name[];
};

/* Enters the runtime with what trace_event_user needs: a P, or sched.lock. */
static struct m *enter(void)
{
	struct m *mp = rt_enter();

	if (!mp->p)
		lock_acquire(&sched.lock);
	return mp;
}

static void leave(struct m *mp)
{
	if (!mp->p)
		lock_release(&sched.lock);
	rt_exit(mp);
}

/* The same if a trace is on; else NULL. */
static struct m *enter_traced(void)
{
	struct m *mp;

	if (!trace_on())
		return NULL;
	mp = enter();
	if (trace_on())
		return mp;
	leave(mp);
	return NULL;
}

/* ------------------------------------------------------------------- tasks */

uint64_t goro_trace_task_begin(const char *name)
{
	static uint64_t last;
	struct m *mp = enter_traced();
	uint64_t task;

	if (!mp)
		return 0;
	task = fetch_add_relaxed(&last, 1) + 1;
	trace_event_user(mp, EV_USER_TASK_BEGIN, 4, task, 0, trace_string(name));
	leave(mp);
	return task;
}

void goro_trace_task_end(uint64_t task)
{
	struct m *mp = task == 0 ? NULL : enter_traced();

	if (!mp)
		return;
	trace_event_user(mp, EV_USER_TASK_END, 2, task, 0, 0);
	leave(mp);
}

void goro_trace_log(uint64_t task, const char *key, const char *value)
{
	struct m *mp = enter_traced();

	if (!mp)
		return;
	trace_event_user(mp, EV_USER_LOG, 4, task, trace_string(key), trace_string(value));
	leave(mp);
}

/* ----------------------------------------------------------------- regions */

static void tell_region(struct m *mp, enum trace_ev ev, const struct trace_region *r)
{
	trace_event_user(mp, ev, 3, r->task, trace_string(r->name), 0);
}

void goro_trace_region_begin(uint64_t task, const char *name)
{
	struct trace_region *r;
	struct m *mp;
	size_t bytes;

	if (!trace_on())
		return;
	bytes = strlen(name) + 1;
	r = malloc(sizeof *r + bytes);
	if (!r)
		return;
	r->task = task;
	memcpy(r->name, name, bytes);
	mp = enter_traced();
	if (!mp) {
		free(r);
		return;
	}
	r->gen = trace.gen;
	r->outer = mp->curg->trace.regions;
	mp->curg->trace.regions = r;
	store_relaxed(&mp->curg->untidy, true);
	tell_region(mp, EV_USER_REGION_BEGIN, r);
	leave(mp);
}

static bool is_region(const struct trace_region *r, uint64_t task, const char *name)
{
	return r->task == task && strcmp(r->name, name) == 0;
}

static bool is_in(const struct g *gp, uint64_t task, const char *name)
{
	for (const struct trace_region *r = gp->trace.regions; r; r = r->outer)
		if (is_region(r, task, name))
			return true;
	return false;
}

/* Ends the innermost region; the caller frees it. */
static struct trace_region *end_innermost(void)
{
	struct m *mp = enter();
	struct trace_region *r = mp->curg->trace.regions;

	mp->curg->trace.regions = r->outer;
	if (trace_on() && r->gen >= trace.first_gen)
		tell_region(mp, EV_USER_REGION_END, r);
	leave(mp);
	return r;
}

void goro_trace_region_end(uint64_t task, const char *name)
{
	struct m *mp = m_self();	/* NULL in a plain thread that has none yet */
	struct g *gp = mp ? mp->curg : NULL;
	bool was_it = false;

	if (likely(!gp || !gp->trace.regions) || !is_in(gp, task, name))
		return;
	while (!was_it) {
		struct trace_region *r = end_innermost();

		was_it = is_region(r, task, name);
		free(r);
	}
}

/* At the end of gp, in user code. */
static void trace_regions_end(struct g *gp)
{
	while (gp->trace.regions)
		free(end_innermost());
}
G_END(G_END_REGIONS, trace_regions_end, .each_task = true);
