/*
 * maps.h - the kernel's list of the process's mappings, read without libc's help
 */
#ifndef GORO_MAPS_H
#define GORO_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#define MAPS_PATH_MAX 512

struct maps_file {
	uintptr_t base;			/* where the file's first byte is mapped */
	uintptr_t end;			/* end of the mapping that holds the address asked for */
	char path[MAPS_PATH_MAX];	/* empty if it is too long to be held */
};

/*
 * Finds the mapped file that address addr belongs to; false if it is not in one.
 * Async-signal-safe; keeps errno.
 */
bool maps_find(uintptr_t addr, struct maps_file *out);

/* A line of the list. */
struct maps_line {
	uintptr_t start, end;
	uint64_t offset;		/* in the file */
	bool executable, writable, shared;
	char path[MAPS_PATH_MAX];	/* empty: none, or too long to be held */
};

/* Calls fn for each line, by address, until it says false. Async-signal-safe; keeps errno. */
void maps_each(bool (*fn)(const struct maps_line *line, void *arg), void *arg);

#endif
