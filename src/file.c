/*
 * file.c - calls that wait for the disk, or for a device that cannot be polled.
 *
 * They are announced blocking calls: the thread waits, and its P goes to others if it
 * takes long (syscall.c). EINTR is not for the caller to see, as with SA_RESTART.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <goro.h>

#include "syscall_raw.h"

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

ssize_t file_run(struct fd *f, const struct file_op *op)
{
	long r;

	(void)f;
	do {
		goro_syscall_enter();
		r = call(op);
		goro_syscall_exit();
	} while (r == -EINTR);
	return r;
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
	(void)f;
}
