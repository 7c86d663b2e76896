/*
 * trace_order.c - which event can come next, and what it changes.
 *
 * Between threads the only order is in the numbers of the events (seq) that make a
 * goroutine ready or run it, and that take a P or give it up: each goroutine and each P
 * counts its own, and each generation begins anew. An event whose number is not the next
 * one has to wait. An event that contradicts the states is broken, and the trace ends
 * before it. This follows Go's internal/trace/order.go.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "trace_read.h"

/* -------------------------------------------------------------- G, P and M */

static struct trace_g *g_find(const struct trace_reader *r, uint64_t id)
{
	return (struct trace_g *)map_get(&r->g, id);
}

static struct trace_g *g_new(struct trace_reader *r, uint64_t id, enum g_state status)
{
	struct trace_g *g = alloc(sizeof *g);

	*g = (struct trace_g){ .id = id, .status = status, .generation = r->gen.number, .row = -1,
	                       .p = TRACE_NONE, .m = TRACE_NONE, .ready_p = TRACE_NONE };
	map_put(&r->g, id, (uintptr_t)g);
	return g;
}

static void g_end(struct trace_reader *r, struct trace_g *g)
{
	for (struct trace_region *region = g->regions, *outer; region; region = outer) {
		outer = region->outer;
		free(region);
	}
	map_remove(&r->g, g->id);
	free(g);
}

static struct trace_p *p_find(struct trace_reader *r, uint64_t id)
{
	struct trace_p *p = (struct trace_p *)map_get(&r->p, id);

	if (p)
		return p;
	p = alloc(sizeof *p);
	*p = (struct trace_p){ .id = id };
	map_put(&r->p, id, (uintptr_t)p);
	return p;
}

static bool follows(const struct trace_reader *r, uint64_t generation, uint64_t last, uint64_t seq)
{
	return generation == r->gen.number && seq == last + 1;
}

/* The thread runs a goroutine on a P. */
static bool runs(const struct trace_event *e, enum g_state status)
{
	return e->p && e->g && e->g->status == status;
}

static enum trace_step done(struct trace_reader *r, struct trace_event *e)
{
	trace_tell(r, e);
	return STEP_DONE;
}

/* ---------------------------------------------------------------------- Ps */

static enum trace_step proc_status(struct trace_reader *r, struct trace_event *e)
{
	struct trace_p *p = e->other_p = p_find(r, e->arg[0]);
	enum p_state status = (enum p_state)e->arg[1];

	if (e->arg[1] < P_RUNNING || e->arg[1] > P_ABANDONED)
		return STEP_BAD;
	if (p->status != P_UNKNOWN && p->status != status && !(p->status == P_CALL && status == P_ABANDONED))
		return STEP_BAD;
	if (p->status == P_UNKNOWN)
		p->status = status;
	p->generation = r->gen.number;
	p->seq = 0;
	trace_tell(r, e);
	if (status == P_RUNNING || status == P_CALL)
		e->m->p = p;
	return STEP_DONE;
}

static enum trace_step proc_start(struct trace_reader *r, struct trace_event *e)
{
	struct trace_p *p = e->other_p = p_find(r, e->arg[0]);

	if (p->status != P_IDLE || !follows(r, p->generation, p->seq, e->arg[1]) || e->p)
		return STEP_NOT_YET;
	p->status = P_RUNNING;
	p->seq = e->arg[1];
	trace_tell(r, e);
	e->m->p = p;
	return STEP_DONE;
}

static enum trace_step proc_stop(struct trace_reader *r, struct trace_event *e)
{
	if (!e->p || (e->p->status != P_RUNNING && e->p->status != P_CALL))
		return STEP_BAD;
	e->p->status = P_IDLE;
	trace_tell(r, e);
	e->m->p = NULL;
	return STEP_DONE;
}

/* A P is taken from a thread that is in a call. */
static enum trace_step proc_steal(struct trace_reader *r, struct trace_event *e)
{
	struct trace_p *p = e->other_p = p_find(r, e->arg[0]);
	struct trace_m *from = (struct trace_m *)map_get(&r->m, e->arg[2]);
	bool abandoned = p->status == P_ABANDONED;

	if ((p->status != P_CALL && !abandoned) || !follows(r, p->generation, p->seq, e->arg[1]))
		return STEP_NOT_YET;
	if (!abandoned && (!from || from->p != p))
		return STEP_BAD;
	p->status = P_IDLE;
	p->seq = e->arg[1];
	e->robbed = abandoned ? NULL : from;
	trace_tell(r, e);
	if (!abandoned)
		from->p = NULL;
	return STEP_DONE;
}

/* -------------------------------------------------------------- goroutines */

static struct trace_m *thread_of_call(struct trace_reader *r, const struct trace_event *e)
{
	struct trace_m *m = (struct trace_m *)map_get(&r->m, e->arg[1]);

	if (m || e->arg[1] == TRACE_NONE)
		return m;
	m = alloc(sizeof *m);
	*m = (struct trace_m){ .id = e->arg[1] };
	map_put(&r->m, m->id, (uintptr_t)m);
	return m;
}

static enum trace_step go_status(struct trace_reader *r, struct trace_event *e)
{
	enum g_state status = (enum g_state)e->arg[2];
	struct trace_g *g = g_find(r, e->arg[0]);
	struct trace_m *on = status == G_CALL ? thread_of_call(r, e) : e->m;
	bool on_thread = status == G_RUNNING || status == G_CALL;

	if (e->arg[2] < G_RUNNABLE || e->arg[2] > G_WAITING || !on || (g && g->status != status))
		return STEP_BAD;
	if ((!g && r->gen.number != r->first_generation) || (on_thread && on->g != g))
		return STEP_BAD;
	if (!g)
		g = g_new(r, e->arg[0], status);
	g->generation = r->gen.number;
	g->seq = 0;
	e->other = g;
	trace_tell(r, e);
	if (on_thread)
		on->g = g;
	return STEP_DONE;
}

static enum trace_step go_create(struct trace_reader *r, struct trace_event *e)
{
	bool in_call = e->kind == EV_GO_CREATE_SYSCALL;

	if (in_call ? e->g != NULL : !e->p || (e->g && e->g->status != G_RUNNING))
		return STEP_BAD;
	if (g_find(r, e->arg[0]))
		return STEP_BAD;
	e->other = g_new(r, e->arg[0], in_call ? G_CALL : e->kind == EV_GO_CREATE_BLOCKED ? G_WAITING : G_RUNNABLE);
	trace_tell(r, e);
	if (in_call)
		e->m->g = e->other;
	return STEP_DONE;
}

static enum trace_step go_start(struct trace_reader *r, struct trace_event *e)
{
	struct trace_g *g = e->other = g_find(r, e->arg[0]);

	if (!g || g->status != G_RUNNABLE || !follows(r, g->generation, g->seq, e->arg[1]))
		return STEP_NOT_YET;
	if (!e->p || e->g)
		return STEP_BAD;
	g->status = G_RUNNING;
	g->seq = e->arg[1];
	trace_tell(r, e);
	e->m->g = g;
	return STEP_DONE;
}

static enum trace_step go_unblock(struct trace_reader *r, struct trace_event *e)
{
	struct trace_g *g = e->other = g_find(r, e->arg[0]);

	if (!g || g->status != G_WAITING || !follows(r, g->generation, g->seq, e->arg[1]))
		return STEP_NOT_YET;
	g->status = G_RUNNABLE;
	g->seq = e->arg[1];
	return done(r, e);
}

/* It ends, waits, or lets others run. */
static enum trace_step go_leave(struct trace_reader *r, struct trace_event *e)
{
	if (!runs(e, G_RUNNING))
		return STEP_BAD;
	e->g->status = e->kind == EV_GO_STOP ? G_RUNNABLE : G_WAITING;
	trace_tell(r, e);
	e->m->g = NULL;
	if (e->kind == EV_GO_DESTROY)
		g_end(r, e->g);
	return STEP_DONE;
}

/* Go's coroutines: one is made ready, the running one waits or ends, and the one made
 * ready runs. */
static enum trace_step go_switch(struct trace_reader *r, struct trace_event *e)
{
	struct trace_g *g = e->other = g_find(r, e->arg[0]);
	struct trace_event part = *e;

	if (!runs(e, G_RUNNING))
		return STEP_BAD;
	if (!g || g->status != G_WAITING || !follows(r, g->generation, g->seq, e->arg[1]))
		return STEP_NOT_YET;
	g->status = G_RUNNING;
	g->seq = e->arg[1];
	memset(part.arg, 0, sizeof part.arg);
	part.kind = EV_GO_UNBLOCK;
	trace_tell(r, &part);
	part.kind = e->kind == EV_GO_SWITCH ? EV_GO_BLOCK : EV_GO_DESTROY;
	e->g->status = G_WAITING;
	trace_tell(r, &part);
	if (part.kind == EV_GO_DESTROY)
		g_end(r, e->g);
	part.kind = EV_GO_START;
	part.g = NULL;
	trace_tell(r, &part);
	e->m->g = g;
	return STEP_DONE;
}

/* ------------------------------------------------------------------- calls */

static enum trace_step call_begin(struct trace_reader *r, struct trace_event *e)
{
	if (!runs(e, G_RUNNING) || !follows(r, e->p->generation, e->p->seq, e->arg[0]))
		return STEP_BAD;
	e->g->status = G_CALL;
	e->p->status = P_CALL;
	e->p->seq = e->arg[0];
	return done(r, e);
}

static enum trace_step call_end(struct trace_reader *r, struct trace_event *e)
{
	if (!runs(e, G_CALL) || e->p->status != P_CALL)
		return STEP_BAD;
	e->g->status = G_RUNNING;
	e->p->status = P_RUNNING;
	return done(r, e);
}

/* The P is lost; until that has been told the end has to wait. */
static enum trace_step call_end_blocked(struct trace_reader *r, struct trace_event *e)
{
	if (e->p && e->p->status == P_CALL)
		return STEP_NOT_YET;
	if (!e->g || e->g->status != G_CALL)
		return STEP_BAD;
	e->g->status = G_RUNNABLE;
	trace_tell(r, e);
	e->m->g = NULL;
	return STEP_DONE;
}

static enum trace_step go_destroy_in_call(struct trace_reader *r, struct trace_event *e)
{
	if (!e->g || e->g->status != G_CALL)
		return STEP_BAD;
	trace_tell(r, e);
	if (e->p)
		e->p->status = P_ABANDONED;
	e->m->p = NULL;
	e->m->g = NULL;
	g_end(r, e->g);
	return STEP_DONE;
}

/* -------------------------------------------------------------------------- */

enum trace_step trace_advance(struct trace_reader *r, struct trace_event *e)
{
	switch (e->kind) {
	case EV_PROC_STATUS: return proc_status(r, e);
	case EV_PROC_START: return proc_start(r, e);
	case EV_PROC_STOP: return proc_stop(r, e);
	case EV_PROC_STEAL: return proc_steal(r, e);
	case EV_GO_STATUS:
	case EV_GO_STATUS_STACK: return go_status(r, e);
	case EV_GO_CREATE:
	case EV_GO_CREATE_BLOCKED:
	case EV_GO_CREATE_SYSCALL: return go_create(r, e);
	case EV_GO_START: return go_start(r, e);
	case EV_GO_UNBLOCK: return go_unblock(r, e);
	case EV_GO_STOP:
	case EV_GO_BLOCK:
	case EV_GO_DESTROY: return go_leave(r, e);
	case EV_GO_SWITCH:
	case EV_GO_SWITCH_DESTROY: return go_switch(r, e);
	case EV_GO_SYSCALL_BEGIN: return call_begin(r, e);
	case EV_GO_SYSCALL_END: return call_end(r, e);
	case EV_GO_SYSCALL_END_BLOCKED: return call_end_blocked(r, e);
	case EV_GO_DESTROY_SYSCALL: return go_destroy_in_call(r, e);
	case EV_GO_LABEL:
	case EV_TASK_BEGIN:
	case EV_TASK_END:
	case EV_LOG:
	case EV_STW_BEGIN:
	case EV_STW_END:
	case EV_REGION_BEGIN:
	case EV_REGION_END: return e->g ? done(r, e) : STEP_BAD;
	default: return done(r, e);	/* what concerns memory, or nobody */
	}
}
