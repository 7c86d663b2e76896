/*
 * trace_buffer.c - events' bytes on their way from the threads to the writer.
 *
 * Each thread has a buffer of its own, so that writing an event takes no lock. Full
 * buffers are queued for the writer, which takes them in order and unmaps them. A buffer
 * has room for thousands of events, so to map another for each costs little. The writer
 * may be slow, or stuck on a pipe that nobody reads, so the queue has a limit: there the
 * trace fails. Rejected: dropping buffers. Go's reader cannot use what follows a gap.
 *
 * Memory is mapped, not allocated: this runs in state RUNTIME.
 */
#include <errno.h>

#include "platform/os.h"
#include "trace/trace.h"

/* Buffers that wait for the writer, at most: 128 MiB, a second of the busiest program. A
 * trace of ten million goroutines begins with as much. */
#define QUEUE_MAX 2048

static struct {
	struct lock lock;
	struct trace_buf *head, *tail;	/* full, for the writer */
	size_t queued;
} bufs = { .lock = LOCK_INIT(RANK_TRACE) };

void trace_buf_finish(struct m *mp)
{
	struct trace_buf *b = mp->trace.buf;
	bool full;

	if (!b)
		return;
	mp->trace.buf = NULL;
	b->next = NULL;
	lock_acquire(&bufs.lock);
	if (bufs.tail)
		bufs.tail->next = b;
	else
		bufs.head = b;
	bufs.tail = b;
	full = ++bufs.queued > QUEUE_MAX;
	lock_release(&bufs.lock);
	if (full)
		trace_fail(ENOBUFS);
}

struct trace_buf *trace_buf_take_all(void)
{
	struct trace_buf *list;

	lock_acquire(&bufs.lock);
	list = bufs.head;
	bufs.head = bufs.tail = NULL;
	bufs.queued = 0;
	lock_release(&bufs.lock);
	return list;
}

static __attribute__((noinline)) struct trace_buf *next_buf(struct m *mp)
{
	struct trace_buf *b;

	if (mp->trace.buf) {
		trace_buf_finish(mp);
		trace_writer_wake();
	}
	if (trace_failed())
		return NULL;
	b = os_map(TRACE_BUF_BYTES);
	if (!b) {
		trace_fail(ENOMEM);
		return NULL;
	}
	b->gen = trace.gen;
	b->m = (uint64_t)mp->id;
	b->first = b->last = os_now();
	mp->trace.buf = b;
	return b;
}

struct trace_buf *trace_buf_room(struct m *mp, unsigned events)
{
	struct trace_buf *b = mp->trace.buf;

	if (likely(b && TRACE_BUF_ROOM - b->used >= events * TRACE_EVENT_MAX))
		return b;
	return next_buf(mp);
}
