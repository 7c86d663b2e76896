/*
 * fd_ring.h - many calls on sockets by one system call. Defined in fd_ring.c.
 */
#ifndef GORO_FD_RING_H
#define GORO_FD_RING_H

#include <linux/io_uring.h>

#include "netpoll.h"
#include "types.h"

#define FD_RING_MAX NETPOLL_BATCH	/* calls at a time */

struct fd_ring;

/* There is use for one. True: there was for a while, and there are some. */
bool fd_ring_wanted(void);

/* The P's, for the caller alone until it is put back; NULL: it has none, or it is in use. In state
 * RUNTIME. */
struct fd_ring *fd_ring_take(const struct p *pp);
void fd_ring_put(struct fd_ring *r);

/* The i-th call, to be filled; user_data: the G. */
struct io_uring_sqe *fd_ring_call(const struct fd_ring *r, uint32_t i);

/* Makes the first n calls, none of which may wait. done is told the answer to each that the
 * kernel took, in no order. How many it took. */
typedef void fd_ring_done(struct g *gp, int answer);
uint32_t fd_ring_run(struct fd_ring *r, uint32_t n, fd_ring_done *done);

/* The answer is what the call came to; else it is to be made anew, without a ring. */
bool fd_ring_is_result(int answer);

#endif
