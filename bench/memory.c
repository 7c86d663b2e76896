/*
 * memory - a million goroutines parked at once: bytes each, and the time to
 * create one and let it run until it parks.
 *
 * Not in rounds and without a warm-up: the cost in question is that of the
 * first time, with stacks that nobody has touched yet.
 */
#include "bench.h"

#include <stdatomic.h>

#define COUNT 1000000

static goro_waitgroup ready, gate, ended;
static atomic_uint_fast64_t sum;

static void parker(uint64_t number)
{
	goro_waitgroup_done(&ready);
	goro_waitgroup_wait(&gate);
	atomic_fetch_add(&sum, number);
	goro_waitgroup_done(&ended);
}

static void park_all(void)
{
	goro_waitgroup_add(&ready, COUNT);
	goro_waitgroup_add(&gate, 1);
	goro_waitgroup_add(&ended, COUNT);
	for (uint64_t i = 0; i < COUNT; i++)
		BENCH_GO(parker, i);
	goro_waitgroup_wait(&ready);
}

static void release_all(void)
{
	goro_waitgroup_done(&gate);
	goro_waitgroup_wait(&ended);
}

static int bench_main(int argc, char **argv)
{
	int64_t bytes = measure_memory_bytes(), ns = measure_now();
	uint64_t alive;

	(void)argc, (void)argv;
	park_all();
	ns = measure_now() - ns;
	bytes = measure_memory_bytes() - bytes;
	alive = goro_num_goroutine() - 1;
	release_all();

	bench_report("memory.bytes", (double)bytes / COUNT, "B",
	             "%" PRIu64 " alive, sum %" PRIu64, alive,
	             (uint64_t)atomic_load(&sum));
	bench_report("memory.create", (double)ns / COUNT, "ns",
	             "%" PRIu64 " alive", alive);
	return 0;
}

GORO_MAIN(bench_main)
