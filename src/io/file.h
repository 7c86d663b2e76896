/* file.h - calls that wait for the disk, or for a device that cannot be polled.
 * Defined in file.c. */
#ifndef GORO_FILE_H
#define GORO_FILE_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct fd;

struct file_op {
	enum { FILE_READ, FILE_WRITE, FILE_FSYNC } what;
	int fd;
	const struct iovec *iov;	/* the buffers; FILE_FSYNC: none */
	int iov_n;
	off_t off;			/* -1: at the file's position */
	int64_t deadline;		/* a time, or GORO_FOREVER */
};

/* Makes the call while other goroutines run. What the system call of the name returns, or
 * -errno. f is op->fd's, which the caller has entered. In user code. */
ssize_t file_run(struct fd *f, const struct file_op *op);

/* open(2) likewise, with these flags. In user code. */
int file_open(const char *path, int flags, mode_t mode);

/* f is being closed: cancels its calls that only wait in line. */
void file_cancel(struct fd *f);

#endif
