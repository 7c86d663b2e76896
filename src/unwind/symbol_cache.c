/*
 * symbol_cache.c - names of code that were asked for lately
 *
 * Ten thousand goroutines wait in a handful of places, and to name one address takes a
 * walk through the symbols and the line table of a file. (A dump of 10,000: 5.8 s without
 * this.)
 *
 * An address is kept in one of a few slots. The key is the address in the file, and where
 * the program is loaded, which stays there, or where the file of a library is mapped for
 * reading. A mapping that is kept (elf_file.c) is of one file for good, so a library that
 * is unloaded and replaced by another at the same place is not mistaken for it.
 *
 * A slot is read without a lock, as the asker may be a signal handler, perhaps one that has
 * interrupted the writer. Its version is odd while somebody writes; a reader that finds it
 * odd, or changed at the end, has read nothing; a writer that finds it odd does not write.
 *
 *	reader                          writer
 *	version (acquire)               version = odd
 *	words                           fence
 *	fence                           words
 *	version again                   version = even (release)
 *
 * A reader that sees a word of the writer's also sees, because of the two fences, that
 * the version is odd or a later one.
 */
#include "symbol_cache.h"

#include <stddef.h>

#include "atomic.h"

#define SLOTS 256	/* a power of two */
#define PLACES 4	/* that an address may be in, one after the other */

union kept {
	struct {
		uint64_t base, addr;	/* the key */
		struct symbol sym;
	};
	uint64_t word[(2 * 8 + sizeof(struct symbol)) / 8];
};
_Static_assert(sizeof(union kept) == sizeof(((union kept *)0)->word), "kept: all of it is words");

static struct slot {
	uint32_t version;	/* 0: never written */
	uint64_t word[sizeof(union kept) / 8];
} slots[SLOTS];

/* The place that belongs to the key at least. */
static size_t place_of(uintptr_t base, uint64_t addr)
{
	return ((base >> 12) + addr) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static void read_words(union kept *k, const struct slot *s, size_t from, size_t n)
{
	for (size_t i = from; i < from + n; i++)
		k->word[i] = load_relaxed(&s->word[i]);
}

static bool get(const struct slot *s, uintptr_t base, uint64_t addr, union kept *k)
{
	/* acquire: the words; pairs with store_release in symbol_cache_put */
	uint32_t version = load_acquire(&s->version);

	if (version == 0 || version % 2 != 0)
		return false;
	read_words(k, s, 0, 2);
	if (k->base != base || k->addr != addr)
		return false;
	read_words(k, s, 2, sizeof *k / 8 - 2);
	fence_seqcst();		/* pairs with that in symbol_cache_put */
	return load_relaxed(&s->version) == version;
}

bool symbol_cache_get(uintptr_t base, uint64_t addr, struct symbol *out)
{
	size_t at = place_of(base, addr);
	union kept k;

	for (size_t i = 0; i < PLACES; i++)
		if (get(&slots[(at + i) % SLOTS], base, addr, &k)) {
			*out = k.sym;
			return true;
		}
	return false;
}

/* A place that was never used, or one of the key's own: which is as good as chance. */
static struct slot *slot_for(uintptr_t base, uint64_t addr)
{
	size_t at = place_of(base, addr);

	for (size_t i = 0; i < PLACES; i++)
		if (load_relaxed(&slots[(at + i) % SLOTS].version) == 0)
			return &slots[(at + i) % SLOTS];
	return &slots[(at + addr % PLACES) % SLOTS];
}

void symbol_cache_put(uintptr_t base, uint64_t addr, const struct symbol *sym)
{
	union kept k = { { .base = base, .addr = addr, .sym = *sym } };
	struct slot *s = slot_for(base, addr);
	uint32_t version = load_relaxed(&s->version);

	if (version % 2 != 0 || !cas_relaxed(&s->version, &version, version + 1))
		return;
	fence_seqcst();		/* pairs with that in get */
	for (size_t i = 0; i < sizeof k / 8; i++)
		store_relaxed(&s->word[i], k.word[i]);
	/* release: the words; pairs with load_acquire in get. 0 is for none. */
	store_release(&s->version, version + 2 != 0 ? version + 2 : 2);
}
