/*
 * table.h - different byte strings, each with a number and with bytes of its owner's.
 * Defined in table.c.
 */
#ifndef GORO_TABLE_H
#define GORO_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/chunks.h"

struct table_entry {
	struct table_entry *next;	/* in its bucket */
	struct table_entry *after;	/* the one that was made next */
	uint64_t hash;
	uint32_t id;		/* from 1, in the order in which they were made */
	uint32_t n;		/* bytes of the key */
	uint64_t data[];	/* the owner's, then the key */
};

struct table {
	/* Set by the owner. */
	size_t extra;		/* bytes before each key, zeroed; a multiple of 8 */
	size_t bytes_max;	/* of all entries; 0: any */

	uint32_t n;
	struct table_entry *first, *last;
	struct table_entry **bucket;
	struct chunks chunks;	/* the entries */
};

/* The entry of key; NULL: there is none. Needs no lock while others add entries. */
struct table_entry *table_find(const struct table *t, const void *key, size_t n);
/* The same, and adds it; NULL: there is no room. One thread at a time does this. */
struct table_entry *table_put(struct table *t, const void *key, size_t n);
/* Makes the buckets, which table_put does otherwise. False: no memory. */
bool table_init(struct table *t);
/* Both remove all entries. table_free gives all memory back. */
void table_clear(struct table *t);
void table_free(struct table *t);

static inline void *table_data(const struct table_entry *e)
{
	return (void *)e->data;
}

static inline const void *table_key(const struct table *t, const struct table_entry *e)
{
	return (const char *)e->data + t->extra;
}

#endif
