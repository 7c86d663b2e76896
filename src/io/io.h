/*
 * io.h - a call on a descriptor that parks the goroutine instead of blocking its
 * thread. Defined in io.c.
 */
#ifndef GORO_IO_H
#define GORO_IO_H

#include <goro.h>

#include "fd.h"

/* The arguments of a call; which of them are used depends on the call. */
struct io {
	struct fd_use use;
	enum fd_way way;
	bool dont_wait;		/* -EAGAIN is for the caller */
	bool posts;		/* a plain send of iov, with flags: it may be put off */
	int flags;		/* MSG_ */
	const struct iovec *iov;
	int iov_n;
	void *addr;		/* of a socket: to, or where to put it */
	socklen_t *addr_len;
	struct msghdr *msg;
};

/* One try, without blocking: the result, or -errno. */
typedef ssize_t io_try(struct io *io);

/* Enters fd, tries until the answer is not -EAGAIN, parking in between, and leaves. */
ssize_t io_call(int fd, struct io *io, io_try *try);
/* The part in between. */
ssize_t io_repeat(struct io *io, io_try *try);

/* Sets io's iov to the part from byte at on, as far as one call can take it: the rest
 * of the entry that it begins in, or all from an entry's beginning. */
void io_iov_from(struct io *io, const struct iovec *iov, int n, size_t at, struct iovec *first);
/* All bytes of it, or -EINVAL. */
ssize_t io_iov_total(const struct iovec *iov, size_t n);

#endif
