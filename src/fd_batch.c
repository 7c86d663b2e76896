/*
 * fd_batch.c - reads done for those who wait, many by one system call.
 *
 * With many connections that are busy events come by the dozen, and each goroutine that
 * is made ready reads from its socket first thing. What it will ask for is known since it
 * parked (fd_use.offer). So who takes the events from the poller reads for all of them, by
 * one call of io_uring, and makes them ready with the result. A system call costs 0.2 us
 * here besides what it does, and the kernel is faster at one thing that it does over and
 * over: with 100 connections, a loop without goroutines does 6 % more echos a second, and
 * 2.5 % more if the same reads are system calls in a row.
 *
 * The first of them waits for the others' reads; so a batch is not too large
 * (NETPOLL_BATCH), and where much is read it is left to each for itself: then the call
 * matters little, and what was read had better be used while it is in the cache.
 *
 * One that is off its descriptor's queue and not yet made ready belongs to who took it
 * off, and it uses the descriptor: nobody closes that meanwhile. Each read is MSG_DONTWAIT,
 * done when the call returns: nothing is left under way, and no thread is interrupted
 * for it later (compare uring.c). An answer that is no result, such as EAGAIN if somebody
 * else was faster, is dropped: who waits is made ready and tries for itself.
 *
 * One ring for all; who finds it in use does without. It is made when there was use for
 * it for a while. GORO_DEBUG=nouring=1: there is none.
 */
#include "fd.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "debug.h"
#include "runtime.h"
#include "sys.h"

/* So many reads are worth a batch; so many batches a ring. */
#define BATCH_LEAST   4
#define BATCHES_FIRST 64
/* More bytes each than this are much: so many batches are left out then. */
#define READ_MUCH     2048
#define BATCHES_PAUSE 64

/* Completions are not dropped; reads that must not wait never do. 5.12. */
#define FEATURES (IORING_FEAT_NODROP | IORING_FEAT_NATIVE_WORKERS)

enum { RING_NEW, RING_ON, RING_OFF };

static struct {
	uint32_t busy;		/* atomic; the rest belongs to who set it */
	uint32_t state;		/* RING_ */
	uint32_t pause;		/* batches to come that are left out */
	int fd;

	/* Shared with the kernel. */
	struct io_uring_sqe *sqes;
	uint32_t *sq_head, *sq_tail, sq_mask;
	struct io_uring_cqe *cqes;
	uint32_t *cq_head, *cq_tail, cq_mask;
} ring = { .pause = BATCHES_FIRST, .fd = -1 };

uint64_t fd_batch_reads;

/* ------------------------------------------------------------------- set-up */

static void *map(size_t n, uint64_t off)
{
	long p = sys6(SYS_mmap, 0, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, off);

	return p < 0 && p > -4096 ? NULL : (void *)p;
}

static void unmap(void *p, size_t n)
{
	if (p)
		sys2(SYS_munmap, p, n);
}

/* All of them or none: a mapping keeps the ring in the kernel, whose descriptor is closed. */
static bool map_queues(const struct io_uring_params *p)
{
	size_t sq_bytes = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	size_t cq_bytes = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	size_t sqes_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
	char *sq = map(sq_bytes, IORING_OFF_SQ_RING), *cq = map(cq_bytes, IORING_OFF_CQ_RING);

	ring.sqes = map(sqes_bytes, IORING_OFF_SQES);
	if (!sq || !cq || !ring.sqes) {
		unmap(sq, sq_bytes);
		unmap(cq, cq_bytes);
		unmap(ring.sqes, sqes_bytes);
		return false;
	}
	ring.sq_head = (uint32_t *)(sq + p->sq_off.head);
	ring.sq_tail = (uint32_t *)(sq + p->sq_off.tail);
	ring.sq_mask = p->sq_entries - 1;
	ring.cqes = (struct io_uring_cqe *)(cq + p->cq_off.cqes);
	ring.cq_head = (uint32_t *)(cq + p->cq_off.head);
	ring.cq_tail = (uint32_t *)(cq + p->cq_off.tail);
	ring.cq_mask = p->cq_entries - 1;
	for (uint32_t i = 0; i < p->sq_entries; i++)
		((uint32_t *)(sq + p->sq_off.array))[i] = i;
	return true;
}

static bool ring_open(void)
{
	struct io_uring_params p = { .flags = 0 };

	if (debug.nouring)
		return false;
	ring.fd = (int)sys2(SYS_io_uring_setup, NETPOLL_BATCH, &p);
	if (ring.fd < 0)
		return false;
	if ((p.features & FEATURES) == FEATURES && map_queues(&p))
		return true;
	sys1(SYS_close, ring.fd);
	return false;
}

/* It is there, and it is time. */
static bool ring_ready(void)
{
	if (ring.pause > 0) {
		ring.pause--;
		return false;
	}
	if (unlikely(ring.state == RING_NEW))
		ring.state = ring_open() ? RING_ON : RING_OFF;
	return ring.state == RING_ON;
}

/* ------------------------------------------------------------------- reading */

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

/* Else there is nothing to read after all, or the ring cannot. */
static bool is_result(int r)
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

/* Hands the results out that are there; how many there were. */
static uint32_t hand_out(size_t *bytes)
{
	uint32_t head = *ring.cq_head, n = 0;

	/* acquire: the completions; pairs with the kernel's release */
	for (; head != load_acquire(ring.cq_tail); head++, n++) {
		const struct io_uring_cqe *c = &ring.cqes[head & ring.cq_mask];
		struct g *gp = (struct g *)(uintptr_t)c->user_data;

		if (!is_result(c->res))
			continue;
		gp->waiters[FD_READ].index = WOKEN_DONE;
		gp->waiters[FD_WRITE].index = c->res;
		*bytes += c->res > 0 ? (size_t)c->res : 0;
	}
	/* release: we have read them; pairs with the kernel's acquire */
	store_release(ring.cq_head, head);
	return n;
}

static void read_all(const struct fd_batch *b)
{
	uint32_t tail = *ring.sq_tail, n = (uint32_t)b->n, done;
	size_t bytes = 0;
	long r;

	for (uint32_t i = 0; i < n; i++)
		fill(&ring.sqes[(tail + i) & ring.sq_mask], b->gp[i]);
	/* release: the entries; pairs with the kernel's acquire */
	store_release(ring.sq_tail, tail + n);
	r = sys6(SYS_io_uring_enter, ring.fd, n, 0, 0, NULL, 0);
	/* What the kernel has not taken now it must not take next time: the goroutines
	 * will have gone on. acquire: it has read the others. */
	n = load_acquire(ring.sq_head) - tail;
	store_release(ring.sq_tail, tail + n);
	if (unlikely(r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY))
		ring.state = RING_OFF;	/* and not closed: the number may be another file's by now */
	for (done = hand_out(&bytes); unlikely(done < n); done += hand_out(&bytes))
		sys6(SYS_io_uring_enter, ring.fd, 0, n - done, IORING_ENTER_GETEVENTS, NULL, 0);
	count_up(&fd_batch_reads, n);
	if (bytes > (size_t)n * READ_MUCH)
		ring.pause = BATCHES_PAUSE;
}

void fd_batch_read(const struct fd_batch *b)
{
	if (b->n < BATCH_LEAST || load_relaxed(&ring.busy) || exchange_acquire(&ring.busy, 1))
		return;
	if (ring_ready())
		read_all(b);
	/* release: pairs with exchange_acquire above */
	store_release(&ring.busy, 0);
}
