/*
 * facilities_test.c - the six workloads of test/faults where a container or an
 * administrator has forbidden a facility: they come to their right answers, to errors
 * that the calls report, or, where the runtime cannot even start, to a message.
 *
 * denied_test.c denies single system calls; here are file systems, limits and rights.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "faults/faults.h"
#include "platform/tool.h"
#include "test.h"

int faults_error(void)
{
	return FAULTS_FORBIDDEN;
}

bool faults_any(void)
{
	return true;
}

static const char *const workloads[] = { "channels", "network", "files", "blocking", "timers", "observe" };

static const char *workload;
static void (*forbid)(void);

static void child(void)
{
	forbid();
	if (!workload_run(workload))
		FAIL("no workload %s", workload);
	_exit(0);
}

static void run_all(void (*fn)(void), bool may_end)
{
	forbid = fn;
	for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
		struct test_output o;

		workload = workloads[i];
		test_run_child(child, &o);
		if (o.status == TEST_SKIPPED)
			SKIP("not permitted here");
		if (o.timed_out)
			FAIL("%s hangs: %s", workload, o.err);
		if (o.status == 0 || (may_end && o.status == 2 && strstr(o.err, "fatal error: ")))
			continue;
		FAIL("%s: status %d: %s", workload, o.status, o.err);
	}
}

/* -------------------------------------------------------------- file systems */

static void hide(const char *folder)
{
	if (mount("none", folder, "tmpfs", MS_RDONLY, NULL) != 0)
		SKIP("no mounts here");
}

static void own_mounts(void)
{
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		SKIP("no mount namespaces here");
}

static void without_proc(void)
{
	own_mounts();
	hide("/proc");
}

static void without_sys(void)
{
	own_mounts();
	hide("/sys");
}

static void in_empty_root(void)
{
	own_mounts();
	if (mount("none", "/mnt", "tmpfs", 0, NULL) != 0 || chroot("/mnt") != 0)
		SKIP("no chroot here");
	CHECK_EQ(chdir("/"), 0);
	CHECK_EQ(mkdir("/tmp", 0777), 0);
}

TEST(no_proc) { run_all(without_proc, false); }
TEST(no_sys) { run_all(without_sys, false); }
TEST(an_empty_root) { run_all(in_empty_root, false); }

/* -------------------------------------------------------------------- rights */

static void not_dumpable(void)
{
	CHECK_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
}

static void drop_rights(void)
{
	if (geteuid() != 0)
		return;
	CHECK_EQ(setgroups(0, NULL), 0);
	CHECK_EQ(setresgid(65534, 65534, 65534), 0);
	CHECK_EQ(setresuid(65534, 65534, 65534), 0);
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
}

TEST(not_dumpable_processes) { run_all(not_dumpable, false); }
TEST(unprivileged_users) { run_all(drop_rights, false); }

/* -------------------------------------------------------------------- limits */

static void limit(int what, rlim_t n)
{
	struct rlimit r = { n, n };

	CHECK_EQ(setrlimit((__rlimit_resource_t)what, &r), 0);
}

static void few_files(void) { limit(RLIMIT_NOFILE, 20); }
static void hardly_any_files(void) { limit(RLIMIT_NOFILE, 8); }
static void nothing_locked(void) { limit(RLIMIT_MEMLOCK, 0); drop_rights(); }
static void nothing_pending(void) { limit(RLIMIT_SIGPENDING, 0); drop_rights(); }
static void no_files_of_any_size(void) { limit(RLIMIT_FSIZE, 0); signal(SIGXFSZ, SIG_IGN); }

/* As the only user of this number, so that others' processes do not count. */
static void few_threads(rlim_t n)
{
	if (geteuid() != 0)
		SKIP("other processes count");
	limit(RLIMIT_NPROC, n);
	CHECK_EQ(setgroups(0, NULL), 0);
	CHECK_EQ(setresuid(61234, 61234, 61234), 0);
}

static void no_second_thread(void) { few_threads(1); }
static void five_threads(void) { few_threads(5); }

/* Beside what the program has. */
static void little_memory(size_t more)
{
	unsigned long pages;
	FILE *f = fopen("/proc/self/statm", "r");

	if (TOOL_ASAN || TOOL_TSAN || !f || fscanf(f, "%lu", &pages) != 1)
		SKIP("cannot tell how much memory there is");
	fclose(f);
	limit(RLIMIT_AS, pages * (size_t)sysconf(_SC_PAGESIZE) + more);
}

static void no_memory(void) { little_memory(64 << 10); }
static void memory_for_few(void) { little_memory(40 << 20); }
static void memory_for_some(void) { little_memory(200 << 20); }

TEST(twenty_files) { run_all(few_files, false); }
TEST(eight_files) { run_all(hardly_any_files, true); }
TEST(no_locked_memory) { run_all(nothing_locked, false); }
TEST(no_pending_signals) { run_all(nothing_pending, false); }
TEST(no_bytes_in_files) { run_all(no_files_of_any_size, false); }
TEST(one_thread) { run_all(no_second_thread, true); }
TEST(few_threads_at_once) { run_all(five_threads, true); }
TEST(memory_for_nothing) { run_all(no_memory, true); }
TEST(memory_for_40_MB) { run_all(memory_for_few, true); }
TEST(memory_for_200_MB) { run_all(memory_for_some, true); }
