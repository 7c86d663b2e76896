/*
 * fork_test.c - goroutines start other programs, whatever the others do.
 */
/* test: procs */
#include <goro.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>

#include "platform/atomic.h"
#include "await.h"
#include "test.h"

extern char **environ;

static bool stop;
static int running;

static void churn(void)
{
	while (!load_relaxed(&stop)) {
		go(goro_gosched);
		goro_gosched();
	}
	fetch_add_seqcst(&running, -1);
}

/* Runs f in n goroutines beside a few that start and end all the time. */
static void under_load(int n, void (*f)(int, goro_waitgroup *))
{
	goro_waitgroup wg = { 0 };

	running = 5;
	for (int i = 0; i < 5; i++)
		go(churn);
	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		go(f, i, &wg);
	goro_waitgroup_wait(&wg);
	store_relaxed(&stop, true);
	AWAIT(load_seqcst(&running) == 0);
}

static int status_of(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void fork_and_exec(int i, goro_waitgroup *wg)
{
	char command[32];
	pid_t pid;

	snprintf(command, sizeof command, "exit %d", i);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	CHECK_EQ(status_of(pid), i);
	goro_waitgroup_done(wg);
}

GO_TEST(fork_and_exec_from_goroutines)
{
	under_load(20, fork_and_exec);
}

static void spawn(int i, goro_waitgroup *wg)
{
	char command[32];
	char *argv[] = { "sh", "-c", command, NULL };
	pid_t pid;

	snprintf(command, sizeof command, "exit %d", i);
	CHECK_EQ(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
	CHECK_EQ(status_of(pid), i);
	goro_waitgroup_done(wg);
}

GO_TEST(posix_spawn_from_goroutines)
{
	under_load(20, spawn);
}

static void call_system(int i, goro_waitgroup *wg)
{
	char command[32];

	snprintf(command, sizeof command, "exit %d", i);
	CHECK_EQ(WEXITSTATUS(system(command)), i);
	goro_waitgroup_done(wg);
}

GO_TEST(system_from_goroutines)
{
	under_load(20, call_system);
}

static void call_popen(int i, goro_waitgroup *wg)
{
	char command[32], line[32] = "", expected[32];
	FILE *f;

	snprintf(command, sizeof command, "echo %d", i);
	snprintf(expected, sizeof expected, "%d\n", i);
	f = popen(command, "r");
	CHECK(f);
	CHECK(fgets(line, sizeof line, f));
	CHECK_STR(line, expected);
	CHECK_EQ(pclose(f), 0);
	goro_waitgroup_done(wg);
}

GO_TEST(popen_from_goroutines)
{
	under_load(20, call_popen);
}

static void fork_and_leave(int i, goro_waitgroup *wg)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(i);
	CHECK_EQ(status_of(pid), i);
	goro_waitgroup_done(wg);
}

GO_TEST(a_forked_child_may_leave)
{
	under_load(20, fork_and_leave);
}

/* ---------------------------------------------------------- signals in a child */

/* How a child ends that sends itself a signal: as a shell says it. */
static int end_of_child_after(int sig)
{
	int status = 0;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		raise(sig);
		_exit(7);
	}
	while (waitpid(pid, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

GO_TEST(a_forked_child_ignores_sigurg)
{
	CHECK_EQ(end_of_child_after(SIGURG), 7);
}

static void not_with_tsan(void)
{
	if (TOOL_TSAN)
		SKIP("the sanitizer holds signals back");
}

static void leave_with_8(int sig)
{
	(void)sig;
	_exit(8);
}

GO_TEST(a_sigurg_handler_of_the_program_runs_in_a_forked_child)
{
	not_with_tsan();
	signal(SIGURG, leave_with_8);
	CHECK_EQ(end_of_child_after(SIGURG), 8);
}

static int urgent_child(int argc, char **argv)
{
	(void)argc, (void)argv;
	return end_of_child_after(SIGURG);
}

TEST(a_sigurg_handler_from_before_runs_in_a_forked_child)
{
	not_with_tsan();
	signal(SIGURG, leave_with_8);
	CHECK_EQ(goro_run(urgent_child, 0, NULL), 8);
}

GO_TEST(a_subscribed_signal_ends_a_forked_child)
{
	goro_chan *c = goro_signal_notify((int[]){ SIGTERM }, 1);

	CHECK_EQ(end_of_child_after(SIGTERM), 128 + SIGTERM);
	goro_signal_stop(c);
	goro_chan_unref(c);
}

GO_TEST(sigquit_ends_a_forked_child)
{
	CHECK_EQ(end_of_child_after(SIGQUIT), 128 + SIGQUIT);
}

GO_TEST(sigprof_ends_a_forked_child_after_a_profile)
{
	CHECK_EQ(goro_profile_cpu_start(memfd_create("profile", MFD_CLOEXEC), 0), 0);
	goro_profile_cpu_stop();
	CHECK_EQ(end_of_child_after(SIGPROF), 128 + SIGPROF);
}

/* ------------------------------------------------------ what a child inherits */

/* The signals that a program started from here finds blocked and ignored. */
static char *inherited_signals(void)
{
	static char text[2][256];
	static int n;
	FILE *f = popen("grep -E 'SigBlk|SigIgn' /proc/self/status", "r");
	char *out = text[n++ % 2];

	CHECK(f);
	out[fread(out, 1, 255, f)] = '\0';
	CHECK_EQ(pclose(f), 0);
	CHECK_CONTAINS(out, "SigBlk");
	return out;
}

static char *inside;

static int ask_inside(int argc, char **argv)
{
	(void)argc, (void)argv;
	inside = inherited_signals();
	return 0;
}

TEST(programs_inherit_the_signal_mask_of_the_start)
{
	char *before;

	signal(SIGQUIT, SIG_DFL);	/* a shell has it ignored in the background */
	before = inherited_signals();
	goro_run(ask_inside, 0, NULL);
	CHECK_STR(inside, before);
}

/* Descriptors: the standard three, the pipe's and ls's own. */
static int open_in_child(void)
{
	FILE *f = popen("ls /proc/self/fd | wc -l", "r");
	int n = 0;

	CHECK(f && fscanf(f, "%d", &n) == 1);
	pclose(f);
	return n;
}

static int count_inside(int argc, char **argv)
{
	(void)argc, (void)argv;
	return open_in_child();
}

TEST(programs_inherit_no_descriptor_of_ours)
{
	int before = open_in_child();

	CHECK_EQ(goro_run(count_inside, 0, NULL), before);
}
