/*
 * strangers_test.c - what others do to a program under load: signals, stops, changes of
 * CPUs, tracers, children, libraries, ends. The load's answers must be right, and it must
 * go on.
 *
 * Each test takes a fraction of a second here. STRANGERS=N makes each N times as long:
 * see make test-strangers.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "platform/atomic.h"
#include "platform/tool.h"
#include "test.h"

#define LOAD_NS (100 * GORO_MILLISECOND)

static int times(void)
{
	const char *s = getenv("STRANGERS");

	return s && atoi(s) > 0 ? atoi(s) : 1;
}

/* ---------------------------------------------------------------------- load */

static bool over;
static uint64_t progress;	/* rounds of all kinds */

static bool goes_on(void)
{
	fetch_add_relaxed(&progress, 1);
	return !load_relaxed(&over);
}

struct pair {
	goro_chan *to, *from;
};

static void answer(struct pair *p)
{
	long x;

	while (goro_chan_recv(p->to, &x)) {
		x++;
		goro_chan_send(p->from, &x);
	}
}

static void ask(struct pair *p, goro_waitgroup *wg)
{
	for (long x = 0, y; goes_on(); x++) {
		goro_chan_send(p->to, &x);
		CHECK(goro_chan_recv(p->from, &y));
		CHECK_EQ(y, x + 1);
	}
	goro_chan_close(p->to);
	goro_waitgroup_done(wg);
}

static void echo(int fd)
{
	char c;
	long n;

	while ((n = goro_read(fd, &c, 1)) == 1)
		CHECK_EQ(goro_write(fd, &c, 1), 1);
	CHECK_EQ(n, 0);
	goro_close(fd);
}

static void talk(int fd, goro_waitgroup *wg)
{
	for (char c = 0, d; goes_on(); c++) {
		CHECK_EQ(goro_write(fd, &c, 1), 1);
		CHECK_EQ(goro_read(fd, &d, 1), 1);
		CHECK_EQ(c, d);
	}
	goro_close(fd);
	goro_waitgroup_done(wg);
}

static void nap(goro_waitgroup *wg)
{
	while (goes_on()) {
		int64_t start = goro_now();

		goro_sleep(GORO_MILLISECOND);
		CHECK(goro_now() - start >= GORO_MILLISECOND);
	}
	goro_waitgroup_done(wg);
}

/* libc ends a sleep early for a signal that the program handles; goro makes the call
 * again only for its own. */
static void block(goro_waitgroup *wg)
{
	while (goes_on())
		usleep(500);
	goro_waitgroup_done(wg);
}

static void compute(goro_waitgroup *wg)
{
	uint64_t x = 1;

	while (goes_on())
		for (int i = 0; i < 10000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
	CHECK(x != 0);
	goro_waitgroup_done(wg);
}

static struct pair pair;

static void load_begin(goro_waitgroup *wg)
{
	int fd[2];

	pair = (struct pair){ goro_chan_of(long, 0), goro_chan_of(long, 0) };
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	goro_waitgroup_add(wg, 5);
	go(answer, &pair);
	go(ask, &pair, wg);
	go(echo, fd[0]);
	go(talk, fd[1], wg);
	go(nap, wg);
	go(block, wg);
	go(compute, wg);
}

static void load_end(goro_waitgroup *wg)
{
	store_relaxed(&over, true);
	goro_waitgroup_wait(wg);
	CHECK(load_relaxed(&progress) > 5);
}

/* The load, beside what a plain thread does until it is over. */
static void beside(void *(*stranger)(void *))
{
	goro_waitgroup wg = { 0 };
	pthread_t t;

	load_begin(&wg);
	CHECK_EQ(pthread_create(&t, NULL, stranger, NULL), 0);
	goro_sleep(times() * LOAD_NS);
	load_end(&wg);
	pthread_join(t, NULL);
}

/* The load, as the main function of a child. */
static int load_main(int argc, char **argv)
{
	goro_waitgroup wg = { 0 };

	(void)argc, (void)argv;
	load_begin(&wg);
	goro_sleep(times() * LOAD_NS);
	load_end(&wg);
	return 0;
}

/* ------------------------------------------------------------------- signals */

static uint64_t handled;

static void count_signal(int sig)
{
	(void)sig;
	fetch_add_relaxed(&handled, 1);
}

static int each_thread(int (*fn)(int tid))
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int n = 0;

	CHECK(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			n += fn(atoi(e->d_name));
	closedir(d);
	return n;
}

static int signal_thread(int tid)
{
	return syscall(SYS_tgkill, getpid(), tid, SIGUSR1) == 0;
}

/* Some 10,000 a second: to the process, and to each of its threads. */
static void *storm(void *arg)
{
	(void)arg;
	while (!load_relaxed(&over)) {
		kill(getpid(), SIGUSR1);
		each_thread(signal_thread);
		usleep(1000);
	}
	return NULL;
}

static void catch_usr1(int flags)
{
	struct sigaction sa = { .sa_handler = count_signal, .sa_flags = flags };

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
}

GO_TEST_TIMEOUT(a_storm_of_signals, 300)
{
	catch_usr1(SA_RESTART);
	beside(storm);
	CHECK(load_relaxed(&handled) > 10);
}

GO_TEST_TIMEOUT(a_storm_of_signals_that_restart_nothing, 300)
{
	catch_usr1(0);
	beside(storm);
	CHECK(load_relaxed(&handled) > 10);
}

GO_TEST_TIMEOUT(a_storm_on_the_alternate_stack, 300)
{
	catch_usr1(SA_RESTART | SA_ONSTACK);
	beside(storm);
	CHECK(load_relaxed(&handled) > 10);
}

/* ---------------------------------------------------------------------- CPUs */

static int cpu;

static int move_thread(int tid)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(tid, sizeof set, &set) == 0;
}

static void *move_about(void *arg)
{
	cpu_set_t all;
	int n = 0;

	(void)arg;
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	while (!load_relaxed(&over)) {
		do
			cpu = n++ % CPU_SETSIZE;
		while (!CPU_ISSET(cpu, &all));
		each_thread(move_thread);
		usleep(times() > 1 ? 50000 : 5000);
	}
	return NULL;
}

GO_TEST_TIMEOUT(other_cpus_again_and_again, 300)
{
	beside(move_about);
}

/* ------------------------------------------------------------------ children */

static void *fork_and_exec(void *arg)
{
	static char *const argv[] = { "true", NULL };

	(void)arg;
	while (!load_relaxed(&over)) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			execv("/bin/true", argv);
			_exit(127);
		}
		CHECK(pid > 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	return NULL;
}

GO_TEST_TIMEOUT(forks_and_execs, 300)
{
	beside(fork_and_exec);
}

static void spawn_some(goro_waitgroup *wg)
{
	static char *const argv[] = { "true", NULL }, *const envp[] = { NULL };

	while (goes_on()) {
		int status = -1;
		pid_t pid;

		CHECK_EQ(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, envp), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	goro_waitgroup_done(wg);
}

static void popen_some(goro_waitgroup *wg)
{
	while (goes_on()) {
		FILE *f = popen("echo x", "r");
		char text[8] = "";

		CHECK(f && fgets(text, sizeof text, f));
		CHECK_STR(text, "x\n");
		CHECK_EQ(pclose(f), 0);
	}
	goro_waitgroup_done(wg);
}

GO_TEST_TIMEOUT(goroutines_that_spawn_and_popen, 300)
{
	goro_waitgroup wg = { 0 };

	load_begin(&wg);
	goro_waitgroup_add(&wg, 4);
	for (int i = 0; i < 2; i++) {
		go(spawn_some, &wg);
		go(popen_some, &wg);
	}
	goro_sleep(times() * LOAD_NS);
	load_end(&wg);
}

/* ----------------------------------------------------------------- libraries */

static void load_library(goro_waitgroup *wg)
{
	static const char *const names[] = { "libresolv.so.2", "libanl.so.1", "libnss_dns.so.2", "libBrokenLocale.so.1" };

	for (int i = 0; goes_on(); i++) {
		void *lib = dlopen(names[i % 4], RTLD_NOW | RTLD_LOCAL);

		if (lib)
			CHECK_EQ(dlclose(lib), 0);
		goro_gosched();
	}
	goro_waitgroup_done(wg);
}

GO_TEST_TIMEOUT(libraries_that_come_and_go, 300)
{
	goro_waitgroup wg = { 0 };

	load_begin(&wg);
	goro_waitgroup_add(&wg, 3);
	for (int i = 0; i < 3; i++)
		go(load_library, &wg);
	goro_sleep(times() * LOAD_NS);
	load_end(&wg);
}

/* ------------------------------------------------------------------- longjmp */

static void leap(goro_waitgroup *wg)
{
	while (goes_on()) {
		jmp_buf there;
		volatile int n = 0;

		if (setjmp(there) < 5) {
			goro_gosched();
			goro_sleep(n % 2 ? 0 : 10000);
			n++;
			longjmp(there, n);
		}
		CHECK_EQ(n, 5);
	}
	goro_waitgroup_done(wg);
}

GO_TEST_TIMEOUT(goroutines_that_longjmp, 300)
{
	goro_waitgroup wg = { 0 };

	load_begin(&wg);
	goro_waitgroup_add(&wg, 4);
	for (int i = 0; i < 4; i++)
		go(leap, &wg);
	goro_sleep(times() * LOAD_NS);
	load_end(&wg);
}

/* ---------------------------------------------------------- the process stops */

static pid_t load_in_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		exit(goro_run(load_main, 0, NULL));
	CHECK(pid > 0);
	return pid;
}

static bool ended(pid_t pid, int *status)
{
	return waitpid(pid, status, WNOHANG) == pid;
}

TEST_TIMEOUT(stopped_and_continued, 300)
{
	pid_t pid = load_in_child();
	int status = -1;

	while (!ended(pid, &status)) {
		kill(pid, SIGSTOP);
		usleep(1000);
		kill(pid, SIGCONT);
		usleep(3000);
	}
	CHECK_EQ(status, 0);
}

/* A tracer, told by its arguments to end by itself. */
static void trace_once(char *const *argv)
{
	pid_t tracer = fork();
	int status;

	if (tracer == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0), dup2(null, 1), dup2(null, 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	CHECK(tracer > 0);
	if (strcmp(argv[0], "strace") == 0) {
		usleep(100000);
		kill(tracer, SIGINT);
	}
	CHECK_EQ(waitpid(tracer, &status, 0), tracer);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		SKIP("no such tool here");
}

static void traced_by(const char *tool)
{
	pid_t pid = load_in_child();
	char number[20];
	int status = -1, n = 0;

	snprintf(number, sizeof number, "%d", pid);
	while (!ended(pid, &status)) {
		char *const strace[] = { "strace", "-f", "-o", "/dev/null", "-p", number, NULL };
		char *const gdb[] = { "gdb", "-p", number, "-batch", "-nx", "-ex", "info threads", "-ex", "detach", NULL };

		trace_once(strcmp(tool, "gdb") == 0 ? gdb : strace);
		n++;
	}
	CHECK_EQ(status, 0);
	CHECK(n > 0);
}

TEST_TIMEOUT(strace_attaches_and_detaches, 300)
{
	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("LeakSanitizer traces, too");
	traced_by("strace");
}

TEST_TIMEOUT(gdb_attaches_and_detaches, 300)
{
	if (times() == 1)
		SKIP("takes seconds: make test-strangers");
	traced_by("gdb");
}

/* A group that a freezer stops, and that has half a CPU; cgroup v2, as root. */
static bool put_text(const char *folder, const char *name, const char *text)
{
	char path[200];
	int fd;
	bool ok;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok;
}

static void in_cgroup(const char *name, const char *one, const char *other)
{
	char folder[100], number[20];
	int status = -1, n = 0;
	pid_t pid;

	snprintf(folder, sizeof folder, "/sys/fs/cgroup/goro-strangers-%d", getpid());
	if (mkdir(folder, 0755) != 0)
		SKIP("no cgroups here");
	pid = load_in_child();
	snprintf(number, sizeof number, "%d", pid);
	if (!put_text(folder, "cgroup.procs", number) || !put_text(folder, name, one)) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		rmdir(folder);
		SKIP("no such file in the cgroup");
	}
	while (!ended(pid, &status)) {
		usleep(5000);
		CHECK(put_text(folder, name, ++n % 2 ? other : one));
	}
	rmdir(folder);
	CHECK_EQ(status, 0);
}

TEST_TIMEOUT(a_cgroup_that_is_frozen_and_thawed, 300)
{
	in_cgroup("cgroup.freeze", "1", "0");
}

TEST_TIMEOUT(a_quota_that_changes, 300)
{
	in_cgroup("cpu.max", "20000 100000", "max 100000");
}

/* ------------------------------------------------------------- many threads */

static void *come_and_go(void *c)
{
	long x = 1;

	goro_chan_send(c, &x);
	return NULL;
}

GO_TEST_TIMEOUT(plain_threads_that_come_and_go, 300)
{
	goro_waitgroup wg = { 0 };
	goro_chan *c = goro_chan_of(long, 4);
	int n = times() > 1 ? 10000 : 100;
	pthread_attr_t attr;
	pthread_t t;
	long x, sum = 0;

	load_begin(&wg);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 256 << 10);
	for (int i = 0; i < n; i++) {
		CHECK_EQ(pthread_create(&t, &attr, come_and_go, c), 0);
		if (i >= 50) {
			CHECK(goro_chan_recv(c, &x));
			sum += x;
		}
	}
	while (sum < n && goro_chan_recv(c, &x))
		sum += x;
	load_end(&wg);
	goro_chan_unref(c);
}

/* ---------------------------------------------------------------------- ends */

static void (*end_it)(void);

static void end_now(void *arg)
{
	(void)arg;
	end_it();
}

/* After some 0 to 3 milliseconds, in a goroutine. */
static int end_main(int argc, char **argv)
{
	goro_waitgroup wg = { 0 };

	(void)argv;
	load_begin(&wg);
	goro_after_func(argc * 37 % 30 * 100 * GORO_MICROSECOND, end_now, NULL);
	goro_waitgroup_wait(&wg);
	return 1;
}

static void ends(void (*fn)(void), int expected)
{
	int n = times() > 1 ? 500 : 8, status;

	end_it = fn;
	for (int i = 0; i < n; i++) {
		struct timespec limit = { 10, 0 };
		sigset_t child;
		pid_t pid;

		sigemptyset(&child);
		sigaddset(&child, SIGCHLD);
		sigprocmask(SIG_BLOCK, &child, NULL);
		pid = fork();
		if (pid == 0) {
			sigprocmask(SIG_UNBLOCK, &child, NULL);
			prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);	/* no core files */
			exit(goro_run(end_main, i, NULL));
		}
		CHECK(pid > 0);
		while (waitpid(pid, &status, WNOHANG) != pid)
			if (sigtimedwait(&child, NULL, &limit) < 0 && errno == EAGAIN) {
				kill(pid, SIGKILL);
				FAIL("run %d hangs", i);
			}
		if (status != expected)
			FAIL("run %d: status %#x", i, status);
	}
}

static void exit_with_3(void)
{
	exit(3);
}

TEST_TIMEOUT(exit_under_load, 300)
{
	ends(exit_with_3, 3 << 8);
}

TEST_TIMEOUT(abort_under_load, 300)
{
	ends(abort, SIGABRT);
}
