/*
 * map.h - a table from numbers to values that are not 0. Defined in map.c.
 */
#ifndef GORO_CMD_MAP_H
#define GORO_CMD_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Open addressing, at most half full. Zeroed, it is empty. */
struct map {
	struct map_slot {
		uint64_t key;
		uintptr_t value;	/* 0: the slot is free */
	} *at;
	size_t n, slots;		/* slots: a power of two, or 0 */
};

uintptr_t map_get(const struct map *m, uint64_t key);	/* 0: there is none */
void map_put(struct map *m, uint64_t key, uintptr_t value);	/* added or replaced */
void map_remove(struct map *m, uint64_t key);
void map_free(struct map *m);				/* it is empty then */

#endif
