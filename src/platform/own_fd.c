/*
 * own_fd.c - descriptors that the runtime keeps for itself.
 *
 * A program may close all descriptors that it does not know, as a daemon does at its
 * start, and then get their numbers for files of its own. The runtime must not use these
 * files, let alone close them, and makes the descriptors that it has lost again.
 *
 *	- The runtime's descriptors have numbers that the program does not reach for a
 *	  while.
 *	- Each is marked, by the signal that F_SETSIG sets, which is never sent without
 *	  O_ASYNC. F_GETSIG then tells whether a number is still ours. The runtime
 *	  looks at the mark before an operation that would change a file of the
 *	  program, and after an operation that failed.
 *	- Where a mark costs too much, as for each look at the poller, the runtime
 *	  relies on the distance of the number: the first look after the close fails,
 *	  and by then the program has not opened a thousand files. If the limit is so
 *	  low that it may have (own_fd_near), the runtime looks at the mark there, too.
 *
 * If several threads share a table of descriptors, a table that grows waits for all CPUs,
 * 10 ms. So a program that has threads when it starts the runtime keeps its small table.
 *
 * Rejected: comparing inodes. All epolls, eventfds and timerfds have the same one.
 */
#define _GNU_SOURCE
#include "platform/own_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "platform/atomic.h"
#include "platform/sys.h"

/* In the smallest table beyond the first, below the usual limit; and in the first. */
#define FIRST_FAR  1000
#define FIRST_NEAR 44
/* Room below the limit. */
#define ROOM 32
/* How far below those the numbers of own_fd_take_many begin. */
#define MANY 96

bool own_fd_near;
static int first;
static bool marks_work;

static bool marks_can_be_read(void)
{
	int fd = (int)sys2(SYS_eventfd2, 0, EFD_CLOEXEC);
	bool yes = fd >= 0 && sys3(SYS_fcntl, fd, F_SETSIG, OWN_FD_POLLER) == 0 &&
	           sys2(SYS_fcntl, fd, F_GETSIG) == OWN_FD_POLLER;

	if (fd >= 0)
		sys1(SYS_close, fd);
	return yes;
}

void own_fd_init(bool single_threaded)
{
	struct rlimit limit;

	first = single_threaded ? FIRST_FAR : FIRST_NEAR;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)first + ROOM)
		first = limit.rlim_cur > ROOM ? (int)limit.rlim_cur - ROOM : 0;
	own_fd_near = first < FIRST_FAR;
	marks_work = marks_can_be_read();
}

/* far: a copy of fd, or below 0. Marks and returns the one of them that is kept. */
static int keep(int fd, long far, enum own_fd what)
{
	long error;

	if (far >= 0) {
		sys1(SYS_close, fd);
		fd = (int)far;
	}
	error = sys3(SYS_fcntl, fd, F_SETSIG, what);
	/* A sandbox may deny it in the middle of the run. If the program has just closed
	 * fd, that says nothing about marks. */
	if (error < 0 && error != -EBADF)
		store_relaxed(&marks_work, false);
	return fd;
}

int own_fd_take(int fd, enum own_fd what)
{
	long far;

	if (fd < 0)
		return fd;
	far = sys3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, first);
	if (far < 0)
		store_relaxed(&own_fd_near, true);
	return keep(fd, far, what);
}

/* A small table has no room for many: there they get a mark only. */
int own_fd_take_many(int fd, enum own_fd what)
{
	if (fd < 0)
		return fd;
	return keep(fd, first > MANY ? sys3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, first - MANY) : -1,
	            what);
}

int own_fd_copy(int fd)
{
	int far = (int)sys3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, first);

	return far >= 0 ? far : (int)sys3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
}

/* If a sandbox does not let the mark be read, nothing is known against fd. */
bool own_fd_is(int fd, enum own_fd what)
{
	long mark;

	if (fd < 0 || !load_relaxed(&marks_work))
		return fd >= 0;
	mark = sys2(SYS_fcntl, fd, F_GETSIG);
	return mark == (long)what || (mark < 0 && mark != -EBADF);
}

void own_fd_close(int *fd, enum own_fd what)
{
	if (own_fd_is(*fd, what))
		sys1(SYS_close, *fd);
	*fd = -1;
}
