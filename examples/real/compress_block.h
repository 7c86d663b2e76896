/*
 * compress_block.h - what compress.c and compress_pthread.c have in common: one block
 * of a gzip stream. It knows of no goroutine and no thread.
 *
 * The blocks are pieces of one deflate stream, as pigz makes them. Each ends at a byte
 * (Z_SYNC_FLUSH), so they can be put one behind the other, and each starts with the last
 * 32 KiB of the piece before for its dictionary, so hardly anything is lost by cutting.
 */
#ifndef COMPRESS_BLOCK_H
#define COMPRESS_BLOCK_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = 131072, DICTIONARY = 32768, OUT_MAX = BLOCK + BLOCK / 8 + 1024 };

struct block {
	size_t in_n, dictionary_n, out_n;
	bool last;
	uLong crc;
	z_stream stream;
	unsigned char dictionary[DICTIONARY], in[BLOCK], out[OUT_MAX];
};

static struct {
	int level, workers;
} options = { Z_DEFAULT_COMPRESSION, 1 };

static bool read_options(int argc, char **argv)
{
	bool known = true;

	for (int option; (option = getopt(argc, argv, "123456789p:")) != -1; )
		if (option >= '1' && option <= '9')
			options.level = option - '0';
		else if (option == 'p')
			options.workers = atoi(optarg);
		else
			known = false;
	if (known && optind == argc && options.workers >= 1 && options.workers <= 1000)
		return true;
	fprintf(stderr, "usage: compress [-1..-9] [-p WORKERS] <FILE >FILE.gz\n");
	return false;
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "compress: %s: %s\n", what, strerror(err));
	return err;
}

static struct block *block_make(void)
{
	struct block *b = calloc(1, sizeof *b);

	if (b && deflateInit2(&b->stream, options.level, Z_DEFLATED, -MAX_WBITS, 8,
	                      Z_DEFAULT_STRATEGY) != Z_OK) {
		free(b);
		return NULL;
	}
	return b;
}

static void block_free(struct block *b)
{
	deflateEnd(&b->stream);
	free(b);
}

/* The next block begins with the end of this one: before that is given away. */
static void block_follows(struct block *b, const struct block *before)
{
	b->dictionary_n = 0;
	if (before && before->in_n > 0) {
		b->dictionary_n = before->in_n < DICTIONARY ? before->in_n : DICTIONARY;
		memcpy(b->dictionary, before->in + before->in_n - b->dictionary_n,
		       b->dictionary_n);
	}
}

/* Compresses in to out, which is large enough for whatever there is. */
static void block_compress(struct block *b)
{
	z_stream *z = &b->stream;

	deflateReset(z);
	if (b->dictionary_n > 0)
		deflateSetDictionary(z, b->dictionary, (uInt)b->dictionary_n);
	z->next_in = b->in;
	z->avail_in = (uInt)b->in_n;
	z->next_out = b->out;
	z->avail_out = sizeof b->out;
	deflate(z, b->last ? Z_FINISH : Z_SYNC_FLUSH);
	if (z->avail_in > 0 || z->avail_out == 0)
		abort();
	b->out_n = sizeof b->out - z->avail_out;
	b->crc = crc32(0, b->in, (uInt)b->in_n);
}

/* What stands before the first block, and behind the last: gzip's header and trailer. */
static const unsigned char gzip_header[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };

static void gzip_trailer(unsigned char trailer[8], uLong crc, unsigned long long size)
{
	for (int i = 0; i < 4; i++) {
		trailer[i] = (unsigned char)(crc >> 8 * i);
		trailer[4 + i] = (unsigned char)(size >> 8 * i);
	}
}

#endif
