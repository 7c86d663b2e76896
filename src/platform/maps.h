/* maps.h - the process's mappings, as the kernel lists them. Signal-safe; keeps errno. */
#ifndef GORO_MAPS_H
#define GORO_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#define MAPS_PATH_MAX 512

struct maps_file {
	uintptr_t base;			/* where the file's first byte is mapped */
	uintptr_t end;			/* the end of the mapping that holds addr */
	char path[MAPS_PATH_MAX];	/* empty if it is too long for this */
};

/* Finds the mapped file that holds address addr. False if there is none. */
bool maps_find(uintptr_t addr, struct maps_file *out);

/* A line of the list. */
struct maps_line {
	uintptr_t start, end;
	uint64_t offset;		/* in the file */
	bool executable, writable, shared;
	char path[MAPS_PATH_MAX];	/* empty: none, or too long for this */
};

/* Calls fn for each line, by address, until it returns false. False: the list cannot be
 * read to its end, or is empty, as an emulator's is when it has no descriptor left. */
bool maps_each(bool (*fn)(const struct maps_line *line, void *arg), void *arg);

#endif
