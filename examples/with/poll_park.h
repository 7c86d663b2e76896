/*
 * poll_park.h - poll(2) for goroutines, on any number of descriptors.
 *
 * To be copied, with poll_park.c. goro_poll waits for one descriptor; libraries that look
 * after several connections name several.
 */
#ifndef POLL_PARK_H
#define POLL_PARK_H

#include <poll.h>
#include <stdint.h>

/* As poll, with a deadline, a goro_now() time, in place of the timeout. -1 sets errno. */
int poll_park(struct pollfd *fds, nfds_t n, int64_t deadline);

#endif
