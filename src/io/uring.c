/*
 * uring.c - operations on files by io_uring.
 *
 * What the page cache does not have is asked for here, when there are many who ask
 * (file.c): the goroutine parks, no thread waits, and the disk sees as many requests at
 * once as there are goroutines.
 *
 * One ring, polled by a thread of the kernel's (SQPOLL)
 *
 * The kernel completes a buffered read in the context of the thread that submitted it,
 * which it interrupts for that: a system call that the thread has blocked in by then,
 * on behalf of another goroutine, may fail with EINTR (epoll_wait does). No call of
 * the program's may, because of us. The remedies that leave the thread alone
 * (COOP_TASKRUN, DEFER_TASKRUN) make the completion wait for it instead. With SQPOLL
 * the submitting thread is the kernel's own, and nobody is disturbed. It takes what it
 * finds in the ring in batches; while it is awake, submitting is a few stores and no
 * system call. It sleeps after URING_IDLE_MS without work, and is woken by a call. The
 * price: a hundred goroutines that read take 20 to 40 us a read on two CPUs, and 13 if
 * each thread submits for itself; by blocking calls it is 50.
 *
 * "A thread that cannot be woken": the program may install a seccomp filter at any time
 * that denies that call. Then what the kernel's thread has not taken is taken back, to be
 * done in another way, and the ring is used no more.
 *
 * One ring is enough: only what has to wait for a disk comes here, and its lock is
 * held for 20 ns. Ring and thread are made by the first operation.
 *
 * Completions
 *
 * The ring's descriptor is in the poller, which calls uring_event. The queue of
 * completions holds as many as there may be operations under way; more are refused
 * (-EBUSY), so that it never overflows.
 *
 * An operation's buffers belong to the kernel until it is over, and they may lie on
 * the goroutine's stack. So nobody comes back early: a deadline (which the kernel
 * minds itself, IORING_OP_LINK_TIMEOUT) and a close ask for cancellation, and the
 * goroutine waits for the end like any other. What a disk has begun to do is not
 * cancelled; what waits in line is.
 *
 * A cancellation by descriptor may come late and meet another file's operations, if
 * the number was used again; these end with -ECANCELED for no reason, and file.c does
 * them again.
 *
 * Without liburing: the library is to link with libc alone, and the three system
 * calls and the two queues are all that is needed of it.
 *
 * Rejected: a ring a P, submitting for itself (see above); IOSQE_ASYNC, which completes
 * without disturbing anybody but has a thread of the kernel's wait for each request.
 */
#define _GNU_SOURCE
#include "uring.h"

#include <errno.h>
#include <goro.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <sys/syscall.h>

#include "debug.h"
#include "fd.h"
#include "netpoll.h"
#include "os.h"
#include "own_fd.h"
#include "runtime.h"
#include "syscall_raw.h"
#include "uring_queues.h"

#ifndef IORING_ASYNC_CANCEL_ALL
#define IORING_ASYNC_CANCEL_ALL (1U << 0)
#define IORING_ASYNC_CANCEL_FD  (1U << 1)
#endif

/* SQPOLL on any descriptor; positions of files; no completion dropped. 5.11. */
#define FEATURES (IORING_FEAT_SQPOLL_NONFIXED | IORING_FEAT_RW_CUR_POS | IORING_FEAT_NODROP)

/* That many refusals that may pass (EINTR, EAGAIN, EBUSY) are taken for one that stays. */
#define WAKE_TRIES 100

enum { RING_NEW, RING_ON, RING_OFF };

static struct {
	struct lock lock;	/* of both queues */
	uint32_t state;		/* RING_; atomic */
	bool made;		/* there is one, with a thread of the kernel's; atomic */
	struct uring_queues q;
	uint32_t in_flight;	/* under lock */
} ring = { .lock = LOCK_INIT(RANK_URING) };

/* ------------------------------------------------------------------- set-up */

/* 0 or -errno. */
static int ring_open(void)
{
	struct io_uring_params p = {
		.flags = IORING_SETUP_SQPOLL | IORING_SETUP_CQSIZE,
		.cq_entries = URING_CQ_ENTRIES,
		.sq_thread_idle = URING_IDLE_MS,
	};

	int r = debug.nouring ? -ENOSYS : netpoll_start();

	if (r >= 0)
		r = uring_queues_open(&ring.q, URING_SQ_ENTRIES, &p, FEATURES);
	if (r < 0)
		return r;
	r = netpoll_add(ring.q.fd, URING_TAG, NETPOLL_READ);
	if (r < 0)
		uring_queues_close(&ring.q);
	return r;
}

/* It may be had another time. */
static bool is_passing(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EAGAIN ||
	       error == -ENOSPC;
}

/* Lock held. */
static bool ring_ready(void)
{
	if (unlikely(ring.state == RING_NEW)) {
		int r = ring_open();

		store_relaxed(&ring.made, r == 0);
		/* release: pairs with load_acquire in uring_cancel */
		store_release(&ring.state, r == 0 ? RING_ON : is_passing(r) ? RING_NEW : RING_OFF);
	}
	return ring.state == RING_ON;
}

int uring_threads(void)
{
	return load_relaxed(&ring.made);
}

bool uring_works(void)
{
	struct m *mp = rt_enter();
	bool yes;

	lock_acquire(&ring.lock);
	yes = ring_ready();
	lock_release(&ring.lock);
	rt_exit(mp);
	return yes;
}

/* --------------------------------------------------------------- submitting */

/* Lock held. Room for n entries and their completions. */
static bool room_for(uint32_t n)
{
	/* acquire: the kernel has read the entries; pairs with its release */
	uint32_t used = *ring.q.sq_tail - load_acquire(ring.q.sq_head);

	return used + n <= ring.q.sq_entries && ring.in_flight + n <= ring.q.cq_entries;
}

/* Lock held. The i-th entry from the tail, zeroed. */
static struct io_uring_sqe *entry(uint32_t i)
{
	struct io_uring_sqe *e = &ring.q.sqes[(*ring.q.sq_tail + i) & ring.q.sq_mask];

	*e = (struct io_uring_sqe){ .fd = -1 };
	return e;
}

/* The kernel's thread sleeps. */
static bool is_asleep(void)
{
	return load_relaxed(ring.q.sq_flags) & IORING_SQ_NEED_WAKEUP;
}

static bool wake_thread(void)
{
	if (!own_fd_is(ring.q.fd, OWN_FD_RING))
		return false;	/* the program has closed it */
	for (int i = 0; i < WAKE_TRIES; i++) {
		long r = syscall_raw(SYS_io_uring_enter, ring.q.fd, 0, 0, IORING_ENTER_SQ_WAKEUP, 0, 0);

		if (likely(r >= 0))
			return true;
		if (r != -EINTR && r != -EAGAIN && r != -EBUSY)
			return false;
		os_relax(i);
	}
	return false;
}

static void give_up(struct m *mp);

/* Lock held; releases it. n entries are whole. The kernel's thread sets the flag and
 * then looks at the tail once more; we store the tail and then look at the flag. */
static void publish_unlock(struct m *mp, uint32_t n)
{
	bool asleep;

	ring.in_flight += n;
	/* release: the entries; pairs with the kernel's acquire */
	store_release(ring.q.sq_tail, *ring.q.sq_tail + n);
	fence_seqcst();
	asleep = is_asleep();
	lock_release(&ring.lock);
	if (asleep && unlikely(!wake_thread()))
		give_up(mp);
}

static void fill(struct io_uring_sqe *e, const struct uring_op *op, struct g *gp)
{
	bool read = op->what == URING_READ;

	e->fd = op->fd;
	e->user_data = (uintptr_t)gp;
	if (op->what == URING_FSYNC) {
		e->opcode = IORING_OP_FSYNC;
		return;
	}
	e->off = (uint64_t)op->off;
	if (op->iov_n == 1) {
		e->opcode = read ? IORING_OP_READ : IORING_OP_WRITE;
		e->addr = (uintptr_t)op->iov->iov_base;
		e->len = op->iov->iov_len > INT32_MAX ? INT32_MAX : (uint32_t)op->iov->iov_len;
	} else {
		e->opcode = read ? IORING_OP_READV : IORING_OP_WRITEV;
		e->addr = (uintptr_t)op->iov;
		e->len = (uint32_t)op->iov_n;
	}
}

/* Completes after the entry before it, or cancels that when the time has come. */
static void fill_timeout(struct io_uring_sqe *e, const struct __kernel_timespec *at)
{
	e->opcode = IORING_OP_LINK_TIMEOUT;
	e->addr = (uintptr_t)at;
	e->len = 1;
	e->timeout_flags = IORING_TIMEOUT_ABS;
}

static void commit(struct m *mp, struct g *gp)
{
	(void)gp;
	publish_unlock(mp, (uint32_t)(uintptr_t)mp->after_arg);
}

static void count_io(struct m *mp, bool over)
{
	if (mp->p)
		count_up(over ? &mp->p->count.io_returns : &mp->p->count.io_parks, 1);
	else
		fetch_add_seqcst(over ? &sched.io_returns : &sched.io_parks, 1);
}

ssize_t uring_run(const struct uring_op *op)
{
	struct __kernel_timespec at = { op->deadline / 1000000000, op->deadline % 1000000000 };
	uint32_t n = op->deadline == GORO_FOREVER ? 1 : 2;
	struct io_uring_sqe *e;
	struct m *mp;
	ssize_t r;

	if (load_relaxed(&ring.state) == RING_OFF)
		return -ENOSYS;
	mp = rt_enter_free();
	lock_acquire(&ring.lock);
	if (!ring_ready() || !room_for(n)) {
		r = ring.state == RING_OFF ? -ENOSYS : -EBUSY;
		lock_release(&ring.lock);
		rt_exit_free(mp);
		return r;
	}
	e = entry(0);
	fill(e, op, mp->curg);
	if (n == 2) {
		e->flags = IOSQE_IO_LINK;
		fill_timeout(entry(1), &at);
	}
	count_io(mp, false);
	mp = park(mp, commit, (void *)(uintptr_t)n, WAIT_IO);
	count_io(mp, true);
	r = mp->curg->waiter.index;
	rt_exit_free(mp);
	return r;
}

void uring_cancel(int fd)
{
	struct io_uring_sqe *e;
	struct m *mp;

	if (load_acquire(&ring.state) != RING_ON)
		return;
	mp = rt_enter();
	lock_acquire(&ring.lock);
	if (ring.state == RING_ON && ring.in_flight > 0 && room_for(1)) {
		e = entry(0);
		e->opcode = IORING_OP_ASYNC_CANCEL;
		e->fd = fd;
		e->cancel_flags = IORING_ASYNC_CANCEL_FD | IORING_ASYNC_CANCEL_ALL;
		publish_unlock(mp, 1);
	} else {
		lock_release(&ring.lock);
	}
	rt_exit(mp);
}

/* ------------------------------------------- a thread that cannot be woken
 *
 * The kernel's thread may still wake by itself at any time, when something that it has
 * taken is over, and it may be reading the tail or an entry. So neither is changed. Its
 * slot in the queue is made void, in one store, and the kernel drops what is void:
 *
 *	take_back                       the kernel's thread
 *	the slot void                   NEED_WAKEUP off
 *	full barrier                    full barrier (it locks a mutex)
 *	NEED_WAKEUP on, and             the slot void: dropped++
 *	  head not past the slot?       head++
 *	yes: it is ours
 *
 * If not, the thread is awake or has been, and goes through all that is in the queue;
 * whether it has dropped the entry or taken it is seen by the number of those dropped. */

/* Lock held. Whether the entry at that place of the queue is ours again. voids: so many
 * were made void with this one, since *sq_dropped was at_first. */
static bool take_back(uint32_t at, uint32_t voids, uint32_t at_first)
{
	/* relaxed: nobody else writes to it */
	store_relaxed(&ring.q.entry_of[at & ring.q.sq_mask], UINT32_MAX);
	fence_seqcst();
	for (int i = 0;; os_relax(i++)) {
		/* acquire: it slept before the head was as we see it below */
		bool asleep = load_acquire(ring.q.sq_flags) & IORING_SQ_NEED_WAKEUP;

		/* acquire: what was dropped; pairs with the kernel's release */
		if ((int32_t)(load_acquire(ring.q.sq_head) - at) > 0)
			return load_relaxed(ring.q.sq_dropped) - at_first == voids;
		if (asleep)
			return true;
	}
}

/* Lock held. Who waits for what the kernel has not taken is on the list after it. */
static void take_all_back(struct ready_list *list)
{
	uint32_t first = load_relaxed(ring.q.sq_dropped), voids = 0;
	/* acquire: as in take_back */
	uint32_t at = load_acquire(ring.q.sq_head), end = *ring.q.sq_tail;

	for (; at != end; at++) {
		struct g *gp = (struct g *)(uintptr_t)ring.q.sqes[at & ring.q.sq_mask].user_data;

		if (!take_back(at, voids + 1, first))
			continue;
		voids++;
		ring.in_flight--;
		if (gp) {
			gp->waiter.index = -ENOSYS;
			ready_list_put(list, gp);
		}
	}
}

static void give_up_to(struct ready_list *list)
{
	lock_acquire(&ring.lock);
	if (ring.state == RING_ON) {
		store_relaxed(&ring.state, RING_OFF);	/* nothing is published from here on */
		take_all_back(list);
	}
	lock_release(&ring.lock);
}

static void give_up(struct m *mp)
{
	struct ready_list list = { NULL, NULL };

	give_up_to(&list);
	fd_ready_all(mp, &list);
}

/* -------------------------------------------------------------- completions */

/* How long to wait for what is under way in a ring whose descriptor is closed: the mappings
 * keep it. */
#define LAST_LOOKS   50000
#define LAST_LOOK_NS 100000

/* The ring is used no more. Nobody says when something is done there, so we look. */
static void await_last(struct ready_list *list)
{
	for (int i = 0; i < LAST_LOOKS; i++) {
		bool left;

		uring_event(list);
		lock_acquire(&ring.lock);
		left = ring.in_flight > 0;
		lock_release(&ring.lock);
		if (!left)
			return;
		os_sleep(LAST_LOOK_NS);
	}
}

void uring_watch_again(struct ready_list *list)
{
	bool lost = false;
	int r;

	lock_acquire(&ring.lock);
	if (ring.state == RING_ON) {
		r = own_fd_is(ring.q.fd, OWN_FD_RING) ?
		    netpoll_add(ring.q.fd, URING_TAG, NETPOLL_READ) : -EBADF;
		lost = r < 0 && r != -EEXIST;
	}
	lock_release(&ring.lock);
	if (lost) {
		give_up_to(list);
		await_last(list);
	}
}

/* Timeouts and cancellations have no goroutine. The lock is also what orders us after
 * the commit of who submitted: a completion may be faster than that. */
void uring_event(struct ready_list *list)
{
	uint32_t head;

	lock_acquire(&ring.lock);
	head = *ring.q.cq_head;
	/* acquire: the completions; pairs with the kernel's release. After the last
	 * look another one makes another event. */
	while (head != load_acquire(ring.q.cq_tail)) {
		const struct io_uring_cqe *c = &ring.q.cqes[head & ring.q.cq_mask];
		struct g *gp = (struct g *)(uintptr_t)c->user_data;

		if (gp) {
			gp->waiter.index = c->res;
			ready_list_put(list, gp);
		}
		head++;
		ring.in_flight--;
		/* release: we have read it; pairs with the kernel's acquire */
		store_release(ring.q.cq_head, head);
	}
	lock_release(&ring.lock);
}
