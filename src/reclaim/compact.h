/*
 * compact.h - memory for many small blocks of many sizes, given back to the system when
 * it is free. Defined in compact.c. It belongs to one thread, the server of evacuate.c:
 * nothing is locked.
 */
#ifndef GORO_COMPACT_H
#define GORO_COMPACT_H

#include <stddef.h>

#define COMPACT_MAX 2112	/* the largest block */

/* n bytes, not zeroed. NULL: no memory. */
void *compact_alloc(size_t n);
void compact_free(void *p);

/* Bytes held from the system now. Any thread. */
size_t compact_bytes(void);

#endif
