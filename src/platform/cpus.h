/* cpus.h - how many CPUs this process may use: the default of GOMAXPROCS */
#ifndef GORO_CPUS_H
#define GORO_CPUS_H

#include <limits.h>

/* Cgroups, from the process's outwards. Containers in containers reach about ten. */
#define CPUS_LEVELS_MAX 32

/* What a cgroup without a quota allows. */
#define CPUS_NO_LIMIT   INT_MAX

/* The open files that state one cgroup's quota. */
struct cpus_level {
	int quota_fd;  /* v2: cpu.max; v1: cpu.cfs_quota_us */
	int period_fd; /* v2: -1;      v1: cpu.cfs_period_us */
	int limit;     /* atomic: as read last; stays if the program closes the files */
};

/* The process's cgroup first, then its ancestors. */
struct cpus_cgroup {
	int nlevels;
	struct cpus_level level[CPUS_LEVELS_MAX];
};

/* Finds the cgroup of this process and keeps its files open. Called again it looks anew.
 * Must not run beside cpus_default(), which knows the affinity mask alone before the
 * first call. */
void cpus_open(void);

/* What GOMAXPROCS should be now. Any thread; takes no lock and 2 KiB of stack. */
int cpus_default(void);

/* CPUs in the calling thread's affinity mask, at least 1. */
int cpus_affinity(void);

/* The number in GORO_MAXPROCS=s, at most max; 0: not a positive decimal integer. */
int cpus_parse_maxprocs(const char *s, int max);

/* The parts of cpus_default(), for tests. root is put before every path that is opened:
 * "" is the real machine. Without a cgroup there is no limit. */
void cpus_cgroup_open(struct cpus_cgroup *cg, const char *root);
void cpus_cgroup_close(struct cpus_cgroup *cg);

/* The CPUs that the quotas allow now, rounded up, or CPUS_NO_LIMIT. */
int cpus_cgroup_limit(struct cpus_cgroup *cg);

/* GOMAXPROCS for this number of CPUs and this limit. */
int cpus_clip(int cpus, int limit);

#endif
