/*
 * poll_park.c - see poll_park.h.
 *
 * Several descriptors are put into an epoll instance, which is a descriptor itself and
 * ready when one of them is. It is made anew for each wait: that costs some microseconds,
 * and nothing is to be remembered. What is ready, and what is wrong, poll itself says in
 * the end.
 */
#include "poll_park.h"

#include <errno.h>
#include <goro.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Those who name a descriptor twice wait for what either of them waits for. */
static int add(int set, const struct pollfd *fds, nfds_t i)
{
	struct epoll_event event = { .events = (uint32_t)fds[i].events };

	if (epoll_ctl(set, EPOLL_CTL_ADD, fds[i].fd, &event) == 0)
		return 0;
	if (errno != EEXIST)
		return -1;
	for (nfds_t k = 0; k < i; k++)
		if (fds[k].fd == fds[i].fd)
			event.events |= (uint32_t)fds[k].events;
	return epoll_ctl(set, EPOLL_CTL_MOD, fds[i].fd, &event);
}

/* As goro_poll: > 0, or 0 past the deadline, or -errno. */
static int wait_for_any(const struct pollfd *fds, nfds_t n, int64_t deadline)
{
	int set = epoll_create1(EPOLL_CLOEXEC), r;

	if (set < 0)
		return -errno;
	for (nfds_t i = 0; i < n; i++) {
		if (fds[i].fd >= 0 && add(set, fds, i) < 0) {
			r = -errno;
			close(set);
			return r;
		}
	}
	r = goro_poll(set, POLLIN, deadline);
	close(set);
	return r;
}

static int wait_once(const struct pollfd *fds, nfds_t n, int64_t deadline)
{
	const struct pollfd *only = NULL;
	nfds_t used = 0;

	for (nfds_t i = 0; i < n; i++) {
		if (fds[i].fd >= 0) {
			only = &fds[i];
			used++;
		}
	}
	if (used == 1)
		return goro_poll(only->fd, only->events, deadline);
	return wait_for_any(fds, n, deadline);
}

int poll_park(struct pollfd *fds, nfds_t n, int64_t deadline)
{
	for (;;) {
		int r = poll(fds, n, 0);

		if (r < 0 && errno == EINTR)
			continue;
		if (r != 0 || goro_now() >= deadline)
			return r;
		r = wait_once(fds, n, deadline);
		if (r < 0) {
			errno = -r;
			return -1;
		}
	}
}
