/*
 * trace_table.c - byte strings that a trace tells once, and by number from then on:
 * strings, and stacks, which are strings of addresses.
 *
 * A hash table whose entries are never changed and never removed while it is in use.
 * Finding one takes no lock; adding one does, and that is rare: a program has few
 * places where its goroutines wait. When a generation has been written the table is
 * cleared, and used for the one after the next.
 *
 * There is a limit: beyond it what is new gets the number 0, which the format takes for
 * no string or no stack.
 */
#include <errno.h>
#include <string.h>

#include "os.h"
#include "trace_impl.h"

#define BUCKETS     16384
#define CHUNK_BYTES (256 << 10)

struct trace_chunk {
	struct trace_chunk *next;
	size_t used;
	char data[];
};
#define CHUNK_ROOM (CHUNK_BYTES - sizeof(struct trace_chunk))

struct trace_table trace_strings[2], trace_stacks[2];

bool trace_table_init(struct trace_table *t)
{
	t->lock = (struct lock)LOCK_INIT(RANK_TRACE);
	if (!t->bucket)
		t->bucket = os_map(BUCKETS * sizeof *t->bucket);
	return t->bucket != NULL;
}

void trace_table_clear(struct trace_table *t)
{
	struct trace_chunk *next;

	memset(t->bucket, 0, BUCKETS * sizeof *t->bucket);
	for (struct trace_chunk *c = t->chunks; c; c = next) {
		next = c->next;
		os_unmap(c, CHUNK_BYTES);
	}
	t->chunks = NULL;
	t->newest = NULL;
	t->n = 0;
	t->bytes = 0;
}

static uint64_t hash_of(const uint8_t *data, size_t n)
{
	uint64_t h = n + 1, w;

	for (; n >= sizeof w; data += sizeof w, n -= sizeof w) {
		memcpy(&w, data, sizeof w);
		h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	for (; n > 0; data++, n--)
		h = (h ^ *data) * UINT64_C(0x100000001b3);
	return h ^ h >> 32;
}

static struct trace_entry *find(struct trace_entry *e, uint64_t hash, const void *data, size_t n)
{
	for (; e; e = e->next)
		if (e->hash == hash && e->n == n && memcmp(e->data, data, n) == 0)
			return e;
	return NULL;
}

/* Lock held. */
static struct trace_entry *make(struct trace_table *t, size_t n)
{
	size_t bytes = (sizeof(struct trace_entry) + n + 15) / 16 * 16;
	struct trace_chunk *c = t->chunks;
	struct trace_entry *e;

	if (!c || CHUNK_ROOM - c->used < bytes) {
		c = t->bytes < TRACE_TABLE_BYTES ? os_map(CHUNK_BYTES) : NULL;
		if (!c)
			return NULL;
		t->bytes += CHUNK_BYTES;
		c->next = t->chunks;
		t->chunks = c;
	}
	e = (struct trace_entry *)(c->data + c->used);
	c->used += bytes;
	return e;
}

static uint32_t add(struct trace_table *t, struct trace_entry **at, uint64_t hash,
                    const void *data, size_t n)
{
	struct trace_entry *e;
	uint32_t id = 0;

	lock_acquire(&t->lock);
	e = find(*at, hash, data, n);	/* somebody else may have added it */
	if (e) {
		id = e->id;
	} else if ((e = make(t, n))) {
		e->hash = hash;
		e->n = (uint32_t)n;
		e->id = id = ++t->n;
		memcpy(e->data, data, n);
		e->next = *at;
		e->made_before = t->newest;
		t->newest = e;
		/* release: it is whole; pairs with load_acquire in trace_table_put */
		store_release(at, e);
	}
	lock_release(&t->lock);
	return id;
}

uint32_t trace_table_put(struct trace_table *t, const void *data, size_t n)
{
	uint64_t hash = hash_of(data, n);
	struct trace_entry **at = &t->bucket[hash % BUCKETS];
	struct trace_entry *e = find(load_acquire(at), hash, data, n);

	return e ? e->id : add(t, at, hash, data, n);
}

/* The first ones of a table that is empty, so that their numbers are known. */
void trace_texts_put(void)
{
#define X(id, text) \
	if (trace_string(text, sizeof text - 1) != id) \
		trace_fail(ENOMEM);
	TRACE_TEXT_LIST(X)
#undef X
}
