/* fileread - the same reads as the goroutines', one pread after the other in a thread for
 * each processor; time per read. */
#define _GNU_SOURCE
#include "fileread.h"
#include "share.h"

static int file;

static void read_share(int share)
{
	uint64_t block[BLOCK / 8];

	for (int i = share; i < READERS; i += shares.n)
		for (int k = 0; k < READS; k++) {
			uint64_t at = reader_next(&readers[i]);

			if (pread(file, block, BLOCK, (off_t)(at * BLOCK)) == BLOCK)
				readers[i].right += block[0] == at * (BLOCK / 8);
		}
}

static uint64_t fileread_round(void)
{
	shares_round();
	return readers_right();
}

int main(void)
{
	struct measurement m;

	file_prepare();
	file = open(file_path(), O_RDONLY);
	if (file < 0)
		measure_fail("cannot open the file");
	readers_begin();
	shares_start(peer_procs(), read_share);
	readers_warm_up(fileread_round);
	m = measure(fileread_round, READERS * READS);
	peer_report("fileread", m.ns_per_op, "ns", "%" PRIu64 " right", m.check);
	shares_stop();
	return 0;
}
