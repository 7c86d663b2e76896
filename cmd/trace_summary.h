/*
 * trace_summary.h - a trace in figures. Collected in trace_summary.c, printed by
 * trace_report.c.
 */
#ifndef GORO_CMD_TRACE_SUMMARY_H
#define GORO_CMD_TRACE_SUMMARY_H

#include "trace_model.h"

/* How many, how long in all, the longest, in ns. */
struct tally {
	uint64_t n;
	int64_t sum, most;
};

/* Durations counted by size: each bucket is an eighth of a power of two wide. */
#define HISTOGRAM_BUCKETS (64 * 8)
struct histogram {
	uint64_t bucket[HISTOGRAM_BUCKETS], n;
	int64_t most;
};
/* What the fraction (0 to 1) of the durations is at most; -1: there are none. */
int64_t histogram_quantile(const struct histogram *h, double fraction);

/* Waits for one reason in one place; or waits for one reason; or regions of one name
 * ... */
struct group {
	uint64_t key;
	uint32_t name, stack;		/* a text; a stack, or 0 */
	struct tally waits;
	uint64_t longest_g;		/* who waited longest, from when */
	uint32_t longest_name;
	int64_t longest_from;
	uint64_t goroutines;		/* of a function */
	int64_t spent[G_STATES];
};

struct groups {
	struct map by_key;		/* indices + 1 */
	struct group *at;
	size_t n, room;
};

struct summary {
	const struct trace_model *model;
	struct tally state[G_STATES];
	struct histogram latency;	/* from ready to running */
	struct groups reasons, places, functions, regions, tasks, at_end;
	uint64_t preempted, yielded, calls, calls_without_p, moved, stops, logs;
	int64_t *busy;			/* by P: running, or in a call */
	uint64_t procs;
};

void summary_collect(struct summary *s, const struct trace_model *t, struct trace_sink *sink);
void summary_free(struct summary *s);
/* The most first, by what order says of two groups. */
void groups_sort(struct groups *g, int (*order)(const void *, const void *));
int group_by_longest(const void *a, const void *b);
int group_by_sum(const void *a, const void *b);
int group_by_running(const void *a, const void *b);

void report_print(const struct trace_model *t, struct summary *s, const char *path);

#endif
