/*
 * reader.h - a bounded cursor over bytes from outside, such as DWARF and ELF
 *
 * DWARF and ELF are streams of unaligned little-endian numbers, LEB128 numbers and
 * strings, and the files they come from may be truncated or damaged. A reader never goes
 * past its end: the first read that would do so sets `bad`, leaves the reader empty, and
 * returns zero, as do all reads after it. So a parser reads a whole record without a
 * check of each field, and looks at `bad` once, at the end.
 *
 * Pure functions over caller-owned memory: may be called anywhere, signal handlers
 * included.
 */
#ifndef GORO_READER_H
#define GORO_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

static inline struct reader reader_make(const void *start, size_t size)
{
	const uint8_t *at = start;

	/* A section that does not exist is a null pointer, and adding zero to that is
	 * undefined. */
	return (struct reader){ .at = at, .end = size ? at + size : at };
}

static inline size_t reader_left(const struct reader *r)
{
	return r->end == r->at ? 0 : (size_t)(r->end - r->at);
}

static inline void reader_fail(struct reader *r)
{
	r->at = r->end;
	r->bad = true;
}

static inline void reader_skip(struct reader *r, uint64_t n)
{
	if (n > reader_left(r))
		reader_fail(r);
	else if (n > 0)			/* `at` may be null: see reader_make */
		r->at += n;
}

/* The next n bytes as a reader of their own; this one moves past them. */
static inline struct reader reader_cut(struct reader *r, uint64_t n)
{
	struct reader part = { .at = r->at };

	reader_skip(r, n);
	part.bad = r->bad;
	part.end = r->bad ? part.at : r->at;
	return part;
}

/* An unsigned number of `size` bytes, at most 8. */
static inline uint64_t reader_uint(struct reader *r, size_t size)
{
	uint64_t value = 0;

	if (size > reader_left(r)) {
		reader_fail(r);
		return 0;
	}
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)r->at[i] << (8 * i);
	reader_skip(r, size);
	return value;
}

static inline uint8_t reader_u8(struct reader *r)
{
	return (uint8_t)reader_uint(r, 1);
}

static inline uint16_t reader_u16(struct reader *r)
{
	return (uint16_t)reader_uint(r, 2);
}

static inline uint32_t reader_u32(struct reader *r)
{
	return (uint32_t)reader_uint(r, 4);
}

static inline uint64_t reader_u64(struct reader *r)
{
	return reader_uint(r, 8);
}

/* Reads and drops LEB128 groups beyond 64 bits: padding is legal, such values are not. */
static inline uint64_t reader_leb(struct reader *r, unsigned *shift, uint8_t *last)
{
	uint64_t value = 0;

	*shift = 0;
	do {
		*last = reader_u8(r);
		if (*shift < 64)
			value |= (uint64_t)(*last & 0x7f) << *shift;
		*shift += 7;
	} while (*last & 0x80);
	return value;
}

static inline uint64_t reader_uleb(struct reader *r)
{
	unsigned shift;
	uint8_t last;

	return reader_leb(r, &shift, &last);
}

static inline int64_t reader_sleb(struct reader *r)
{
	unsigned shift;
	uint8_t last;
	uint64_t value = reader_leb(r, &shift, &last);

	if (shift < 64 && (last & 0x40))
		value |= ~(uint64_t)0 << shift;
	return (int64_t)value;
}

/* A zero-terminated string in place, or NULL when its end is missing. */
static inline const char *reader_string(struct reader *r)
{
	const uint8_t *start = r->at;
	size_t left = reader_left(r);
	const uint8_t *nul = left ? memchr(start, 0, left) : NULL;

	if (!nul) {
		reader_fail(r);
		return NULL;
	}
	r->at = nul + 1;
	return (const char *)start;
}

/* A DWARF "initial length": the size of the unit that follows. *offset_size becomes 4 or
 * 8, the size of an offset into other sections within that unit. */
static inline uint64_t reader_unit_length(struct reader *r, unsigned *offset_size)
{
	uint64_t length = reader_u32(r);

	*offset_size = 4;
	if (length == 0xffffffff) {
		*offset_size = 8;
		length = reader_u64(r);
	}
	return length;
}

#endif
