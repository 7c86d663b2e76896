/*
 * freed.h - finds the use of an object after its free, on request.
 *
 * With GORO_DEBUG=chan=1, and in debug builds unless chan=-1, a channel, timer, ticker,
 * context, group or pool that the program frees is kept until FREED_KEPT others were
 * freed. Its lock is held for good, and marked. An operation on the object fails to take
 * the lock at once, goes the slow way, and sees the mark there: lock_slow ends the
 * process, and a channel panics before that (chan_freed.c).
 *
 * This costs nothing while it is off, and nothing on fast paths while it is on.
 */
#ifndef GORO_FREED_H
#define GORO_FREED_H

#include "base/lock.h"

/* An object is kept until this many others were freed. */
#define FREED_KEPT 4096

/* In user code. Frees block, which malloc made, now or later. l: the lock in it, which no
 * thread has or wants; or NULL. True: it is kept. */
bool freed_release(void *block, struct lock *l);

#endif
