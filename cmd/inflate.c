/*
 * inflate.c - bytes out of gzip's wrapping.
 *
 * Profiles come as gzip files: Go packs them with deflate, goro stores them in it. Of a
 * code a table is made that has an entry for each value of the next 15 bits, the longest
 * code: its symbol, and how many of the bits that takes. One look decodes a symbol.
 *
 * Nothing of the input is trusted: each read is checked against its end, each distance
 * against what was put out, and the output against a limit.
 */
#include "inflate.h"

#include <stdlib.h>
#include <string.h>

#include "cmd.h"

#define CODE_BITS 15
#define LENGTHS   286	/* symbols of literals, of the end and of lengths that exist */
#define DISTANCES 30

/* For the next CODE_BITS bits, the first in bit 0: symbol << 4 | bits of it; 0: no
 * symbol. */
struct code {
	uint16_t at[1 << CODE_BITS];
};

struct inflate {
	const uint8_t *in, *end;
	uint64_t bits;		/* read and not used, the next in bit 0 */
	unsigned n_bits;
	uint8_t *out;
	size_t n, room, limit;
	size_t member;		/* where in out this member began: distances end there */
	const char *why;
	struct code lengths, distances;
};

static bool fail(struct inflate *f, const char *why)
{
	f->why = why;
	return false;
}

/* --------------------------------------------------------------------- bits */

/* As many bits as there are, up to 56. */
static void fill(struct inflate *f)
{
	while (f->n_bits <= 48 && f->in < f->end) {
		f->bits |= (uint64_t)*f->in++ << f->n_bits;
		f->n_bits += 8;
	}
}

static bool take(struct inflate *f, unsigned n, unsigned *value)
{
	fill(f);
	if (f->n_bits < n)
		return fail(f, "it is cut off");
	*value = (unsigned)(f->bits & ((UINT64_C(1) << n) - 1));
	f->bits >>= n;
	f->n_bits -= n;
	return true;
}

static bool take_symbol(struct inflate *f, const struct code *c, unsigned *symbol)
{
	unsigned entry, n;

	fill(f);
	entry = c->at[f->bits & ((1 << CODE_BITS) - 1)];
	n = entry & 15;
	if (n > f->n_bits)
		return fail(f, "it is cut off");
	if (n == 0)
		return fail(f, "its code makes no sense");
	f->bits >>= n;
	f->n_bits -= n;
	*symbol = entry >> 4;
	return true;
}

/* ------------------------------------------------------------------- output */

static bool room_for(struct inflate *f, size_t n)
{
	if (n > f->limit - f->n)
		return fail(f, "it is too large");
	if (f->n + n < f->room)		/* there is a buffer, then, also for no bytes */
		return true;
	f->room = 2 * (f->n + n) + 4096;
	f->out = realloc(f->out, f->room);
	if (!f->out)
		die("out of memory");
	return true;
}

static bool copy_back(struct inflate *f, size_t distance, size_t length)
{
	if (distance > f->n - f->member)
		return fail(f, "it points to before its start");
	if (!room_for(f, length))
		return false;
	for (; length > 0; length--, f->n++)
		f->out[f->n] = f->out[f->n - distance];
	return true;
}

/* -------------------------------------------------------------------- codes */

static unsigned reversed(unsigned code, unsigned n)
{
	unsigned r = 0;

	for (; n > 0; n--, code >>= 1)
		r = r << 1 | (code & 1);
	return r;
}

/* From the number of bits of each symbol. A code may leave values without a symbol. */
static bool code_make(struct inflate *f, struct code *c, const uint8_t *bits, unsigned symbols)
{
	unsigned count[CODE_BITS + 1] = { 0 }, next[CODE_BITS + 1], first = 0;

	for (unsigned i = 0; i < symbols; i++)
		count[bits[i]]++;
	for (unsigned n = 1; n <= CODE_BITS; n++) {
		next[n] = first;
		first += count[n];
		if (first > 1u << n)
			return fail(f, "its code makes no sense");
		first <<= 1;
	}
	memset(c, 0, sizeof *c);
	for (unsigned i = 0; i < symbols; i++) {
		unsigned n = bits[i];

		if (n == 0)
			continue;
		for (unsigned at = reversed(next[n]++, n); at < 1u << CODE_BITS; at += 1u << n)
			c->at[at] = (uint16_t)(i << 4 | n);
	}
	return true;
}

static bool fixed_codes(struct inflate *f)
{
	uint8_t bits[288];

	for (unsigned i = 0; i < sizeof bits; i++)
		bits[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
	if (!code_make(f, &f->lengths, bits, sizeof bits))
		return false;
	memset(bits, 5, DISTANCES);
	return code_make(f, &f->distances, bits, DISTANCES);
}

/* The bits of n symbols, which are a code themselves: 16 repeats the last, 17 and 18 are
 * zeros. */
static bool take_code_bits(struct inflate *f, uint8_t *bits, unsigned n)
{
	static const struct { unsigned bits, least; } repeats[] = { { 2, 3 }, { 3, 3 }, { 7, 11 } };

	for (unsigned i = 0; i < n;) {
		unsigned symbol, times;
		uint8_t value = 0;

		if (!take_symbol(f, &f->lengths, &symbol))
			return false;
		if (symbol < 16) {
			bits[i++] = (uint8_t)symbol;
			continue;
		}
		if (!take(f, repeats[symbol - 16].bits, &times))
			return false;
		times += repeats[symbol - 16].least;
		if (times > n - i || (symbol == 16 && i == 0))
			return fail(f, "its code makes no sense");
		if (symbol == 16)
			value = bits[i - 1];
		memset(bits + i, value, times);
		i += times;
	}
	return true;
}

static bool own_codes(struct inflate *f)
{
	static const uint8_t order[] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15 };
	uint8_t bits[LENGTHS + DISTANCES] = { 0 };
	unsigned lengths, distances, n, value;

	if (!take(f, 5, &lengths) || !take(f, 5, &distances) || !take(f, 4, &n))
		return false;
	lengths += 257;
	distances += 1;
	if (lengths > LENGTHS || distances > DISTANCES)
		return fail(f, "its code makes no sense");
	for (unsigned i = 0; i < n + 4; i++) {
		if (!take(f, 3, &value))
			return false;
		bits[order[i]] = (uint8_t)value;
	}
	if (!code_make(f, &f->lengths, bits, sizeof order) || !take_code_bits(f, bits, lengths + distances))
		return false;
	return code_make(f, &f->lengths, bits, lengths) &&
	       code_make(f, &f->distances, bits + lengths, distances);
}

/* ------------------------------------------------------------------- blocks */

/* The bytes begin at the next whole one; those that are in bits come first. */
static bool stored_block(struct inflate *f)
{
	unsigned n, check, byte;

	if (!take(f, f->n_bits % 8, &n) || !take(f, 16, &n) || !take(f, 16, &check))
		return false;
	if ((n ^ check) != 0xffff)
		return fail(f, "a block's length makes no sense");
	if (!room_for(f, n))
		return false;
	for (; n > 0 && f->n_bits > 0; n--) {
		if (!take(f, 8, &byte))
			return false;
		f->out[f->n++] = (uint8_t)byte;
	}
	if ((size_t)(f->end - f->in) < n)
		return fail(f, "it is cut off");
	memcpy(f->out + f->n, f->in, n);
	f->in += n;
	f->n += n;
	return true;
}

/* Symbols from 257 on are lengths from 3 on: eight of one each, then four of each power
 * of two. */
static bool take_length(struct inflate *f, unsigned symbol, unsigned *length)
{
	unsigned i = symbol - 257, extra, more;

	if (i < 8 || symbol == 285) {
		*length = i < 8 ? 3 + i : 258;
		return true;
	}
	extra = (i - 4) / 4;
	if (symbol >= LENGTHS)
		return fail(f, "a length makes no sense");
	if (!take(f, extra, &more))
		return false;
	*length = 3 + ((4 + i % 4) << extra) + more;
	return true;
}

/* Distances from 1 on: four of one each, then two of each power of two. */
static bool take_distance(struct inflate *f, unsigned *distance)
{
	unsigned i, extra, more;

	if (!take_symbol(f, &f->distances, &i))
		return false;
	extra = i < 4 ? 0 : i / 2 - 1;
	if (!take(f, extra, &more))
		return false;
	*distance = i < 4 ? 1 + i : 1 + ((2 + i % 2) << extra) + more;
	return true;
}

static bool coded_block(struct inflate *f)
{
	unsigned symbol, length, distance;

	for (;;) {
		if (!take_symbol(f, &f->lengths, &symbol))
			return false;
		if (symbol == 256)
			return true;
		if (symbol < 256) {
			if (!room_for(f, 1))
				return false;
			f->out[f->n++] = (uint8_t)symbol;
		} else if (!take_length(f, symbol, &length) || !take_distance(f, &distance) ||
		           !copy_back(f, distance, length)) {
			return false;
		}
	}
}

static bool block(struct inflate *f, unsigned *last)
{
	unsigned kind;

	if (!take(f, 1, last) || !take(f, 2, &kind))
		return false;
	switch (kind) {
	case 0: return stored_block(f);
	case 1: return fixed_codes(f) && coded_block(f);
	case 2: return own_codes(f) && coded_block(f);
	default: return fail(f, "a block is of no kind that exists");
	}
}

/* ------------------------------------------------------------------ wrapping */

static uint32_t crc32_of(const uint8_t *at, size_t n)
{
	uint32_t table[256], crc = UINT32_MAX;

	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
		table[i] = c;
	}
	for (size_t i = 0; i < n; i++)
		crc = crc >> 8 ^ table[(crc ^ at[i]) & 0xff];
	return ~crc;
}

enum { HAS_CRC = 2, HAS_EXTRA = 4, HAS_NAME = 8, HAS_COMMENT = 16 };

static bool skip_text(struct inflate *f)
{
	const uint8_t *zero = memchr(f->in, 0, (size_t)(f->end - f->in));

	if (!zero)
		return fail(f, "it is cut off");
	f->in = zero + 1;
	return true;
}

static bool skip(struct inflate *f, size_t n)
{
	if ((size_t)(f->end - f->in) < n)
		return fail(f, "it is cut off");
	f->in += n;
	return true;
}

static bool head(struct inflate *f)
{
	unsigned flags;

	if (!is_gzip(f->in, (size_t)(f->end - f->in)))
		return fail(f, "something that is not gzip follows");
	if (f->end - f->in < 10)
		return fail(f, "it is cut off");
	flags = f->in[3];
	f->in += 10;
	if ((flags & HAS_EXTRA) && (f->end - f->in < 2 || !skip(f, 2u + f->in[0] + 256u * f->in[1])))
		return fail(f, "it is cut off");
	return (!(flags & HAS_NAME) || skip_text(f)) && (!(flags & HAS_COMMENT) || skip_text(f)) &&
	       (!(flags & HAS_CRC) || skip(f, 2));
}

/* Behind the last block: the check sum and the length, from the next whole byte on. */
static bool tail(struct inflate *f)
{
	unsigned rest, crc[2], n[2];

	if (!take(f, f->n_bits % 8, &rest) || !take(f, 16, &crc[0]) || !take(f, 16, &crc[1]) ||
	    !take(f, 16, &n[0]) || !take(f, 16, &n[1]))
		return false;
	if ((crc[0] | (uint32_t)crc[1] << 16) != crc32_of(f->out + f->member, f->n - f->member) ||
	    (n[0] | (uint32_t)n[1] << 16) != (uint32_t)(f->n - f->member))
		return fail(f, "its check sum is wrong");
	f->in -= f->n_bits / 8;		/* they were not used */
	f->bits = f->n_bits = 0;
	return true;
}

static bool member(struct inflate *f)
{
	unsigned last = 0;

	f->member = f->n;
	if (!head(f) || !room_for(f, 0))
		return false;
	while (!last)
		if (!block(f, &last))
			return false;
	return tail(f);
}

bool is_gzip(const uint8_t *in, size_t n)
{
	return n >= 3 && in[0] == 0x1f && in[1] == 0x8b && in[2] == 8;
}

bool gunzip(const uint8_t *in, size_t n, size_t limit, uint8_t **out, size_t *out_n,
            const char **why)
{
	struct inflate *f = alloc(sizeof *f);
	bool good = true;

	*f = (struct inflate){ .in = in, .end = in + n, .limit = limit };
	do
		good = member(f);
	while (good && f->in < f->end);
	*why = f->why;
	*out = f->out;
	*out_n = f->n;
	if (!good)
		free(f->out);
	free(f);
	return good;
}
