/*
 * netpoll_epoll.c - the poller on Linux: one epoll instance, edge-triggered.
 *
 * What each function must do is said in netpoll.c. Two eventfds break sleeps, one
 * in the epoll set for who waits there, one beside it for sysmon, who only
 * watches. Both are edge-triggered or read, so that an old break costs at most one
 * look for nothing.
 *
 * epoll_pwait2 (5.11) takes nanoseconds. Without it (or GORO_DEBUG=nopwait2=1) the wait is a ppoll on the
 * epoll descriptor itself, which does too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/time_types.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "debug.h"
#include "netpoll.h"
#include "sys.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

/* No descriptor has this tag (see fd_tag in fd.c), and the ring has another. */
#define BREAK_TAG UINT64_MAX

static int set = -1;		/* the epoll descriptor */
static int break_fd = -1;	/* in it */
static int watch_fd = -1;	/* beside it */
static bool no_pwait2;

static void close_all(void)
{
	for (int *fd[] = { &set, &break_fd, &watch_fd }, **at = fd; at < fd + 3; at++) {
		if (**at >= 0)
			sys2(SYS_close, **at, 0);
		**at = -1;
	}
}

static int control(int op, int fd, uint64_t tag, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.u64 = tag };

	return (int)sys4(SYS_epoll_ctl, set, op, fd, &e);
}

int netpoll_open(void)
{
	int r;

	set = (int)sys2(SYS_epoll_create1, EPOLL_CLOEXEC, 0);
	break_fd = (int)sys2(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
	watch_fd = (int)sys2(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = set < 0 ? set : break_fd < 0 ? break_fd : watch_fd < 0 ? watch_fd :
	    control(EPOLL_CTL_ADD, break_fd, BREAK_TAG, EPOLLIN | EPOLLET);
	if (r < 0)
		close_all();
	return r;
}

static uint32_t events_of(unsigned what)
{
	uint32_t events = EPOLLET;

	if (what & NETPOLL_READ)
		events |= EPOLLIN | EPOLLRDHUP | EPOLLPRI;
	if (what & NETPOLL_WRITE)
		events |= EPOLLOUT;
	return events;
}

int netpoll_add(int fd, uint64_t tag, unsigned what)
{
	return control(EPOLL_CTL_ADD, fd, tag, events_of(what));
}

int netpoll_modify(int fd, uint64_t tag, unsigned what)
{
	return control(EPOLL_CTL_MOD, fd, tag, events_of(what));
}

void netpoll_remove(int fd)
{
	control(EPOLL_CTL_DEL, fd, 0, 0);
}

static long wait_precisely(struct epoll_event *ev, int max, int64_t ns)
{
	struct __kernel_timespec t = { ns / 1000000000, ns % 1000000000 };
	struct pollfd p = { .fd = set, .events = POLLIN };
	long n;

	if (!load_relaxed(&no_pwait2) && !debug.nopwait2) {
		n = sys6(SYS_epoll_pwait2, set, ev, max, ns < 0 ? NULL : &t, NULL, _NSIG / 8);
		if (n != -ENOSYS)
			return n;
		store_relaxed(&no_pwait2, true);
	}
	n = sys5(SYS_ppoll, &p, 1, ns < 0 ? NULL : &t, NULL, _NSIG / 8);
	return n <= 0 ? n : sys6(SYS_epoll_pwait, set, ev, max, 0, NULL, _NSIG / 8);
}

static uint32_t what_of(uint32_t events)
{
	uint32_t what = 0;

	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLPRI | EPOLLHUP | EPOLLERR))
		what |= NETPOLL_READ;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		what |= NETPOLL_WRITE;
	return what;
}

int netpoll_take(struct netpoll_event *out, int max, int64_t ns)
{
	struct epoll_event ev[NETPOLL_BATCH];
	int taken = 0;
	long n;

	if (max > NETPOLL_BATCH)
		max = NETPOLL_BATCH;
	if (ns == 0)
		n = sys6(SYS_epoll_pwait, set, ev, max, 0, NULL, _NSIG / 8);
	else
		n = wait_precisely(ev, max, ns);
	for (long i = 0; i < n; i++)
		if (ev[i].data.u64 != BREAK_TAG)
			out[taken++] = (struct netpoll_event){ ev[i].data.u64, what_of(ev[i].events) };
	return taken;
}

static void raise_event(int fd)
{
	uint64_t one = 1;

	sys3(SYS_write, fd, &one, sizeof one);
}

void netpoll_break(void)
{
	raise_event(break_fd);
}

bool netpoll_watch(int64_t ns)
{
	struct __kernel_timespec t = { ns / 1000000000, ns % 1000000000 };
	struct pollfd p[2] = {
		{ .fd = set, .events = POLLIN },
		{ .fd = watch_fd, .events = POLLIN },
	};
	uint64_t count;

	if (sys5(SYS_ppoll, p, 2, ns < 0 ? NULL : &t, NULL, _NSIG / 8) <= 0)
		return false;
	if (p[1].revents)
		sys3(SYS_read, watch_fd, &count, sizeof count);
	return p[0].revents != 0;
}

void netpoll_watch_break(void)
{
	raise_event(watch_fd);
}
