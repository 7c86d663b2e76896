/*
 * uring_queues.c - making a ring of io_uring, and taking it down
 *
 * If one mapping fails, the others are unmapped: each would keep the ring in the kernel,
 * even with its descriptor closed.
 */
#include "platform/uring_queues.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "platform/own_fd.h"
#include "platform/sys.h"

enum { SQ, CQ, SQES };

static bool map(struct uring_queues *q, int i, size_t bytes, uint64_t off)
{
	long p = sys6(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, q->fd, off);

	if (p < 0 && p > -4096)
		return false;
	q->mapped[i].at = (void *)p;
	q->mapped[i].bytes = bytes;
	return true;
}

static bool map_all(struct uring_queues *q, const struct io_uring_params *p)
{
	return map(q, SQ, p->sq_off.array + p->sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING) &&
	       map(q, CQ, p->cq_off.cqes + p->cq_entries * sizeof *q->cqes, IORING_OFF_CQ_RING) &&
	       map(q, SQES, p->sq_entries * sizeof *q->sqes, IORING_OFF_SQES);
}

static void find_all(struct uring_queues *q, const struct io_uring_params *p)
{
	char *sq = q->mapped[SQ].at, *cq = q->mapped[CQ].at;

	q->sqes = q->mapped[SQES].at;
	q->sq_head = (uint32_t *)(sq + p->sq_off.head);
	q->sq_tail = (uint32_t *)(sq + p->sq_off.tail);
	q->sq_flags = (uint32_t *)(sq + p->sq_off.flags);
	q->sq_dropped = (uint32_t *)(sq + p->sq_off.dropped);
	q->entry_of = (uint32_t *)(sq + p->sq_off.array);
	q->sq_mask = p->sq_entries - 1;
	q->sq_entries = p->sq_entries;
	q->cqes = (struct io_uring_cqe *)(cq + p->cq_off.cqes);
	q->cq_head = (uint32_t *)(cq + p->cq_off.head);
	q->cq_tail = (uint32_t *)(cq + p->cq_off.tail);
	q->cq_mask = p->cq_entries - 1;
	q->cq_entries = p->cq_entries;
	for (uint32_t i = 0; i < p->sq_entries; i++)
		q->entry_of[i] = i;
}

int uring_queues_open(struct uring_queues *q, unsigned entries, struct io_uring_params *p,
                      uint32_t features)
{
	int error = -ENOSYS;

	*q = (struct uring_queues){ .fd = own_fd_take((int)sys2(SYS_io_uring_setup, entries, p),
	                                              OWN_FD_RING) };
	if (q->fd < 0)
		return q->fd;
	if ((p->features & features) == features) {
		error = -ENOMEM;
		if (map_all(q, p)) {
			find_all(q, p);
			return 0;
		}
	}
	uring_queues_close(q);
	return error;
}

void uring_queues_close(struct uring_queues *q)
{
	for (int i = SQ; i <= SQES; i++)
		if (q->mapped[i].at)
			sys2(SYS_munmap, q->mapped[i].at, q->mapped[i].bytes);
	own_fd_close(&q->fd, OWN_FD_RING);
}
