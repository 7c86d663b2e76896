/*
 * diskread - 1,000 goroutines that read blocks of 4 KiB at random from a file of 1 GiB
 * that is not in the page cache: it is dropped from there before each round; time per
 * read.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "fileread.h"

static int file;

static void read_some(struct reader *r, goro_waitgroup *wg)
{
	uint64_t block[BLOCK / 8];

	for (int i = 0; i < READS; i++) {
		uint64_t at = reader_next(r);

		if (goro_pread(file, block, BLOCK, (off_t)(at * BLOCK)) == BLOCK)
			r->right += block[0] == at * (BLOCK / 8);
	}
	goro_waitgroup_done(wg);
}

static uint64_t diskread_round(void)
{
	goro_waitgroup wg = { 0 };

	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	goro_waitgroup_add(&wg, READERS);
	for (int i = 0; i < READERS; i++)
		BENCH_GO(read_some, &readers[i], &wg);
	goro_waitgroup_wait(&wg);
	return readers_right();
}

static int bench_main(int argc, char **argv)
{
	struct measurement m;

	(void)argc, (void)argv;
	file_prepare();
	file = goro_open(file_path(), O_RDONLY);
	if (file < 0)
		measure_fail("cannot open the file");
	if (goro_fsync(file) < 0)	/* what is not written yet cannot be dropped */
		measure_fail("cannot write the file out");
	readers_begin();
	m = measure(diskread_round, READERS * READS);
	bench_report("diskread", m.ns_per_op, "ns", "%" PRIu64 " right", m.check);
	return 0;
}

GORO_MAIN(bench_main)
