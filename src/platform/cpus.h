/*
 * cpus.h - how many processors this process may use: the default of GOMAXPROCS.
 *
 * The rules, and how the cgroup is found, are explained in cpus.c.
 */
#ifndef GORO_CPUS_H
#define GORO_CPUS_H

#include <limits.h>

/* Cgroups, from ours outwards, whose quota is followed. Each costs one
 * descriptor (two in v1); containers in containers reach about ten. */
#define CPUS_LEVELS_MAX 32

/* More CPUs than there are: what a cgroup without a quota allows. */
#define CPUS_NO_LIMIT   INT_MAX

/* The open files that state one cgroup's quota. */
struct cpus_level {
	int quota_fd;  /* v2: cpu.max; v1: cpu.cfs_quota_us */
	int period_fd; /* v2: -1;      v1: cpu.cfs_period_us */
	int limit;     /* what they said last: it stays if the program closes them; atomic */
};

/* Our cgroup first, then its ancestors. */
struct cpus_cgroup {
	int nlevels;
	int outer_limit; /* of the levels that did not fit, when they were opened */
	struct cpus_level level[CPUS_LEVELS_MAX];
};

/* Finds the cgroup of this process and keeps its files open. Once, before
 * anybody asks for cpus_default(); without it only the affinity mask counts.
 * Called again it looks anew, and must not run beside cpus_default(). */
void cpus_open(void);

/* What GOMAXPROCS should be now, at least 1; and what goro_num_cpu() returns. Any thread
 * after cpus_open(); takes no lock and allocates nothing; 1 KiB of stack, or 9 KiB
 * where there are more than 8,192 CPUs. */
int cpus_default(void);

/* CPUs in the calling thread's affinity mask, at least 1. */
int cpus_affinity(void);

/* The number a GORO_MAXPROCS of s asks for, at most max; 0, to be ignored,
 * where s is NULL or not a positive decimal integer. */
int cpus_parse_maxprocs(const char *s, int max);

/* The parts of cpus_default(), for tests. root comes before every path that is
 * opened: "" is the real machine. No cgroup is not an error, only no limit. */
void cpus_cgroup_open(struct cpus_cgroup *cg, const char *root);
void cpus_cgroup_close(struct cpus_cgroup *cg);

/* CPUs that the quotas allow now, rounded up, or CPUS_NO_LIMIT. */
int cpus_cgroup_limit(struct cpus_cgroup *cg);

/* GOMAXPROCS for that many CPUs under that limit. */
int cpus_clip(int cpus, int limit);

#endif
