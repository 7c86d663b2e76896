/*
 * file.c - calls that wait for the disk, or for a device that cannot be polled.
 *
 * What a file has in the page cache is there for the asking: the first try is a
 * preadv2 or pwritev2 with RWF_NOWAIT, in user code, which costs a system call and
 * parks nobody. Where that has found everything FILE_CACHED_ENOUGH times in a row, it
 * will the next time, and the next read is a copy from a mapping (file_map.c), or a plain
 * call, which takes 0.1 us less. If that takes long something was not cached, and
 * RWF_NOWAIT is for the next again. Few wait unannounced: nobody begins to while
 * FILE_CALLS_FEW threads do anything without their Ps. (Where a file does not know
 * RWF_NOWAIT, answers that come at once are taken for cached.)
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
 * The same for files that do not know RWF_NOWAIT (writes to ext4, /proc), and whose
 * answer is mostly quick.
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
#include "file_map.h"
#include "io.h"
#include "os.h"
#include "rt.h"
#include "syscall_raw.h"
#include "ticks.h"
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

/* As if nothing had to be waited for. (With one buffer the kernel has less to do.) */
static long call_cached(const struct file_op *op)
{
	const struct iovec *v = op->iov;

	return op->what == FILE_PREAD && op->iov_n == 1
	       ? syscall_raw(SYS_pread64, op->fd, (long)v->iov_base, (long)v->iov_len, op->off, 0, 0)
	       : call(op);
}

/* Not by this kernel, or not for this file. */
static bool is_unknown(long r)
{
	return r == -EOPNOTSUPP || r == -ENOSYS || r == -EINVAL;
}

/* The answer, and that it came at once, as if it was cached. */
static long timed(struct fd *f, const struct file_op *op, bool expected)
{
	uint64_t since = ticks_now();
	long r = expected ? call_cached(op) : wait_for_disk(f, op);

	file_found(f, r >= 0 && ticks_now() - since <= ticks_long());
	return r;
}

/* -EAGAIN: what is to be read is not cached. */
static long read_now(struct fd *f, const struct file_op *op)
{
	long r;

	if (file_expected(f))
		return timed(f, op, true);
	r = nowait(op);
	if (is_unknown(r))
		return timed(f, op, false);
	file_found(f, r >= 0);
	return r;
}

/* One step: as much as one call does. */
static long step(struct fd *f, const struct file_op *op)
{
	long r = is_read(op) ? read_now(f, op) : nowait(op);

	if (likely(r >= 0))
		return r;
	if (r == -EAGAIN || r == -EINTR || (is_unknown(r) && !is_read(op)))
		return wait_for_disk(f, op);
	return r;
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
