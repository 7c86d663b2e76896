/* uring_queues.h - a ring of io_uring: its descriptor and its queues, shared with the
 * kernel */
#ifndef GORO_URING_QUEUES_H
#define GORO_URING_QUEUES_H

#include <linux/io_uring.h>
#include <stddef.h>
#include <stdint.h>

struct uring_queues {
	int fd;

	/* The submission queue. entry_of makes slot i of the queue entry i of sqes. */
	struct io_uring_sqe *sqes;
	uint32_t *sq_head, *sq_tail, *sq_flags, *sq_dropped, *entry_of, sq_mask, sq_entries;

	/* The completion queue. */
	struct io_uring_cqe *cqes;
	uint32_t *cq_head, *cq_tail, cq_mask, cq_entries;

	struct { void *at; size_t bytes; } mapped[3];
};

/* 0, or -errno and no ring; -ENOSYS, too, if a feature is missing (IORING_FEAT_...). */
int uring_queues_open(struct uring_queues *q, unsigned entries, struct io_uring_params *p,
                      uint32_t features);
/* Frees the ring, on which no call is under way. The program may have closed q->fd. */
void uring_queues_close(struct uring_queues *q);

#endif
