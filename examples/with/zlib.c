/*
 * zlib.c - zlib computes: there is nothing to wait for, and as many run at once as there
 * are CPUs.
 *
 *	zlib park|block|thread [CLIENTS]
 *
 *	park	goroutines, as many of them at once as GOMAXPROCS: a semaphore
 *	block	goroutines, all at once: each gets its time slices, and a preempted one
 *		keeps its thread
 *	thread	a pthread each
 *
 * Each compresses 256 KB and gets the same back.
 */
#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "measure.h"

enum { SIZE = 256 << 10 };

static unsigned char text[SIZE];

static void block_compress(void *unused, int i)
{
	uLongf size = compressBound(SIZE), back = SIZE;
	unsigned char *small = malloc(size), *again = malloc(SIZE);

	(void)unused, (void)i;
	if (!small || !again || compress(small, &size, text, SIZE) != Z_OK)
		die("zlib: no memory");
	if (uncompress(again, &back, small, size) != Z_OK || back != SIZE ||
	    memcmp(text, again, SIZE) != 0)
		die("zlib: something else came back");
	free(small);
	free(again);
}

static goro_sema cpus;

static void park_compress(void *unused, int i)
{
	goro_sema_acquire(&cpus, 1, GORO_FOREVER);
	block_compress(unused, i);
	goro_sema_release(&cpus, 1);
}

static void make_cpus(void *unused)
{
	(void)unused;
	goro_sema_init(&cpus, goro_gomaxprocs(0));
}

static void *park_open(int i)
{
	static goro_once once;

	(void)i;
	goro_once_do(&once, make_cpus, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct client block = { .request = block_compress };
	static const struct client park = { .open = park_open, .request = park_compress };

	for (int i = 0; i < SIZE; i++)
		text[i] = (unsigned char)("goroutines park "[i % 16] + i / 4096 % 7);
	return measure_main(argc, argv, &block, &park);
}
