/*
 * own_fd.c - descriptors that the runtime keeps for itself.
 *
 * A program may close all descriptors that it does not know, as a daemon does at its start,
 * and be given their numbers for files of its own. The runtime must not use these, let alone
 * close them, and makes what it has lost again.
 *
 *	- Its own have numbers that the program does not get to for a while.
 *	- Each is marked, by the signal that F_SETSIG sets and nobody is ever sent, since
 *	  O_ASYNC is not set: F_GETSIG tells in 0.1 us whether a number is still ours. Where
 *	  something would happen to a file of the program's the mark is looked at first, and
 *	  where an operation fails.
 *	- Where a mark costs too much, as for each look at the poller, the distance of the
 *	  number is relied on: the look after the closing fails, and the program has not
 *	  opened a thousand files by then. If the limit is so low that it might have
 *	  (own_fd_near), the mark is looked at there, too.
 *
 * A table of descriptors that grows waits for all CPUs, 10 ms, if several threads share it. So
 * a program that starts the runtime when it has threads already keeps its small table.
 *
 * Rejected: comparing inodes, since all epolls, eventfds and timerfds have the same one.
 */
#define _GNU_SOURCE
#include "own_fd.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "atomic.h"
#include "sys.h"

/* Below the usual limit of 1,024, in the smallest larger table; and in the first table, of 64. */
#define FIRST_FAR  1000
#define FIRST_NEAR 44
/* Room below the limit. */
#define ROOM 32

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

int own_fd_take(int fd, enum own_fd what)
{
	long far;

	if (fd < 0)
		return fd;
	far = sys3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, first);
	if (far >= 0) {
		sys1(SYS_close, fd);
		fd = (int)far;
	} else {
		store_relaxed(&own_fd_near, true);
	}
	sys3(SYS_fcntl, fd, F_SETSIG, what);
	return fd;
}

bool own_fd_is(int fd, enum own_fd what)
{
	return fd >= 0 && (!marks_work || sys2(SYS_fcntl, fd, F_GETSIG) == (long)what);
}

void own_fd_close(int *fd, enum own_fd what)
{
	if (own_fd_is(*fd, what))
		sys1(SYS_close, *fd);
	*fd = -1;
}
