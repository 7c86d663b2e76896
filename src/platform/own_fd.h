/*
 * own_fd.h - descriptors that the runtime keeps for itself. Defined in own_fd.c.
 */
#ifndef GORO_OWN_FD_H
#define GORO_OWN_FD_H

#include <stdbool.h>

/* What a descriptor is for: the signal that marks it, see own_fd.c. Not 63 and 64:
 * qemu-user keeps them for itself and refuses them as marks. */
enum own_fd {
	OWN_FD_POLLER = 62,
	OWN_FD_BREAK = 61,
	OWN_FD_WATCH = 60,
	OWN_FD_RING = 58,
	OWN_FD_QUOTA = 57,
	OWN_FD_LOAD = 56,
	OWN_FD_TASKS = 55,
	OWN_FD_PROFILE = 53,
	OWN_FD_DEBUG = 52,
};

/* The program may soon reach some of the numbers: the mark is looked at more often. */
extern bool own_fd_near;

/* Called once, by os_init. */
void own_fd_init(bool single_threaded);
/* Moves a new descriptor out of the program's way and marks it. Returns its new number.
 * Passes on an error (below 0). */
int own_fd_take(int fd, enum own_fd what);
/* The same for one of many, which leave the highest numbers to the others. */
int own_fd_take_many(int fd, enum own_fd what);
/* A copy out of the program's way, or -errno, without a mark: it would be the
 * original's. */
int own_fd_copy(int fd);
/* Whether fd is still what own_fd_take has marked. False for a number below 0. */
bool own_fd_is(int fd, enum own_fd what);
/* Closes *fd if it is still ours, and makes it -1. */
void own_fd_close(int *fd, enum own_fd what);

#endif
