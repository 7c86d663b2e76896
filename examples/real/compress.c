/*
 * compress.c - compresses its input as gzip does, in parallel: a small pigz.
 *
 *	compress [-1..-9] [-p WORKERS] <FILE >FILE.gz       then gunzip, or zcat, reads it
 *
 *	              a block, in order, at once
 *	read_all ------------------------------------> write_all
 *	   ^    `-- go compress_one --- it is done ---/    |
 *	   |                                               |
 *	   `----------------- unused blocks ---------------'
 *
 * What to look at: the order. read_all sends each block on to write_all before it is
 * compressed, and starts a goroutine that compresses it. write_all receives them in
 * the order in which they were read, and waits for each until it is done. The blocks
 * go round: there are a few for each worker, and they are all the memory, however long
 * the input is. compress_pthread.c is the same program with threads; compress_block.h
 * is what they share.
 */
#include "compress_block.h"
#include <goro.h>

struct piece {
	struct block *block;
	goro_chan *done;			/* says that the block is compressed */
};

static goro_chan *unused, *in_order;		/* of struct piece, with room for all */
static goro_sema workers;

static void compress_one(struct block *block, goro_chan *done)
{
	block_compress(block);
	goro_chan_send(done, &(int){ 0 });
	goro_sema_release(&workers, 1);
}

/* Cuts the input into blocks. After an error the last one does not come. */
static void read_all(void)
{
	struct piece piece, before = { NULL, NULL };
	bool last = false;
	ssize_t n;

	while (!last && goro_chan_recv(unused, &piece)) {
		block_follows(piece.block, before.block);
		n = goro_read_full(STDIN_FILENO, piece.block->in, BLOCK);
		if (n < 0) {
			fail("stdin", (int)-n);
			break;
		}
		piece.block->in_n = (size_t)n;
		piece.block->last = last = n < BLOCK;
		goro_chan_send(in_order, &piece);
		goro_sema_acquire(&workers, 1, GORO_FOREVER);
		go(compress_one, piece.block, piece.done);
		before = piece;
	}
	goro_chan_close(in_order);
}

static bool write_bytes(const void *bytes, size_t n)
{
	ssize_t written = goro_write_full(STDOUT_FILENO, bytes, n);

	if (written < 0)
		fail("stdout", (int)-written);
	return written >= 0;
}

static bool write_all(void)
{
	uLong crc = crc32(0, NULL, 0);
	unsigned long long size = 0;
	unsigned char trailer[8];
	struct piece piece;
	bool last = false;

	if (!write_bytes(gzip_header, sizeof gzip_header))
		return false;
	while (goro_chan_recv(in_order, &piece)) {
		goro_chan_recv(piece.done, NULL);
		if (!write_bytes(piece.block->out, piece.block->out_n))
			return false;
		crc = crc32_combine(crc, piece.block->crc, (z_off_t)piece.block->in_n);
		size += piece.block->in_n;
		last = piece.block->last;
		goro_chan_send(unused, &piece);
	}
	gzip_trailer(trailer, crc, size);
	return last && write_bytes(trailer, sizeof trailer);
}

static bool make_blocks(int n)
{
	struct piece piece;

	unused = goro_chan_of(struct piece, (size_t)n);
	in_order = goro_chan_of(struct piece, (size_t)n);
	while (unused && in_order && n > 0) {
		piece = (struct piece){ block_make(), goro_chan_of(int, 1) };
		if (!piece.block || !piece.done)
			break;
		goro_chan_send(unused, &piece);
		n--;
	}
	return n == 0;
}

static void free_blocks(void)
{
	struct piece piece;

	while (goro_chan_try_recv(unused, &piece) == GORO_RECV_OK) {
		block_free(piece.block);
		goro_chan_unref(piece.done);
	}
	goro_chan_unref(unused);
	goro_chan_unref(in_order);
}

static int start(int argc, char **argv)
{
	options.workers = goro_gomaxprocs(0);
	if (!read_options(argc, argv))
		return 2;
	if (!make_blocks(2 * options.workers + 2)) {
		fail("blocks", ENOMEM);
		return 1;
	}
	goro_sema_init(&workers, options.workers);
	go(read_all);
	if (!write_all())
		return 1;	/* ends the process, whatever still runs */
	free_blocks();
	return 0;
}
GORO_MAIN(start)
