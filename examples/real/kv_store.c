/*
 * kv_store.c - the table of keys.
 *
 * The table is 64 shards, each with a lock and a table of its own, so that goroutines
 * on several processors seldom want the same lock. A key's hash says where it is: the
 * highest six bits which shard, the next ones which bucket. So all entries lie in the
 * order of their hashes, and a bucket that is split when a shard grows leaves both
 * halves where it was. That is what lets store_walk go on from a place in a table that
 * has grown meanwhile.
 *
 * A shard doubles when it has an entry a bucket. That is done at once: it is a 64th of
 * all keys.
 *
 * Keys that have expired are removed when somebody asks for them, and by a goroutine,
 * the janitor, for those that nobody asks for.
 *
 * Hashes are SipHash-1-3 with a random key. With a hash that clients can compute, one
 * of them could choose keys that all fall into one bucket.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "kv.h"

#define SHARD_BITS 6			/* 64 */
#define BITS_FIRST 2			/* buckets of a new shard: 4 */

#define JANITOR_PERIOD  (100 * GORO_MILLISECOND)
#define JANITOR_BUCKETS 64		/* that it looks at at a time, .. */
#define JANITOR_AGAIN   16		/* .. and again where so many had expired */

struct table {
	struct entry **buckets;
	unsigned bits;			/* 1 << bits of them */
};

struct shard {
	goro_mutex lock;		/* guards all of it */
	struct table table;
	size_t n, expiring;		/* entries; those that will expire */
	uint64_t janitor;		/* the hash at which the janitor goes on */
} __attribute__((aligned(64)));

static struct shard shards[SHARDS];
static uint64_t hash_key[2];

/* ------------------------------------------------------------------ hashes */

static uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

static void sip_add(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
}

uint64_t store_hash(struct text key)
{
	uint64_t v[4] = {
		hash_key[0] ^ UINT64_C(0x736f6d6570736575),
		hash_key[1] ^ UINT64_C(0x646f72616e646f6d),
		hash_key[0] ^ UINT64_C(0x6c7967656e657261),
		hash_key[1] ^ UINT64_C(0x7465646279746573),
	};
	uint64_t word, last = (uint64_t)key.n << 56;
	size_t i;

	for (i = 0; i + 8 <= key.n; i += 8) {
		memcpy(&word, key.at + i, 8);
		sip_add(v, word);
	}
	for (size_t j = i; j < key.n; j++)
		last |= (uint64_t)(unsigned char)key.at[j] << 8 * (j - i);
	sip_add(v, last);
	v[2] ^= 0xff;
	for (int round = 0; round < 3; round++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ------------------------------------------------------------------ values */

/* The room is used again, unless the value is far smaller. */
bool string_set(struct string *s, const char *at, size_t n)
{
	if (!s->at || n > s->room || s->room > 4 * n + 64) {
		char *room = memory_get(MEMORY_DATA, n);

		if (!room)
			return false;
		string_free(s);
		s->at = room;
		s->room = n;
	}
	memcpy(s->at, at, n);
	s->n = n;
	return true;
}

bool string_append(struct string *s, const char *at, size_t n)
{
	if (n > s->room - s->n) {
		size_t room = 2 * (s->n + n);
		char *larger = memory_get(MEMORY_DATA, room);

		if (!larger)
			return false;
		if (s->n > 0)
			memcpy(larger, s->at, s->n);
		memory_put(MEMORY_DATA, s->at, s->room);
		s->at = larger;
		s->room = room;
	}
	memcpy(s->at + s->n, at, n);
	s->n += n;
	return true;
}

void string_free(struct string *s)
{
	memory_put(MEMORY_DATA, s->at, s->room);
	*s = (struct string){ .at = NULL };
}

struct string *list_at(const struct list *l, size_t i)
{
	return &l->at[(l->head + i) & (l->room - 1)];
}

static bool list_grow(struct list *l)
{
	size_t room = l->room ? 2 * l->room : 4;
	struct string *at = memory_get(MEMORY_DATA, room * sizeof *at);

	if (!at)
		return false;
	for (size_t i = 0; i < l->n; i++)
		at[i] = *list_at(l, i);
	memory_put(MEMORY_DATA, l->at, l->room * sizeof *at);
	l->at = at;
	l->head = 0;
	l->room = room;
	return true;
}

bool list_push(struct list *l, bool left, const char *at, size_t n)
{
	struct string s = { .at = NULL };

	if ((l->n == l->room && !list_grow(l)) || !string_set(&s, at, n))
		return false;
	if (left)
		l->head = (l->head - 1) & (l->room - 1);
	*list_at(l, left ? 0 : l->n) = s;
	l->n++;
	return true;
}

void list_pop(struct list *l, bool left)
{
	string_free(list_at(l, left ? 0 : l->n - 1));
	if (left)
		l->head++;
	l->n--;
}

void list_free(struct list *l)
{
	while (l->n > 0)
		list_pop(l, false);
	memory_put(MEMORY_DATA, l->at, l->room * sizeof *l->at);
}

static void entry_free(struct entry *e)
{
	if (e->type == TYPE_LIST)
		list_free(&e->list);
	else
		string_free(&e->string);
	memory_put(MEMORY_DATA, e, sizeof *e + e->key_n);
}

/* ------------------------------------------------------------------ tables */

/* Hashes have this many bits below those that say which bucket. */
static int bits_below(const struct table *t)
{
	return 64 - SHARD_BITS - (int)t->bits;
}

static struct entry **bucket(const struct table *t, uint64_t hash)
{
	return &t->buckets[hash << SHARD_BITS >> (64 - t->bits)];
}

static size_t table_bytes(unsigned bits)
{
	return sizeof(struct entry *) << bits;
}

static bool table_make(struct table *t, unsigned bits)
{
	t->bits = bits;
	t->buckets = memory_get(MEMORY_DATA, table_bytes(bits));
	if (t->buckets)
		memset(t->buckets, 0, table_bytes(bits));
	return t->buckets;
}

static void table_empty(struct entry **buckets, unsigned bits)
{
	for (size_t i = 0; i < (size_t)1 << bits; i++) {
		for (struct entry *e = buckets[i], *next; e; e = next) {
			next = e->next;
			entry_free(e);
		}
		buckets[i] = NULL;
	}
}

static void table_free(struct entry **buckets, unsigned bits)
{
	table_empty(buckets, bits);
	memory_put(MEMORY_DATA, buckets, table_bytes(bits));
}

static void table_add(struct table *t, struct entry *e)
{
	struct entry **b = bucket(t, e->hash);

	e->next = *b;
	*b = e;
}

/* Without memory for it the buckets become fuller. */
static void shard_grow(struct shard *s)
{
	struct table larger;

	if (!table_make(&larger, s->table.bits + 1))
		return;
	for (size_t i = 0; i < (size_t)1 << s->table.bits; i++) {
		for (struct entry *e = s->table.buckets[i], *next; e; e = next) {
			next = e->next;
			table_add(&larger, e);
		}
	}
	memory_put(MEMORY_DATA, s->table.buckets, table_bytes(s->table.bits));
	s->table = larger;
}

static struct shard *shard_of(uint64_t hash)
{
	return &shards[hash >> (64 - SHARD_BITS)];
}

static void shard_remove(struct shard *s, struct entry **at)
{
	struct entry *e = *at;

	*at = e->next;
	s->n--;
	s->expiring -= e->expires != GORO_FOREVER;
	entry_free(e);
}

/* Most entries never expire: the clock is not looked at for them. */
static bool has_expired(const struct entry *e)
{
	return e->expires != GORO_FOREVER && e->expires <= goro_now();
}

/* Where the key's entry hangs; NULL: it is not there. */
static struct entry **find(const struct text *key)
{
	struct shard *s = shard_of(key->hash);

	for (struct entry **at = bucket(&s->table, key->hash); *at; at = &(*at)->next) {
		struct entry *e = *at;

		if (e->hash != key->hash || e->key_n != key->n ||
		    memcmp(e->key, key->at, key->n) != 0)
			continue;
		if (!has_expired(e))
			return at;
		shard_remove(s, at);
		return NULL;
	}
	return NULL;
}

/* ------------------------------------------------------------------- store */

int store_init(void)
{
	if (getrandom(hash_key, sizeof hash_key, 0) != sizeof hash_key)
		return -errno;
	for (int i = 0; i < SHARDS; i++)
		if (!table_make(&shards[i].table, BITS_FIRST))
			return -ENOMEM;
	return 0;
}

uint64_t store_shard(uint64_t hash)
{
	return UINT64_C(1) << (hash >> (64 - SHARD_BITS));
}

void store_lock(uint64_t set)
{
	for (; set; set &= set - 1)
		goro_mutex_lock(&shards[__builtin_ctzll(set)].lock);
}

void store_unlock(uint64_t set)
{
	for (; set; set &= set - 1)
		goro_mutex_unlock(&shards[__builtin_ctzll(set)].lock);
}

struct entry *store_find(const struct text *key)
{
	struct entry **at = find(key);

	return at ? *at : NULL;
}

struct entry *store_add(const struct text *key, enum type type)
{
	struct shard *s = shard_of(key->hash);
	struct entry *e = memory_get(MEMORY_DATA, sizeof *e + key->n);

	if (!e)
		return NULL;
	*e = (struct entry){ .hash = key->hash, .expires = GORO_FOREVER, .type = type,
	                     .key_n = key->n };
	memcpy(e->key, key->at, key->n);
	if (s->n >> s->table.bits > 0)
		shard_grow(s);
	table_add(&s->table, e);
	s->n++;
	return e;
}

bool store_remove(const struct text *key)
{
	struct entry **at = find(key);

	if (at)
		shard_remove(shard_of(key->hash), at);
	return at;
}

void store_expire(struct entry *e, int64_t when)
{
	struct shard *s = shard_of(e->hash);

	s->expiring += when != GORO_FOREVER;
	s->expiring -= e->expires != GORO_FOREVER;
	e->expires = when;
}

size_t store_count(void)
{
	size_t n = 0;

	for (int i = 0; i < SHARDS; i++)
		n += shards[i].n;
	return n;
}

/* The shard is empty at once; a goroutine frees what was in it. Without memory for
 * that it is emptied in place. */
static void shard_clear(struct shard *s)
{
	struct table old = s->table, fresh;

	if (s->n == 0)
		return;
	s->n = s->expiring = 0;
	if (!table_make(&fresh, BITS_FIRST)) {
		table_empty(old.buckets, old.bits);
		return;
	}
	s->table = fresh;
	if (go(table_free, old.buckets, old.bits) != 0)
		table_free(old.buckets, old.bits);
}

void store_clear(void)
{
	for (int i = 0; i < SHARDS; i++)
		shard_clear(&shards[i]);
}

uint64_t store_walk(uint64_t place, size_t enough, void (*each)(struct entry *, void *),
                    void *arg)
{
	size_t seen = 0, looked = 0;	/* entries; buckets */
	bool done;

	do {
		struct shard *s = shard_of(place);

		goro_mutex_lock(&s->lock);
		do {
			int below = bits_below(&s->table);

			struct entry *e = *bucket(&s->table, place);

			for (; e; e = e->next, seen++)
				if (!has_expired(e))
					each(e, arg);
			place = ((place >> below) + 1) << below;
			done = seen >= enough || ++looked / 10 >= enough || place == 0;
		} while (!done && shard_of(place) == s);
		goro_mutex_unlock(&s->lock);
	} while (!done);
	return place;
}

/* ----------------------------------------------------------------- janitor */

/* Looks at some buckets of a shard: how many entries of theirs had expired. */
static int clean(struct shard *s)
{
	int removed = 0;

	goro_mutex_lock(&s->lock);
	for (int i = 0; i < JANITOR_BUCKETS && s->expiring > 0; i++) {
		int below = bits_below(&s->table);

		for (struct entry **at = bucket(&s->table, s->janitor); *at; ) {
			if (has_expired(*at)) {
				shard_remove(s, at);
				removed++;
			} else {
				at = &(*at)->next;
			}
		}
		s->janitor = ((s->janitor >> below) + 1) << below;
	}
	goro_mutex_unlock(&s->lock);
	return removed;
}

static void janitor(void)
{
	for (;;) {
		goro_sleep(JANITOR_PERIOD);
		for (int i = 0; i < SHARDS; i++)
			while (clean(&shards[i]) >= JANITOR_AGAIN)
				;
	}
}

void store_start_janitor(void)
{
	go(janitor);
}
