/*
 * explain_steps.c - a trace as steps that can be told.
 *
 * A step is an event of the trace, without what a reader does not need: names, regions,
 * the plain thread that calls goro_run. What goroutines, Ps and threads are at a moment
 * is found by applying the steps up to it.
 *
 * The trace does not say in which queue a goroutine is. It gets into that of the P on
 * which it was made ready, and that is what is told; one that was made ready by a plain
 * thread, or comes back from a call without a P, is in the global one.
 *
 * A call without a stack is none (docs/tracing.md): the P was taken from a goroutine that
 * computed, since its thread got no CPU.
 */
#include "explain_steps.h"

#include <stdlib.h>
#include <string.h>

#include "cmd.h"

struct reading {
	struct steps *s;
	const struct trace_model *model;
	/* threads of the program's own, which are goroutines in calls here */
	struct map plain;
};

/* -------------------------------------------------------------------- world */

const struct being *world_find(const struct world *w, uint64_t g)
{
	size_t at = map_get(&w->at, g);

	return at ? &w->being[at - 1] : NULL;
}

static struct being *find_or_add(struct world *w, uint64_t g)
{
	size_t at = map_get(&w->at, g);

	if (at)
		return &w->being[at - 1];
	if (w->beings == w->room) {
		w->room = 2 * w->room + 16;
		w->being = realloc(w->being, w->room * sizeof *w->being);
		if (!w->being)
			die("out of memory");
	}
	w->being[w->beings] = (struct being){ .id = g, .p = TRACE_NONE, .m = TRACE_NONE };
	map_put(&w->at, g, ++w->beings);
	return &w->being[w->beings - 1];
}

static void forget(struct world *w, uint64_t g)
{
	size_t at = map_get(&w->at, g);

	if (!at)
		return;
	map_remove(&w->at, g);
	memmove(&w->being[at - 1], &w->being[at], (w->beings - at) * sizeof *w->being);
	w->beings--;
	for (size_t i = at - 1; i < w->beings; i++)
		map_put(&w->at, w->being[i].id, i + 1);
	w->ended++;
}

static void set_thread(struct world *w, uint64_t p, uint64_t m)
{
	if (p < PS_SHOWN)
		w->m_of[p] = m;
}

/* A goroutine in a call on it is without it now. */
static void lose_p(struct world *w, uint64_t p)
{
	for (size_t i = 0; i < w->beings; i++)
		if (w->being[i].state == G_CALL && w->being[i].p == p)
			w->being[i].p = TRACE_NONE;
	set_thread(w, p, TRACE_NONE);
}

static void be(struct world *w, const struct step *s, enum g_state state, uint64_t p, uint64_t m)
{
	struct being *b = find_or_add(w, s->g);

	b->state = state;
	b->p = p;
	b->m = m;
	b->why = s->why;
	b->since = s->time;
	b->is_preempted = s->kind == STEP_STOP && m != TRACE_NONE;
	b->is_call = s->is_call;
	b->order = ++w->order;
}

void world_apply(struct world *w, const struct step *s)
{
	const struct being *b = world_find(w, s->g);
	uint64_t m = b ? b->m : TRACE_NONE, p = s->p == TRACE_NONE ? NO_P : s->p;

	switch (s->kind) {
	case STEP_CREATE:
	case STEP_UNBLOCK: be(w, s, G_RUNNABLE, p, TRACE_NONE); break;
	case STEP_START: be(w, s, G_RUNNING, s->p, s->m); break;
	case STEP_BLOCK: be(w, s, G_WAITING, TRACE_NONE, TRACE_NONE); break;
	case STEP_STOP: be(w, s, G_RUNNABLE, p, s->m); break;
	case STEP_END: forget(w, s->g); break;
	case STEP_CALL: be(w, s, G_CALL, s->p, s->m); break;
	case STEP_CALL_END: be(w, s, G_RUNNING, s->p, m); break;
	case STEP_CALL_END_BLOCKED: be(w, s, G_RUNNABLE, NO_P, m); break;
	case STEP_P_START: set_thread(w, s->p, s->m); break;
	case STEP_P_STOP:
	case STEP_P_STEAL: lose_p(w, s->p); break;
	case STEP_SEEN:
		if (s->g)
			be(w, s, s->state, s->state == G_RUNNABLE ? NO_P : s->p, s->m);
		else
			set_thread(w, s->p, s->m);
		break;
	}
}

void world_copy(struct world *to, const struct world *from)
{
	*to = *from;
	to->being = alloc((from->beings + 1) * sizeof *to->being);
	if (from->beings > 0)
		memcpy(to->being, from->being, from->beings * sizeof *to->being);
	to->room = from->beings;
	to->at = (struct map){ 0 };
	for (size_t i = 0; i < to->beings; i++)
		map_put(&to->at, to->being[i].id, i + 1);
}

void world_free(struct world *w)
{
	free(w->being);
	map_free(&w->at);
}

/* ------------------------------------------------------------------ reading */

static void add_step(struct reading *r, const struct step *step)
{
	struct steps *s = r->s;

	if (step->time < r->model->from || (s->n == 0 && step->kind == STEP_SEEN)) {
		world_apply(&s->first, step);
		return;
	}
	if (step->time > r->model->to)
		return;
	s->is_cut |= s->n == STEPS_MAX;
	if (s->n == STEPS_MAX)
		return;
	if (s->n == s->room) {
		s->room = 2 * s->room + 64;
		s->at = realloc(s->at, s->room * sizeof *s->at);
		if (!s->at)
			die("out of memory");
	}
	s->at[s->n++] = *step;
}

static uint32_t reason(const struct reading *r, const struct trace_event *e)
{
	return trace_text(&r->model->reader, e->arg[0]);
}

/* A plain thread: what it does to others is told, it is not. */
static bool is_plain(const struct reading *r, const struct trace_g *g)
{
	return g && map_get(&r->plain, g->id);
}

/* False: it is not told. */
static bool step_of(const struct reading *r, const struct trace_event *e, struct step *s)
{
	*s = (struct step){ .time = e->time, .p = e->p ? e->p->id : TRACE_NONE, .m = e->m->id,
	                    .by = e->g && !is_plain(r, e->g) ? e->g->id : 0 };
	switch (e->kind) {
	case EV_GO_CREATE: s->kind = STEP_CREATE; s->g = e->other->id; return true;
	case EV_GO_START: s->kind = STEP_START; s->g = e->other->id; return !is_plain(r, e->other);
	case EV_GO_UNBLOCK: s->kind = STEP_UNBLOCK; s->g = e->other->id; return true;
	case EV_GO_BLOCK: s->kind = STEP_BLOCK; s->why = reason(r, e); break;
	case EV_GO_STOP: s->kind = STEP_STOP; s->why = reason(r, e); break;
	case EV_GO_DESTROY: s->kind = STEP_END; break;
	case EV_GO_SYSCALL_BEGIN: s->kind = STEP_CALL; s->is_call = e->arg[1] != 0; break;
	case EV_GO_SYSCALL_END: s->kind = STEP_CALL_END; break;
	case EV_GO_SYSCALL_END_BLOCKED: s->kind = STEP_CALL_END_BLOCKED; break;
	case EV_GO_STATUS:
	case EV_GO_STATUS_STACK: s->kind = STEP_SEEN; s->g = e->other->id; s->state = e->other->status; return !is_plain(r, e->other);
	case EV_PROC_STATUS: s->kind = STEP_SEEN; s->p = e->arg[0]; return e->arg[0] < P_OUTSIDE;
	case EV_PROC_START: s->kind = STEP_P_START; s->p = e->arg[0]; return e->arg[0] < P_OUTSIDE;
	case EV_PROC_STOP: s->kind = STEP_P_STOP; return s->p < P_OUTSIDE;
	case EV_PROC_STEAL: s->kind = STEP_P_STEAL; s->p = e->arg[0]; s->m = e->arg[2]; return s->p < P_OUTSIDE;
	default: return false;
	}
	s->g = e->g ? e->g->id : 0;
	return e->g && !is_plain(r, e->g);
}

static void on_event(void *arg, const struct trace_event *e)
{
	struct reading *r = arg;
	struct step step;

	if (e->kind == EV_GO_CREATE_SYSCALL)
		map_put(&r->plain, e->other->id, 1);
	if (!step_of(r, e, &step))
		return;
	if (e->kind == EV_PROC_STATUS && e->arg[1] != P_RUNNING)
		step.m = TRACE_NONE;
	add_step(r, &step);
}

static void on_ended(void *arg, const struct trace_g *g, int64_t at)
{
	struct reading *r = arg;
	uint32_t name = g->name ? g->name : g->function;

	(void)at;
	if (name)
		map_put(&r->s->name_of, g->id, name);
}

/* The goroutines that run when a trace ends are stopped for it: that is not told. */
static void drop_end(struct steps *s)
{
	enum step_kind last;

	while (s->n > 0 && ((last = s->at[s->n - 1].kind) == STEP_STOP || last == STEP_P_STOP || last == STEP_P_START))
		s->n--;
}

/* Threads that look for work before there is any are not told, either. */
static void drop_start(struct steps *s)
{
	size_t n = 0;

	while (n < s->n && (s->at[n].kind == STEP_P_START || s->at[n].kind == STEP_P_STOP || s->at[n].kind == STEP_SEEN))
		world_apply(&s->first, &s->at[n++]);
	s->n -= n;
	memmove(s->at, s->at + n, s->n * sizeof *s->at);
}

bool steps_read(struct steps *s, struct trace_model *t)
{
	struct reading r = { .s = s, .model = t };
	struct trace_sink sink = { .arg = &r, .event = on_event, .ended = on_ended };
	bool good;

	*s = (struct steps){ .names = t->reader.names };
	for (size_t p = 0; p < PS_SHOWN; p++)
		s->first.m_of[p] = TRACE_NONE;
	good = model_read(t, &sink);
	s->procs = t->procs;
	if (!s->is_cut)
		drop_end(s);
	if (s->n > 0)
		drop_start(s);
	map_free(&r.plain);
	return good;
}

void steps_free(struct steps *s)
{
	free(s->at);
	world_free(&s->first);
	map_free(&s->name_of);
}
