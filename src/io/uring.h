/*
 * uring.h - operations on files by io_uring. Defined in uring.c.
 */
#ifndef GORO_URING_H
#define GORO_URING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct ready_list;

enum uring_what { URING_READ, URING_WRITE, URING_FSYNC };

struct uring_op {
	enum uring_what what;
	int fd;
	const struct iovec *iov;	/* valid until the operation is over */
	int iov_n;
	off_t off;			/* -1: at the file's position */
	int64_t deadline;		/* a time, or GORO_FOREVER */
};

/* Parks until the operation is over. Its result, or -errno. -ECANCELED: the deadline
 * has passed, somebody called uring_cancel, or neither: it did not happen, or not
 * all of it. -ENOSYS, -EBUSY: to be done in another way, now or always. In user code. */
ssize_t uring_run(const struct uring_op *op);

/* Operations on fd that are under way need not be finished. */
void uring_cancel(int fd);

/* The poller is another one, or the program has closed the ring: it is watched again, or given
 * up when what is under way is over; then its goroutines go on the list. */
void uring_watch_again(struct ready_list *list);

/* The poller's: appends to the list those whose operations are over. */
void uring_event(struct ready_list *list);
/* The tag of its events. */
#define URING_TAG (UINT64_MAX - 1)

int uring_threads(void);	/* of the kernel's in this process, for it: 0 or 1 */
bool uring_works(void);		/* for tests */

#endif
