/*
 * kv_memory.c - memory, counted and limited.
 *
 * What clients can make large is allocated here: keys, values and buffers. Without a
 * limit a client could take all of the machine's memory, and Linux would kill the
 * server rather than let malloc fail.
 */
#include <stdlib.h>

#include "kv.h"

static size_t limit;
static atomic_size_t used[2];

void memory_limit(size_t bytes)
{
	limit = bytes;
}

size_t memory_limit_is(void)
{
	return limit;
}

size_t memory_used(enum memory kind)
{
	return atomic_load_explicit(&used[kind], memory_order_relaxed);
}

bool memory_fits(enum memory kind, size_t n)
{
	size_t now = memory_used(kind);

	return now <= limit && n <= limit - now;
}

/* Several who allocate at once may go beyond the limit, by as much as they ask for. */
void *memory_get(enum memory kind, size_t n)
{
	void *p = memory_fits(kind, n) ? malloc(n) : NULL;

	if (p)
		atomic_fetch_add_explicit(&used[kind], n, memory_order_relaxed);
	return p;
}

void memory_put(enum memory kind, void *p, size_t n)
{
	if (p)
		atomic_fetch_sub_explicit(&used[kind], n, memory_order_relaxed);
	free(p);
}
