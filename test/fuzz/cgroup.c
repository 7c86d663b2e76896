/* cgroup.c - the files that state a quota: the process's list, its quota, its period. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "platform/cpus.h"

static char root[64];

static void end_root(void)
{
	char command[100];

	snprintf(command, sizeof command, "rm -rf %s", root);
	if (system(command) != 0)
		abort();
}

static void make(const char *folder)
{
	char path[128];

	snprintf(path, sizeof path, "%s%s", root, folder);
	mkdir(path, 0700);
}

static void put(const char *name, const uint8_t **data, size_t *n)
{
	char path[128], *s = fuzz_string(data, n);
	int fd;

	snprintf(path, sizeof path, "%s%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, s, strlen(s)) < 0)
		abort();
	close(fd);
	free(s);
}

void fuzz_cgroup(const uint8_t *data, size_t n)
{
	struct cpus_cgroup cg;

	if (!root[0]) {
		snprintf(root, sizeof root, "/dev/shm/goro-fuzz-%d", getpid());
		make(""), make("/proc"), make("/proc/self");
		make("/sys"), make("/sys/fs"), make("/sys/fs/cgroup"), make("/sys/fs/cgroup/cpu");
		make("/sys/fs/cgroup/a");
		atexit(end_root);
	}
	put("/proc/self/cgroup", &data, &n);
	put("/sys/fs/cgroup/cpu.max", &data, &n);
	put("/sys/fs/cgroup/a/cpu.max", &data, &n);
	put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &data, &n);
	put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &data, &n);
	cpus_cgroup_open(&cg, root);
	if (cpus_clip(8, cpus_cgroup_limit(&cg)) < 1)
		abort();
	cpus_cgroup_close(&cg);
}
