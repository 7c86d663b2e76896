/*
 * gzip.c - bytes in gzip's format, not compressed.
 *
 * Readers of profiles expect gzip (RFC 1952). `go tool pprof` accepts bare bytes, too,
 * but others do not. Of deflate (RFC 1951) only stored blocks are used: a profile has
 * some ten kilobytes, and a compressor would be most of the code that makes it.
 */
#include "profile/pprof_proto.h"

#define STORED_MAX 65535

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

static void add_le(struct bytes *out, uint32_t v, int size)
{
	for (int i = 0; i < size; i++)
		bytes_add(out, &(uint8_t){ (uint8_t)(v >> (8 * i)) }, 1);
}

static void add_block(struct bytes *out, const uint8_t *at, size_t n, bool last)
{
	add_le(out, last, 1);
	add_le(out, (uint32_t)n, 2);
	add_le(out, ~(uint32_t)n, 2);
	bytes_add(out, at, n);
}

void gzip_store(struct bytes *out, const struct bytes *in)
{
	/* Magic, deflate, no flags, no time, no extras, of an unknown system. */
	static const uint8_t head[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255 };
	size_t done = 0, n;

	bytes_add(out, head, sizeof head);
	do {
		n = in->n - done < STORED_MAX ? in->n - done : STORED_MAX;
		add_block(out, in->at + done, n, done + n == in->n);
		done += n;
	} while (done < in->n);
	add_le(out, crc32_of(in->at, in->n), 4);
	add_le(out, (uint32_t)in->n, 4);
}
