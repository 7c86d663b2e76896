/*
 * mem.h - memory for the runtime's own structures. Defined in mem.c.
 */
#ifndef GORO_MEM_H
#define GORO_MEM_H

#include <stddef.h>

/* n zeroed bytes on cache lines of their own, for good; NULL: no memory. Any state. */
void *mem_alloc(size_t n);

/* Calls fn for all memory that was taken from the system for it. */
void mem_each(void (*fn)(const void *lo, const void *hi, void *arg), void *arg);

#endif
