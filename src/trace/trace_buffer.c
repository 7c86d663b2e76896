/*
 * trace_buffer.c - events' bytes on their way from the threads to the writer.
 *
 * A thread has a buffer of its own, so that telling takes no lock. A full one goes to
 * the end of a queue, from which the writer takes them, in order; written ones come
 * back for reuse. The writer may be slow, or stuck on a pipe that nobody reads. So
 * there is a limit to the queue, and where it is reached the trace has failed: a gap
 * would make all that comes after it worthless to whoever reads it.
 *
 * Memory is mapped, not allocated: this runs in state RUNTIME.
 */
#include <errno.h>

#include "os.h"
#include "trace_impl.h"

static struct {
	struct lock lock;
	struct trace_buf *head, *tail;	/* full, for the writer */
	size_t queued;
	struct trace_buf *free;
} bufs = { .lock = LOCK_INIT(RANK_TRACE) };

static struct trace_buf *get(void)
{
	struct trace_buf *b;

	lock_acquire(&bufs.lock);
	b = bufs.free;
	if (b)
		bufs.free = b->next;
	lock_release(&bufs.lock);
	return b ? b : os_map(TRACE_BUF_BYTES);
}

void trace_buf_free(struct trace_buf *b)
{
	lock_acquire(&bufs.lock);
	b->next = bufs.free;
	bufs.free = b;
	lock_release(&bufs.lock);
}

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
	full = ++bufs.queued > TRACE_QUEUE_MAX;
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
	b = get();
	if (!b) {
		trace_fail(ENOMEM);
		return NULL;
	}
	b->gen = trace.gen;
	b->m = (uint64_t)mp->id;
	b->used = 0;
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

void trace_buf_release_all(void)
{
	struct trace_buf *b, *next;

	lock_acquire(&bufs.lock);
	b = bufs.free;
	bufs.free = NULL;
	lock_release(&bufs.lock);
	for (; b; b = next) {
		next = b->next;
		os_unmap(b, TRACE_BUF_BYTES);
	}
}
