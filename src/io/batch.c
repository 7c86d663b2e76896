/*
 * batch.c - calls on sockets that a P defers: the mechanism.
 *
 * A server with many busy connections makes the same few calls over and over, and each
 * costs a way into the kernel and back. A P saves some of these ways:
 *
 * - Writes are gathered. A goroutine that writes a few bytes while other goroutines are
 *   about to run parks, and its P keeps the call (gs). When the others have run, most of
 *   which have written, too, one system call of io_uring makes all the calls.
 *
 * - Reads that would find nothing are left untried. A goroutine that has just answered a
 *   request waits for the next one at once, as if it had tried. An event need not follow:
 *   the poller may have reported this data already, with earlier data. So the P has a
 *   list of the descriptors whose readers have not tried (untried), and tries for them:
 *   where a parked goroutine wants the bytes is known (io_wait.buf).
 *
 * To its goroutine each is a call like any other. The goroutine is in the call, and a
 * user of the descriptor, until the call is made: goro_close waits for it, and it sees
 * its own error. A call that came to no result (EAGAIN, a busy ring) the goroutine makes
 * itself when it runs. Without rings (an old kernel, a sandbox, GORO_DEBUG=nouring=1) no
 * calls are gathered. If rings are forbidden in mid-run they are made one by one.
 *
 * When a P makes the calls
 *
 *	writes		- the P's queues are empty
 *			- BATCH_SENDS_MAX are there
 *			- the first came BATCH_WAIT_NS ago
 *			- the M is about to block in an announced call
 *	untried reads	- the P's queues are empty: the first, a few times in a row
 *			- the poller had nothing either: all
 *			- the P is never without work: the oldest, now and then
 *
 * A P with any of these is not idle, and the M that gets the P makes the calls: they are
 * a work source (sched/work.h). sysmon makes none. Where a goroutine computes and calls
 * are due, sysmon has it preempted, as for a goroutine that waits in the P's queue.
 *
 * Rings
 *
 * Each P has a ring of its own, so that no P waits for another's batch. Each call is
 * MSG_DONTWAIT and over when the system call returns: nothing is left under way, and no
 * thread is interrupted for it later (compare uring.c). A ring belongs to no child after
 * fork, which has no runtime, and is closed by exec.
 *
 * Rejected:
 *
 * - Returning from a write before it is made: it needs a copy, and the next call would
 *   get its error.
 * - Taking a short read as a sign that nothing is left: true of plain TCP, not of what
 *   may be built on top of it.
 * - sysmon sending what is late: one slow call of the program's would delay everything
 *   that sysmon watches over.
 * - The M that takes events from the poller reading for all that wait, by one call of the
 *   ring: 0 to 4 % with 100 and 1,000 connections.
 */
#include "io/batch.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/debug.h"
#include "base/mem.h"
#include "platform/sys.h"
#include "base/throw.h"
#include "sched/init.h"
#include "sched/linger.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/work.h"

/* Ps with higher numbers have no ring: each costs a descriptor and 20 KiB. */
#define RINGS_MAX 64
/* A P gets a ring after this many uses for one. */
#define WANTED_FIRST 64
/* No completion is dropped; calls that must not wait never do. Linux 5.12. */
#define FEATURES (IORING_FEAT_NODROP | IORING_FEAT_NATIVE_WORKERS)

struct batch_counts batch_counts;
static uint32_t refused;	/* no ring may be used; atomic */
static struct work_source source;

/* The same as batch_known, but made if need be; NULL: no memory. The owner of pp only. */
static struct p_io *batch_of(struct p *pp)
{
	struct p_io *io = pp->io;

	if (unlikely(!io) && (io = mem_alloc(sizeof *io)))
		/* release: pairs with load_acquire in batch_known */
		store_release(&pp->io, io);
	return io;
}

/* ------------------------------------------------------------------ a ring */

static bool ring_open(struct p_io *io)
{
	struct io_uring_params p = { .flags = 0 };

	if (debug.nouring || uring_queues_open(&io->ring, BATCH_SENDS_MAX, &p, FEATURES) < 0) {
		store_relaxed(&refused, 1);
		return false;
	}
	return true;
}

static bool has_ring(const struct p *pp, struct p_io *io)
{
	if (unlikely(load_relaxed(&refused)))
		return false;
	if (likely(io->has_ring))
		return true;
	if (pp->id >= RINGS_MAX || io->ring_wanted++ < WANTED_FIRST)
		return false;
	return io->has_ring = ring_open(io);
}

static void fill(struct io_uring_sqe *e, struct g *gp)
{
	*e = (struct io_uring_sqe){
		.opcode = IORING_OP_SEND,
		.fd = gp->io.fd->number,
		.addr = (uintptr_t)gp->io.buf,
		.len = (uint32_t)gp->io.bytes,
		.msg_flags = (uint32_t)gp->io.flags,
		.user_data = (uintptr_t)gp,
	};
}

/* Hands out the results that are there. Returns their number. */
static uint32_t ring_answers(const struct uring_queues *q)
{
	uint32_t head = *q->cq_head, n = 0;

	/* acquire: the completions; pairs with the kernel's release */
	for (; head != load_acquire(q->cq_tail); head++, n++) {
		const struct io_uring_cqe *c = &q->cqes[head & q->cq_mask];

		((struct g *)(uintptr_t)c->user_data)->io.result = c->res;
	}
	/* release: the entries are read; pairs with the kernel's acquire */
	store_release(q->cq_head, head);
	return n;
}

/* EINTR, EAGAIN and EBUSY pass. After another error no ring is used any more. (Rings are
 * not closed: the number may be another file's by now.) */
static void ring_enter(const struct uring_queues *q, uint32_t submit, uint32_t wait)
{
	long e = sys6(SYS_io_uring_enter, q->fd, submit, wait, wait ? IORING_ENTER_GETEVENTS : 0,
	              NULL, 0);

	if (unlikely(e < 0 && e != -EINTR && e != -EAGAIN && e != -EBUSY))
		store_relaxed(&refused, 1);
}

/* Makes the writes of gs. Returns how many of them the kernel has taken. */
static uint32_t ring_run(const struct uring_queues *q, struct g *const *gs, uint32_t n)
{
	uint32_t tail = *q->sq_tail, seen;

	check(n <= q->sq_entries && tail == load_acquire(q->sq_head));
	for (uint32_t i = 0; i < n; i++)
		fill(&q->sqes[(tail + i) & q->sq_mask], gs[i]);
	/* release: the entries; pairs with the kernel's acquire */
	store_release(q->sq_tail, tail + n);
	ring_enter(q, n, 0);
	/* What the kernel has not taken it must not take next time. acquire: it has read
	 * the others; pairs with the kernel's release */
	n = load_acquire(q->sq_head) - tail;
	store_release(q->sq_tail, tail + n);
	/* Taken calls complete on the way out of any system call, refused or not. */
	for (seen = ring_answers(q); unlikely(seen < n); seen += ring_answers(q))
		ring_enter(q, 0, n - seen);
	return n;
}

/* ------------------------------------------------------------- making calls */

static void call(struct g *gp, enum fd_way way)
{
	gp->io.result = sys6(way == FD_READ ? SYS_recvfrom : SYS_sendto, gp->io.fd->number,
	                     gp->io.buf, gp->io.bytes, gp->io.flags, NULL, NULL);
}

/* Whether the goroutine's own call would have said the same. */
static bool is_result(ssize_t r)
{
	switch (r) {
	case -EAGAIN:
	case -EBADF:
	case -ECANCELED:
	case -EINTR:
	case -EINVAL:
	case -ENOMEM:
	case -ENOTSOCK:
	case -EOPNOTSUPP:
		return false;
	default:
		return true;
	}
}

/* ---------------------------------------------------------------- writes */

static void settle(struct p *pp, const struct p_io *io)
{
	if (io->n || io->untried)
		work_defer(pp, &source);
	else
		work_done(pp, &source);
}

static void send_all(struct m *mp, struct p_io *io)
{
	uint32_t n = io->n;

	if (n == 0)
		return;
	batch_sends_end(io);
	linger();
	for (uint32_t i = 0; i < n; i++)
		io->gs[i]->io.result = -EAGAIN;
	if (n > 1 && has_ring(mp->p, io))
		fetch_add_relaxed(&batch_counts.sent, ring_run(&io->ring, io->gs, n));
	else
		for (uint32_t i = 0; i < n; i++)
			call(io->gs[i], FD_WRITE);
	store_relaxed(&io->n, 0);
	settle(mp->p, io);
	for (uint32_t i = 0; i < n; i++)
		g_ready_in_order(mp, io->gs[i]);
}

static void commit(struct m *mp, struct g *gp)
{
	struct p_io *io = mp->p->io;

	check(io->n < BATCH_SENDS_MAX);
	io->gs[io->n] = gp;
	store_relaxed(&io->n, io->n + 1);
	work_defer(mp->p, &source);
}

/* Whether the caller's write may be gathered. Sends a batch first that is full or due. */
static bool may_send(struct m *mp)
{
	struct p_io *io;

	if (unlikely(!mp->p || mp->curg->locked_m || mp->curg->preempt_off) ||
	    !(io = batch_of(mp->p)))
		return false;
	if (io->n == BATCH_SENDS_MAX || (io->n % 4 == 3 && batch_sends_due(io)))
		send_all(mp, io);
	return io->n > 0 || (!load_relaxed(&refused) && batch_may_begin(mp, io) &&
	                     has_ring(mp->p, io));
}

ssize_t batch_send(struct fd *f, void *buf, size_t n, int flags)
{
	struct m *mp = rt_enter_free();
	struct g *gp = mp->curg;
	ssize_t r = -EAGAIN;

	if (unlikely(may_send(mp))) {
		gp->io = (struct io_wait){ .fd = f, .buf = buf, .bytes = n,
		                           .flags = flags | MSG_DONTWAIT | MSG_NOSIGNAL };
		mp = park(mp, commit, NULL, WAIT_IO);
		r = is_result(gp->io.result) ? gp->io.result : -EAGAIN;
	}
	rt_exit_free(mp);
	return r;
}

/* --------------------------------------------------------- untried reads
 *
 * A descriptor is on one P's list at most. It stays there when an event comes (listed and
 * not untried), until the P reaches it. Links are numbers + 1, since 0 is a number. */

static void list_put(struct p_io *io, struct fd *f)
{
	check(!io->untried == (io->untried_n == 0));
	f->untried_link = 0;
	if (io->untried)
		io->untried_last->untried_link = (uint32_t)f->number + 1;
	else
		store_relaxed(&io->untried, f);
	io->untried_last = f;
	io->untried_n++;
}

static struct fd *list_take(struct p_io *io)
{
	struct fd *f = io->untried;

	if (f) {
		store_relaxed(&io->untried, f->untried_link ? fd_at((int)(f->untried_link - 1)) : NULL);
		io->untried_n--;
	}
	return f;
}

bool batch_leave_untried(struct m *mp, struct fd *f)
{
	struct p_io *io = mp->p ? batch_of(mp->p) : NULL;

	check(lock_is_held(&f->lock));
	/* Only the first waiter may be untried: waiters are taken off in order. */
	if (!io || f->waiters[FD_READ].first)
		return false;
	f->untried = 1;
	if (!f->listed) {
		f->listed = 1;
		list_put(io, f);
		work_defer(mp->p, &source);
	} else if (io->untried == f && io->untried_n > 1) {
		list_put(io, list_take(io));	/* the others have waited for longer */
	}
	return true;
}

enum tried { NOT_TRIED, IN_VAIN, FOUND };

/* Tries for the first reader of f, which is off the list, under the lock: if there is
 * nothing the goroutine goes on waiting, and a later event finds it in the queue. */
static enum tried try_read(struct fd *f, struct ready_list *list)
{
	enum tried result = NOT_TRIED;
	struct io_link *w;

	lock_acquire(&f->lock);
	check(f->listed);
	w = f->waiters[FD_READ].first;
	f->listed = 0;
	if (f->untried && w) {
		struct g *gp = fd_waiter(w, FD_READ);

		result = IN_VAIN;
		f->untried = 0;
		call(gp, FD_READ);
		if (gp->io.result != -EAGAIN) {
			result = FOUND;
			fd_take_off_first(f, FD_READ, list);
			if (is_result(gp->io.result))
				gp->io.why = WOKEN_DONE;
		}
	}
	lock_release(&f->lock);
	return result;
}

/* Tries the n oldest untried reads. Goroutines become ready behind all others. */
static void try_oldest(struct m *mp, struct p_io *io, uint32_t n)
{
	struct ready_list list = { NULL, NULL };
	struct fd *f;

	for (; n > 0 && (f = list_take(io)); n--)
		try_read(f, &list);
	settle(mp->p, io);
	ready_list_all(mp, &list);
}

/* Tries the first untried read. Its goroutine, runnable; NULL: the read found nothing. */
static struct g *try_first(struct m *mp, struct p_io *io)
{
	struct ready_list list = { NULL, NULL };
	enum tried result = NOT_TRIED;
	struct fd *f;

	while (result == NOT_TRIED && (f = list_take(io)))
		result = try_read(f, &list);
	settle(mp->p, io);
	if (result != NOT_TRIED)
		batch_try_was(io, result == FOUND);
	return list.head && g_make_runnable(mp, list.head) ? list.head : NULL;
}

/* ----------------------------------------------------------- the work source */

static bool is_due(const struct p *pp)
{
	const struct p_io *io = batch_known(pp);

	return io && (batch_sends_due(io) || batch_pass_due(io));
}

static bool is_late(const struct p *pp)
{
	const struct p_io *io = batch_known(pp);

	return io && batch_sends_late(io);
}

static void see_to_due(struct m *mp)
{
	struct p_io *io = mp->p->io;

	if (batch_sends_due(io))
		send_all(mp, io);
	if (batch_pass_due(io))
		try_oldest(mp, io, batch_pass_begin(io));
}

static struct g *take(struct m *mp)
{
	struct p_io *io = mp->p->io;

	if (io->n > 0) {
		send_all(mp, io);
		return runq_get(mp->p, &(bool){ false });
	}
	return batch_may_try(io) ? try_first(mp, io) : NULL;
}

static void flush(struct m *mp)
{
	try_oldest(mp, mp->p->io, UINT32_MAX);
}

static void before_call(struct m *mp)
{
	send_all(mp, mp->p->io);
}

/* The goroutines make their calls themselves. */
static void drain(struct m *mp, struct p *from, struct p *to)
{
	struct p_io *io = from->io;
	struct fd *f;

	(void)to;
	for (uint32_t i = 0; i < io->n; i++) {
		io->gs[i]->io.result = -EAGAIN;
		g_ready_quietly(mp, io->gs[i]);
	}
	store_relaxed(&io->n, 0);
	while ((f = list_take(io))) {
		struct ready_list list = { NULL, NULL };

		lock_acquire(&f->lock);
		f->listed = 0;
		if (f->untried)
			fd_take_off_first(f, FD_READ, &list);
		lock_release(&f->lock);
		if (list.head)
			g_ready_quietly(mp, list.head);
	}
	settle(from, io);
}

static struct work_source source = {
	.due = is_due,
	.late = is_late,
	.see_to_due = see_to_due,
	.take = take,
	.flush = flush,
	.before_call = before_call,
	.drain = drain,
	.watch = batch_watch,
};

static void batch_init(void)
{
	work_register(&source);
}
HOOK(at_start, START_WORK, batch_init);
