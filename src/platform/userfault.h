/*
 * userfault.h - ranges of memory whose missing pages a thread of the runtime fills in
 *
 * A thread that touches a missing page of a watched range waits, in user code or in a
 * system call, until the server has put the page there. The server is one thread: it
 * alone makes all calls but userfault_poke and userfault_present. No call takes a libc
 * lock or sets errno. Failures are negative errno values.
 */
#ifndef GORO_USERFAULT_H
#define GORO_USERFAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The server's first call: it gets a descriptor table of its own. False: not possible. */
bool userfault_open(void);
/* Gives the server standard error again, for a message before it ends the process. */
void userfault_speak(void);

/* Watches whole pages that are not watched yet. Pages that are there stay, guards too. */
int userfault_watch(void *p, size_t n);
/* No thread may wait for a page of the range. The kernel fills it with zeroes again. */
int userfault_unwatch(void *p, size_t n);

/* Moves one page of a watched range to where no page is. Other threads find it missing at
 * once. -ENOENT: there is no page; -EBUSY: it is shared with another process, or the
 * system is writing to it by its physical address. */
int userfault_move(void *to, void *from);
/* Puts a copy where a page is missing, and wakes those that wait. -EEXIST: there is
 * one. */
int userfault_put(void *to, const void *from);
/* Wakes the threads that wait for this page, which touch it again. */
void userfault_wake(void *page);

/* Stores addresses that threads wait for, and returns their number. Does not wait. */
size_t userfault_read(uintptr_t *addr, size_t max);
/* Sleeps until there are such addresses, a poke, or the end of the time; -1: no end. */
void userfault_sleep(int64_t timeout_ns);
/* Ends the server's userfault_sleep. */
void userfault_poke(void);

/* Whether a page is there. */
bool userfault_present(void *page);

#endif
