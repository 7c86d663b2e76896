/*
 * trace_read.c - the events of a trace, in their order.
 *
 * Each thread's events are in order. Of the threads' next events the earliest that can
 * come next (trace_order.c) does. Clocks of different CPUs may differ, so an event may
 * have to wait for a later one; it is tried again after each event that came.
 */
#include "trace_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

/* The events of a thread in this generation. */
struct trace_stream {
	struct trace_m *m;
	const struct trace_batch *batch;	/* the next ones */
	size_t left;
	const uint8_t *at, *end;		/* in the present one */
	uint64_t time;
	struct trace_event next;
};

const char *trace_kind_name(int kind)
{
	switch (kind) {
#define X(number, name, n) case number: return #name;
	TRACE_EVENTS(X)
#undef X
	}
	return "an unknown event";
}

static int args_of(int kind)
{
	static const signed char args[256] = {
#define X(number, name, n) [number] = n + 1,
		TRACE_EVENTS(X)
#undef X
	};

	return args[kind] - 1;
}

uint32_t trace_text(const struct trace_reader *r, uint64_t arg)
{
	return (uint32_t)map_get(&r->gen.texts, arg);
}

uint32_t trace_stack(const struct trace_reader *r, uint64_t arg)
{
	return (uint32_t)map_get(&r->gen.stacks, arg);
}

static bool fail(struct trace_reader *r, const char *what, int kind)
{
	snprintf(r->file.why, sizeof r->file.why, "generation %llu makes no sense: %s (%s)",
	         (unsigned long long)r->gen.number, what, trace_kind_name(kind));
	return false;
}

/* ----------------------------------------------------------------- streams */

enum next { NEXT_EVENT, NEXT_END, NEXT_BROKEN };

/* The stream's next event. */
static enum next advance(struct trace_stream *s)
{
	struct trace_event *e = &s->next;
	uint64_t delta;
	int args;

	while (s->at == s->end) {
		if (s->left == 0)
			return NEXT_END;
		s->at = s->batch->at;
		s->end = s->batch->end;
		s->time = s->batch->time;
		s->batch++;
		s->left--;
	}
	*e = (struct trace_event){ .kind = (enum trace_kind)*s->at++ };
	args = args_of((int)e->kind);
	if (args < 0 || !take_number(&s->at, s->end, &delta))
		return NEXT_BROKEN;
	s->time += delta;
	for (int i = 0; i < args; i++)
		if (!take_number(&s->at, s->end, &e->arg[i]))
			return NEXT_BROKEN;
	return NEXT_EVENT;
}

static bool is_earlier(const struct trace_stream *a, const struct trace_stream *b)
{
	return a->time < b->time || (a->time == b->time && a < b);
}

static void push(struct trace_reader *r, struct trace_stream *s)
{
	size_t i = r->heaped++;

	for (; i > 0 && is_earlier(s, r->heap[(i - 1) / 2]); i = (i - 1) / 2)
		r->heap[i] = r->heap[(i - 1) / 2];
	r->heap[i] = s;
}

static struct trace_stream *pop(struct trace_reader *r)
{
	struct trace_stream *first = r->heap[0], *last = r->heap[--r->heaped];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < r->heaped) {
		child += child + 1 < r->heaped && is_earlier(r->heap[child + 1], r->heap[child]);
		if (!is_earlier(r->heap[child], last))
			break;
		r->heap[i] = r->heap[child];
		i = child;
	}
	r->heap[i] = last;
	return first;
}

/* The stream's next event gets into the heap, if there is one. */
static bool push_next(struct trace_reader *r, struct trace_stream *s)
{
	switch (advance(s)) {
	case NEXT_EVENT: push(r, s); return true;
	case NEXT_END: return true;
	default: return fail(r, "an event is broken", (int)s->next.kind);
	}
}

/* -------------------------------------------------------------------- time */

static unsigned __int128 in_ns(const struct trace_reader *r, uint64_t time)
{
	return (unsigned __int128)time * 1000000000 / r->gen.frequency;
}

static int64_t since_origin(struct trace_reader *r, uint64_t time)
{
	unsigned __int128 now = in_ns(r, time);
	uint64_t passed = now > r->origin ? (uint64_t)(now - r->origin) : 0;

	if (passed > (uint64_t)r->last && passed < (uint64_t)INT64_MAX / 2)
		r->last = (int64_t)passed;
	return r->last;
}

void trace_tell(struct trace_reader *r, struct trace_event *e)
{
	r->events++;
	r->event(r->arg, e);
}

/* ------------------------------------------------------------- a generation */

static struct trace_m *thread(struct trace_reader *r, uint64_t id)
{
	struct trace_m *m;

	if (id == TRACE_NONE)
		return &r->nobody;
	m = (struct trace_m *)map_get(&r->m, id);
	if (!m) {
		m = alloc(sizeof *m);
		*m = (struct trace_m){ .id = id };
		map_put(&r->m, id, (uintptr_t)m);
	}
	return m;
}

/* By thread; a thread's stay in their order. */
static int by_thread(const void *a, const void *b)
{
	const struct trace_batch *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static bool begin_streams(struct trace_reader *r)
{
	struct trace_generation *gen = &r->gen;

	if (gen->batches > 0)
		qsort(gen->batch, gen->batches, sizeof *gen->batch, by_thread);
	r->stream = alloc((gen->batches + 1) * sizeof *r->stream);
	r->heap = alloc((gen->batches + 1) * sizeof *r->heap);
	r->streams = r->heaped = 0;
	for (size_t i = 0, n; i < gen->batches; i += n) {
		struct trace_stream *s = &r->stream[r->streams++];

		for (n = 1; i + n < gen->batches && gen->batch[i + n].thread == gen->batch[i].thread; n++)
			;
		*s = (struct trace_stream){ .m = thread(r, gen->batch[i].thread), .batch = &gen->batch[i], .left = n };
		if (!push_next(r, s))
			return false;
	}
	return true;
}

static enum trace_step try(struct trace_reader *r, struct trace_stream *s)
{
	struct trace_event *e = &s->next;

	e->m = s->m;
	e->g = s->m->g;
	e->p = s->m->p;
	e->other = NULL;
	e->other_p = NULL;
	e->time = since_origin(r, s->time);
	return trace_advance(r, e);
}

/* The earliest event that can come next comes. False: none can, or it is broken. */
static bool step(struct trace_reader *r, struct trace_stream **waiting)
{
	enum trace_step did = STEP_NOT_YET;
	struct trace_stream *s = NULL;
	int64_t last = r->last;
	size_t n = 0;

	while (r->heaped > 0 && did == STEP_NOT_YET) {
		s = pop(r);
		did = try(r, s);
		if (did == STEP_NOT_YET) {
			waiting[n++] = s;
			r->last = last;
		}
	}
	for (size_t i = 0; i < n; i++)
		push(r, waiting[i]);
	if (did == STEP_DONE)
		return push_next(r, s);
	return fail(r, did == STEP_BAD ? "an event contradicts those before it" : "no event can come next",
	            (int)s->next.kind);
}

static bool read_generation(struct trace_reader *r)
{
	struct trace_stream **waiting = NULL;
	bool ok = begin_streams(r);

	if (ok && r->gen.number == r->first_generation && r->heaped > 0)
		r->origin = in_ns(r, r->heap[0]->time);
	waiting = alloc((r->streams + 1) * sizeof(struct trace_stream *));
	while (ok && r->heaped > 0)
		ok = step(r, waiting);
	free(waiting);
	free(r->stream);
	free(r->heap);
	return ok;
}

/* ----------------------------------------------------------------- a trace */

static void free_all(struct map *m)
{
	for (size_t i = 0; i < m->slots; i++)
		free((void *)m->at[i].value);
	map_free(m);
}

static void free_regions(void *arg, struct trace_g *g)
{
	(void)arg;
	for (struct trace_region *r = g->regions, *outer; r; r = outer) {
		outer = r->outer;
		free(r);
	}
}

static void forget(struct trace_reader *r)
{
	trace_each_g(r, free_regions, NULL);
	free_all(&r->g);
	free_all(&r->p);
	free_all(&r->m);
	r->nobody = (struct trace_m){ .id = TRACE_NONE };
	r->origin = 0;
	r->last = 0;
	r->events = 0;
}

bool trace_open(struct trace_reader *r, const char *path)
{
	*r = (struct trace_reader){ .names = names_new() };
	return trace_file_open(&r->file, path);
}

bool trace_read(struct trace_reader *r, void (*event)(void *, const struct trace_event *), void *arg)
{
	bool ok = true;

	forget(r);
	r->event = event;
	r->arg = arg;
	r->first_generation = r->file.at[0].number;
	for (size_t i = 0; ok && i < r->file.n; i++) {
		ok = trace_generation_load(&r->file, i, r->names, &r->gen) && read_generation(r);
		trace_generation_free(&r->gen);
	}
	return ok;
}

void trace_each_g(const struct trace_reader *r, void (*each)(void *, struct trace_g *), void *arg)
{
	for (size_t i = 0; i < r->g.slots; i++)
		if (r->g.at[i].value)
			each(arg, (struct trace_g *)r->g.at[i].value);
}

void trace_close(struct trace_reader *r)
{
	forget(r);
	trace_file_close(&r->file);
	names_free(r->names);
}
