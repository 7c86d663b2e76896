/*
 * compact.h - memory for many small things of many sizes, given back to the system when
 * it is free. Defined in compact.c. One thread's: nothing is locked.
 */
#ifndef GORO_COMPACT_H
#define GORO_COMPACT_H

#include <stddef.h>

#define COMPACT_MAX 2112	/* the most that is to be had at once */

/* n bytes, of any content; NULL: no memory. */
void *compact_alloc(size_t n);
void compact_free(void *p);

/* Taken from the system at the moment; to be read by anybody. */
size_t compact_bytes(void);

#endif
