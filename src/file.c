/*
 * file.c - calls that wait for the disk, or for a device that cannot be polled.
 *
 * What a file has in the page cache is there for the asking: the first try is a
 * preadv2 or pwritev2 with RWF_NOWAIT, in user code, which costs a system call and
 * parks nobody. What it has not is asked for by io_uring (uring.c), while the
 * goroutine is parked and no thread waits. Where that is not to be had (an old kernel,
 * a sandbox, GORO_DEBUG=nouring=1), and for devices and filesystems that do not know
 * RWF_NOWAIT, whose answer is mostly quick, it is an announced blocking call: the
 * thread waits, and its P goes to others if it takes long (syscall.c).
 *
 * Of such calls on files there are FILE_CALLS_MAX at once, so that a thousand
 * goroutines do not make a thousand threads; beyond that io_uring is asked after all,
 * or the goroutine waits its turn.
 *
 * RWF_NOWAIT reads as much as is cached, which may be less than there is; so a short
 * answer is followed by another question, until all is read or the end is found. Thus
 * reads of files are as full as those of read(2).
 *
 * Reads and writes at the file's position take turns (struct fd's position): the
 * kernel lets one at a time do that, but not those by io_uring.
 *
 * open(2) is an announced call. By io_uring it would be done by a thread of the
 * kernel's that blocks instead of ours, with the rights that the process had when
 * the ring was made.
 *
 * Cancellation: the deadline that is set when an operation begins, and a close, end it
 * while it waits in line. What the disk has begun is waited for, since the buffers are
 * the kernel's until then.
 *
 * Rejected: reading from a mapping of the file, which for cached data takes half the
 * time of any system call. How much of the last page belongs to the file only a
 * system call tells, a file that is cut short meanwhile is a SIGBUS, and a mapping
 * outlives the descriptor.
 */
#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <goro.h>

#include "fd.h"
#include "io.h"
#include "os.h"
#include "rt.h"
#include "syscall_raw.h"
#include "uring.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x8
#endif

static bool is_read(const struct file_op *op)
{
	return op->what == FILE_READ || op->what == FILE_PREAD;
}

static bool at_position(const struct file_op *op)
{
	return op->what == FILE_READ || op->what == FILE_WRITE;
}

/* ----------------------------------------------------------- blocking calls */

static long call(const struct file_op *op)
{
	long fd = op->fd, iov = (long)op->iov, n = op->iov_n;

	/* The offset's high half is looked at by 32-bit kernels alone. */
	switch (op->what) {
	case FILE_READ:
		return syscall_raw(SYS_readv, fd, iov, n, 0, 0, 0);
	case FILE_WRITE:
		return syscall_raw(SYS_writev, fd, iov, n, 0, 0, 0);
	case FILE_PREAD:
		return syscall_raw(SYS_preadv, fd, iov, n, op->off, 0, 0);
	case FILE_PWRITE:
		return syscall_raw(SYS_pwritev, fd, iov, n, op->off, 0, 0);
	case FILE_FSYNC:
		return syscall_raw(SYS_fsync, fd, 0, 0, 0, 0, 0);
	}
	return -EINVAL;
}

/* EINTR is not for the caller to see, as with SA_RESTART. */
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

static void places_init(void *arg)
{
	goro_sema_init(arg, FILE_CALLS_MAX);
}

/* Places for those that wait for a disk. */
static goro_sema *places(void)
{
	static goro_once once;
	static goro_sema s;

	goro_once_do(&once, places_init, &s);
	return &s;
}

static long in_place(const struct file_op *op)
{
	long r = announced(op);

	goro_sema_release(places(), 1);
	return r;
}

/* ------------------------------------------------------------------ the ring */

/* -ENOSYS: in another way. */
static long by_ring(struct fd *f, const struct file_op *op)
{
	struct uring_op u = {
		.what = op->what == FILE_FSYNC ? URING_FSYNC : is_read(op) ? URING_READ : URING_WRITE,
		.fd = op->fd,
		.iov = op->iov,
		.iov_n = op->iov_n,
		.off = at_position(op) ? -1 : op->off,
		.deadline = op->deadline,
	};
	long r;

	for (;;) {
		r = uring_run(&u);
		if (r == -ECANCELED && fd_is_closed(f))
			return r;
		if (r == -ECANCELED && op->deadline <= os_now())
			return -ETIMEDOUT;
		if (r != -ECANCELED && r != -EINTR)
			break;
	}
	/* -EAGAIN: it does not wait for this file; others: not by this kernel. */
	if (r == -EAGAIN || r == -EBUSY || r == -EINVAL || r == -EOPNOTSUPP)
		return -ENOSYS;
	return r;
}

static long with_ring(struct fd *f, const struct file_op *op)
{
	long r = by_ring(f, op);

	if (r != -ENOSYS)
		return r;
	r = goro_sema_acquire(places(), 1, op->deadline);
	return r < 0 ? r : in_place(op);
}

static long without_ring(struct fd *f, const struct file_op *op)
{
	if (goro_sema_try_acquire(places(), 1))
		return in_place(op);
	return with_ring(f, op);
}

/* --------------------------------------------------------------- a transfer */

static long nowait(const struct file_op *op)
{
	long off = at_position(op) ? -1 : op->off;

	return syscall_raw(is_read(op) ? SYS_preadv2 : SYS_pwritev2, op->fd, (long)op->iov, op->iov_n,
	                   off, 0, RWF_NOWAIT);
}

/* One step: as much as one call does. */
static long step(struct fd *f, const struct file_op *op)
{
	long r = nowait(op);

	if (likely(r >= 0))
		return r;
	if (r == -EAGAIN)
		return with_ring(f, op);
	if (r == -EOPNOTSUPP || r == -ENOSYS || r == -EINVAL)
		return without_ring(f, op);
	return r == -EINTR ? announced(op) : r;
}

/* The rest, after a step that did less than it was asked to. */
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
		rest.off = op->off + (off_t)done;
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
	long r;

	goro_mutex_lock(&f->position);
	r = fd_is_closed(f) ? -ECANCELED : transfer(f, op);
	goro_mutex_unlock(&f->position);
	return r;
}

ssize_t file_run(struct fd *f, const struct file_op *op)
{
	if (load_relaxed(&f->kind) != FD_FILE)
		return announced(op);
	if (op->what == FILE_FSYNC)
		return with_ring(f, op);
	return at_position(op) ? transfer_at_position(f, op) : transfer(f, op);
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
