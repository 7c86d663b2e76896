/*
 * trace_perfetto.c - a trace as Chrome's trace events, in JSON: Perfetto and
 * chrome://tracing open it.
 *
 * Three processes: the Ps with the goroutines that ran on each; the goroutines with their
 * states, the first GOROUTINES_MAX of them; the regions of each goroutine. Arrows lead
 * from where a goroutine was made ready to where it then ran. Tasks are asynchronous
 * events.
 *
 * It is written while the trace is read, so nothing is kept.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "page.h"
#include "trace_view.h"

enum { PID_PS = 1, PID_GOROUTINES, PID_REGIONS };

/* More tracks are too many for any viewer. */
#define GOROUTINES_MAX 5000
#define FRAMES_SHOWN   12

struct perfetto {
	const struct trace_model *model;
	FILE *out;
	long goroutines;		/* that have a track */
	uint64_t arrows;
	bool has_p[P_OUTSIDE + 1];
};

/* P ids beyond P_OUTSIDE are shown with it. Track 0 means something else to viewers. */
static uint64_t track_of_p(uint64_t p)
{
	return (p < P_OUTSIDE ? p : P_OUTSIDE) + 1;
}

static void put_time(const struct perfetto *v, const char *name, int64_t ns)
{
	fprintf(v->out, ",\"%s\":%" PRId64 ".%03d", name, ns / 1000, (int)(ns % 1000));
}

/* The start of an event, up to its name. */
static void put_event(const struct perfetto *v, const char *phase, int pid, uint64_t tid, int64_t at)
{
	fprintf(v->out, ",\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%" PRIu64, phase, pid, tid);
	put_time(v, "ts", at);
	fputs(",\"name\":", v->out);
}

static void put_metadata(const struct perfetto *v, const char *what, int pid, uint64_t tid, const char *name)
{
	fprintf(v->out, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%" PRIu64 ",\"name\":\"%s\",\"args\":{\"name\":", pid, tid, what);
	json_text(v->out, name);
	fputs("}}", v->out);
}

static void put_frame(const struct perfetto *v, const struct frame *f)
{
	char *line = format("%s %s:%u", model_text(v->model, f->function), model_text(v->model, f->file), f->line);

	json_text(v->out, line);
	free(line);
}

/* As an argument of an event; nothing if there is none. */
static void put_stack(const struct perfetto *v, uint32_t stack)
{
	size_t n;
	const struct frame *frame = frames_of(v->model->reader.names, stack, &n);

	if (n == 0)
		return;
	fputs(",\"stack\":[", v->out);
	for (size_t i = 0; i < n && i < FRAMES_SHOWN; i++) {
		if (i)
			putc(',', v->out);
		put_frame(v, &frame[i]);
	}
	putc(']', v->out);
}

/* ------------------------------------------------------------------------ Ps */

/* From where it was made ready, if that is known, to where it runs now. */
static void put_arrow(struct perfetto *v, const struct trace_span *s)
{
	if (!s->is_whole || s->ready_at < v->model->from || s->by == 0 || s->by_p == TRACE_NONE)
		return;
	v->arrows++;
	put_event(v, "s", PID_PS, track_of_p(s->by_p), s->ready_at);
	fprintf(v->out, "\"ready\",\"cat\":\"ready\",\"id\":%" PRIu64 "}", v->arrows);
	put_event(v, "f", PID_PS, track_of_p(s->p), s->from);
	fprintf(v->out, "\"ready\",\"cat\":\"ready\",\"bp\":\"e\",\"id\":%" PRIu64 "}", v->arrows);
}

static void on_p(void *arg, const struct trace_span *s)
{
	struct perfetto *v = arg;
	bool in_call = s->state == G_CALL;

	if (in_call && s->to == s->from)
		return;
	v->has_p[track_of_p(s->p) - 1] = true;
	put_event(v, "X", PID_PS, track_of_p(s->p), s->from);
	json_text(v->out, in_call ? "in a call" : g_name(v->model, s->g));
	put_time(v, "dur", s->to - s->from);
	fprintf(v->out, ",\"args\":{\"goroutine\":%" PRIu64 ",\"thread\":%" PRIu64 ",\"until\":", s->g->id, s->m);
	json_text(v->out, span_end(v->model, s));
	put_stack(v, s->stack);
	fputs("}}", v->out);
	if (!in_call)
		put_arrow(v, s);
}

/* ---------------------------------------------------------------- goroutines */

static void on_span(void *arg, const struct trace_span *s)
{
	struct perfetto *v = arg;
	struct trace_g *g = (struct trace_g *)s->g;
	const char *why = s->state == G_WAITING ? model_text(v->model, s->why) : "";

	if (g->row < 0 && v->goroutines < GOROUTINES_MAX)
		g->row = v->goroutines++;
	if (g->row < 0)
		return;
	put_event(v, "X", PID_GOROUTINES, g->id, s->from);
	json_text(v->out, *why ? why : g_state_name(s->state));
	put_time(v, "dur", s->to - s->from);
	fprintf(v->out, ",\"args\":{\"state\":\"%s\"", g_state_name(s->state));
	if (s->p != TRACE_NONE)
		fprintf(v->out, ",\"P\":%" PRIu64, s->p);
	if (s->state != G_RUNNABLE)
		put_stack(v, s->stack);
	fputs("}}", v->out);
}

static void on_ended(void *arg, const struct trace_g *g, int64_t at)
{
	struct perfetto *v = arg;
	char *name;

	(void)at;
	if (g->row < 0)
		return;
	name = format("G%" PRIu64 " %s", g->id, g_name(v->model, g));
	put_metadata(v, "thread_name", PID_GOROUTINES, g->id, name);
	free(name);
}

/* ------------------------------------------------------------- the program's */

static void on_region(void *arg, const struct trace_g *g, const struct trace_region *r, int64_t to)
{
	struct perfetto *v = arg;

	put_event(v, "X", PID_REGIONS, g->id, r->from);
	json_text(v->out, model_text(v->model, r->name));
	put_time(v, "dur", to - r->from);
	fprintf(v->out, ",\"args\":{\"task\":%" PRIu64 "}}", r->task);
}

static void on_task(void *arg, uint64_t id, uint32_t name, int64_t from, int64_t to, bool is_over)
{
	struct perfetto *v = arg;

	put_event(v, "b", PID_PS, 1, from);
	json_text(v->out, model_text(v->model, name));
	fprintf(v->out, ",\"cat\":\"task\",\"id\":%" PRIu64 "}", id);
	if (!is_over)
		return;
	put_event(v, "e", PID_PS, 1, to);
	json_text(v->out, model_text(v->model, name));
	fprintf(v->out, ",\"cat\":\"task\",\"id\":%" PRIu64 "}", id);
}

static void on_log(void *arg, const struct trace_event *e, uint32_t key, uint32_t value)
{
	struct perfetto *v = arg;
	char *text = format("%s: %s", model_text(v->model, key), model_text(v->model, value));

	put_event(v, "i", PID_PS, track_of_p(e->p ? e->p->id : P_OUTSIDE), e->time);
	json_text(v->out, text);
	fprintf(v->out, ",\"s\":\"t\",\"args\":{\"goroutine\":%" PRIu64 ",\"task\":%" PRIu64 "}}", e->g->id, e->arg[0]);
	free(text);
}

static void on_event(void *arg, const struct trace_event *e)
{
	struct perfetto *v = arg;

	if (e->kind != EV_STW_BEGIN || e->time < v->model->from || e->time > v->model->to)
		return;
	put_event(v, "i", PID_PS, track_of_p(e->p ? e->p->id : P_OUTSIDE), e->time);
	fputs("\"the world is stopped\",\"s\":\"p\"}", v->out);
}

/* -------------------------------------------------------------------------- */

static void put_names(const struct perfetto *v)
{
	put_metadata(v, "process_name", PID_PS, 0, "Processors");
	put_metadata(v, "process_name", PID_GOROUTINES, 0, "Goroutines");
	put_metadata(v, "process_name", PID_REGIONS, 0, "Regions of goroutines");
	for (uint64_t p = 0; p <= P_OUTSIDE; p++) {
		char *name = format("P%" PRIu64, p);

		if (v->has_p[p])
			put_metadata(v, "thread_name", PID_PS, p + 1, p == P_OUTSIDE ? "plain threads" : name);
		free(name);
	}
}

void perfetto_write(struct trace_model *t, const char *out)
{
	struct perfetto *v = alloc(sizeof *v);
	struct trace_sink sink = { .arg = v, .span = on_span, .on_p = on_p, .ended = on_ended, .region = on_region,
	                           .task = on_task, .log = on_log, .event = on_event };

	memset(v, 0, sizeof *v);
	v->model = t;
	v->out = view_open(out);
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,\"tid\":0,"
	      "\"name\":\"process_sort_index\",\"args\":{\"sort_index\":0}}", v->out);
	model_read(t, &sink);
	put_names(v);
	fputs("\n]}\n", v->out);
	view_close(v->out, out);
	free(v);
}
