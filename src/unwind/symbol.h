/*
 * symbol.h - what an address of code is called: function, file, line
 *
 * Reads the files that the code was loaded from. Keeps errno. Takes 10 KiB of stack.
 */
#ifndef GORO_SYMBOL_H
#define GORO_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbol {
	char function[256];	/* "" if unknown; C++ names as demangle.c says */
	uintptr_t offset;	/* of pc in the function, or else in the module */
	char file[512];		/* as dwarf_line.c says; "" if unknown */
	int line;		/* 0 if unknown */
	char module[256];	/* path of the program or library */
};

/* Describes the instruction at pc. False if pc is in no loaded file. Names that do not
 * fit are cut. The call of a return address is at pc - 1. */
bool symbol_find(uintptr_t pc, struct symbol *out);

/* ---- symbol_cache.c. base: the file's key (cache_key); addr: in the file's numbering */

bool symbol_cache_get(uintptr_t base, uint64_t addr, struct symbol *out);
void symbol_cache_put(uintptr_t base, uint64_t addr, const struct symbol *sym);

/* ---- demangle.c */

/* Writes the function that a mangled name of n bytes means, without its parameters:
 * "ns::table<...>::find". False: it is no such name, or of a kind that is not known here;
 * out is undefined. */
bool demangle(const char *name, size_t n, char *out, size_t max);

#endif
