/*
 * table.c - different byte strings, each with a number and with bytes of its owner's.
 *
 * A hash table with chains. Entries lie one after the other in mapped chunks. They do not
 * move, and are removed only all together. So a lookup needs no lock while another thread
 * adds an entry: it finds the entry or does not. Nothing here calls malloc.
 */
#include "base/table.h"

#include <string.h>

#include "platform/atomic.h"

#define BUCKETS 16384

static uint64_t hash_of(const uint8_t *key, size_t n)
{
	uint64_t h = n + 1, w;

	for (; n >= sizeof w; key += sizeof w, n -= sizeof w) {
		memcpy(&w, key, sizeof w);
		h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	for (; n > 0; key++, n--)
		h = (h ^ *key) * UINT64_C(0x100000001b3);
	return h ^ h >> 32;
}

static struct table_entry *find(const struct table *t, uint64_t hash, const void *key, size_t n)
{
	struct table_entry *e;

	if (!t->bucket)
		return NULL;
	/* acquire: the entry; pairs with store_release in table_put */
	for (e = load_acquire(&t->bucket[hash % BUCKETS]); e; e = e->next)
		if (e->hash == hash && e->n == n && memcmp(table_key(t, e), key, n) == 0)
			break;
	return e;
}

struct table_entry *table_find(const struct table *t, const void *key, size_t n)
{
	return find(t, hash_of(key, n), key, n);
}

struct table_entry *table_put(struct table *t, const void *key, size_t n)
{
	uint64_t hash = hash_of(key, n);
	struct table_entry *e = find(t, hash, key, n), **at;

	if (e || !table_init(t))
		return e;
	e = chunks_take(&t->chunks, (sizeof *e + t->extra + n + 15) / 16 * 16,
	                t->bytes_max ? t->bytes_max : SIZE_MAX);
	if (!e)
		return NULL;
	at = &t->bucket[hash % BUCKETS];
	e->next = *at;
	e->hash = hash;
	e->id = ++t->n;
	e->n = (uint32_t)n;
	memcpy((char *)e->data + t->extra, key, n);
	*(t->last ? &t->last->after : &t->first) = e;
	t->last = e;
	/* release: publishes e; pairs with load_acquire in find */
	store_release(at, e);
	return e;
}

bool table_init(struct table *t)
{
	if (!t->bucket)
		t->bucket = os_map(BUCKETS * sizeof *t->bucket);
	return t->bucket != NULL;
}

void table_clear(struct table *t)
{
	if (t->bucket)
		memset(t->bucket, 0, BUCKETS * sizeof *t->bucket);
	chunks_free(&t->chunks);
	t->first = t->last = NULL;
	t->n = 0;
}

void table_free(struct table *t)
{
	if (t->bucket)
		os_unmap(t->bucket, BUCKETS * sizeof *t->bucket);
	t->bucket = NULL;
	table_clear(t);
}
