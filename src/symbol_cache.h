/*
 * symbol_cache.h - names of code that were asked for lately
 *
 * Async-signal-safe and lock-free. See symbol_cache.c.
 */
#ifndef GORO_SYMBOL_CACHE_H
#define GORO_SYMBOL_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "symbol.h"

/* What is known of an address of the file that base stands for. */
bool symbol_cache_get(uintptr_t base, uint64_t addr, struct symbol *out);
void symbol_cache_put(uintptr_t base, uint64_t addr, const struct symbol *sym);

#endif
