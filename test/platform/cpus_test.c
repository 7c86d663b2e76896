/*
 * cpus_test.c - the default of GOMAXPROCS, on made-up machines and on this one.
 *
 * A made-up machine is a temporary directory with its own proc/ and sys/;
 * cpus_cgroup_open() takes it as its root. The live tests make cgroups below
 * the mounted ones and say SKIP where that is not possible.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "platform/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			printf("FAIL %s:%d: %s\n", __func__, __LINE__, #cond); \
			failures++;                                            \
		}                                                              \
	} while (0)

#define CHECK_INT(got, want)                                                         \
	do {                                                                         \
		int got_ = (got), want_ = (want);                                    \
		if (got_ != want_) {                                                 \
			printf("FAIL %s:%d: %s is %d, not %d\n", __func__, __LINE__, \
			       #got, got_, want_);                                   \
			failures++;                                                  \
		}                                                                    \
	} while (0)

/* The made-up machine. */

static char root[] = "/tmp/cpus_test.XXXXXX";

static void make_parents(char *path)
{
	for (char *p = path + sizeof root; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
}

static void put_bytes(const char *name, const char *data, size_t n)
{
	static char path[16384];
	FILE *f;

	snprintf(path, sizeof path, "%s%s", root, name);
	make_parents(path);
	f = fopen(path, "w");
	if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
}

static void put(const char *name, const char *text)
{
	put_bytes(name, text, strlen(text));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type;
	return ftw->level == 0 ? 0 : remove(path);
}

static void clear(void)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A machine with this file and nothing else. */
static void machine(const char *cgroup)
{
	clear();
	put("/proc/self/cgroup", cgroup);
}

static int limit_now(void)
{
	struct cpus_cgroup cg;
	int limit;

	cpus_cgroup_open(&cg, root);
	limit = cpus_cgroup_limit(&cg);
	cpus_cgroup_close(&cg);
	return limit;
}

/* cgroup v2 */

static void v2_simple(void)
{
	machine("0::/app\n");
	put("/sys/fs/cgroup/app/cpu.max", "400000 100000\n");
	CHECK_INT(limit_now(), 4);
	put("/sys/fs/cgroup/app/cpu.max", "max 100000\n");
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
}

static void v2_tighter_ancestor_wins(void)
{
	machine("0::/a/b/c\n");
	put("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
	put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
	put("/sys/fs/cgroup/a/cpu.max", "150000 50000\n");
	CHECK_INT(limit_now(), 3);
	put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
	CHECK_INT(limit_now(), 2);
}

static void v2_leaf_without_controller_uses_ancestors(void)
{
	machine("0::/a/b\n");
	put("/sys/fs/cgroup/a/cpu.max", "500000 100000\n");
	CHECK_INT(limit_now(), 5);
}

static void v2_siblings_do_not_count(void)
{
	machine("0::/a/b\n");
	put("/sys/fs/cgroup/a/b/cpu.max", "700000 100000\n");
	put("/sys/fs/cgroup/a/x/cpu.max", "100000 100000\n");
	put("/sys/fs/cgroup/a/b/c/cpu.max", "100000 100000\n");
	CHECK_INT(limit_now(), 7);
}

static void v2_namespace_root(void)
{
	machine("0::/\n");
	put("/sys/fs/cgroup/cpu.max", "300000 100000\n");
	CHECK_INT(limit_now(), 3);
}

static void v2_deleted_cgroup_keeps_ancestors(void)
{
	machine("0::/a/b (deleted)\n");
	put("/sys/fs/cgroup/a/cpu.max", "600000 100000\n");
	CHECK_INT(limit_now(), 6);
	put("/sys/fs/cgroup/a/b/cpu.max",
	    "100000 100000\n"); /* a later cgroup of that name */
	CHECK_INT(limit_now(), 6);
}

static void v2_path_may_have_colons_spaces_and_backslashes(void)
{
	machine("0::/a:b,cpu:c/d e\\040f\n");
	put("/sys/fs/cgroup/a:b,cpu:c/d e\\040f/cpu.max", "900000 100000\n");
	CHECK_INT(limit_now(), 9);
}

/* cgroup v1 */

static void v1_put(const char *dir, const char *quota, const char *period)
{
	char name[512];

	snprintf(name, sizeof name, "%s/cpu.cfs_quota_us", dir);
	put(name, quota);
	snprintf(name, sizeof name, "%s/cpu.cfs_period_us", dir);
	put(name, period);
}

#define V1_CGROUP "12:cpuset:/x\n4:cpuacct,cpu:/a/b\n1:name=systemd:/s\n"
#define V1_DIR    "/sys/fs/cgroup/cpu"

static void v1_simple(void)
{
	machine(V1_CGROUP);
	v1_put(V1_DIR "/a/b", "600000\n", "200000\n");
	CHECK_INT(limit_now(), 3);
}

static void v1_minus_one_is_no_limit(void)
{
	machine(V1_CGROUP);
	v1_put(V1_DIR "/a/b", "-1\n", "100000\n");
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
	v1_put(V1_DIR "/a", "400000\n", "100000\n");
	v1_put(V1_DIR, "-1\n", "100000\n");
	CHECK_INT(limit_now(), 4);
}

static void v1_needs_both_files(void)
{
	machine(V1_CGROUP);
	put(V1_DIR "/a/b/cpu.cfs_quota_us", "100000\n");
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
	v1_put(V1_DIR "/a", "500000\n", "100000\n");
	CHECK_INT(limit_now(), 5);
}

/* Of v1 and v2 the one that has the cpu controller */

static void hybrid_cpu_is_in_v1(void)
{
	static const char *const cgroups[] = {"2:cpu:/a\n0::/u\n", "0::/u\n2:cpu:/a\n"};

	for (int i = 0; i < 2; i++) {
		machine(cgroups[i]);
		v1_put(V1_DIR "/a", "300000\n", "100000\n");
		put("/sys/fs/cgroup/u/cpu.max", "100000 100000\n");
		CHECK_INT(limit_now(), 3);
	}
}

static void cpuacct_and_cpuset_are_not_cpu(void)
{
	machine("3:cpuset:/a\n2:cpuacct:/a\n1:name=cpu:/a\n0::/a\n");
	v1_put(V1_DIR "/a", "100000\n", "100000\n");
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
	put("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
	CHECK_INT(limit_now(), 3);
}

/* A container sees its own cgroup at the mount point, and the machine's names. */
static void mount_point_counts_where_the_path_is_not_there(void)
{
	machine("4:cpu,cpuacct:/docker/abc\n");
	v1_put(V1_DIR, "500000\n", "100000\n");
	CHECK_INT(limit_now(), 5);
	machine("0::/docker/abc\n");
	put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
	CHECK_INT(limit_now(), 2);
}

static void process_moved_out_of_its_namespace(void)
{
	machine("0::/../x\n");
	put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
	put("/sys/fs/x/cpu.max", "200000 100000\n");
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
	machine("0::/..x\n"); /* only a name that begins with dots */
	put("/sys/fs/cgroup/..x/cpu.max", "200000 100000\n");
	CHECK_INT(limit_now(), 2);
}

static void last_line_may_lack_a_newline(void)
{
	machine("0::/a");
	put("/sys/fs/cgroup/a/cpu.max", "300000 100000");
	CHECK_INT(limit_now(), 3);
}

/* What should not be there */

static void missing_files_are_no_limit(void)
{
	clear();
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
	put("/proc/self/cgroup", "0::/a\n");
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
	put("/sys/fs/cgroup/a/cpu.max/is-a-directory", "");
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
	machine("");
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
}

static void malformed_lines_are_passed_over(void)
{
	machine("\n:\nfoo\n7\n7:cp\n0\n5:cpu\n5:cpu:relative\n::\n0::/a\n");
	put("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
	CHECK_INT(limit_now(), 3);
}

static void garbage_quotas_are_no_limit(void)
{
	static const char *garbage[] = {
		"",
		"\n",
		" ",
		"max",
		"max\n",
		"abc\n",
		"100000\n",
		"100000 \n",
		"100000  100000\n",
		" 100000 100000\n",
		"-100000 100000\n",
		"100000 -100000\n",
		"100000 0\n",
		"0 0\n",
		"100000x 100000\n",
		"100000 100000x\n",
		"0x10 10\n",
		"+200 100\n",
		"1e5 100000\n",
		"99999999999999999999 100000\n",
		"100000 99999999999999999999\n",
		"100000 00000000000000000000000000000000000000000000000000000100000\n",
	};

	for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
		machine("0::/a\n");
		put("/sys/fs/cgroup/a/cpu.max", garbage[i]);
		CHECK_INT(limit_now(), CPUS_NO_LIMIT);
		put("/sys/fs/cgroup/cpu.max",
		    "300000 100000\n"); /* does not spoil the others */
		CHECK_INT(limit_now(), 3);
	}
	machine(V1_CGROUP);
	v1_put(V1_DIR "/a/b", "100000\n", "0\n");
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
	v1_put(V1_DIR "/a/b", "100000\n", "-1\n");
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
	v1_put(V1_DIR "/a/b", "100000 100000\n", "100000\n");
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
}

/* Random bytes: no limit is found, and nothing crashes. */
static void noise_is_survived(void)
{
	static const char alphabet[] = "0123:/ \\\n-cpugrou2,.\0\377\t";
	static char noise[3000];
	unsigned seed = 12345;

	for (int round = 0; round < 400; round++) {
		for (size_t i = 0; i < sizeof noise; i++) {
			seed = seed * 1103515245 + 12345;
			noise[i] = alphabet[(seed >> 16) % (sizeof alphabet - 1)];
		}
		put_bytes("/proc/self/cgroup", noise, sizeof noise);
		limit_now();
	}
}

static char *repeat(const char *s, size_t n)
{
	size_t len = strlen(s);
	char *out = malloc(len * n + 1);

	for (size_t i = 0; i < n; i++)
		memcpy(out + i * len, s, len);
	out[len * n] = '\0';
	return out;
}

static char *concat(const char *first, ...)
{
	char *out = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&out, &size);
	va_list ap;

	va_start(ap, first);
	for (const char *s = first; s; s = va_arg(ap, const char *))
		fputs(s, f);
	va_end(ap);
	fclose(f);
	return out;
}

static void overlong_paths(void)
{
	char *deep = repeat("/dddddddd", 4000); /* more than is read of the file */
	char *longer = repeat("/dddddddd", 1000); /* 9,000 bytes, more than PATH_MAX */
	char *text = concat("0::", deep, "\n", NULL);

	machine(text);
	put("/sys/fs/cgroup/cpu.max", "300000 100000\n");
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
	free(text);
	text = concat("0::", longer, "\n", NULL);
	machine(text);
	put("/sys/fs/cgroup/cpu.max", "300000 100000\n");
	CHECK_INT(limit_now(), CPUS_NO_LIMIT);
	free(text);
	/* The ancestors of a path that cannot be opened still count. */
	longer[4095] = '\0';
	text = concat("0::", longer, "\n", NULL);
	machine(text);
	put("/sys/fs/cgroup/dddddddd/cpu.max", "300000 100000\n");
	CHECK_INT(limit_now(), 3);
	free(text);
	free(longer);
	free(deep);
}

static void nesting_is_walked_up(void)
{
	char *path = repeat("/d", CPUS_LEVELS_MAX);
	char *text = concat("0::", path, "\n", NULL);
	struct cpus_cgroup cg;

	machine(text);
	free(text);
	for (size_t n = strlen(path); n > 0; n -= 2) {
		path[n] = '\0';
		text = concat("/sys/fs/cgroup", path, "/cpu.max", NULL);
		put(text, "900000 100000\n");
		free(text);
	}
	put("/sys/fs/cgroup/d/cpu.max", "400000 100000\n");
	cpus_cgroup_open(&cg, root);
	CHECK_INT(cg.nlevels, CPUS_LEVELS_MAX);
	CHECK_INT(cpus_cgroup_limit(&cg), 4);
	cpus_cgroup_close(&cg);
	CHECK_INT(cpus_cgroup_limit(&cg), CPUS_NO_LIMIT);
	free(path);
}

/* Numbers */

static void quotas_are_rounded_up(void)
{
	static const struct {
		const char *max;
		int limit, cpus8, cpus2, cpus1;
	} rows[] = {
		{"50000 100000\n", 1, 2, 2, 1},
		{"100000 100000\n", 1, 2, 2, 1},
		{"150000 100000\n", 2, 2, 2, 1},
		{"200000 100000\n", 2, 2, 2, 1},
		{"200001 100000\n", 3, 3, 2, 1},
		{"210000 100000\n", 3, 3, 2, 1},
		{"700000 100000\n", 7, 7, 2, 1},
		{"750000 100000\n", 8, 8, 2, 1},
		{"2000000 100000\n", 20, 8, 2, 1},
		{"0 100000\n", 0, 2, 2, 1},
		{"1000 1000000\n", 1, 2, 2, 1},
		{"9223372036854775807 1\n", CPUS_NO_LIMIT, 8, 2, 1},
		{"9223372036854775807 9223372036854775806\n", 2, 2, 2, 1},
		{"max 100000\n", CPUS_NO_LIMIT, 8, 2, 1},
	};

	machine("0::/a\n");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		put("/sys/fs/cgroup/a/cpu.max", rows[i].max);
		int limit = limit_now();
		CHECK_INT(limit, rows[i].limit);
		CHECK_INT(cpus_clip(8, limit), rows[i].cpus8);
		CHECK_INT(cpus_clip(2, limit), rows[i].cpus2);
		CHECK_INT(cpus_clip(1, limit), rows[i].cpus1);
	}
}

static void changed_quota_is_followed(void)
{
	struct cpus_cgroup cg;

	machine("0::/a/b\n");
	put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
	put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
	cpus_cgroup_open(&cg, root);
	CHECK_INT(cpus_cgroup_limit(&cg), CPUS_NO_LIMIT);
	put("/sys/fs/cgroup/a/b/cpu.max", "500000 100000\n");
	CHECK_INT(cpus_cgroup_limit(&cg), 5);
	put("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
	CHECK_INT(cpus_cgroup_limit(&cg), 3);
	put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
	CHECK_INT(cpus_cgroup_limit(&cg), 5);
	CHECK(fcntl(cg.level[0].quota_fd, F_GETFD) & FD_CLOEXEC);
	cpus_cgroup_close(&cg);

	machine(V1_CGROUP);
	v1_put(V1_DIR "/a/b", "-1\n", "100000\n");
	cpus_cgroup_open(&cg, root);
	CHECK_INT(cpus_cgroup_limit(&cg), CPUS_NO_LIMIT);
	v1_put(V1_DIR "/a/b", "500000\n", "50000\n");
	CHECK_INT(cpus_cgroup_limit(&cg), 10);
	CHECK(fcntl(cg.level[0].period_fd, F_GETFD) & FD_CLOEXEC);
	cpus_cgroup_close(&cg);
}

static void maxprocs_values(void)
{
	static const struct {
		const char *s;
		int want;
	} rows[] = {
		{NULL, 0},
		{"", 0},
		{"0", 0},
		{"000", 0},
		{"1", 1},
		{"8", 8},
		{"007", 7},
		{"1024", 1024},
		{"65536", 65536},
		{"65537", 65536},
		{"4294967297", 65536},
		{"99999999999999999999999999", 65536},
		{"-1", 0},
		{"+4", 0},
		{" 4", 0},
		{"4 ", 0},
		{"4x", 0},
		{"x", 0},
		{"4.0", 0},
		{"0x4", 0},
		{"99999999999x", 0},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		CHECK_INT(cpus_parse_maxprocs(rows[i].s, 65536), rows[i].want);
	CHECK_INT(cpus_parse_maxprocs("2147483647", INT_MAX), INT_MAX);
	CHECK_INT(cpus_parse_maxprocs("2147483648", INT_MAX), INT_MAX);
	CHECK_INT(cpus_parse_maxprocs("21474836470", INT_MAX), INT_MAX);
}

/* This machine */

static void affinity_is_the_mask(void)
{
	cpu_set_t was, one;
	int first = 0;

	CHECK(sched_getaffinity(0, sizeof was, &was) == 0);
	CHECK_INT(cpus_affinity(), CPU_COUNT(&was));
	while (!CPU_ISSET(first, &was))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
	CHECK_INT(cpus_affinity(), 1);
	CHECK_INT(cpus_default(), 1);
	CHECK(sched_setaffinity(0, sizeof was, &was) == 0);
}

static void default_is_within_the_mask(void)
{
	CHECK_INT(cpus_default(), cpus_affinity()); /* nothing opened yet */
	cpus_open();
	CHECK(cpus_default() >= 1 && cpus_default() <= cpus_affinity());
	cpus_open();
	CHECK(cpus_default() >= 1 && cpus_default() <= cpus_affinity());
}

/* A cgroup hierarchy that has the cpu controller, at its usual place. */
struct live {
	bool v2;
	const char *mount;
	char outer[128], inner[160]; /* two cgroups of ours, one in the other */
};

static bool write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	int fd;
	bool ok;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok;
}

static bool set_quota(const struct live *lv, const char *dir, int percent)
{
	char text[64];

	snprintf(text, sizeof text, lv->v2 ? "%d 100000" : "%d", percent * 1000);
	return write_file(dir, lv->v2 ? "cpu.max" : "cpu.cfs_quota_us", text);
}

static void live_remove(const struct live *lv)
{
	rmdir(lv->inner);
	rmdir(lv->outer);
}

static bool live_make(struct live *lv)
{
	snprintf(lv->outer, sizeof lv->outer, "%s/goro-cpus-test-%d", lv->mount,
		 (int)getpid());
	snprintf(lv->inner, sizeof lv->inner, "%s/in ner", lv->outer);
	if (mkdir(lv->outer, 0755) == 0 &&
	    (!lv->v2 || write_file(lv->outer, "cgroup.subtree_control", "+cpu")) &&
	    mkdir(lv->inner, 0755) == 0 && set_quota(lv, lv->outer, 450) &&
	    set_quota(lv, lv->inner, 350))
		return true;
	live_remove(lv);
	return false;
}

static bool live_find(struct live *lv)
{
	lv->v2 = false;
	lv->mount = "/sys/fs/cgroup/cpu";
	if (access("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", W_OK) == 0)
		return live_make(lv);
	lv->v2 = true;
	lv->mount = "/sys/fs/cgroup";
	return access("/sys/fs/cgroup/cgroup.subtree_control", W_OK) == 0 &&
	       live_make(lv);
}

/* The smaller one: the quota that the test sets, or one around this whole machine. */
static int within(int limit, int around)
{
	return limit < around ? limit : around;
}

static int live_limit(void)
{
	struct cpus_cgroup cg;
	int limit;

	cpus_cgroup_open(&cg, "");
	limit = cpus_cgroup_limit(&cg);
	cpus_cgroup_close(&cg);
	return limit;
}

/* In a child process, already in the inner cgroup. */
static void live_quota(const struct live *lv, int around)
{
	struct cpus_cgroup cg;

	cpus_open();
	cpus_cgroup_open(&cg, "");
	CHECK_INT(cpus_cgroup_limit(&cg), within(4, around));
	CHECK_INT(cpus_default(), cpus_clip(cpus_affinity(), within(4, around)));
	CHECK(set_quota(lv, lv->inner, 210));
	CHECK_INT(cpus_cgroup_limit(&cg), within(3, around));
	CHECK(set_quota(lv, lv->inner, 50));
	CHECK_INT(cpus_cgroup_limit(&cg), within(1, around));
	CHECK_INT(cpus_default(), cpus_affinity() >= 2 ? 2 : 1);
	CHECK(write_file(lv->inner, lv->v2 ? "cpu.max" : "cpu.cfs_quota_us",
			 lv->v2 ? "max" : "-1"));
	CHECK_INT(cpus_cgroup_limit(&cg), within(5, around)); /* the outer one's */
	CHECK(set_quota(lv, lv->outer, 250));
	CHECK_INT(cpus_cgroup_limit(&cg), within(3, around));
	cpus_cgroup_close(&cg);
}

static void live_run(const char *name, void (*test)(const struct live *, int))
{
	struct live lv;
	int around = live_limit(), status;
	pid_t pid;

	if (!live_find(&lv)) {
		printf("SKIP %s: cannot make a cgroup with the cpu controller here\n",
		       name);
		return;
	}
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		failures = 0;
		if (write_file(lv.inner, "cgroup.procs", "0"))
			test(&lv, around);
		else
			printf("SKIP %s: cannot move into %s\n", name, lv.inner);
		fflush(stdout);
		_exit(failures != 0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	live_remove(&lv);
	printf("ran %s in cgroup %s\n", name, lv.v2 ? "v2" : "v1");
}

int main(void)
{
	int free_fd;

	if (!mkdtemp(root)) {
		perror(root);
		return 1;
	}
	free_fd = dup(0);
	close(free_fd);

	v2_simple();
	v2_tighter_ancestor_wins();
	v2_leaf_without_controller_uses_ancestors();
	v2_siblings_do_not_count();
	v2_namespace_root();
	v2_deleted_cgroup_keeps_ancestors();
	v2_path_may_have_colons_spaces_and_backslashes();
	v1_simple();
	v1_minus_one_is_no_limit();
	v1_needs_both_files();
	hybrid_cpu_is_in_v1();
	cpuacct_and_cpuset_are_not_cpu();
	mount_point_counts_where_the_path_is_not_there();
	process_moved_out_of_its_namespace();
	last_line_may_lack_a_newline();
	missing_files_are_no_limit();
	malformed_lines_are_passed_over();
	garbage_quotas_are_no_limit();
	noise_is_survived();
	overlong_paths();
	nesting_is_walked_up();
	quotas_are_rounded_up();
	changed_quota_is_followed();
	maxprocs_values();
	live_run("live_quota", live_quota);

	int fd = dup(0); /* the lowest free one: nothing was left open */
	CHECK_INT(fd, free_fd);
	close(fd);

	affinity_is_the_mask();
	default_is_within_the_mask();
	clear();
	rmdir(root);
	printf("cpus: %d failures\n", failures);
	return failures != 0;
}
