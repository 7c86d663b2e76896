/*
 * trace_impl.h - what the files of the execution trace share.
 */
#ifndef GORO_TRACE_IMPL_H
#define GORO_TRACE_IMPL_H

#include "trace.h"

/* ------------------------------------------------------- the trace, trace.c */

/* Numbers of generations are not used twice, in no trace: one that is noted somewhere
 * from an earlier trace is never the present one. */
struct trace {
	uint32_t gen;		/* now: changes as sched.tracing does */
	uint32_t first_gen;	/* of this trace */
	uint32_t error;		/* errno: nothing more is recorded; 0: none */
};
extern struct trace trace;

void trace_writer_wake(void);		/* there is something to write */
/* No more can be recorded or written; the first reason stays. Any state. */
void trace_fail(int error);

static inline bool trace_failed(void)
{
	return load_relaxed(&trace.error) != 0;
}

/* -------------------------------------------- events' bytes, trace_buffer.c */

/* A batch of one thread's events, as the writer will write it. */
struct trace_buf {
	struct trace_buf *next;
	uint32_t gen;
	uint32_t used;		/* bytes of data */
	uint64_t m;		/* the thread */
	int64_t first, last;	/* times of its first and last event */
	uint8_t data[];
};
#define TRACE_BUF_ROOM (TRACE_BUF_BYTES - sizeof(struct trace_buf))

/* What one event takes at most: its type, its time and four arguments. */
#define TRACE_EVENT_MAX (1 + 5 * 10)

/* mp's buffer, with room for so many events; NULL: the trace has failed. */
struct trace_buf *trace_buf_room(struct m *mp, unsigned events);
/* mp's buffer, if it has one, goes to the writer. */
void trace_buf_finish(struct m *mp);
/* The writer's side: all that are finished, in order; and one back for reuse. */
struct trace_buf *trace_buf_take_all(void);
void trace_buf_free(struct trace_buf *b);
/* The memory of those that nobody uses goes back to the system. */
void trace_buf_release_all(void);

static inline uint8_t *trace_put_number(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

/* ----------------------------------------------------------- trace_table.c */

struct trace_entry {
	struct trace_entry *next;	/* in its bucket; constant */
	struct trace_entry *made_before;
	uint64_t hash;
	uint32_t id;
	uint32_t n;		/* bytes */
	uint8_t data[];
};

/* Byte strings, each with a number from 1 on. */
struct trace_table {
	struct lock lock;	/* to add one */
	uint32_t n;
	struct trace_entry **bucket;
	struct trace_entry *newest;
	struct trace_chunk *chunks;
	size_t bytes;		/* taken by all */
};

/* The number of data; 0, which stands for nothing: there is no room for it. */
uint32_t trace_table_put(struct trace_table *t, const void *data, size_t n);
bool trace_table_init(struct trace_table *t);	/* once; false: no memory */
void trace_table_clear(struct trace_table *t);

/* Of a generation, and of the one before it while that is being written. */
extern struct trace_table trace_strings[2], trace_stacks[2];

static inline uint64_t trace_string(const char *s, size_t n)
{
	return trace_table_put(&trace_strings[trace.gen % 2], s,
	                       n < TRACE_STRING_MAX ? n : TRACE_STRING_MAX);
}

/* Strings whose numbers are the same in every generation: Go's words for why
 * goroutines wait (runtime's traceBlockReasonStrings), stop, and the world is
 * stopped. */
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
void trace_texts_put(void);		/* a generation begins */

/* ----------------------------------------------------------- trace_stack.c */

/* What a table of stacks holds: */
struct trace_stack {
	uintptr_t from;			/* enum frames */
	uintptr_t pc[TRACE_FRAMES_MAX];	/* as struct backtrace has them */
};

/* The number of the calls that the calling thread is in, or stands still in. */
uint64_t trace_stack_here(struct m *mp);
/* .. of a goroutine that nobody runs, where that is known. */
uint64_t trace_stack_of(struct g *gp);
/* .. where gp begins. */
uint64_t trace_stack_start(const struct g *gp);
uint64_t trace_stack_pcs(const uintptr_t *pcs, size_t n);
void trace_stack_forget(void);		/* code may have been unloaded */

/* ----------------------------------------------------------- trace_event.c */

#define TRACE_NO_THREAD UINT64_MAX

/* The wire format's events (Go's internal/trace/event/go122), as far as they are
 * used here. */
enum trace_ev {
	EV_EVENT_BATCH = 1, EV_STACKS, EV_STACK, EV_STRINGS, EV_STRING, EV_FREQUENCY = 8,
	EV_PROCS_CHANGE, EV_PROC_START, EV_PROC_STOP, EV_PROC_STEAL, EV_PROC_STATUS,
	EV_GO_CREATE, EV_GO_CREATE_SYSCALL, EV_GO_START, EV_GO_DESTROY, EV_GO_DESTROY_SYSCALL,
	EV_GO_STOP, EV_GO_BLOCK, EV_GO_UNBLOCK, EV_GO_SYSCALL_BEGIN, EV_GO_SYSCALL_END,
	EV_GO_SYSCALL_END_BLOCKED, EV_GO_STATUS, EV_STW_BEGIN, EV_STW_END,
	EV_GO_LABEL = 39, EV_USER_TASK_BEGIN, EV_USER_TASK_END, EV_USER_REGION_BEGIN,
	EV_USER_REGION_END, EV_USER_LOG, EV_GO_STATUS_STACK = 48,
};

/* The state of all Ps and goroutines, as mp's first events. World stopped,
 * sched.lock held, mp without a P. */
void trace_event_begin(struct m *mp);
/* An event of the program's: by a goroutine, or by a plain thread, which holds
 * sched.lock. The last of n arguments is to be the stack, which is added. */
void trace_event_user(struct m *mp, enum trace_ev ev, unsigned n, uint64_t a, uint64_t b,
                      uint64_t c);

/* ---------------------------------------------------------- trace_writer.c */

/* Writes all of it, or fails the trace. */
void trace_write_header(int fd);
/* It is still the file that the header was written to. */
bool trace_file_is(int fd);
void trace_write_batches(int fd, struct trace_buf *list);
/* The rest of a generation that is over: its stacks, strings and frequency. */
void trace_write_tables(int fd, uint32_t gen);

#endif
