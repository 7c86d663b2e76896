/*
 * trace_model.c - from events to stretches of time.
 *
 * A goroutine's state changes at an event, and what it did since the last one is a span.
 * P rows are drawn from the spans of running goroutines and of those in calls, as long as
 * they have the P: a sink is told of these at once when the P is lost, so that each P's
 * come in order. What is outside of the part to show is cut off.
 */
#include "trace_model.h"

#include <stdlib.h>
#include <string.h>

#include "cmd.h"

struct task {
	uint32_t name;
	int64_t from;
};

/* -------------------------------------------------------------------- spans */

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* What g has done since its last change. False: that is not in the part to show. */
static bool span_of(const struct trace_model *t, const struct trace_g *g, const struct trace_event *e, int64_t at,
                    struct trace_span *s)
{
	*s = (struct trace_span){
		.g = g, .state = g->state, .from = later(g->since, t->from), .to = at < t->to ? at : t->to,
		.is_whole = !g->began_before && e && g->since >= t->from && at <= t->to,
		.p = g->p, .m = g->m, .lost_p = g->state == G_CALL && g->lost_p, .end = e ? e->kind : 0,
		.why = g->why, .stack = g->stack, .by = g->ready_by, .by_p = g->ready_p, .ready_at = g->ready_at,
	};
	return g->state != G_UNKNOWN && s->to >= s->from;
}

/* It is over, or its P is lost. */
static void tell_p(const struct trace_model *t, const struct trace_span *s)
{
	if (t->sink.on_p && s->p != TRACE_NONE && (s->state == G_RUNNING || s->state == G_CALL))
		t->sink.on_p(t->sink.arg, s);
}

static void end_span(struct trace_model *t, struct trace_g *g, const struct trace_event *e, int64_t at)
{
	struct trace_span s;

	if (!span_of(t, g, e, at, &s))
		return;
	g->spent[g->state] += s.to - s.from;
	if (!s.lost_p)
		tell_p(t, &s);
	if (t->sink.span)
		t->sink.span(t->sink.arg, &s);
}

static void change(struct trace_model *t, struct trace_g *g, enum g_state to, const struct trace_event *e)
{
	end_span(t, g, e, e->time);
	g->state = to;
	g->since = e->time;
	g->began_before = false;
	g->lost_p = false;
	if (to == G_RUNNABLE || to == G_WAITING)
		g->p = g->m = TRACE_NONE;
	if (to == G_RUNNING)
		g->why = g->stack = 0;
}

/* What a running goroutine ends with, and what it then waits for. */
static void set_reason(const struct trace_model *t, struct trace_g *g, uint32_t why, uint32_t stack)
{
	g->why = why;
	g->stack = stack;
	if (g->function == 0)
		g->function = outermost_of(t->reader.names, stack);
}

static void forget_ready(struct trace_g *g)
{
	g->ready_by = 0;
	g->ready_p = TRACE_NONE;
	g->ready_at = -1;
}

static void set_ready(struct trace_g *g, const struct trace_event *e, const struct trace_g *by)
{
	g->ready_by = by ? by->id : 0;
	g->ready_p = e->p ? e->p->id : TRACE_NONE;
	g->ready_at = e->time;
}

/* --------------------------------------------------------------- goroutines */

static uint32_t text(const struct trace_model *t, const struct trace_event *e, int arg)
{
	return trace_text(&t->reader, e->arg[arg]);
}

static uint32_t stack(const struct trace_model *t, const struct trace_event *e, int arg)
{
	return trace_stack(&t->reader, e->arg[arg]);
}

static void comes(struct trace_model *t, struct trace_g *g, const struct trace_event *e)
{
	g->is_known = true;
	g->since = e->time;
	t->goroutines++;
	t->live_most = ++t->live > t->live_most ? t->live : t->live_most;
}

static void on_status(struct trace_model *t, const struct trace_event *e)
{
	struct trace_g *g = e->other;
	uint32_t where = e->kind == EV_GO_STATUS_STACK ? stack(t, e, 3) : 0;

	if (g->is_known)
		return;
	comes(t, g, e);
	forget_ready(g);
	g->existed = g->began_before = true;
	g->state = g->status;
	g->function = outermost_of(t->reader.names, where);
	g->stack = where;
	if (g->state == G_RUNNING) {
		g->p = e->p ? e->p->id : TRACE_NONE;
		g->m = e->m->id;
	} else if (g->state == G_CALL) {
		g->m = e->arg[1];
		g->lost_p = true;
	}
}

static void on_create(struct trace_model *t, const struct trace_event *e)
{
	struct trace_g *g = e->other;
	bool in_call = e->kind == EV_GO_CREATE_SYSCALL;

	comes(t, g, e);
	g->born = e->time;
	g->state = g->status;
	g->m = in_call ? e->m->id : TRACE_NONE;
	g->parent = e->g ? e->g->id : 0;
	if (in_call) {
		g->function = names_text(t->reader.names, "plain thread", 12);
		forget_ready(g);
	} else {
		g->function = outermost_of(t->reader.names, stack(t, e, 1));
		g->parent_stack = stack(t, e, 2);
		set_ready(g, e, e->g);
	}
	if (t->sink.created)
		t->sink.created(t->sink.arg, g, e);
}

static void end_regions(struct trace_model *t, struct trace_g *g, int64_t at)
{
	for (struct trace_region *r = g->regions; r; r = g->regions) {
		if (t->sink.region && at >= t->from && r->from <= t->to)
			t->sink.region(t->sink.arg, g, r, at);
		g->regions = r->outer;
		free(r);
	}
}

static void goes(struct trace_model *t, struct trace_g *g, const struct trace_event *e, int64_t at)
{
	end_span(t, g, e, at);
	end_regions(t, g, at);
	if (t->sink.ended)
		t->sink.ended(t->sink.arg, g, at);
}

static void on_destroy(struct trace_model *t, const struct trace_event *e)
{
	set_reason(t, e->g, 0, 0);
	goes(t, e->g, e, e->time);
	e->g->state = G_UNKNOWN;
	t->live--;
}

static void on_start(struct trace_model *t, const struct trace_event *e)
{
	change(t, e->other, G_RUNNING, e);
	e->other->p = e->p->id;
	e->other->m = e->m->id;
}

static void on_unblock(struct trace_model *t, const struct trace_event *e)
{
	set_ready(e->other, e, e->g);
	change(t, e->other, G_RUNNABLE, e);
}

/* Waits, or lets others run. */
static void on_leave(struct trace_model *t, const struct trace_event *e)
{
	set_reason(t, e->g, text(t, e, 0), stack(t, e, 1));
	change(t, e->g, e->kind == EV_GO_STOP ? G_RUNNABLE : G_WAITING, e);
	if (e->kind == EV_GO_STOP)
		set_ready(e->g, e, NULL);
}

/* -------------------------------------------------------------------- calls */

static void on_call_begin(struct trace_model *t, const struct trace_event *e)
{
	set_reason(t, e->g, 0, stack(t, e, 1));
	change(t, e->g, G_CALL, e);
}

static void on_call_end_blocked(struct trace_model *t, const struct trace_event *e)
{
	change(t, e->g, G_RUNNABLE, e);
	set_ready(e->g, e, NULL);
	e->g->ready_p = TRACE_NONE;
}

/* It kept its P, and goes on without having been ready. */
static void on_call_end(struct trace_model *t, const struct trace_event *e)
{
	change(t, e->g, G_RUNNING, e);
	forget_ready(e->g);
}

static void lose_p(struct trace_model *t, struct trace_g *g, const struct trace_event *e)
{
	struct trace_span s;

	if (!g || g->state != G_CALL || g->lost_p)
		return;
	if (span_of(t, g, e, e->time, &s))
		tell_p(t, &s);
	g->lost_p = true;
}

/* ------------------------------------------------- what the program tells of */

static void on_task_begin(struct trace_model *t, const struct trace_event *e)
{
	struct task *task = alloc(sizeof *task), *old = (struct task *)map_get(&t->tasks, e->arg[0]);

	*task = (struct task){ text(t, e, 2), e->time };
	free(old);
	map_put(&t->tasks, e->arg[0], (uintptr_t)task);
}

static void tell_task(struct trace_model *t, uint64_t id, const struct task *task, int64_t to, bool is_over)
{
	if (t->sink.task && to >= t->from && task->from <= t->to)
		t->sink.task(t->sink.arg, id, task->name, task->from, to, is_over);
}

static void on_task_end(struct trace_model *t, const struct trace_event *e)
{
	struct task *task = (struct task *)map_get(&t->tasks, e->arg[0]);

	if (!task)
		return;
	tell_task(t, e->arg[0], task, e->time, true);
	map_remove(&t->tasks, e->arg[0]);
	free(task);
}

static void on_region_begin(struct trace_model *t, const struct trace_event *e)
{
	struct trace_region *r = alloc(sizeof *r);

	*r = (struct trace_region){ e->g->regions, text(t, e, 1), e->arg[0], e->time };
	e->g->regions = r;
}

static void on_region_end(struct trace_model *t, const struct trace_event *e)
{
	struct trace_region *r = e->g->regions;

	if (!r)
		return;		/* it began before the trace */
	if (t->sink.region && e->time >= t->from && r->from <= t->to)
		t->sink.region(t->sink.arg, e->g, r, e->time);
	e->g->regions = r->outer;
	free(r);
}

/* ------------------------------------------------------------------- events */

static void see_p(struct trace_model *t, uint64_t p)
{
	if (p >= P_OUTSIDE)
		t->has_outside = true;
	else if (p >= t->procs)
		t->procs = p + 1;
}

static void on_event(void *arg, const struct trace_event *e)
{
	struct trace_model *t = arg;

	t->end = e->time;
	switch (e->kind) {
	case EV_PROC_STATUS:
	case EV_PROC_START: see_p(t, e->arg[0]); break;
	case EV_PROC_STOP: lose_p(t, e->g, e); break;
	case EV_PROC_STEAL: lose_p(t, e->robbed ? e->robbed->g : NULL, e); break;
	case EV_GO_STATUS:
	case EV_GO_STATUS_STACK: on_status(t, e); break;
	case EV_GO_CREATE:
	case EV_GO_CREATE_BLOCKED:
	case EV_GO_CREATE_SYSCALL: on_create(t, e); break;
	case EV_GO_START: on_start(t, e); break;
	case EV_GO_DESTROY:
	case EV_GO_DESTROY_SYSCALL: on_destroy(t, e); break;
	case EV_GO_STOP:
	case EV_GO_BLOCK: on_leave(t, e); break;
	case EV_GO_UNBLOCK: on_unblock(t, e); break;
	case EV_GO_SYSCALL_BEGIN: on_call_begin(t, e); break;
	case EV_GO_SYSCALL_END: on_call_end(t, e); break;
	case EV_GO_SYSCALL_END_BLOCKED: on_call_end_blocked(t, e); break;
	case EV_GO_LABEL: e->g->name = text(t, e, 0); break;
	case EV_TASK_BEGIN: on_task_begin(t, e); break;
	case EV_TASK_END: on_task_end(t, e); break;
	case EV_REGION_BEGIN: on_region_begin(t, e); break;
	case EV_REGION_END: on_region_end(t, e); break;
	case EV_LOG:
		if (t->sink.log && e->time >= t->from && e->time <= t->to)
			t->sink.log(t->sink.arg, e, text(t, e, 1), text(t, e, 2));
		break;
	default: break;
	}
	if (t->sink.event)
		t->sink.event(t->sink.arg, e);
}

/* ------------------------------------------------------------------ reading */

static void finish_g(void *arg, struct trace_g *g)
{
	struct trace_model *t = arg;

	goes(t, g, NULL, t->end);
}

static void finish_tasks(struct trace_model *t)
{
	for (size_t i = 0; i < t->tasks.slots; i++) {
		struct task *task = (struct task *)t->tasks.at[i].value;

		if (task)
			tell_task(t, t->tasks.at[i].key, task, t->end, false);
		free(task);
	}
	map_free(&t->tasks);
}

bool model_open(struct trace_model *t, const char *path)
{
	*t = (struct trace_model){ .to = INT64_MAX };
	return trace_open(&t->reader, path);
}

bool model_read(struct trace_model *t, const struct trace_sink *sink)
{
	bool ok;

	t->sink = *sink;
	t->end = 0;
	t->procs = t->goroutines = t->live = t->live_most = 0;
	ok = trace_read(&t->reader, on_event, t);
	if (t->to > t->end)
		t->to = t->end;
	trace_each_g(&t->reader, finish_g, t);
	finish_tasks(t);
	return ok;
}

void model_close(struct trace_model *t)
{
	trace_close(&t->reader);
}

/* -------------------------------------------------------------------- names */

const char *model_text(const struct trace_model *t, uint32_t number)
{
	return text_of(t->reader.names, number);
}

const char *g_name(const struct trace_model *t, const struct trace_g *g)
{
	uint32_t name = g->name ? g->name : g->function;

	return name ? model_text(t, name) : "?";
}

const char *g_state_name(enum g_state s)
{
	static const char *const names[] = { "unknown", "runnable", "running", "in a call", "waiting" };

	return names[s];
}

const char *span_end(const struct trace_model *t, const struct trace_span *s)
{
	switch (s->end) {
	case EV_GO_STOP:
	case EV_GO_BLOCK: return model_text(t, s->why);
	case EV_GO_DESTROY:
	case EV_GO_DESTROY_SYSCALL: return "its end";
	case EV_GO_SYSCALL_BEGIN: return "a call";
	default: return "";
	}
}
