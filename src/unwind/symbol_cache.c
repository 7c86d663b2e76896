/*
 * symbol_cache.c - answers of symbol_find, cached
 *
 * To name one address takes a walk through the symbols and the line table of a file, and
 * in a dump of 10,000 goroutines most wait in a handful of places.
 *
 * An address is in one of PLACES slots. The key is the address in the file, and where the
 * program is loaded, which does not change, or where a library's file is mapped for
 * reading. A mapping that is kept (elf_file.c) is of one file for good. So a library that
 * is replaced by another at the same place has another key.
 *
 * A thread claims a slot for as long as it reads or writes it, and never waits for one:
 * it may be a signal handler that has interrupted the owner. A slot that is claimed has
 * no answer and takes none.
 */
#include "unwind/symbol.h"

#include <stddef.h>

#include "platform/atomic.h"

#define SLOTS 256	/* a power of two */
#define PLACES 4	/* slots that an address may be in, one after the other */

static struct slot {
	uint32_t claimed;	/* atomic */
	uint64_t base, addr;	/* the key; base 0: never written */
	struct symbol sym;
} slots[SLOTS];

/* One of the PLACES slots of the key. */
static struct slot *slot_of(uintptr_t base, uint64_t addr, size_t place)
{
	uint64_t hash = ((base >> 12) + addr) * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	return &slots[(hash + place) % SLOTS];
}

/* acquire: what the last owner wrote; pairs with store_release in leave */
static bool claim(struct slot *s)
{
	return exchange_acquire(&s->claimed, 1) == 0;
}

static void leave(struct slot *s)
{
	store_release(&s->claimed, 0);
}

bool symbol_cache_get(uintptr_t base, uint64_t addr, struct symbol *out)
{
	bool found = false;

	for (size_t i = 0; i < PLACES && !found; i++) {
		struct slot *s = slot_of(base, addr, i);

		if (!claim(s))
			continue;
		found = s->base == base && s->addr == addr;
		if (found)
			*out = s->sym;
		leave(s);
	}
	return found;
}

/* Takes the first of the key's slots that was never used, or else any. */
void symbol_cache_put(uintptr_t base, uint64_t addr, const struct symbol *sym)
{
	for (size_t i = 0; i <= PLACES; i++) {
		struct slot *s = slot_of(base, addr, i < PLACES ? i : addr % PLACES);

		if (!claim(s))
			continue;
		if (!s->base || i == PLACES) {
			s->base = base;
			s->addr = addr;
			s->sym = *sym;
			i = PLACES;
		}
		leave(s);
	}
}
