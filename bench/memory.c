/*
 * memory - goroutines parked at once, ten thousand, a hundred thousand, a million:
 * bytes each, and the time to create one and let it run until it parks.
 *
 * Not in rounds and without a warm-up: the cost in question is that of the
 * first time, with stacks that nobody has touched yet.
 */
#include "bench.h"

#include <stdatomic.h>

#define COUNT 1000000

static goro_waitgroup ready, gate, ended;
static atomic_uint_fast64_t sum;
static int64_t bytes_before, ns_used;

static void parker(uint64_t number)
{
	goro_waitgroup_done(&ready);
	goro_waitgroup_wait(&gate);
	atomic_fetch_add(&sum, number);
	goro_waitgroup_done(&ended);
}

/* Those from first up to, and without, last. */
static void park(uint64_t first, uint64_t last)
{
	int64_t start = measure_now();

	goro_waitgroup_add(&ready, (int)(last - first));
	for (uint64_t i = first; i < last; i++)
		BENCH_GO(parker, i);
	goro_waitgroup_wait(&ready);
	ns_used += measure_now() - start;
}

static void report_bytes(const char *name, uint64_t count)
{
	int64_t bytes = measure_memory_bytes() - bytes_before;

	bench_report(name, (double)bytes / (double)count, "B", "%zu alive",
	             goro_num_goroutine() - 1);
}

static void release_all(void)
{
	goro_waitgroup_done(&gate);
	goro_waitgroup_wait(&ended);
}

static int bench_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	goro_waitgroup_add(&gate, 1);
	goro_waitgroup_add(&ended, COUNT);
	bytes_before = measure_memory_bytes();
	park(0, COUNT / 100);
	report_bytes("memory.bytes.10k", COUNT / 100);
	park(COUNT / 100, COUNT / 10);
	report_bytes("memory.bytes.100k", COUNT / 10);
	park(COUNT / 10, COUNT);
	report_bytes("memory.bytes", COUNT);
	release_all();
	bench_report("memory.create", (double)ns_used / COUNT, "ns",
	             "sum %" PRIu64, (uint64_t)atomic_load(&sum));
	return 0;
}

GORO_MAIN(bench_main)
