/*
 * measure.h - how a benchmark program measures and what it prints.
 *
 * Knows nothing of goro, so that the C and C++ programs of peers/ measure with
 * the very same code; peers/go/bench.go is its twin in Go.
 *
 * A workload is cut into rounds: a round does a fixed amount of work and
 * returns a checksum of it. Rounds are repeated for a while to warm up and then
 * for the measured time, so a program takes as long on a slow peer as on a fast
 * one, and the checksum of a round does not depend on speed: the same number
 * has to come out of every round, of every peer. (A fixed number of rounds
 * would make fast peers' measurements too short to trust; a checksum over all
 * the rounds could not be compared.)
 *
 * A round should take between 10 microseconds, to make reading the clock
 * negligible, and 100 milliseconds.
 *
 * The measured time is 0.4 s, or BENCH_SECONDS.
 */
#ifndef MEASURE_H
#define MEASURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define MEASURE_DEFAULT_SECONDS 0.4
#define MEASURE_WARMUP_SHARE    0.25

static inline void measure_fail(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

static inline int64_t measure_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* As many descriptors as the process may have. */
static inline rlim_t measure_allow_files(void)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	return files.rlim_cur;
}

/* How many connections to have at most: as many as descriptors allow, two for each. */
#define MEASURE_MAX_CONNS 10000
#define MEASURE_SPARE_FDS 100

static inline int measure_max_conns(void)
{
	rlim_t files = measure_allow_files();

	return files < 2 * MEASURE_MAX_CONNS + MEASURE_SPARE_FDS
	             ? (int)(files - MEASURE_SPARE_FDS) / 2 : MEASURE_MAX_CONNS;
}

static inline int64_t measure_target_ns(void)
{
	const char *text = getenv("BENCH_SECONDS");

	return (int64_t)((text ? atof(text) : MEASURE_DEFAULT_SECONDS) * 1e9);
}

/* CPU time that the whole process has used, all threads together. */
static inline int64_t measure_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

typedef uint64_t measure_round(void);

struct measurement {
	double ns_per_op;
	uint64_t check;         /* of each round */
};

/* Repeats round for at least ns nanoseconds; the mean time of one. */
static inline double measure_repeat(measure_round *round, int64_t ns,
                                    uint64_t check)
{
	int64_t start = measure_now(), elapsed;
	int64_t rounds = 0;

	do {
		if (round() != check)
			measure_fail("two rounds differ in their checksum");
		rounds++;
		elapsed = measure_now() - start;
	} while (elapsed < ns);
	return (double)elapsed / (double)rounds;
}

/* Warms up and measures; a round counts as ops operations. */
static inline struct measurement measure(measure_round *round, double ops)
{
	int64_t target = measure_target_ns();
	int64_t warm = measure_now()
	             + (int64_t)((double)target * MEASURE_WARMUP_SHARE);
	struct measurement m;

	m.check = round();
	if (measure_now() < warm)
		measure_repeat(round, warm - measure_now(), m.check);
	m.ns_per_op = measure_repeat(round, target, m.check) / ops;
	return m;
}

/* One "VmXYZ:   123 kB" line of /proc/self/status, in bytes. */
static inline int64_t measure_status_bytes(const char *field)
{
	FILE *f = fopen("/proc/self/status", "r");
	size_t n = strlen(field);
	int64_t kib = -1;
	char line[256];

	if (!f)
		measure_fail("cannot read /proc/self/status");
	while (kib < 0 && fgets(line, sizeof line, f))
		if (strncmp(line, field, n) == 0 && line[n] == ':')
			kib = strtoll(line + n + 1, NULL, 10);
	fclose(f);
	if (kib < 0)
		measure_fail("no such field in /proc/self/status");
	return kib * 1024;
}

/* Memory that the process costs: its pages and the tables that map them, since
 * a sparse address space can hide a good part of its cost in the latter. */
static inline int64_t measure_memory_bytes(void)
{
	return measure_status_bytes("VmRSS") + measure_status_bytes("VmPTE");
}

/* The head of a result line, up to the text of the check. */
static inline void measure_print_head(int procs, const char *name,
                                      const char *part, double value,
                                      const char *unit)
{
	printf("{\"name\":\"%s%s\",\"procs\":%d,\"value\":%.3f,\"unit\":\"%s\",",
	       name, part, procs, value, unit);
}

/* Prints a result: one line, one JSON object. The rest is the check, as printf:
 * what the runner compares between peers, so it tells work, not speed. procs is
 * what the program found itself running with, not what it was told. */
__attribute__((format(printf, 5, 6)))
static inline void measure_report(int procs, const char *name, double value,
                                  const char *unit, const char *check, ...)
{
	va_list args;

	measure_print_head(procs, name, "", value, unit);
	printf("\"check\":\"");
	va_start(args, check);
	vprintf(check, args);
	va_end(args);
	printf("\"}\n");
	fflush(stdout);
}

/* ------------------------------------------------------------ latencies */

static inline int measure_order(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Of sorted samples, the one that a share q of them does not exceed. */
static inline double measure_quantile(const int64_t *sorted, size_t n, double q)
{
	size_t i = (size_t)(q * (double)n);

	return (double)sorted[i < n ? i : n - 1];
}

/* Prints the median and the 99th percentile of samples in nanoseconds, which it
 * sorts, as two results in microseconds, NAME.p50 and NAME.p99; the second with
 * the whole distribution, for the plots. The rest is the check. */
__attribute__((format(printf, 5, 6)))
static inline void measure_report_latency(int procs, const char *name,
                                          int64_t *samples, size_t n,
                                          const char *check, ...)
{
	static const double at[] = { 0, .01, .05, .1, .25, .5, .75, .9, .95, .99,
	                             .995, .999, 1 };
	char work[256];
	va_list args;

	va_start(args, check);
	vsnprintf(work, sizeof work, check, args);
	va_end(args);
	qsort(samples, n, sizeof samples[0], measure_order);
	measure_print_head(procs, name, ".p50",
	                   measure_quantile(samples, n, .5) / 1e3, "us");
	printf("\"check\":\"%s\"}\n", work);
	measure_print_head(procs, name, ".p99",
	                   measure_quantile(samples, n, .99) / 1e3, "us");
	printf("\"quantiles\":[");
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
		printf("%s[%g,%.3f]", i ? "," : "", at[i],
		       measure_quantile(samples, n, at[i]) / 1e3);
	printf("],\"check\":\"%s\"}\n", work);
	fflush(stdout);
}

#endif
