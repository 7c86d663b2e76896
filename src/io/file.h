/*
 * file.h - calls that wait for the disk, or for a device that cannot be polled.
 * Defined in file.c.
 */
#ifndef GORO_FILE_H
#define GORO_FILE_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct fd;

struct file_op {
	enum { FILE_READ, FILE_WRITE, FILE_PREAD, FILE_PWRITE, FILE_FSYNC } what;
	int fd;
	const struct iovec *iov;	/* where from or to; FILE_FSYNC: none */
	int iov_n;
	off_t off;			/* FILE_PREAD, FILE_PWRITE */
	int64_t deadline;		/* a time, or GORO_FOREVER */
};

/* Does it while other goroutines run. What the system call of the name returns, or
 * -errno. In user code; f, which the caller has entered, is op->fd's. */
ssize_t file_run(struct fd *f, const struct file_op *op);

/* open(2) likewise; flags as they are. */
int file_open(const char *path, int flags, mode_t mode);

/* f is being closed: what is under way on it need not be finished. */
void file_cancel(struct fd *f);

#endif
