/*
 * fileread - 1,000 goroutines that read blocks of 4 KiB at random from a file of
 * 1 GiB that is in the page cache; time per read.
 *
 * The file, goro-bench-1GiB in TMPDIR (or /tmp), is made by the first who needs it and
 * left there for the next. Every 8 bytes of it are their own index.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "bench.h"

#define READERS 1000
#define READS   20              /* of each, per round */
#define BLOCK   4096
#define BLOCKS  (1u << 18)

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

/* Open, and in the page cache. */
static int file_open(void)
{
	static char buf[1 << 20];
	int fd = goro_open(file_path(), O_RDONLY);

	if (fd < 0) {
		file_make(file_path());
		fd = goro_open(file_path(), O_RDONLY);
	}
	for (off_t at = 0; at < (off_t)BLOCKS * BLOCK; at += sizeof buf)
		if (goro_pread(fd, buf, sizeof buf, at) != sizeof buf)
			measure_fail("cannot read the file");
	return fd;
}

static int file;

/* A cache line each. */
static struct reader {
	_Alignas(64) uint64_t random;
	uint64_t right;
} readers[READERS];

static void read_some(struct reader *r, goro_waitgroup *wg)
{
	uint64_t block[BLOCK / 8], x = r->random;

	for (int i = 0; i < READS; i++) {
		uint64_t at;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		at = x % BLOCKS;
		if (goro_pread(file, block, BLOCK, (off_t)(at * BLOCK)) == BLOCK)
			r->right += block[0] == at * (BLOCK / 8);
	}
	r->random = x;
	goro_waitgroup_done(wg);
}

static uint64_t fileread_round(void)
{
	goro_waitgroup wg = { 0 };
	uint64_t right = 0;

	goro_waitgroup_add(&wg, READERS);
	for (int i = 0; i < READERS; i++) {
		readers[i].right = 0;
		BENCH_GO(read_some, &readers[i], &wg);
	}
	goro_waitgroup_wait(&wg);
	for (int i = 0; i < READERS; i++)
		right += readers[i].right;
	return right;
}

static int bench_main(int argc, char **argv)
{
	struct measurement m;

	(void)argc, (void)argv;
	file = file_open();
	for (int i = 0; i < READERS; i++)
		readers[i].random = (uint64_t)(i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	m = measure(fileread_round, READERS * READS);
	bench_report("fileread", m.ns_per_op, "ns", "%" PRIu64 " right", m.check);
	return 0;
}

GORO_MAIN(bench_main)
