/*
 * fd_ring.c - many calls on sockets by one system call: rings of io_uring.
 *
 * A system call costs 0.2 us here besides what it does, and the kernel is faster at one
 * thing that it does over and over. So where many sockets are to be read from (fd_batch.c),
 * or written to (fd_post.c), that is one call.
 *
 * Each call in it is MSG_DONTWAIT, and done when the system call returns: nothing is left
 * under way, and no thread is interrupted for it later (compare uring.c). An answer that is
 * no result, such as EAGAIN or what the ring itself has to say, is for the caller to
 * pass over: who waits for it is made ready and tries for itself, as it would without a ring.
 *
 * A P has a ring, since a batch takes a tenth of a millisecond or two and another P will have
 * one at the same time. There are not more than RINGS; of Ps that share one, who
 * finds it in use does without. They are made when there was use for one for a while, and
 * once one cannot be made, or is refused, there are no more: an old kernel, a sandbox,
 * GORO_DEBUG=nouring=1. A ring is not the child's after fork, which has no runtime, and is
 * closed by exec.
 */
#include "fd_ring.h"

#include <errno.h>
#include <sys/syscall.h>

#include "debug.h"
#include "runtime.h"
#include "sys.h"
#include "uring_queues.h"

/* At the most: a descriptor and 12 KiB each. */
#define RINGS 16

/* So often there is to be use for one before there is. */
#define WANTED_FIRST 64

/* Completions are not dropped; calls that must not wait never do. 5.12. */
#define FEATURES (IORING_FEAT_NODROP | IORING_FEAT_NATIVE_WORKERS)

struct fd_ring {
	_Alignas(CACHE_LINE)
	uint32_t busy;		/* atomic; the rest belongs to who set it */
	bool made;
	struct uring_queues q;
};

static struct fd_ring rings[RINGS];
static uint32_t wanted;		/* how often, until there were enough; about */
static uint32_t refused;	/* there are none, or no more; atomic */

/* ------------------------------------------------------------------- set-up */

static bool ring_open(struct fd_ring *r)
{
	struct io_uring_params p = { .flags = 0 };

	return !debug.nouring && uring_queues_open(&r->q, FD_RING_MAX, &p, FEATURES) == 0;
}

bool fd_ring_wanted(void)
{
	uint32_t n = load_relaxed(&wanted);

	if (likely(n >= WANTED_FIRST))
		return !load_relaxed(&refused);
	store_relaxed(&wanted, n + 1);
	return false;
}

struct fd_ring *fd_ring_take(const struct p *pp)
{
	struct fd_ring *r = &rings[(unsigned)pp->id % RINGS];

	if (load_relaxed(&refused) || load_relaxed(&r->busy) || exchange_acquire(&r->busy, 1))
		return NULL;
	if (likely(r->made || (r->made = ring_open(r))))
		return r;
	store_relaxed(&refused, 1);
	fd_ring_put(r);
	return NULL;
}

void fd_ring_put(struct fd_ring *r)
{
	/* release: pairs with exchange_acquire above */
	store_release(&r->busy, 0);
}

/* ------------------------------------------------------------------- running */

struct io_uring_sqe *fd_ring_call(const struct fd_ring *r, uint32_t i)
{
	return &r->q.sqes[(*r->q.sq_tail + i) & r->q.sq_mask];
}

/* Hands the results out that are there; how many there were. */
static uint32_t hand_out(struct fd_ring *r, fd_ring_done *done)
{
	uint32_t head = *r->q.cq_head, n = 0;

	/* acquire: the completions; pairs with the kernel's release */
	for (; head != load_acquire(r->q.cq_tail); head++, n++) {
		const struct io_uring_cqe *c = &r->q.cqes[head & r->q.cq_mask];

		done((struct g *)(uintptr_t)c->user_data, c->res);
	}
	/* release: we have read them; pairs with the kernel's acquire */
	store_release(r->q.cq_head, head);
	return n;
}

/* One that may pass is for the next time; after another there are no more rings. (They are
 * not closed: the number may be another file's by now.) */
static void enter(const struct fd_ring *r, uint32_t submit, uint32_t wait)
{
	long e = sys6(SYS_io_uring_enter, r->q.fd, submit, wait, wait ? IORING_ENTER_GETEVENTS : 0,
	              NULL, 0);

	if (unlikely(e < 0 && e != -EINTR && e != -EAGAIN && e != -EBUSY))
		store_relaxed(&refused, 1);
}

uint32_t fd_ring_run(struct fd_ring *r, uint32_t n, fd_ring_done *done)
{
	uint32_t tail = *r->q.sq_tail, seen;

	/* release: the entries; pairs with the kernel's acquire */
	store_release(r->q.sq_tail, tail + n);
	enter(r, n, 0);
	/* What the kernel has not taken now it must not take next time: the goroutines
	 * will have gone on. acquire: it has read the others. */
	n = load_acquire(r->q.sq_head) - tail;
	store_release(r->q.sq_tail, tail + n);
	/* What was taken is completed on the way out of any system call, of a refused one, too. */
	for (seen = hand_out(r, done); unlikely(seen < n); seen += hand_out(r, done))
		enter(r, 0, n - seen);
	return n;
}

bool fd_ring_is_result(int r)
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
