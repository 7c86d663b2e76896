/*
 * cpus.c - how many CPUs this process may use: the default of GOMAXPROCS
 *
 * As in Go since 1.25, the smaller of the CPUs in the affinity mask, which cpusets have
 * already reduced, and the cgroup's CPU quota: quota / period, rounded up, at least 2.
 * Rounded up, because a thread too few leaves paid-for time unused, while one too many is
 * only throttled. At least 2, so that one busy goroutine does not stop all others until
 * it is preempted. A quota binds everything below its cgroup, so unlike in Go the
 * ancestors that can be seen count, too.
 *
 * Finding the files
 *
 * /proc/self/cgroup names the cgroup of the process. The cpu controller is either in a v1
 * hierarchy or in v2, so a v1 line that names "cpu" is taken before a v2 line. The
 * hierarchy is looked for where all systems mount it: /sys/fs/cgroup for v2,
 * /sys/fs/cgroup/cpu for v1. The search walks up from the cgroup's directory there to the
 * mount point, and passes over levels without files: v2's root, a v2 cgroup whose parent
 * has not enabled the controller, one that was deleted, and all but the mount point in a
 * container that is shown the machine's names in /proc. A path that begins with ".." is
 * outside the process's cgroup namespace: what is mounted are other cgroups.
 *
 * The files stay open and are read anew by each call: a changed quota is seen at once,
 * unless the program has closed them. As in Go, a move to another cgroup is not seen.
 *
 * Rejected: looking the mount point up in mountinfo, which is long (100 KB on a machine
 * with many containers), and written under a lock that mounting needs.
 *
 * sysmon calls this, and it must not take a libc lock, which a preempted goroutine may
 * hold. So there is no stdio and no malloc. What does not parse counts as absent.
 */
#define _GNU_SOURCE
#include "platform/cpus.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "platform/os.h"
#include "platform/own_fd.h"
#include "platform/sim.h"

/* Twice the largest number in a kernel's configuration. */
#define AFFINITY_MAX_CPUS 16384

/* Two 64-bit numbers, a space and a newline take 42 bytes. */
#define QUOTA_FILE_BYTES  64

/* A v1 system has a dozen lines, each with a path. */
#define CGROUP_FILE_BYTES (32 << 10)

/* Mapped: too large for the stack of the starting thread, which may have 16 KiB. */
struct search {
	bool v1;
	char text[CGROUP_FILE_BYTES];	/* /proc/self/cgroup */
	char dir[3 * PATH_MAX];		/* room to walk up from a path too long to open */
};

/* Opens the file at dir followed by name. Returns a descriptor or -1. */
static int open_in(char *dir, const char *name)
{
	size_t n = strlen(dir);
	int fd;

	strcpy(dir + n, name);
	fd = open(dir, O_RDONLY | O_CLOEXEC);
	dir[n] = '\0';
	return fd;
}

static bool lists_cpu(char *controllers)
{
	for (char *c; (c = strsep(&controllers, ","));)
		if (strcmp(c, "cpu") == 0)
			return true;
	return false;
}

/* The path of the process's cgroup, or NULL. Lines are ID:CONTROLLERS:PATH; v2 has ID
 * 0. */
static const char *find_path(struct search *s)
{
	const char *path = NULL;
	char *text = s->text;

	for (char *line; !s->v1 && (line = strsep(&text, "\n"));) {
		const char *id = strsep(&line, ":");
		char *controllers = strsep(&line, ":");

		if (!line || line[0] != '/')
			continue;
		s->v1 = lists_cpu(controllers);
		if (s->v1 || strcmp(id, "0") == 0)
			path = line;
	}
	return path;
}

static bool is_outside(const char *path)
{
	return strncmp(path, "/..", 3) == 0 && (path[3] == '/' || path[3] == '\0');
}

/* The decimal number at *s, which must end at the byte `end` or with the text. Moves *s
 * behind both. -1 if there is none or it is too large, and for what the kernel writes if
 * there is no quota: "max" in v2, "-1" in v1. */
static long long quota_number(const char **s, char end)
{
	long long value = 0;
	const char *p = *s;

	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *p - '0', &value))
			return -1;
	}
	if (p == *s || (*p != end && *p != '\0'))
		return -1;
	*s = *p ? p + 1 : p;
	return value;
}

/* Reads a quota file. False if it cannot be read or is too long for out. */
static bool quota_read(int fd, char out[QUOTA_FILE_BYTES])
{
	ssize_t n = pread(fd, out, QUOTA_FILE_BYTES, 0);

	if (n <= 0 || n == QUOTA_FILE_BYTES)
		return false;
	out[n] = '\0';
	return true;
}

/* The CPUs that one cgroup's quota allows, rounded up, or CPUS_NO_LIMIT. */
static int level_read(const struct cpus_level *lv)
{
	char text[QUOTA_FILE_BYTES];
	const char *s = text;
	long long quota, period, limit;

	if (!quota_read(lv->quota_fd, text))
		return CPUS_NO_LIMIT;
	quota = quota_number(&s, lv->period_fd < 0 ? ' ' : '\n');
	if (lv->period_fd >= 0) {
		if (!quota_read(lv->period_fd, text))
			return CPUS_NO_LIMIT;
		s = text;
	}
	period = quota_number(&s, '\n');
	if (quota < 0 || period <= 0)
		return CPUS_NO_LIMIT;
	limit = quota / period + (quota % period != 0);
	return limit < CPUS_NO_LIMIT ? (int)limit : CPUS_NO_LIMIT;
}

static int level_limit(struct cpus_level *lv)
{
	if (own_fd_is(lv->quota_fd, OWN_FD_QUOTA) &&
	    (lv->period_fd < 0 || own_fd_is(lv->period_fd, OWN_FD_QUOTA)))
		store_relaxed(&lv->limit, level_read(lv));
	return load_relaxed(&lv->limit);
}

static void level_close(struct cpus_level *lv)
{
	own_fd_close(&lv->quota_fd, OWN_FD_QUOTA);
	own_fd_close(&lv->period_fd, OWN_FD_QUOTA);
}

static int quota_open(char *dir, const char *name)
{
	return own_fd_take(open_in(dir, name), OWN_FD_QUOTA);
}

/* False if the cgroup at dir does not have the files. */
static bool level_open(struct cpus_level *lv, bool v1, char *dir)
{
	*lv = (struct cpus_level){ .period_fd = -1, .limit = CPUS_NO_LIMIT };
	lv->quota_fd = quota_open(dir, v1 ? "/cpu.cfs_quota_us" : "/cpu.max");
	if (lv->quota_fd < 0 || !v1)
		return lv->quota_fd >= 0;
	lv->period_fd = quota_open(dir, "/cpu.cfs_period_us");
	if (lv->period_fd < 0)
		level_close(lv);
	return lv->period_fd >= 0;
}

/* Keeps the files of the cgroup at dir, if it has them. */
static void add_level(struct cpus_cgroup *cg, const struct search *s, char *dir)
{
	if (cg->nlevels < CPUS_LEVELS_MAX && level_open(&cg->level[cg->nlevels], s->v1, dir))
		cg->nlevels++;
}

static void read_cgroup_file(struct search *s)
{
	int fd = open_in(s->dir, "/proc/self/cgroup");
	size_t n = 0;
	ssize_t r = 0;

	while (fd >= 0 && (r = read(fd, s->text + n, sizeof s->text - 1 - n)) > 0)
		n += (size_t)r;
	if (fd >= 0)
		close(fd);
}

static void search_cgroup(struct cpus_cgroup *cg, const char *root, struct search *s)
{
	const char *path;
	char *dir = s->dir;
	size_t top;

	strcpy(dir, root);
	read_cgroup_file(s);
	path = find_path(s);
	if (!path || is_outside(path) || strlen(path) > PATH_MAX)
		return;
	strcat(dir, s->v1 ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup");
	top = strlen(dir);
	strcat(dir, path[1] ? path : "");
	add_level(cg, s, dir);
	while (strlen(dir) > top) {
		*strrchr(dir, '/') = '\0';
		add_level(cg, s, dir);
	}
}

void cpus_cgroup_open(struct cpus_cgroup *cg, const char *root)
{
	struct search *s = os_map(sizeof *s);

	cg->nlevels = 0;
	if (!s)
		return;
	search_cgroup(cg, root, s);
	os_unmap(s, sizeof *s);
}

void cpus_cgroup_close(struct cpus_cgroup *cg)
{
	while (cg->nlevels > 0)
		level_close(&cg->level[--cg->nlevels]);
}

int cpus_cgroup_limit(struct cpus_cgroup *cg)
{
	int least = CPUS_NO_LIMIT;

	for (int i = 0; i < cg->nlevels; i++) {
		int limit = level_limit(&cg->level[i]);

		if (limit < least)
			least = limit;
	}
	return least;
}

int cpus_clip(int cpus, int limit)
{
	if (limit < 2)
		limit = 2;
	return limit < cpus ? limit : cpus;
}

/* The calling thread's mask, not the main thread's: a program may pin its main thread
 * after the runtime's threads have inherited its mask. Uses the system call, which,
 * unlike libc, returns the number of bytes that it wrote. */
int cpus_affinity(void)
{
	unsigned long mask[AFFINITY_MAX_CPUS / 8 / sizeof(unsigned long)];
	long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
	int cpus = 0;

	if (sim)
		return sim->cpus();
	for (long i = 0; i < bytes / (long)sizeof mask[0]; i++)
		cpus += __builtin_popcountl(mask[i]);
	return cpus > 0 ? cpus : 1;
}

/* Written by cpus_open() only. */
static struct cpus_cgroup own_cgroup;

void cpus_open(void)
{
	cpus_cgroup_close(&own_cgroup);
	cpus_cgroup_open(&own_cgroup, "");
}

int cpus_default(void)
{
	if (sim)
		return sim->cpus();
	return cpus_clip(cpus_affinity(), cpus_cgroup_limit(&own_cgroup));
}

int cpus_parse_maxprocs(const char *s, int max)
{
	long long value = 0;

	for (; s && *s; s++) {
		if (*s < '0' || *s > '9')
			return 0;
		value = value * 10 + (*s - '0');
		if (value > max)
			value = max;
	}
	return (int)value;
}
