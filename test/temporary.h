/*
 * temporary.h - a new file for a test, whose name is gone already.
 */
#ifndef TEMPORARY_H
#define TEMPORARY_H

#include <fcntl.h>
#include <goro.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Open for reading and writing by goro_open; below 0: not in this directory. */
static inline int temporary_in(const char *directory)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "%s/goro-test-XXXXXX", directory);
	fd = mkstemp(path);
	if (fd < 0)
		return fd;
	close(fd);
	fd = goro_open(path, O_RDWR);
	unlink(path);
	return fd;
}

#endif
