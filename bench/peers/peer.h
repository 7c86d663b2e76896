/*
 * peer.h - what the peers in C and C++ share on top of measure.h.
 */
#ifndef PEER_H
#define PEER_H

#include "measure.h"

#include <sched.h>

/* What fields that different processors write are kept apart by. */
#define PEER_LINE 64

/* How many processors to work with. */
static inline int peer_procs(void)
{
	const char *text = getenv("BENCH_PROCS");
	int procs = text ? atoi(text) : 1;

	if (procs < 1)
		measure_fail("BENCH_PROCS is not a number");
	return procs;
}

#define peer_report(...) measure_report(peer_procs(), __VA_ARGS__)
#define peer_report_latency(...) measure_report_latency(peer_procs(), __VA_ARGS__)

/* Binds the process to so many CPUs: what a number of processors means to one
 * whose threads are the kernel's. */
static inline void peer_bind_cpus(void)
{
	int left = peer_procs();
	cpu_set_t all, some;

	CPU_ZERO(&some);
	if (sched_getaffinity(0, sizeof all, &all) != 0)
		measure_fail("sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE && left > 0; cpu++)
		if (CPU_ISSET(cpu, &all)) {
			CPU_SET(cpu, &some);
			left--;
		}
	if (left > 0 || sched_setaffinity(0, sizeof some, &some) != 0)
		measure_fail("there are not so many CPUs");
}

#endif
