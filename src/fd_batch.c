/*
 * fd_batch.c - reads done for those who wait, many by one system call.
 *
 * With many connections that are busy events come by the dozen, and each goroutine that
 * is made ready reads from its socket first thing. What it will ask for is known since it
 * parked (fd_use.offer). So who takes the events from the poller reads for all of them, by
 * one call (fd_ring.c), and makes them ready with the result. With 100 connections, a loop
 * without goroutines does 6 % more echos a second so, and 2.5 % more if the same reads
 * are system calls in a row.
 *
 * The first of them waits for the others' reads; so a batch is not too large
 * (NETPOLL_BATCH), and where much is read it is left to each for itself: then the call
 * matters little, and what was read had better be used while it is in the cache.
 *
 * One that is off its descriptor's queue and not yet made ready belongs to who took it
 * off, and it uses the descriptor: nobody closes that meanwhile. If somebody else was faster
 * and there is nothing to read (EAGAIN), who waits is made ready and tries for itself.
 */
#include "fd.h"

#include <sys/socket.h>

#include "fd_ring.h"
#include "runtime.h"

/* So many reads are worth a batch. */
#define BATCH_LEAST   4
/* More bytes each than this are much: so many batches are left out then. */
#define READ_MUCH     2048
#define BATCHES_PAUSE 64

static uint32_t pausing;	/* batches to come that are left out; about */
uint64_t fd_batch_reads;

static void fill(struct io_uring_sqe *e, const struct g *gp)
{
	const struct fd *f = gp->waiters[FD_READ].key;

	*e = (struct io_uring_sqe){
		.opcode = IORING_OP_RECV,
		.fd = f->number,
		.addr = (uintptr_t)gp->waiters[FD_READ].elem,
		.len = (uint32_t)gp->waiters[FD_WRITE].index,
		.msg_flags = MSG_DONTWAIT,
		.user_data = (uintptr_t)gp,
	};
}

static void done(struct g *gp, int result)
{
	if (!fd_ring_is_result(result))
		return;
	gp->waiters[FD_READ].index = WOKEN_DONE;
	gp->waiters[FD_WRITE].index = result;
}

static bool was_much(const struct fd_batch *b)
{
	size_t bytes = 0;

	for (int i = 0; i < b->n; i++) {
		const struct waiter *w = b->gp[i]->waiters;

		if (w[FD_READ].index == WOKEN_DONE && w[FD_WRITE].index > 0)
			bytes += (size_t)w[FD_WRITE].index;
	}
	return bytes > (size_t)b->n * READ_MUCH;
}

static void read_all(struct fd_ring *r, const struct fd_batch *b)
{
	for (int i = 0; i < b->n; i++)
		fill(fd_ring_call(r, (uint32_t)i), b->gp[i]);
	fetch_add_relaxed(&fd_batch_reads, fd_ring_run(r, (uint32_t)b->n, done));
	if (was_much(b))
		store_relaxed(&pausing, BATCHES_PAUSE);
}

void fd_batch_read(const struct p *pp, const struct fd_batch *b)
{
	uint32_t pauses = load_relaxed(&pausing);
	struct fd_ring *r;

	if (b->n < BATCH_LEAST || !pp || !fd_ring_wanted())
		return;
	if (pauses > 0) {
		store_relaxed(&pausing, pauses - 1);
		return;
	}
	r = fd_ring_take(pp);
	if (!r)
		return;
	read_all(r, b);
	fd_ring_put(r);
}
