/*
 * has_ring.h - whether sockets can be read and written by rings here: without them a test
 * that waits until one is used would wait for ever.
 */
#ifndef GORO_TEST_HAS_RING_H
#define GORO_TEST_HAS_RING_H

#include <linux/io_uring.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "test.h"

/* The kernel has rings, and such as are of use (FEATURES in batch.c). */
static bool has_ring(void)
{
	const unsigned features = IORING_FEAT_NODROP | IORING_FEAT_NATIVE_WORKERS;
	static bool known, yes;
	struct io_uring_params p = { 0 };
	int fd;

	if (known || (getenv("GORO_DEBUG") && strstr(getenv("GORO_DEBUG"), "nouring=1")))
		return yes;
	fd = (int)syscall(SYS_io_uring_setup, 1, &p);
	if (fd >= 0)
		close(fd);
	known = true;
	return yes = fd >= 0 && (p.features & features) == features;
}

static void needs_ring(void)
{
	if (!has_ring())
		SKIP("no io_uring");
}

#endif
