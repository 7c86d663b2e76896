/*
 * uring.c - operations on files by io_uring.
 *
 * What the page cache does not have is read or written here, if many goroutines wait for
 * it (file.c): the goroutine parks, no thread waits, and the disk sees as many requests
 * at once as there are goroutines.
 *
 * One ring, polled by a thread of the kernel's (SQPOLL)
 *
 * The kernel completes a buffered read in the context of the thread that submitted it,
 * and interrupts that thread: a system call that it has blocked in by then may fail with
 * EINTR (epoll_wait does). No call of the program may fail because of goro. The flags
 * that leave the thread alone (COOP_TASKRUN, DEFER_TASKRUN) make the completion wait for
 * it instead. With SQPOLL the submitting thread is the kernel's own. While it is awake,
 * submitting takes a few stores and no system call. It sleeps after URING_IDLE_MS without
 * work, and a call wakes it. The price: a read among a hundred takes up to three times as
 * long as if each thread submitted for itself, and still less than by blocking calls.
 *
 * One ring is enough: only what has to wait for a disk comes here, and its lock is held
 * for 20 ns. The first operation makes ring and thread.
 *
 * Completions
 *
 * The ring's descriptor is in the poller, which calls uring_event. The queue of
 * completions holds as many as operations may be under way. More are refused (-EBUSY), so
 * it never overflows.
 *
 * An operation's buffers belong to the kernel until it is over, and they may lie on the
 * goroutine's stack. So no goroutine returns early: a deadline (IORING_OP_LINK_TIMEOUT,
 * which the kernel watches) and a close cancel the operation, and the goroutine waits for
 * its end like any other. What waits in line is cancelled; what a disk has begun is not.
 * A cancellation by descriptor may come late and meet another file's operations, which
 * then end with -ECANCELED for no reason, and file.c does them again.
 *
 * Rejected: liburing, as the library is to link with libc alone; a ring for each P,
 * submitting for itself (see above); IOSQE_ASYNC, which has a kernel thread wait for each
 * request.
 */
#define _GNU_SOURCE
#include "io/uring.h"

#include <errno.h>
#include <goro.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <sys/syscall.h>

#include "base/debug.h"
#include "io/fd.h"
#include "io/file.h"
#include "sched/netpoll.h"
#include "platform/os.h"
#include "platform/own_fd.h"
#include "sched/deadlock.h"
#include "sched/runtime.h"
#include "platform/sys.h"
#include "base/throw.h"
#include "platform/uring_queues.h"

/* Operations that may wait for the kernel to take them, and that may be under way. Powers
 * of two; 20 KiB and 64 KiB of memory. */
#define URING_SQ_ENTRIES 256
#define URING_CQ_ENTRIES 4096
/* The kernel's thread sleeps after this long without work. */
#define URING_IDLE_MS    1

#ifndef IORING_ASYNC_CANCEL_ALL
#define IORING_ASYNC_CANCEL_ALL (1U << 0)
#define IORING_ASYNC_CANCEL_FD  (1U << 1)
#endif

/* SQPOLL on any descriptor; positions of files; no completion dropped. 5.11. */
#define FEATURES (IORING_FEAT_SQPOLL_NONFIXED | IORING_FEAT_RW_CUR_POS | IORING_FEAT_NODROP)

/* After this many EINTR, EAGAIN or EBUSY the kernel is taken to refuse for good. */
#define WAKE_TRIES 100

enum { RING_NEW, RING_ON, RING_OFF };

static struct {
	struct lock lock;	/* guards both queues */
	uint32_t state;		/* RING_; atomic */
	bool made;		/* the ring and the kernel's thread are there; atomic */
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

/* Whether a later try may succeed. */
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

DEADLOCK_WITNESS(uring, .threads = uring_threads);

bool uring_works(void)
{
	struct m *mp = rt_enter_lock(&ring.lock);
	bool yes = ring_ready();

	rt_unlock_exit(mp, &ring.lock);
	return yes;
}

/* --------------------------------------------------------------- submitting */

/* Whether n entries and their completions have room. Lock held. */
static bool room_for(uint32_t n)
{
	/* acquire: the kernel has read the entries; pairs with its release */
	uint32_t used = *ring.q.sq_tail - load_acquire(ring.q.sq_head);

	check(lock_is_held(&ring.lock));
	return used + n <= ring.q.sq_entries && ring.in_flight + n <= ring.q.cq_entries;
}

/* The i-th entry from the tail, zeroed. Lock held. */
static struct io_uring_sqe *entry(uint32_t i)
{
	struct io_uring_sqe *e = &ring.q.sqes[(*ring.q.sq_tail + i) & ring.q.sq_mask];

	*e = (struct io_uring_sqe){ .fd = -1 };
	return e;
}

/* Whether the kernel's thread sleeps. */
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

/* Publishes n entries. The kernel's thread sets its flag and then reads the tail once
 * more; we store the tail and then read the flag. Lock held; releases it. */
static void publish_unlock(struct m *mp, uint32_t n)
{
	bool asleep;

	check(lock_is_held(&ring.lock) && ring.state == RING_ON && room_for(n));
	ring.in_flight += n;
	/* release: the entries; pairs with the kernel's acquire */
	store_release(ring.q.sq_tail, *ring.q.sq_tail + n);
	fence_seqcst();
	asleep = is_asleep();
	lock_release(&ring.lock);
	if (asleep && unlikely(!wake_thread()))
		give_up(mp);
}

static void fill(struct io_uring_sqe *e, const struct file_op *op, struct g *gp)
{
	bool read = op->what == FILE_READ;

	e->fd = op->fd;
	e->user_data = (uintptr_t)gp;
	if (op->what == FILE_FSYNC) {
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

/* Completes after the entry before it, or cancels that one at the time. */
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
	publish_unlock(mp, (uint32_t)(uintptr_t)mp->after.arg);
}

ssize_t uring_run(const struct file_op *op)
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
	fd_count_wait(mp, false);
	mp = park(mp, commit, (void *)(uintptr_t)n, WAIT_IO);
	fd_count_wait(mp, true);
	r = mp->curg->io.result;
	rt_exit_free(mp);
	return r;
}

void uring_cancel(int fd)
{
	struct io_uring_sqe *e;
	struct m *mp;

	if (load_acquire(&ring.state) != RING_ON)
		return;
	mp = rt_enter_lock(&ring.lock);
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
 * taken is over, and may be reading the tail or an entry. So neither is changed. The
 * entry's slot in the queue is made void by one store. The kernel drops what is void:
 *
 *	take_back                       the kernel's thread
 *	the slot void                   NEED_WAKEUP off
 *	full barrier                    full barrier (it locks a mutex)
 *	NEED_WAKEUP on, and             the slot void: dropped++
 *	  head not past the slot?       head++
 *	yes: it is ours
 *
 * If not, the thread is awake or was, and goes through the whole queue. The number of
 * dropped entries tells whether it dropped this one or took it. */

/* Whether the entry at that place of the queue is ours again. voids: entries made void,
 * with this one, since *sq_dropped was at_first. Lock held. */
static bool take_back(uint32_t at, uint32_t voids, uint32_t at_first)
{
	/* relaxed: no other thread writes to it */
	store_relaxed(&ring.q.entry_of[at & ring.q.sq_mask], UINT32_MAX);
	fence_seqcst();
	for (int i = 0;; os_relax(i++)) {
		/* acquire: it slept before the head was as read below */
		bool asleep = load_acquire(ring.q.sq_flags) & IORING_SQ_NEED_WAKEUP;

		/* acquire: what was dropped; pairs with the kernel's release */
		if ((int32_t)(load_acquire(ring.q.sq_head) - at) > 0)
			return load_relaxed(ring.q.sq_dropped) - at_first == voids;
		if (asleep)
			return true;
	}
}

/* Goroutines whose operations the kernel has not taken go on the list. Lock held. */
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
			gp->io.result = -ENOSYS;
			ready_list_put(list, gp);
		}
	}
}

static void give_up_to(struct ready_list *list)
{
	lock_acquire(&ring.lock);
	if (ring.state == RING_ON) {
		store_relaxed(&ring.state, RING_OFF);	/* nothing is published now */
		take_all_back(list);
	}
	lock_release(&ring.lock);
}

static void give_up(struct m *mp)
{
	struct ready_list list = { NULL, NULL };

	give_up_to(&list);
	ready_list_all(mp, &list);
}

/* -------------------------------------------------------------- completions */

/* How long to wait for what is under way in a ring whose descriptor is closed. */
#define LAST_LOOKS   50000
#define LAST_LOOK_NS 100000

/* The ring is used no more, and the poller does not report it, so it is polled here. */
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

/* Timeouts and cancellations have no goroutine. The lock also orders this after the
 * submitter's commit: a completion may be faster. */
void uring_event(struct ready_list *list)
{
	uint32_t head;

	lock_acquire(&ring.lock);
	head = *ring.q.cq_head;
	/* acquire: the completions; pairs with the kernel's release. One that comes after
	 * this look makes another event. */
	while (head != load_acquire(ring.q.cq_tail)) {
		const struct io_uring_cqe *c = &ring.q.cqes[head & ring.q.cq_mask];
		struct g *gp = (struct g *)(uintptr_t)c->user_data;

		if (gp) {
			gp->io.result = c->res;
			ready_list_put(list, gp);
		}
		head++;
		check(ring.in_flight > 0);
		ring.in_flight--;
		/* release: the entry is read; pairs with the kernel's acquire */
		store_release(ring.q.cq_head, head);
	}
	lock_release(&ring.lock);
}
