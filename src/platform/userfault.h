/*
 * userfault.h - ranges of memory whose missing pages a thread of ours fills in.
 * Defined in userfault_linux.c.
 *
 * Whoever touches a missing page of a watched range waits, in user code or within a
 * system call, until the page is put there. All calls but prepare, poke and
 * present are one thread's, the server's; none takes a libc lock or sets errno, and
 * failures are negative errno values.
 */
#ifndef GORO_USERFAULT_H
#define GORO_USERFAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Once, before the server is made. false: not to be had here. */
bool userfault_prepare(void);
/* Once, first of all in the server. From then on it has no descriptors but its own. */
bool userfault_open(void);
/* The server's last words: it has standard error again. */
void userfault_speak(void);

/* Whole pages, not watched already. Pages that are there stay, and so do guards. */
int userfault_watch(void *p, size_t n);
/* Nobody may be missing anything in it: it is filled with zeroes as usual from now on. */
int userfault_unwatch(void *p, size_t n);

/* Moves one page to where none is, in a watched range: in one step, as others see it,
 * who find it missing from then on. -ENOENT: there is none; -EBUSY: it is shared with
 * another process, or the system is writing to it by its physical address. */
int userfault_move(void *to, void *from);
/* Puts a copy of a page where one is missing; who waits for it goes on. -EEXIST: there
 * is one. */
int userfault_put(void *to, const void *from);
/* Who waits for this page looks again. */
void userfault_wake(void *page);

/* Addresses that somebody waits for; how many. Does not wait. */
size_t userfault_read(uintptr_t *addr, size_t max);
/* Sleeps until there are some, somebody pokes, or the time is up; -1: no time. */
void userfault_sleep(int64_t timeout_ns);
void userfault_poke(void);

/* Whether a page is there. */
bool userfault_present(void *page);

#endif
