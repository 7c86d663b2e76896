/*
 * profile_read.h - a profile in the format of pprof. Defined in profile_read.c.
 *
 * The format is profile.proto of github.com/google/pprof, which goro, Go and many others
 * write. The reader shares no code with the writer (src/pprof_proto.c).
 */
#ifndef GORO_CMD_PROFILE_READ_H
#define GORO_CMD_PROFILE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names.h"

#define PROFILE_TYPES_MAX 16

/* What a sample's values are: "cpu" in "nanoseconds". Texts. */
struct profile_type {
	uint32_t what, unit;
	int64_t sum;		/* of all samples */
};

/* What was found at one stack. */
struct profile_sample {
	/* of names. A frame's file is its library where no file is known */
	uint32_t stack;
	int64_t value;		/* more than 0 */
};

struct profile {
	struct names *names;
	struct profile_type type[PROFILE_TYPES_MAX];
	size_t types, chosen;	/* the values are those of the chosen one */
	struct profile_sample *sample;
	size_t samples;
	int64_t took;		/* ns; 0: not known */
	uint32_t *comment;	/* texts */
	size_t comments;
	char why[160];		/* it cannot be read */
};

/* wanted: the type's name; NULL: the one that the profile has as its default, or its
 * last. False: p->why says why not. Either way profile_free frees it. */
bool profile_read(struct profile *p, const uint8_t *bytes, size_t n, const char *wanted);
bool profile_read_file(struct profile *p, const char *path, const char *wanted);
void profile_free(struct profile *p);

/* The file is gzip, or begins as a profile without that does. */
bool is_profile_file(const char *path);

/* Sums that end at the largest number instead of beyond it. */
int64_t sum_of(int64_t a, int64_t b);

#endif
