/*
 * file.c - calls that wait for the disk, or for a device that cannot be polled.
 *
 * What a file has in the page cache is there for the asking: the first try is a
 * preadv2 or pwritev2 with RWF_NOWAIT, in user code, which costs a system call and
 * parks nobody. A file that does not know RWF_NOWAIT (tmpfs, overlayfs, writes to ext4,
 * /proc) is remembered as such (no_nowait in fd.h), and asked the slow way at once.
 *
 * What is not in the page cache has to be waited for:
 *
 *	FILE_CALLS_FEW goroutines at a time wait in announced blocking calls
 *	(syscall.c): nothing is faster for one who reads alone.
 *
 *	Beyond that they wait parked, for io_uring (uring.c): no thread waits, and
 *	the disk sees as many requests at once as there are goroutines.
 *
 *	Where that is not to be had (an old kernel, a sandbox, GORO_DEBUG=nouring=1),
 *	there are up to FILE_CALLS_MAX blocking calls, and who comes then waits its
 *	turn: a thousand goroutines do not make a thousand threads.
 *
 * The same for files that do not know RWF_NOWAIT, whose answer is mostly quick.
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
 */
#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <goro.h>

#include "debug.h"
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

	/* With one buffer the kernel has less to do: 50 ns of a cached read. */
	if (op->what == FILE_PREAD && n == 1)
		return syscall_raw(SYS_pread64, fd, (long)op->iov->iov_base, (long)op->iov->iov_len,
		                   op->off, 0, 0);
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

static int calls;		/* under way, of the few */

static bool few_enter(void)
{
	int n = load_relaxed(&calls);

	do {
		if (n >= FILE_CALLS_FEW)
			return false;
	} while (!cas_relaxed(&calls, &n, n + 1));
	return true;
}

static long as_one_of_few(const struct file_op *op)
{
	long r = announced(op);

	fetch_add_relaxed(&calls, -1);
	return r;
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

static long wait_for_disk(struct fd *f, const struct file_op *op)
{
	long r;

	if (!debug.ringfirst && few_enter())
		return as_one_of_few(op);
	r = by_ring(f, op);
	return r == -ENOSYS ? in_turn(op) : r;
}

/* --------------------------------------------------------------- a transfer */

static long nowait(const struct file_op *op)
{
	long off = at_position(op) ? -1 : op->off;

	return syscall_raw(is_read(op) ? SYS_preadv2 : SYS_pwritev2, op->fd, (long)op->iov, op->iov_n,
	                   off, 0, RWF_NOWAIT);
}

static uint8_t way_of(const struct file_op *op)
{
	return is_read(op) ? 1 << FD_READ : 1 << FD_WRITE;
}

static bool takes_nowait(const struct fd *f, const struct file_op *op)
{
	/* acquire: pairs with store_release in fd_more */
	const struct fd_more *more = load_acquire(&f->more);

	return !more || !(load_relaxed(&more->no_nowait) & way_of(op));
}

/* RWF_NOWAIT is not for this file, or the system call is missing or denied. Which is for
 * the call without it to find out: each may also be what the file itself has to say. */
static void no_nowait(struct fd *f, const struct file_op *op)
{
	struct fd_more *more = fd_more(f);

	if (more)	/* a bit that is lost to another thread is set by the next call */
		store_relaxed(&more->no_nowait, load_relaxed(&more->no_nowait) | way_of(op));
}

/* One step: as much as one call does. */
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
