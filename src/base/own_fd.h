/*
 * own_fd.h - descriptors that the runtime keeps for itself. Defined in own_fd.c.
 */
#ifndef GORO_OWN_FD_H
#define GORO_OWN_FD_H

#include <stdbool.h>

/* What a descriptor is for: the signal that marks it, see own_fd.c. Not 63 and 64, which
 * qemu-user keeps for itself and refuses as marks. */
enum own_fd {
	OWN_FD_POLLER = 62,
	OWN_FD_BREAK = 61,
	OWN_FD_WATCH = 60,
	OWN_FD_ALARM = 59,
	OWN_FD_RING = 58,
	OWN_FD_QUOTA = 57,
	OWN_FD_LOAD = 56,
	OWN_FD_TASKS = 55,
	OWN_FD_SELF = 54,
	OWN_FD_PROFILE = 53,
};

/* Some may have numbers that the program uses soon: look more often. */
extern bool own_fd_near;

/* Once, by os_init. */
void own_fd_init(bool single_threaded);
/* Moves a new descriptor out of the program's way and marks it: its number from then on. An
 * error (below 0) is passed on. */
int own_fd_take(int fd, enum own_fd what);
/* It is still what own_fd_take has marked. False for a number below 0. */
bool own_fd_is(int fd, enum own_fd what);
/* Closes it if it is still ours; *fd is -1 then. */
void own_fd_close(int *fd, enum own_fd what);

#endif
