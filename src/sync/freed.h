/*
 * freed.h - objects that are used after they were freed: found out, on request.
 *
 * With GORO_DEBUG=chan=1, and in debug builds unless chan=-1, what the program frees of
 * channels, timers, tickers, contexts, groups and pools is not given back at once: it
 * stays until FREED_KEPT others have been freed. Its lock is held for good and says so.
 * An operation on it wants the lock, does not get it at once, and on the slow way that it
 * then takes finds out: lock_slow ends the process, and channels panic before (chan_freed.c).
 *
 * That costs nothing where it is off, nor on the quick ways where it is on.
 */
#ifndef GORO_FREED_H
#define GORO_FREED_H

#include "lock.h"

/* What is freed is found out for as long as it takes to free this many others. */
#define FREED_KEPT 4096

/* In user code. Frees what lies in block (by malloc), now or later. l: its lock, that
 * nobody has or wants, or NULL. True: it is kept. */
bool freed_release(void *block, struct lock *l);

#endif
