/*
 * fuzz.h - what reads bytes that others may choose: each function of the list, in NAME.c,
 * reads n of them, and must neither fault nor go on without end whatever they are.
 *
 * test/fuzz/run gives each to libFuzzer. corpus_test.c, a test like any other, gives each
 * what lies in corpus/NAME.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FUZZ_LIST(X) \
	X(address)   /* host:port, names of networks, paths of unix sockets */ \
	X(settings)  /* GORO_DEBUG and the other variables */ \
	X(cgroup)    /* /proc/self/cgroup and the quota files */ \
	X(maps)      /* /proc/self/maps */ \
	X(http)      /* heads of requests to the debug server, and who may ask */ \
	X(elf)       /* symbols, build ids and lines of ELF files */ \
	X(unwind)    /* .eh_frame and .eh_frame_hdr, and the programs in them */ \
	X(expr)      /* DWARF expressions */ \
	X(demangle)  /* C++ names */ \
	X(profile)   /* profiles as goro profile reads them, gzip around them too */ \
	X(trace)     /* traces as goro trace reads them */ \
	X(words)     /* what a program puts into its trace: tasks, regions, logs */

#define X(name) void fuzz_##name(const uint8_t *data, size_t n);
FUZZ_LIST(X)
#undef X

/* The first bytes, up to a zero or to the end, as a string of its own, so that reading
 * beyond its end is found. *data and *n move behind them. */
static inline char *fuzz_string(const uint8_t **data, size_t *n)
{
	const uint8_t *end = *n ? memchr(*data, 0, *n) : NULL;
	size_t len = end ? (size_t)(end - *data) : *n;
	char *s = malloc(len + 1);

	if (len)
		memcpy(s, *data, len);
	s[len] = '\0';
	*data += len + (end != NULL);
	*n -= len + (end != NULL);
	return s;
}

#endif
