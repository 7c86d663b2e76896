/* io.h - a call on a descriptor that parks the goroutine instead of blocking its thread.
 * Defined in io.c. */
#ifndef GORO_IO_H
#define GORO_IO_H

#include <goro.h>

#include "io/fd.h"

/* The arguments of a call; each call uses some of them. */
struct io {
	struct fd_use use;
	enum fd_way way;
	bool dont_wait;		/* the caller gets -EAGAIN */
	bool plain;		/* one buffer and flags only: the P may make the call */
	int flags;		/* MSG_ */
	const struct iovec *iov;
	int iov_n;
	void *addr;		/* the address to send to, or where to put the sender's */
	socklen_t *addr_len;
	struct msghdr *msg;
};

/* Tries once, without blocking: the result, or -errno. */
typedef ssize_t io_try(struct io *io);

/* Enters fd, tries until the result is not -EAGAIN, parking in between, and leaves. */
ssize_t io_call(int fd, struct io *io, io_try *try);
/* The part between enter and leave. */
ssize_t io_repeat(struct io *io, io_try *try);
/* The same call until total bytes are transferred, the file ends, or an error. The bytes
 * done, or the error if there are none; full: the error in any case. */
ssize_t io_call_all(int fd, struct io *io, io_try *try, const struct iovec *iov, int n,
                    size_t total, bool full);

/* Sets io's iov to the part of iov from byte at on that one call can take: the rest of an
 * entry, or all entries from one's beginning. first: room for the rest of an entry. */
void io_iov_from(struct io *io, const struct iovec *iov, int n, size_t at, struct iovec *first);
/* The bytes of all entries, or -EINVAL. */
ssize_t io_iov_total(const struct iovec *iov, size_t n);

#endif
