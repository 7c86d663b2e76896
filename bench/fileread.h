/*
 * fileread.h - the file that fileread reads from: goro-bench-1GiB in TMPDIR (or /tmp),
 * made by the first who needs it and left there for the next. Every 8 bytes of it are
 * their own index.
 */
#ifndef FILEREAD_H
#define FILEREAD_H

#include "measure.h"

#include <fcntl.h>
#include <unistd.h>

#define READERS 1000
#define READS   20              /* of each, per round */
#define BLOCK   4096
#define BLOCKS  (1u << 18)

/* Before it is measured as many blocks are read as there are: whatever a system learns of
 * the file it has learnt by then. */
#define WARM_ROUNDS (BLOCKS / (READERS * READS) + 1)

static const char *file_path(void)
{
	static char path[4096];
	const char *dir = getenv("TMPDIR");

	snprintf(path, sizeof path, "%s/goro-bench-1GiB", dir ? dir : "/tmp");
	return path;
}

/* Written under another name, so that one that is there is whole. */
static void file_make(const char *path)
{
	static uint64_t words[1 << 17];
	char part[4200];
	int fd;

	snprintf(part, sizeof part, "%s.%d", path, (int)getpid());
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	for (uint64_t at = 0; at < (uint64_t)BLOCKS * BLOCK; at += sizeof words) {
		for (size_t i = 0; i < sizeof words / 8; i++)
			words[i] = at / 8 + i;
		if (write(fd, words, sizeof words) != sizeof words)
			measure_fail("cannot write the file to read");
	}
	close(fd);
	if (rename(part, path) != 0)
		measure_fail("cannot make the file to read");
}

/* The file is there, and in the page cache. */
static void file_prepare(void)
{
	static char buf[1 << 20];
	int fd = open(file_path(), O_RDONLY);

	if (fd < 0) {
		file_make(file_path());
		fd = open(file_path(), O_RDONLY);
	}
	for (off_t at = 0; at < (off_t)BLOCKS * BLOCK; at += sizeof buf)
		if (pread(fd, buf, sizeof buf, at) != sizeof buf)
			measure_fail("cannot read the file");
	close(fd);
}

/* A cache line each. */
static struct reader {
	_Alignas(64) uint64_t random;
	uint64_t right;
} readers[READERS];

static void readers_begin(void)
{
	for (int i = 0; i < READERS; i++)
		readers[i].random = (uint64_t)(i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static inline void readers_warm_up(measure_round *round)
{
	for (unsigned i = 0; i < WARM_ROUNDS; i++)
		round();
}

/* The next block that r reads. */
static inline uint64_t reader_next(struct reader *r)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return r->random % BLOCKS;
}

static uint64_t readers_right(void)
{
	uint64_t right = 0;

	for (int i = 0; i < READERS; i++) {
		right += readers[i].right;
		readers[i].right = 0;
	}
	return right;
}

#endif
