/*
 * fileread - 1,000 goroutines that read blocks of 4 KiB at random from a file of
 * 1 GiB that is in the page cache; time per read.
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

static uint64_t fileread_round(void)
{
	goro_waitgroup wg = { 0 };

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
	readers_begin();
	readers_warm_up(fileread_round);
	m = measure(fileread_round, READERS * READS);
	bench_report("fileread", m.ns_per_op, "ns", "%" PRIu64 " right", m.check);
	return 0;
}

GORO_MAIN(bench_main)
