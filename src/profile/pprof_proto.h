/*
 * pprof_proto.h - a profile as `go tool pprof` reads it. Defined in pprof_proto.c.
 *
 * In user code only: it takes long. Memory is mapped, none is malloc's.
 */
#ifndef GORO_PPROF_PROTO_H
#define GORO_PPROF_PROTO_H

#include "bytes.h"
#include "profile_table.h"

struct pprof_type {
	const char *what, *unit;
};

/* What is measured: at most two numbers a stack. */
struct pprof_kind {
	struct pprof_type type[2];
	int types;
	struct pprof_type period_type;
	int64_t period;		/* how much of it one sample stands for */
};

/* Different keys, numbered from 0 as they come. */
struct pprof_set {
	struct bytes keys;	/* one after the other */
	struct bytes entries;	/* struct entry */
	uint32_t *slot;		/* number + 1 of an entry; 0: free */
	size_t slots;
};

#define PPROF_LEVELS 3

struct pprof {
	struct bytes level[PPROF_LEVELS];	/* the message, and those being put together in it */
	int depth;
	struct pprof_set strings, locations, functions;
	struct bytes mappings;	/* struct mapping */
	struct bytes places;	/* struct place, of each of the locations */
	int types;
};

void pprof_begin(struct pprof *b, const struct pprof_kind *kind);
/* The addresses of a stack that a reader is to see: of instructions, calls among them, not
 * where they return to; without the runtime's frames that every goroutine has. How many,
 * and no more than there were. */
size_t pprof_trim(struct pprof *b, const struct profile_record *r, uintptr_t *address);
/* r has such addresses. */
void pprof_sample(struct pprof *b, const struct profile_record *r, const int64_t *value);
/* What cannot be told where it was; nothing if value[0] is 0. Once a name. */
void pprof_sample_named(struct pprof *b, const char *function, const int64_t *value);
void pprof_comment(struct pprof *b, const char *text);
/* When it began, in ns since 1970, and how long it took; 0: not known. */
void pprof_time(struct pprof *b, int64_t began, int64_t took);
/* All of it, gzipped, in out; b is freed. 0, or -ENOMEM. */
int pprof_end(struct pprof *b, struct bytes *out);

#endif
