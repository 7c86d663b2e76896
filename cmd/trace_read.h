/*
 * trace_read.h - the events of a trace, in their order. Defined in trace_read.c,
 * trace_order.c.
 *
 * The format is Go's (1.22 and 1.23), which goro writes, too. The reader shares no code
 * with the writer (src/trace/trace_writer.c).
 */
#ifndef GORO_CMD_TRACE_READ_H
#define GORO_CMD_TRACE_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "map.h"
#include "trace_file.h"
#include "names.h"

/* X(number, name, arguments after the time) */
#define TRACE_EVENTS(X)                                                                          \
	X(9, PROCS_CHANGE, 2) X(10, PROC_START, 2) X(11, PROC_STOP, 0) X(12, PROC_STEAL, 3)      \
	X(13, PROC_STATUS, 2) X(14, GO_CREATE, 3) X(15, GO_CREATE_SYSCALL, 1) X(16, GO_START, 2) \
	X(17, GO_DESTROY, 0) X(18, GO_DESTROY_SYSCALL, 0) X(19, GO_STOP, 2) X(20, GO_BLOCK, 2)   \
	X(21, GO_UNBLOCK, 3) X(22, GO_SYSCALL_BEGIN, 2) X(23, GO_SYSCALL_END, 0)                 \
	X(24, GO_SYSCALL_END_BLOCKED, 0) X(25, GO_STATUS, 3) X(26, STW_BEGIN, 2) X(27, STW_END, 0) \
	X(28, GC_ACTIVE, 1) X(29, GC_BEGIN, 2) X(30, GC_END, 1) X(31, GC_SWEEP_ACTIVE, 1)        \
	X(32, GC_SWEEP_BEGIN, 1) X(33, GC_SWEEP_END, 2) X(34, GC_MARK_ASSIST_ACTIVE, 1)          \
	X(35, GC_MARK_ASSIST_BEGIN, 1) X(36, GC_MARK_ASSIST_END, 0) X(37, HEAP_ALLOC, 1)         \
	X(38, HEAP_GOAL, 1) X(39, GO_LABEL, 1) X(40, TASK_BEGIN, 4) X(41, TASK_END, 2)           \
	X(42, REGION_BEGIN, 3) X(43, REGION_END, 3) X(44, LOG, 4) X(45, GO_SWITCH, 2)            \
	X(46, GO_SWITCH_DESTROY, 2) X(47, GO_CREATE_BLOCKED, 3) X(48, GO_STATUS_STACK, 4)        \
	X(128, SPAN, 3) X(129, SPAN_ALLOC, 3) X(130, SPAN_FREE, 1) X(131, HEAP_OBJECT, 2)        \
	X(132, HEAP_OBJECT_ALLOC, 2) X(133, HEAP_OBJECT_FREE, 1) X(134, GO_STACK, 2)             \
	X(135, GO_STACK_ALLOC, 2) X(136, GO_STACK_FREE, 1)
enum trace_kind {
#define X(number, name, n) EV_##name = number,
	TRACE_EVENTS(X)
#undef X
};
#define TRACE_ARGS_MAX 4

#define TRACE_NONE UINT64_MAX		/* no P, no thread */

/* As the format numbers them. */
enum g_state { G_UNKNOWN, G_RUNNABLE, G_RUNNING, G_CALL, G_WAITING };
#define G_STATES 5
enum p_state { P_UNKNOWN, P_RUNNING, P_IDLE, P_CALL, P_ABANDONED };

struct trace_region {
	struct trace_region *outer;
	uint32_t name;
	uint64_t task;
	int64_t from;
};

struct trace_p;
struct trace_m;

/* A goroutine that lives. */
struct trace_g {
	uint64_t id;
	/* The reader's: where the order of events has come to. */
	enum g_state status;
	uint64_t generation, seq;

	/* The model's (trace_model.h). */
	enum g_state state;
	bool began_before;	/* the state, before the trace did */
	bool is_known;		/* told of before the present event */
	int64_t since;		/* in that state */
	int64_t born;		/* 0, if before the trace */
	bool existed;		/* when the trace began */
	uint64_t p, m;		/* running or in a call: where; TRACE_NONE */
	bool lost_p;		/* in a call: without a P by now */
	uint32_t function;	/* that it was started with; texts */
	uint32_t name;		/* 0: it has none */
	uint32_t why, stack;	/* what it waits for, or why it stopped; where */
	/* the goroutine that made it ready, or 0; on which P */
	uint64_t ready_by, ready_p;
	int64_t ready_at;
	uint64_t parent;	/* the goroutine that started it, or 0 */
	uint32_t parent_stack;
	struct trace_region *regions;	/* that it is in, the innermost first */
	int64_t spent[G_STATES];
	long row;		/* a view's */
};

struct trace_p {
	uint64_t id;
	enum p_state status;
	uint64_t generation, seq;
};

/* A thread: what it runs. */
struct trace_m {
	uint64_t id;
	struct trace_g *g;
	struct trace_p *p;
	bool seen;
};

struct trace_event {
	enum trace_kind kind;
	/* ns since the first event; never less than the event before */
	int64_t time;
	uint64_t arg[TRACE_ARGS_MAX];
	struct trace_m *m;		/* the thread */
	/* that the thread ran before the event; or NULL */
	struct trace_g *g;
	struct trace_p *p;		/* the P of the thread, or NULL */
	/* the goroutine that the event names, if it names one */
	struct trace_g *other;
	struct trace_p *other_p;	/* the P that the event names */
	struct trace_m *robbed;		/* PROC_STEAL: the thread that had it; or NULL */
};

/* The reader. */
struct trace_reader {
	struct trace_file file;
	struct names *names;
	void (*event)(void *arg, const struct trace_event *e);
	void *arg;
	uint64_t events;

	/* Its own. */
	struct trace_generation gen;
	uint64_t first_generation;
	unsigned __int128 origin;	/* the first event's time, ns */
	int64_t last;
	struct map g, p, m;
	struct trace_m nobody;		/* events of no thread */
	struct trace_stream *stream;	/* the threads' events in this generation */
	size_t streams;
	struct trace_stream **heap;	/* those with the earliest next event first */
	size_t heaped;
};

/* Opens the file; false: r->file.why says why not. The names stay from one reading to the
 * next. */
bool trace_open(struct trace_reader *r, const char *path);
/* Calls event(arg, e) for each event. False: the file makes no sense from some place on,
 * which r->file.why says. */
bool trace_read(struct trace_reader *r, void (*event)(void *, const struct trace_event *), void *arg);
/* The goroutines that live after trace_read, until the next one. */
void trace_each_g(const struct trace_reader *r, void (*each)(void *, struct trace_g *), void *arg);
void trace_close(struct trace_reader *r);

/* The number that names gave to what an event's argument names. */
uint32_t trace_text(const struct trace_reader *r, uint64_t arg);
uint32_t trace_stack(const struct trace_reader *r, uint64_t arg);

/* Between the two files. */
enum trace_step { STEP_NOT_YET, STEP_DONE, STEP_BAD };
/* If e can come next, changes the states and tells of it. */
enum trace_step trace_advance(struct trace_reader *r, struct trace_event *e);
void trace_tell(struct trace_reader *r, struct trace_event *e);
const char *trace_kind_name(int kind);

#endif
