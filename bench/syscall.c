/*
 * syscall - what it costs to announce a system call that does not block: the
 * bare call, the announced one, and the difference.
 *
 * The two alternate in batches of a few microseconds, and the difference is the
 * median over the batches, so that a machine whose speed changes does not matter.
 */
#include "bench.h"

#include <sys/syscall.h>
#include <unistd.h>

#define CALLS   200             /* per batch */
#define BATCHES 2000            /* per round */

/* Not one that libc or the kernel's vDSO could answer by itself. */
static inline long bare_call(void)
{
	return syscall(SYS_getppid);
}

static int64_t bare_batch(void)
{
	int64_t start = measure_now();

	for (int i = 0; i < CALLS; i++)
		bare_call();
	return measure_now() - start;
}

static int64_t announced_batch(void)
{
	int64_t start = measure_now();

	for (int i = 0; i < CALLS; i++) {
		goro_syscall_enter();
		bare_call();
		goro_syscall_exit();
	}
	return measure_now() - start;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double median_a_call(int64_t *ns)
{
	qsort(ns, BATCHES, sizeof *ns, by_value);
	return (double)ns[BATCHES / 2] / CALLS;
}

static int bench_main(int argc, char **argv)
{
	static int64_t bare[BATCHES], announced[BATCHES], cost[BATCHES];

	(void)argc, (void)argv;
	for (int i = 0; i < BATCHES; i++) {
		bare[i] = bare_batch();
		announced[i] = announced_batch();
		cost[i] = announced[i] - bare[i];
	}
	bench_report("syscall.bare", median_a_call(bare), "ns", "%d", CALLS);
	bench_report("syscall.announced", median_a_call(announced), "ns", "%d", CALLS);
	bench_report("syscall.cost", median_a_call(cost), "ns", "%d", CALLS);
	return 0;
}

GORO_MAIN(bench_main)
