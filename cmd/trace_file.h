/*
 * trace_file.h - the generations of a trace file. Defined in trace_file.c.
 */
#ifndef GORO_CMD_TRACE_FILE_H
#define GORO_CMD_TRACE_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "map.h"
#include "names.h"

/* Where a generation lies in the file. */
struct trace_extent {
	uint64_t number;
	off_t from, to;
};

struct trace_file {
	int fd;
	const char *path;
	struct trace_extent *at;	/* the whole generations, in order */
	size_t n;
	bool cut;			/* more follows them, which is not whole */
	char why[160];			/* it cannot be read; "": it can */
};

/* Finds the generations. False: there is none that can be read; f->why says why. */
bool trace_file_open(struct trace_file *f, const char *path);
void trace_file_close(struct trace_file *f);
/* It begins as a trace does, of whatever version. */
bool is_trace_file(const char *path);

/* The bytes of some events of one thread. */
struct trace_batch {
	uint64_t thread, time;
	const uint8_t *at, *end;
};

/* One generation in memory. */
struct trace_generation {
	uint64_t number;
	uint64_t frequency;		/* units of time in a second */
	uint8_t *bytes;
	struct trace_batch *batch;	/* of events, each thread's in order */
	size_t batches, room;
	struct map texts, stacks;	/* from its numbers to those of names */
};

/* False: it makes no sense, which f->why says. */
bool trace_generation_load(struct trace_file *f, size_t index, struct names *names,
                           struct trace_generation *g);
void trace_generation_free(struct trace_generation *g);

/* A number of the format; false: it is cut off. */
static inline bool take_number(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	*v = 0;
	for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
		uint8_t byte = *(*p)++;

		*v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

#endif
