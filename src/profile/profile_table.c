/*
 * profile_table.c - stacks, and what was counted at each.
 *
 * Every profile is a set of stacks with numbers. They are counted where they are
 * seen, so that a program that does the same a million times has one record of it.
 *
 * A hash table with chains; records lie one after the other in mapped chunks and are
 * never taken out one by one. It does not grow beyond bytes_max: what does not fit is
 * counted in lost, and profiles say so.
 */
#include "profile_table.h"

#include <string.h>

#include "os.h"

#define BUCKETS (1 << 14)
#define CHUNK_BYTES (256 << 10)

struct profile_chunk {
	struct profile_chunk *next;
	size_t used;
	char data[];
};

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static uint64_t hash_of(const struct profile_key *key)
{
	uint64_t h = mix(key->n, key->id * 4 + key->from);

	for (size_t i = 0; i < key->n; i++)
		h = mix(h, key->pc[i]);
	for (const char *s = key->name; s && *s; s++)
		h = mix(h, (unsigned char)*s);
	return h;
}

static bool is_of(const struct profile_record *r, uint64_t hash, const struct profile_key *key)
{
	return r->hash == hash && r->id == key->id && r->from == key->from &&
	       r->n == key->n && memcmp(r->pc, key->pc, key->n * sizeof *key->pc) == 0 &&
	       strcmp(r->name, key->name ? key->name : "") == 0;
}

static bool chunk_add(struct profile_table *t)
{
	struct profile_chunk *c;

	if (t->bytes + CHUNK_BYTES > t->bytes_max || !(c = os_map(CHUNK_BYTES)))
		return false;
	t->bytes += CHUNK_BYTES;
	c->next = t->chunks;
	c->used = sizeof *c;
	t->chunks = c;
	return true;
}

static struct profile_record *record_room(struct profile_table *t, size_t bytes)
{
	struct profile_record *r;

	if ((!t->chunks || CHUNK_BYTES - t->chunks->used < bytes) && !chunk_add(t))
		return NULL;
	r = (struct profile_record *)((char *)t->chunks + t->chunks->used);
	t->chunks->used += bytes;
	return r;
}

static struct profile_record *record_make(struct profile_table *t, uint64_t hash,
                                          const struct profile_key *key)
{
	struct profile_record *r = record_room(t, sizeof *r + key->n * sizeof *r->pc);
	struct profile_record **bucket = &t->bucket[hash % BUCKETS];

	if (!r)
		return NULL;
	*r = (struct profile_record){
		.next = *bucket, .hash = hash, .id = key->id, .from = key->from,
		.n = (uint32_t)key->n,
	};
	if (key->name)
		strncpy(r->name, key->name, sizeof r->name - 1);
	memcpy(r->pc, key->pc, key->n * sizeof *r->pc);
	*bucket = r;
	t->records++;
	return r;
}

static struct profile_record *record_of(struct profile_table *t, const struct profile_key *key)
{
	uint64_t hash = hash_of(key);

	if (!t->bucket && !(t->bucket = os_map(BUCKETS * sizeof *t->bucket)))
		return NULL;
	for (struct profile_record *r = t->bucket[hash % BUCKETS]; r; r = r->next)
		if (is_of(r, hash, key))
			return r;
	return record_make(t, hash, key);
}

void profile_table_add(struct profile_table *t, const struct profile_key *key, double count,
                       int64_t total)
{
	struct profile_record *r = record_of(t, key);

	if (!r) {
		t->lost++;
		return;
	}
	r->count += count;
	if (__builtin_add_overflow(r->total, total, &r->total))
		r->total = INT64_MAX;
}

void profile_table_each(const struct profile_table *t,
                        void (*fn)(const struct profile_record *r, void *arg), void *arg)
{
	for (size_t i = 0; t->bucket && i < BUCKETS; i++)
		for (const struct profile_record *r = t->bucket[i]; r; r = r->next)
			fn(r, arg);
}

static void copy_one(const struct profile_record *r, void *arg)
{
	struct profile_key key = {
		.pc = r->pc, .n = r->n, .name = r->name, .id = r->id, .from = r->from,
	};

	profile_table_add(arg, &key, r->count, r->total);
}

void profile_table_copy(struct profile_table *to, const struct profile_table *from)
{
	to->bytes_max = SIZE_MAX / 2;	/* packed otherwise, it may take a chunk more */
	profile_table_each(from, copy_one, to);
	to->lost += from->lost;
}

void profile_table_free(struct profile_table *t)
{
	struct profile_chunk *next;

	for (struct profile_chunk *c = t->chunks; c; c = next) {
		next = c->next;
		os_unmap(c, CHUNK_BYTES);
	}
	if (t->bucket)
		os_unmap(t->bucket, BUCKETS * sizeof *t->bucket);
	*t = (struct profile_table){ .bytes_max = t->bytes_max };
}
