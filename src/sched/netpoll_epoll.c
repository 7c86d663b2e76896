/*
 * netpoll_epoll.c - the poller on Linux: one epoll instance, edge-triggered.
 *
 * What each function must do is said in netpoll.c. Two eventfds break sleeps, one
 * in the epoll set for the M that waits there, one beside it for sysmon, which only
 * watches. The first is always readable and edge-triggered, and registering it anew makes
 * an edge: that is harmless where one of the two numbers is another file's. The second is
 * written to and read. An old break costs at most one look for nothing.
 *
 * The three may be closed by the program: see "Descriptors that are closed" in netpoll.c.
 *
 * epoll_pwait2 (5.11) takes nanoseconds. Without it (or GORO_DEBUG=nopwait2=1) the wait
 * is a ppoll on the epoll descriptor itself, which does too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/time_types.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "base/debug.h"
#include "sched/netpoll.h"
#include "platform/own_fd.h"
#include "platform/sim.h"
#include "sched/rt.h"
#include "platform/sys.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

/* No descriptor has this tag (see fd_tag in fd.c), and the ring has another. */
#define BREAK_TAG UINT64_MAX

struct fds {
	int set;		/* the epoll descriptor */
	int break_fd;		/* in it */
	int watch_fd;		/* beside it */
};

/* Each changes when the poller is made again, while others use it. */
static struct fds fds = { -1, -1, -1 };
static bool no_pwait2;

static void close_all(struct fds *f)
{
	own_fd_close(&f->set, OWN_FD_POLLER);
	own_fd_close(&f->break_fd, OWN_FD_BREAK);
	own_fd_close(&f->watch_fd, OWN_FD_WATCH);
}

static int control_in(int set, int op, int fd, uint64_t tag, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.u64 = tag };

	return (int)sys4(SYS_epoll_ctl, set, op, fd, &e);
}

/* The set, or -1 where it can be seen to be another file: calls then say -EBADF. */
static int the_set(void)
{
	int set = load_relaxed(&fds.set);

	return unlikely(load_relaxed(&own_fd_near)) && !own_fd_is(set, OWN_FD_POLLER) ? -1 : set;
}

static int control(int op, int fd, uint64_t tag, uint32_t events)
{
	return control_in(the_set(), op, fd, tag, events);
}

/* A program that is just closing descriptors may close these, too. */
#define OPEN_TRIES 100

static int try_open(void)
{
	struct fds f;
	int r;

	f.set = own_fd_take((int)sys2(SYS_epoll_create1, EPOLL_CLOEXEC, 0), OWN_FD_POLLER);
	f.break_fd = own_fd_take((int)sys2(SYS_eventfd2, 1, EFD_CLOEXEC | EFD_NONBLOCK), OWN_FD_BREAK);
	f.watch_fd = own_fd_take((int)sys2(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK), OWN_FD_WATCH);
	r = f.set < 0 ? f.set : f.break_fd < 0 ? f.break_fd : f.watch_fd < 0 ? f.watch_fd :
	    control_in(f.set, EPOLL_CTL_ADD, f.break_fd, BREAK_TAG, EPOLLIN | EPOLLET);
	if (r < 0) {
		close_all(&f);
		return r;
	}
	store_relaxed(&fds.watch_fd, f.watch_fd);
	store_relaxed(&fds.break_fd, f.break_fd);
	store_relaxed(&fds.set, f.set);
	return r;
}

int netpoll_open(void)
{
	struct fds old = fds;
	int r = -EBADF;

	close_all(&old);	/* first: the new ones may get their numbers */
	for (int i = 0; (r == -EBADF || r == -EINVAL) && i < OPEN_TRIES; i++)
		r = try_open();
	return r;
}

bool netpoll_is_whole(void)
{
	return own_fd_is(load_relaxed(&fds.set), OWN_FD_POLLER) &&
	       own_fd_is(load_relaxed(&fds.break_fd), OWN_FD_BREAK) &&
	       own_fd_is(load_relaxed(&fds.watch_fd), OWN_FD_WATCH);
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

static long wait_precisely(int set, struct epoll_event *ev, int max, int64_t ns)
{
	struct __kernel_timespec t = { ns / 1000000000, ns % 1000000000 };
	struct pollfd p = { .fd = set, .events = POLLIN };
	long n;

	if (sim) {
		n = sim->poll(&p, 1, ns);
		return n <= 0 ? n : sys6(SYS_epoll_pwait, set, ev, max, 0, NULL, _NSIG / 8);
	}
	if (!load_relaxed(&no_pwait2) && !debug.nopwait2) {
		n = sys6(SYS_epoll_pwait2, set, ev, max, ns < 0 ? NULL : &t, NULL, _NSIG / 8);
		if (n != -ENOSYS && n != -EPERM)	/* containers deny it */
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
	int taken = 0, set = the_set();
	long n;

	if (max > NETPOLL_BATCH)
		max = NETPOLL_BATCH;
	if (ns == 0)
		n = sys6(SYS_epoll_pwait, set, ev, max, 0, NULL, _NSIG / 8);
	else
		n = wait_precisely(set, ev, max, ns);
	if (n == -EBADF || n == -EINVAL)
		return -EBADF;
	for (long i = 0; i < n; i++)
		if (ev[i].data.u64 != BREAK_TAG)
			out[taken++] = (struct netpoll_event){ ev[i].data.u64, what_of(ev[i].events) };
	return taken;
}

bool netpoll_break(void)
{
	return control(EPOLL_CTL_MOD, load_relaxed(&fds.break_fd), BREAK_TAG, EPOLLIN | EPOLLET) == 0;
}

int netpoll_watch(int64_t ns)
{
	struct __kernel_timespec t = { ns / 1000000000, ns % 1000000000 };
	struct pollfd p[2] = {
		{ .fd = load_relaxed(&fds.set), .events = POLLIN },
		{ .fd = load_relaxed(&fds.watch_fd), .events = POLLIN },
	};
	uint64_t count;

	if (sim) {
		sim->poll(p, 2, ns);
		t = (struct __kernel_timespec){ 0, 0 };
		ns = 0;
	}
	if (sys5(SYS_ppoll, p, 2, ns < 0 ? NULL : &t, NULL, _NSIG / 8) <= 0)
		return 0;
	if ((p[0].revents | p[1].revents) & POLLNVAL)
		return -EBADF;
	if (p[1].revents) {
		if (!own_fd_is(p[1].fd, OWN_FD_WATCH))
			return -EBADF;
		sys3(SYS_read, p[1].fd, &count, sizeof count);
	}
	return p[0].revents != 0;
}

/* Where it is lost sysmon comes at the end of its tick. */
void netpoll_watch_break(void)
{
	int fd = load_relaxed(&fds.watch_fd);
	uint64_t one = 1;

	if (own_fd_is(fd, OWN_FD_WATCH))
		sys3(SYS_write, fd, &one, sizeof one);
}
