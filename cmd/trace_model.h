/*
 * trace_model.h - what a trace tells of: stretches of time in which a goroutine did one
 * thing, tasks, regions and logs. Defined in trace_model.c.
 *
 * A view gives a sink, whose functions are called while the trace is read. Nothing is
 * kept but what lives at that moment, so memory does not grow with the trace.
 */
#ifndef GORO_CMD_TRACE_MODEL_H
#define GORO_CMD_TRACE_MODEL_H

#include "trace_read.h"

/* A stretch of a goroutine's life in one state. */
struct trace_span {
	/* its function, name, ... as they are at the end */
	const struct trace_g *g;
	enum g_state state;
	int64_t from, to;		/* ns since the trace began */
	/* it began and ended within the trace, or the part shown */
	bool is_whole;
	uint64_t p, m;			/* running, or in a call: where; TRACE_NONE */
	/* in a call: without the P from some time on, or always */
	bool lost_p;
	enum trace_kind end;		/* the event that ended it; 0: the trace ended */
	/* texts: what it waited for, why it stopped; where */
	uint32_t why, stack;
	/* Running: who made it ready, when and where. Waiting: who ended the wait. */
	uint64_t by, by_p;		/* a goroutine, or 0; a P, or TRACE_NONE */
	int64_t ready_at;		/* -1: it came back from a call with its P */
};

struct trace_sink {
	void *arg;
	void (*span)(void *arg, const struct trace_span *s);
	/* A goroutine had a P until s->to: it ran, or was in a call. Each P's come in
	 * order. */
	void (*on_p)(void *arg, const struct trace_span *s);
	void (*created)(void *arg, const struct trace_g *g, const struct trace_event *e);
	/* or the trace has */
	void (*ended)(void *arg, const struct trace_g *g, int64_t at);
	void (*region)(void *arg, const struct trace_g *g, const struct trace_region *r, int64_t to);
	void (*log)(void *arg, const struct trace_event *e, uint32_t key, uint32_t value);
	void (*task)(void *arg, uint64_t id, uint32_t name, int64_t from, int64_t to, bool is_whole);
	/* The world is stopped or started; a P or thread changes. All that the trace
	 * has. */
	void (*event)(void *arg, const struct trace_event *e);
};

struct trace_model {
	struct trace_reader reader;
	/* the part to show; to: the end of the trace after a reading */
	int64_t from, to;

	/* After a reading. */
	int64_t end;			/* the time of the last event */
	uint64_t procs;			/* numbers of Ps are below this */
	/* plain threads were told of, on a P of their own */
	bool has_outside;
	uint64_t goroutines, live, live_most;

	/* Its own. */
	struct trace_sink sink;
	struct map tasks;
};

/* The P on which goro tells of plain threads. */
#define P_OUTSIDE 4096

/* Opens the file. False: reader.file.why says why not. */
bool model_open(struct trace_model *t, const char *path);
/* Reads all of it, as often as wanted. False: up to where it makes sense; why is said
 * there. */
bool model_read(struct trace_model *t, const struct trace_sink *sink);
void model_close(struct trace_model *t);

/* A goroutine's name, or the function that it was started with. */
const char *g_name(const struct trace_model *t, const struct trace_g *g);
const char *model_text(const struct trace_model *t, uint32_t text);
const char *g_state_name(enum g_state s);
/* What a running goroutine stopped for: "chan receive", "preempted", "a call", "its end";
 * or "". */
const char *span_end(const struct trace_model *t, const struct trace_span *s);

#endif
