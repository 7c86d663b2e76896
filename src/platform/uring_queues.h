/*
 * uring_queues.h - a ring of io_uring: its descriptor and the two queues that are shared with
 * the kernel. Defined in uring_queues.c.
 */
#ifndef GORO_URING_QUEUES_H
#define GORO_URING_QUEUES_H

#include <linux/io_uring.h>
#include <stddef.h>
#include <stdint.h>

struct uring_queues {
	int fd;

	/* Of what is to be done. Slot i of the queue is entry i (entry_of). */
	struct io_uring_sqe *sqes;
	uint32_t *sq_head, *sq_tail, *sq_flags, *sq_dropped, *entry_of, sq_mask, sq_entries;

	/* Of what is done. */
	struct io_uring_cqe *cqes;
	uint32_t *cq_head, *cq_tail, cq_mask, cq_entries;

	struct { void *at; size_t bytes; } mapped[3];
};

/* Makes a ring with so many entries, as p says. 0, or -errno and there is none; -ENOSYS, too, if
 * the kernel has not all of these features (IORING_FEAT_). */
int uring_queues_open(struct uring_queues *q, unsigned entries, struct io_uring_params *p,
                      uint32_t features);
/* Nothing is under way. The program may have closed the descriptor. */
void uring_queues_close(struct uring_queues *q);

#endif
