/*
 * chunks.h - memory for records that are made one after the other and freed together.
 *
 * Records lie packed in mapped chunks, in the order in which they were made. No lock and
 * no malloc: the owner lets one thread at a time use it.
 */
#ifndef GORO_CHUNKS_H
#define GORO_CHUNKS_H

#include <stddef.h>

#include "platform/os.h"
#include "base/throw.h"

#define CHUNK_MAP_BYTES (256 << 10)

struct chunk {
	struct chunk *next;
	size_t used;		/* of its bytes, with this header */
};

struct chunks {
	struct chunk *first, *last;
	size_t bytes;		/* of all chunks */
};

/* n zeroed bytes; NULL: no memory, or the chunks would take more than max. */
static inline void *chunks_take(struct chunks *c, size_t n, size_t max)
{
	struct chunk *k = c->last;

	check(n <= CHUNK_MAP_BYTES - sizeof *k);
	if (!k || CHUNK_MAP_BYTES - k->used < n) {
		k = c->bytes + CHUNK_MAP_BYTES <= max ? os_map(CHUNK_MAP_BYTES) : NULL;
		if (!k)
			return NULL;
		k->used = sizeof *k;
		*(c->last ? &c->last->next : &c->first) = k;
		c->last = k;
		c->bytes += CHUNK_MAP_BYTES;
	}
	k->used += n;
	return (char *)k + k->used - n;
}

static inline void chunks_free(struct chunks *c)
{
	struct chunk *next;

	for (struct chunk *k = c->first; k; k = next) {
		next = k->next;
		os_unmap(k, CHUNK_MAP_BYTES);
	}
	*c = (struct chunks){ .bytes = 0 };
}

#endif
