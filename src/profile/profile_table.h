/*
 * profile_table.h - stacks, and what was counted at each. Defined in profile_table.c.
 */
#ifndef GORO_PROFILE_TABLE_H
#define GORO_PROFILE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backtrace.h"
#include "types.h"

/* What records are told apart by. */
struct profile_key {
	const uintptr_t *pc;	/* pc[0] exact, the others return addresses */
	size_t n;
	const char *name;	/* of the goroutine, or NULL; shorter than G_NAME_BYTES */
	uint64_t id;		/* of the goroutine; 0: of any */
	enum frames from;
};

struct profile_record {
	struct profile_record *next;	/* in its bucket */
	uint64_t hash;
	double count;
	int64_t total;		/* of what is measured at each, if anything */
	uint64_t id;
	char name[G_NAME_BYTES];
	enum frames from;
	uint32_t n;
	uintptr_t pc[];
};

struct profile_chunk;

struct profile_table {
	size_t bytes_max;	/* set by the owner */
	size_t bytes;
	size_t records;
	uint64_t lost;		/* what did not fit */
	struct profile_record **bucket;
	struct profile_chunk *chunks;	/* the last first */
};

/* Adds to the record of this stack. Takes no lock and no libc's memory: the owner
 * sees to it that one thread does at a time. */
void profile_table_add(struct profile_table *t, const struct profile_key *key, double count,
                       int64_t total);
void profile_table_each(const struct profile_table *t,
                        void (*fn)(const struct profile_record *r, void *arg), void *arg);
/* All of from, which nobody changes meanwhile, into an empty one. */
void profile_table_copy(struct profile_table *to, const struct profile_table *from);
void profile_table_free(struct profile_table *t);

#endif
