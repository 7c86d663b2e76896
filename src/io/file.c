/*
 * file.c - calls that wait for the disk, or for a device that cannot be polled.
 *
 * What the page cache has is read or written without a wait: the first try is preadv2 or
 * pwritev2 with RWF_NOWAIT, in user code, which costs a system call and parks no
 * goroutine. A file that does not know RWF_NOWAIT (tmpfs, overlayfs, writes to ext4,
 * /proc) is remembered (no_nowait in fd.h), and the first try is left out.
 *
 * What is not in the page cache has to be waited for:
 *
 *	FILE_CALLS_FEW goroutines at a time wait in announced blocking calls (syscall.c):
 *	nothing is faster for a goroutine that reads alone.
 *
 *	Further ones wait parked, for io_uring (uring.c): no thread waits, and the disk
 *	sees as many requests at once as there are goroutines.
 *
 *	Without io_uring (an old kernel, a sandbox, GORO_DEBUG=nouring=1) there are up to
 *	FILE_CALLS_MAX blocking calls, and further ones wait their turn: a thousand
 *	goroutines do not make a thousand threads.
 *
 * The same holds for files that do not know RWF_NOWAIT, which mostly answer quickly.
 *
 * RWF_NOWAIT reads what is cached, which may be less than the file has. So another try
 * follows a short result, until all is read or the file ends, as with read(2).
 *
 * Reads and writes at the file's position take turns (fd_more.position): the kernel makes
 * them one at a time, but not those of io_uring.
 *
 * open(2) is an announced call. By io_uring a kernel thread would block in it instead of
 * ours, with the rights that the process had when the ring was made.
 *
 * Cancellation: the deadline that is set when an operation begins, and a close, end it
 * while it waits in line. What the disk has begun is waited for, since the buffers are
 * the kernel's until then.
 */
#define _GNU_SOURCE
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <goro.h>

#include "base/debug.h"
#include "io/fd.h"
#include "io/io.h"
#include "platform/os.h"
#include "sched/rt.h"
#include "platform/sys.h"
#include "io/uring.h"

/* Blocking calls on files at a time, where io_uring does the rest, and where it cannot:
 * more than any disk can use, and threads that any system can bear. For few reads a
 * blocking call is faster than the ring, whose thread has to be woken. */
#define FILE_CALLS_FEW 8
#define FILE_CALLS_MAX 128

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x8
#endif

/* ----------------------------------------------------------- blocking calls */

static long call(const struct file_op *op)
{
	bool read = op->what == FILE_READ;
	long fd = op->fd, iov = (long)op->iov, n = op->iov_n;

	if (op->what == FILE_FSYNC)
		return syscall_raw(SYS_fsync, fd, 0, 0, 0, 0, 0);
	if (op->off < 0)
		return syscall_raw(read ? SYS_readv : SYS_writev, fd, iov, n, 0, 0, 0);
	/* With one buffer the kernel has less to do. */
	if (read && n == 1)
		return syscall_raw(SYS_pread64, fd, (long)op->iov->iov_base, (long)op->iov->iov_len,
		                   op->off, 0, 0);
	/* Only 32-bit kernels look at the offset's high half. */
	return syscall_raw(read ? SYS_preadv : SYS_pwritev, fd, iov, n, op->off, 0, 0);
}

/* EINTR is hidden from the caller, as with SA_RESTART. */
static long announced(const struct file_op *op)
{
	long r;

	do {
		goro_syscall_enter();
		r = call(op);
		goro_syscall_exit();
	} while (r == -EINTR);
	return r;
}

static int calls;		/* goroutines in blocking calls, at most FILE_CALLS_FEW */

static bool few_enter(void)
{
	if (fetch_add_relaxed(&calls, 1) < FILE_CALLS_FEW)
		return true;
	fetch_add_relaxed(&calls, -1);
	return false;
}

static void places_init(void *arg)
{
	goro_sema_init(arg, FILE_CALLS_MAX - FILE_CALLS_FEW);
}

static long in_turn(const struct file_op *op)
{
	static goro_once once;
	static goro_sema places;
	long r;

	goro_once_do(&once, places_init, &places);
	r = goro_sema_acquire(&places, 1, op->deadline);
	if (r < 0)
		return r;
	r = announced(op);
	goro_sema_release(&places, 1);
	return r;
}

/* ------------------------------------------------------------------ the ring */

/* By io_uring. -ENOSYS: to be done in another way. */
static long by_ring(struct fd *f, const struct file_op *op)
{
	long r;

	for (;;) {
		r = uring_run(op);
		if (r == -ECANCELED && fd_is_closed(f))
			return r;
		if (r == -ECANCELED && op->deadline <= os_now())
			return -ETIMEDOUT;
		if (r != -ECANCELED && r != -EINTR)
			break;
	}
	/* io_uring does not wait for this file, or this kernel's does not */
	if (r == -EAGAIN || r == -EBUSY || r == -EINVAL || r == -EOPNOTSUPP)
		return -ENOSYS;
	return r;
}

static long wait_for_disk(struct fd *f, const struct file_op *op)
{
	long r;

	if (!debug.ringfirst && few_enter()) {
		r = announced(op);
		fetch_add_relaxed(&calls, -1);
		return r;
	}
	r = by_ring(f, op);
	return r == -ENOSYS ? in_turn(op) : r;
}

/* --------------------------------------------------------------- a transfer */

static long nowait(const struct file_op *op)
{
	return syscall_raw(op->what == FILE_READ ? SYS_preadv2 : SYS_pwritev2, op->fd,
	                   (long)op->iov, op->iov_n, op->off, 0, RWF_NOWAIT);
}

static uint8_t way_of(const struct file_op *op)
{
	return op->what == FILE_READ ? 1 << FD_READ : 1 << FD_WRITE;
}

static bool takes_nowait(const struct fd *f, const struct file_op *op)
{
	/* acquire: pairs with store_release in fd_more */
	const struct fd_more *more = load_acquire(&f->more);

	return !more || !(load_relaxed(&more->no_nowait) & way_of(op));
}

/* This file does not take RWF_NOWAIT, or the system call is missing or denied. The call
 * without the flag finds out which: each may also be the file's own error. */
static void no_nowait(struct fd *f, const struct file_op *op)
{
	struct fd_more *more = fd_more(f);

	if (more)	/* the next call sets a bit that another thread's store loses */
		store_relaxed(&more->no_nowait, load_relaxed(&more->no_nowait) | way_of(op));
}

/* As much as one call does. */
static long step(struct fd *f, const struct file_op *op)
{
	long r = likely(takes_nowait(f, op)) ? nowait(op) : -EAGAIN;

	switch (r) {
	case -EOPNOTSUPP: case -ENOSYS: case -EPERM:
		no_nowait(f, op);
		/* fallthrough */
	case -EAGAIN: case -EINTR: case -EINVAL:
		return wait_for_disk(f, op);
	default:
		return r;
	}
}

/* The rest, after a step that did less than it was to. */
static long go_on(struct fd *f, const struct file_op *op, size_t done, size_t total)
{
	struct file_op rest = *op;
	struct iovec first;
	struct io io;

	while (done < total) {
		long r;

		io_iov_from(&io, op->iov, op->iov_n, done, &first);
		rest.iov = io.iov;
		rest.iov_n = io.iov_n;
		rest.off = op->off < 0 ? -1 : op->off + (off_t)done;
		r = step(f, &rest);
		if (r <= 0)
			break;
		done += (size_t)r;
	}
	return (long)done;
}

static long transfer(struct fd *f, const struct file_op *op)
{
	size_t total = 0;
	long r = step(f, op);

	for (int i = 0; i < op->iov_n; i++)
		total += op->iov[i].iov_len;
	if (likely(r <= 0 || (size_t)r >= total))
		return r;
	return go_on(f, op, (size_t)r, total);
}

static long transfer_at_position(struct fd *f, const struct file_op *op)
{
	struct fd_more *more = fd_more(f);
	long r;

	if (!more)
		return -ENOMEM;
	goro_mutex_lock(&more->position);
	r = fd_is_closed(f) ? -ECANCELED : transfer(f, op);
	goro_mutex_unlock(&more->position);
	return r;
}

ssize_t file_run(struct fd *f, const struct file_op *op)
{
	if (load_relaxed(&f->kind) != FD_FILE)
		return announced(op);
	if (op->what == FILE_FSYNC)
		return wait_for_disk(f, op);
	return op->off < 0 ? transfer_at_position(f, op) : transfer(f, op);
}

int file_open(const char *path, int flags, mode_t mode)
{
	long r;

	do {
		goro_syscall_enter();
		r = syscall_raw(SYS_openat, AT_FDCWD, (long)path, flags, mode, 0, 0);
		goro_syscall_exit();
	} while (r == -EINTR);
	return (int)r;
}

void file_cancel(struct fd *f)
{
	uring_cancel(f->number);
}
