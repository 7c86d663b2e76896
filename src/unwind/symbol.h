/*
 * symbol.h - what an address of code is called: function, file, line
 *
 * Async-signal-safe: no allocation, no locks, no stdio; reads the files the code
 * was loaded from by system calls. Keeps errno. Takes about 10 KiB of stack.
 */
#ifndef GORO_SYMBOL_H
#define GORO_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

struct symbol {
	char function[256];	/* "" if unknown; of C++ as demangle.h shows it */
	uintptr_t offset;	/* of pc in the function or, if that is unknown, in the module */
	char file[512];		/* absolute path as compiled, "" if unknown */
	int line;		/* 0 if unknown */
	char module[256];	/* path of the program or library */
};

/*
 * Describes the instruction at pc; false if pc is in no loaded file. Names that do
 * not fit are cut. For a return address ask for pc - 1: the call is meant, not what
 * comes after it.
 */
bool symbol_find(uintptr_t pc, struct symbol *out);

#endif
