/*
 * pprof_proto.h - a profile as `go tool pprof` reads it. Defined in pprof_proto.c.
 *
 * In user code only: it takes long. All memory is mapped; malloc is not called.
 */
#ifndef GORO_PPROF_PROTO_H
#define GORO_PPROF_PROTO_H

#include "base/bytes.h"
#include "observe/frame.h"
#include "profile/profile_table.h"

struct pprof_type {
	const char *what, *unit;
};

/* What is measured: at most two numbers a stack. */
struct pprof_kind {
	struct pprof_type type[2];
	int types;
	struct pprof_type period_type;
	int64_t period;		/* how much of that one sample stands for */
};

#define PPROF_LEVELS 3

struct pprof {
	struct bytes level[PPROF_LEVELS];	/* the message, and those inside it */
	int depth;		/* the level that is written to */
	struct table strings, functions;
	struct table places;	/* of addresses: locations */
	struct bytes mappings;	/* struct mapping */
	int types;
	bool failed;		/* there was no memory */
};

void pprof_begin(struct pprof *b, const struct pprof_kind *kind);
/* Describes an address for frame_program. */
struct frame pprof_look(void *pprof, uintptr_t address);
/* Adds a sample. r is of a table that profile_table_trim has made. */
void pprof_sample(struct pprof *b, const struct profile_record *r, const int64_t *value);
/* Adds a sample in a made-up function, once a name; nothing if value[0] is 0. */
void pprof_sample_named(struct pprof *b, const char *function, const int64_t *value);
void pprof_comment(struct pprof *b, const char *text);
/* When the profile began, in ns since 1970, and how long it took; 0: not known. */
void pprof_time(struct pprof *b, int64_t began, int64_t took);
/* Puts the whole profile, gzipped, into out, and frees b. 0, or -ENOMEM. */
int pprof_end(struct pprof *b, struct bytes *out);
/* gzip.c: adds the bytes in gzip's format, not compressed. */
void gzip_store(struct bytes *out, const struct bytes *in);

#endif
