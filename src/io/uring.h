/* uring.h - operations on files by io_uring. Defined in uring.c. */
#ifndef GORO_URING_H
#define GORO_URING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct file_op;
struct ready_list;

/* Parks until the operation is over. Its result, or -errno. -ECANCELED: it did not
 * happen, or only in part: the deadline has passed, uring_cancel was called, or neither.
 * -ENOSYS: to be done in another way, always; -EBUSY: this time. In user code. */
ssize_t uring_run(const struct file_op *op);

/* Cancels what waits in line on fd. In user code. */
void uring_cancel(int fd);

/* The poller was made anew, or the program has closed the ring. It is watched again, or
 * given up when what is under way is over. Its goroutines go on the list. */
void uring_watch_again(struct ready_list *list);

/* An event of the ring: appends goroutines whose operations are over to the list. */
void uring_event(struct ready_list *list);
/* The tag of the ring's events. */
#define URING_TAG (UINT64_MAX - 1)

bool uring_works(void);		/* for tests */

/* The kernel's in this process, for the ring: 0 or 1. */
int uring_threads(void);

#endif
