/*
 * trace_user.c - what the program tells of itself: tasks, regions and logs, as
 * runtime/trace has them.
 *
 * Regions of a goroutine nest, and Go's reader rejects a trace in which the end of one
 * does not belong to the innermost that has begun. Here a mistake of the program's is not
 * to cost the trace: each goroutine keeps a list of the regions that it is in. The end of
 * one that is not the innermost ends those inside it first; the end of one that has not
 * begun, or not in this trace, is not told.
 *
 * While no trace is on, all this is one load.
 */
#include <stdlib.h>
#include <string.h>

#include <goro.h>

#include "runtime.h"
#include "trace_impl.h"

struct trace_region {
	struct trace_region *outer;
	uint64_t task;
	uint32_t gen;		/* when it began: not in this trace, perhaps */
	size_t n;
	char name[];
};

/* From user code to where events are told, and back. */
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

/* ------------------------------------------------------------------- tasks */

uint64_t goro_trace_task_begin(const char *name)
{
	static uint64_t last;
	uint64_t task;
	struct m *mp;

	if (!trace_on())
		return 0;
	task = fetch_add_relaxed(&last, 1) + 1;
	mp = enter();
	if (trace_on())
		trace_event_user(mp, EV_USER_TASK_BEGIN, 4, task, 0, trace_string(name, strlen(name)));
	leave(mp);
	return task;
}

void goro_trace_task_end(uint64_t task)
{
	struct m *mp;

	if (!trace_on() || task == 0)
		return;
	mp = enter();
	if (trace_on())
		trace_event_user(mp, EV_USER_TASK_END, 2, task, 0, 0);
	leave(mp);
}

void goro_trace_log(uint64_t task, const char *key, const char *value)
{
	struct m *mp;

	if (!trace_on())
		return;
	mp = enter();
	if (trace_on())
		trace_event_user(mp, EV_USER_LOG, 4, task, trace_string(key, strlen(key)),
		                 trace_string(value, strlen(value)));
	leave(mp);
}

/* ----------------------------------------------------------------- regions */

/* In a plain thread that has no M yet: NULL. */
static struct g *self(void)
{
	struct m *mp = m_self();

	return mp ? mp->curg : NULL;
}

static void tell_region(struct m *mp, enum trace_ev ev, const struct trace_region *r)
{
	trace_event_user(mp, ev, 3, r->task, trace_string(r->name, r->n), 0);
}

void goro_trace_region_begin(uint64_t task, const char *name)
{
	struct trace_region *r;
	struct m *mp;
	size_t n;

	if (!trace_on())
		return;
	n = strlen(name);
	r = malloc(sizeof *r + n + 1);
	if (!r)
		return;
	r->task = task;
	r->n = n;
	memcpy(r->name, name, n + 1);
	mp = enter();
	if (trace_on()) {
		r->gen = trace.gen;
		r->outer = mp->curg->trace.regions;
		mp->curg->trace.regions = r;
		store_relaxed(&mp->curg->untidy, true);
		tell_region(mp, EV_USER_REGION_BEGIN, r);
		r = NULL;
	}
	leave(mp);
	free(r);
}

static bool is_in(const struct g *gp, uint64_t task, const char *name)
{
	for (const struct trace_region *r = gp->trace.regions; r; r = r->outer)
		if (r->task == task && strcmp(r->name, name) == 0)
			return true;
	return false;
}

/* The innermost is over; its memory is the caller's. */
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
	struct g *gp = self();
	bool was_it = false;

	if (likely(!gp || !gp->trace.regions) || !is_in(gp, task, name))
		return;
	while (!was_it) {
		struct trace_region *r = end_innermost();

		was_it = r->task == task && strcmp(r->name, name) == 0;
		free(r);
	}
}

void trace_regions_end(struct g *gp)
{
	while (gp->trace.regions)
		free(end_innermost());
}
