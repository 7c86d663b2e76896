/*
 * bench.h - what goro's workloads share on top of measure.h.
 *
 * A workload is one file: it includes this, has a round function and a main
 * for GORO_MAIN that measures it and reports. It uses goro's public interface
 * only, in the way a user would.
 */
#ifndef BENCH_H
#define BENCH_H

#include "measure.h"

#include <goro.h>

/* go(), for programs whose figures mean nothing if a goroutine is missing. */
#define BENCH_GO(...)                                                        \
	do {                                                                 \
		if (goro_go(__VA_ARGS__) != 0)                               \
			measure_fail("cannot start a goroutine");            \
	} while (0)

#define bench_report(...) measure_report(goro_gomaxprocs(0), __VA_ARGS__)
#define bench_report_latency(...) \
	measure_report_latency(goro_gomaxprocs(0), __VA_ARGS__)

/* What fields that different processors write are kept apart by. */
#define BENCH_LINE 64

#endif
