/*
 * shrink.c - a page of memory in few bytes.
 *
 * A stack holds pointers and small numbers, and most of its first page nothing at all: of
 * the 512 words of one whose goroutine waits to read, 60 are not zero, and these have 5
 * bytes that matter. So: a bit for each eight words, whether any is not zero; for each
 * such eight a nibble a word, how many bytes of it matter, and those bytes, the low ones.
 * Such a page takes 400 bytes; deflate makes 290 of it, in twenty times the time.
 *
 *	bits of the groups | nibbles, bytes .. of the first group | of the next | ..
 *
 * Both directions move words of eight bytes, whose upper part is then overwritten or
 * masked: hence the slack. The order of bytes is the processor's, little on those that
 * goro runs on.
 */
#include "shrink.h"

#include <stdint.h>
#include <string.h>

#define GROUP 8			/* words */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "shrink: low bytes first");

static unsigned bytes_of(uint64_t word)
{
	return word ? (unsigned)(71 - __builtin_clzll(word)) / 8 : 0;
}

static uint64_t low_bytes(unsigned n)
{
	return n ? ~UINT64_C(0) >> (64 - 8 * n) : 0;
}

static uint64_t any(const uint64_t *w)
{
	return w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7];
}

/* One group; where the next is to go. */
static unsigned char *put_group(const uint64_t *w, unsigned char *out)
{
	unsigned char *nibbles_at = out;
	uint32_t nibbles = 0;

	out += sizeof nibbles;
	for (unsigned i = 0; i < GROUP; i++) {
		unsigned n = bytes_of(w[i]);

		nibbles |= n << 4 * i;
		memcpy(out, &w[i], sizeof w[i]);
		out += n;
	}
	memcpy(nibbles_at, &nibbles, sizeof nibbles);
	return out;
}

#define GROUP_MAX (4 + GROUP * 8)

size_t shrink(const void *page, size_t page_bytes, unsigned char *out, size_t max)
{
	const uint64_t *w = page;
	size_t groups = page_bytes / (GROUP * sizeof *w);
	unsigned char *at = out + groups / 8, *end = out + max;

	memset(out, 0, groups / 8);
	for (size_t g = 0; g < groups; g++, w += GROUP) {
		unsigned char tail[GROUP_MAX + SHRINK_SLACK], *tail_end;

		if (!any(w))
			continue;
		out[g / 8] |= (unsigned char)(1 << g % 8);
		if (end - at >= GROUP_MAX) {
			at = put_group(w, at);
			continue;
		}
		tail_end = put_group(w, tail);
		if (tail_end - tail > end - at)
			return 0;
		memcpy(at, tail, (size_t)(tail_end - tail));
		at += tail_end - tail;
	}
	return (size_t)(at - out);
}

static const unsigned char *get_group(const unsigned char *from, uint64_t *w)
{
	uint32_t nibbles;

	memcpy(&nibbles, from, sizeof nibbles);
	from += sizeof nibbles;
	for (unsigned i = 0; i < GROUP; i++) {
		unsigned n = nibbles >> 4 * i & 15;

		memcpy(&w[i], from, sizeof w[i]);
		w[i] &= low_bytes(n);
		from += n;
	}
	return from;
}

void unshrink(const unsigned char *from, void *page, size_t page_bytes)
{
	uint64_t *w = page;
	size_t groups = page_bytes / (GROUP * sizeof *w);
	const unsigned char *at = from + groups / 8;

	for (size_t g = 0; g < groups; g++, w += GROUP) {
		if (from[g / 8] & 1 << g % 8)
			at = get_group(at, w);
		else
			memset(w, 0, GROUP * sizeof *w);
	}
}
