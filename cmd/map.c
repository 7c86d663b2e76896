/*
 * map.c - a table from numbers to values that are not 0.
 *
 * A key lies in the first free slot from its hash on. A removal moves later keys back, so
 * that no free slot ever lies between a key and its hash.
 */
#include "map.h"

#include <stdlib.h>
#include <string.h>

#include "cmd.h"

static size_t home(const struct map *m, uint64_t key)
{
	return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (m->slots - 1);
}

/* The key's slot, or the free one where it would go. */
static size_t find(const struct map *m, uint64_t key)
{
	size_t i = home(m, key);

	while (m->at[i].value && m->at[i].key != key)
		i = (i + 1) & (m->slots - 1);
	return i;
}

uintptr_t map_get(const struct map *m, uint64_t key)
{
	return m->n ? m->at[find(m, key)].value : 0;
}

static void grow(struct map *m)
{
	struct map old = *m;

	m->slots = old.slots ? 2 * old.slots : 64;
	m->at = alloc(m->slots * sizeof *m->at);
	memset(m->at, 0, m->slots * sizeof *m->at);
	for (size_t i = 0; i < old.slots; i++)
		if (old.at[i].value)
			m->at[find(m, old.at[i].key)] = old.at[i];
	free(old.at);
}

void map_put(struct map *m, uint64_t key, uintptr_t value)
{
	size_t i;

	if (2 * (m->n + 1) > m->slots)
		grow(m);
	i = find(m, key);
	m->n += m->at[i].value == 0;
	m->at[i] = (struct map_slot){ key, value };
}

void map_remove(struct map *m, uint64_t key)
{
	size_t mask = m->slots - 1, hole, i;

	if (!map_get(m, key))
		return;
	hole = find(m, key);
	for (i = (hole + 1) & mask; m->at[i].value; i = (i + 1) & mask)
		if (((i - home(m, m->at[i].key)) & mask) >= ((i - hole) & mask)) {
			m->at[hole] = m->at[i];
			hole = i;
		}
	m->at[hole].value = 0;
	m->n--;
}

void map_free(struct map *m)
{
	free(m->at);
	*m = (struct map){ 0 };
}
