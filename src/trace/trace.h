/*
 * trace.h - execution traces for `go tool trace`: the room's main header.
 *
 * The room may use every room except profile and http. It offers goro_trace_start and its
 * kin in goro/observe.h, and GORO_TRACE. The scheduler reports events through the hooks
 * of sched/trace_hook.h, which trace_event.c fills.
 */
#ifndef GORO_TRACE_H
#define GORO_TRACE_H

#include "base/table.h"
#include "sched/trace_hook.h"

/* A thread's buffer: the largest batch that the format allows. */
#define TRACE_BUF_BYTES (64 << 10)
/* Strings are cut to this. */
#define TRACE_STRING_MAX 1024
/* Frames of a stack; the format allows 128. */
#define TRACE_FRAMES_MAX 64

/* ------------------------------------------------------- the trace, trace.c */

/* A generation's number is never used again, not even by a later trace. So a number that
 * a goroutine or a P keeps from an earlier trace never equals the current one. */
struct trace {
	uint32_t gen;		/* current generation; changes with the world stopped */
	uint32_t first_gen;	/* of this trace */
	uint32_t error;		/* errno: nothing more is recorded; 0: none */
};
extern struct trace trace;

/* Wakes the writer: a buffer is queued, or the trace has failed. */
void trace_writer_wake(void);
/* Ends all recording and writing. The first error stays. Any state. */
void trace_fail(int error);

static inline bool trace_failed(void)
{
	return load_relaxed(&trace.error) != 0;
}

/* -------------------------------------------- events' bytes, trace_buffer.c */

/* One thread's events, which the writer writes as one batch. */
struct trace_buf {
	struct trace_buf *next;
	uint32_t gen;
	uint32_t used;		/* bytes of data */
	uint64_t m;		/* the thread */
	int64_t first, last;	/* when it was made; when its last event was */
	uint8_t data[];
};
#define TRACE_BUF_ROOM (TRACE_BUF_BYTES - sizeof(struct trace_buf))

/* The longest event: its type, its time and four arguments. */
#define TRACE_EVENT_MAX (1 + 5 * 10)

/* mp's buffer, with room for this number of events; NULL: the trace has failed. */
struct trace_buf *trace_buf_room(struct m *mp, unsigned events);
/* Queues mp's buffer, if it has one, for the writer. */
void trace_buf_finish(struct m *mp);
/* The writer takes all queued buffers, in order. It unmaps each once it is written. */
struct trace_buf *trace_buf_take_all(void);

static inline uint8_t *trace_put_number(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

/* ----------------------------------------------------------- trace_table.c */

/* Byte strings, numbered from 1. */
struct trace_table {
	struct lock lock;	/* held to add an entry */
	struct table entries;
};

/* The number of data, which is added if it is new; 0: there is no room. */
uint32_t trace_table_put(struct trace_table *t, const void *data, size_t n);
/* Makes the tables of a trace that starts. False: no memory. */
bool trace_tables_init(void);

/* Indexed by generation % 2: of the current one, and of the one still being written. */
extern struct trace_table trace_strings[2], trace_stacks[2];

/* The number of s, cut to TRACE_STRING_MAX bytes. */
uint32_t trace_table_string(struct trace_table *t, const char *s);

static inline uint64_t trace_string(const char *s)
{
	return trace_table_string(&trace_strings[trace.gen % 2], s);
}

/* Strings whose numbers are the same in every generation: Go's words for why a goroutine
 * waits (runtime's traceBlockReasonStrings) or stops running. */
#define TRACE_TEXT_LIST(X)                                \
	X(TEXT_UNSPECIFIED, "unspecified")                \
	X(TEXT_FOREVER, "forever")                        \
	X(TEXT_NETWORK, "network")                        \
	X(TEXT_SELECT, "select")                          \
	X(TEXT_COND, "sync.(*Cond).Wait")                 \
	X(TEXT_SYNC, "sync")                              \
	X(TEXT_CHAN_SEND, "chan send")                    \
	X(TEXT_CHAN_RECV, "chan receive")                 \
	X(TEXT_SLEEP, "sleep")                            \
	X(TEXT_GOSCHED, "runtime.Gosched")                \
	X(TEXT_PREEMPTED, "preempted")
enum trace_text {
	TEXT_NONE,
#define X(id, text) id,
	TRACE_TEXT_LIST(X)
#undef X
};
/* Puts these strings into the table of a generation that begins. */
void trace_texts_put(void);

/* ----------------------------------------------------------- trace_stack.c */

/* An entry of a table of stacks. */
struct trace_stack {
	uintptr_t from;			/* enum frames */
	uintptr_t pc[TRACE_FRAMES_MAX];	/* as struct backtrace has them */
};

/* Each puts a stack into the current generation's table, and returns its number. */

/* The stack of the calling thread's goroutine; in user code if it was preempted there. */
uint64_t trace_stack_here(struct m *mp);
/* The stack of a goroutine at rest or stopped in the signal handler; else its start. */
uint64_t trace_stack_of(struct g *gp);
/* The function that gp was started with, as its only frame. */
uint64_t trace_stack_start(const struct g *gp);
uint64_t trace_stack_pcs(const uintptr_t *pcs, size_t n);
/* Forgets the unwind rows it remembers: code may have been unloaded since. */
void trace_stack_forget(void);

/* ----------------------------------------------------------- trace_event.c */

#define TRACE_NO_THREAD UINT64_MAX

/* The wire format's events that goro writes (Go's internal/trace/event/go122). */
enum trace_ev {
	EV_EVENT_BATCH = 1, EV_STACKS, EV_STACK, EV_STRINGS, EV_STRING, EV_FREQUENCY = 8,
	EV_PROCS_CHANGE, EV_PROC_START, EV_PROC_STOP, EV_PROC_STEAL, EV_PROC_STATUS,
	EV_GO_CREATE, EV_GO_CREATE_SYSCALL, EV_GO_START, EV_GO_DESTROY, EV_GO_DESTROY_SYSCALL,
	EV_GO_STOP, EV_GO_BLOCK, EV_GO_UNBLOCK, EV_GO_SYSCALL_BEGIN, EV_GO_SYSCALL_END,
	EV_GO_SYSCALL_END_BLOCKED, EV_GO_STATUS, EV_STW_BEGIN, EV_STW_END,
	EV_GO_LABEL = 39, EV_USER_TASK_BEGIN, EV_USER_TASK_END, EV_USER_REGION_BEGIN,
	EV_USER_REGION_END, EV_USER_LOG, EV_GO_STATUS_STACK = 48,
};

/* Writes the state of all Ps and goroutines, as mp's first events. World stopped. */
void trace_event_begin(struct m *mp);
/* Writes an event with n arguments, of which the last is the stack, added here. The
 * caller is a goroutine with its P, or a plain thread that holds sched.lock. */
void trace_event_user(struct m *mp, enum trace_ev ev, unsigned n, uint64_t a, uint64_t b,
                      uint64_t c);

/* ---------------------------------------------------------- trace_writer.c */

/* Each writes everything, or fails the trace. The writer only. */
void trace_write_header(int fd);
void trace_write_batches(int fd, struct trace_buf *list);
/* What a generation ends with: its stacks, strings and the clock's frequency. */
void trace_write_tables(int fd, uint32_t gen);
/* Is fd still the file that the header was written to? */
bool trace_file_is(int fd);

#endif
