/*
 * doctor.c - goro doctor: what this machine offers, what falls back, and what that costs.
 *
 * A line for each thing: a verdict, its name, one sentence. What the kernel offers is
 * tried (probe.c); a feature that GORO_DEBUG switches off falls back here as it does in
 * programs. Whether goro works is tried in a child process, which may crash.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <goro.h>

#include "cmd.h"
#include "probe.h"
#include "screen.h"

/* Where the sentences begin. */
#define TEXT_COLUMN 32

/* How long the try-out may take. */
#define TRY_S 20

#define STACK_BYTES (256 << 10)

enum verdict { OK, FALLS_BACK, LOW, MISSING };

static void report(enum verdict v, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void report(enum verdict v, const char *name, const char *fmt, ...)
{
	static const char *const words[] = { "ok", "falls back", "low", "missing" };
	static const enum colour colours[] = { GREEN, YELLOW, YELLOW, RED };
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		die("out of memory");
	va_end(ap);
	printf("%s%-11s%s%-*s", colour(colours[v]), words[v], colour(PLAIN), TEXT_COLUMN - 11, name);
	print_wrapped(text, TEXT_COLUMN);
	free(text);
}

static void heading(const char *text)
{
	printf("\n%s%s%s\n", colour(BOLD), text, colour(PLAIN));
}

/* ------------------------------------------------------------------- kernel */

static const struct feature {
	const char *name;
	bool (*works)(void);
	/* the GORO_DEBUG switch that forces the fallback; or NULL */
	const char *off;
	const char *gain, *cost;
} features[] = {
	{ "membarrier", probe_membarrier, "nomembarrier",
	  "Crossing into the runtime takes no fence.",
	  "A memory fence each time a goroutine enters the runtime: some ns a call." },
	{ "MADV_GUARD_INSTALL", probe_guard_markers, "noguard",
	  "Every stack has a guard, and none takes a mapping.",
	  "Guards are mappings (Linux before 6.13): starting goroutines is slower, and beyond 16,000 "
	  "stacks an overflow is found only afterwards." },
	{ "epoll_pwait2", probe_epoll_pwait2, "nopwait2",
	  "Waiting for I/O ends at the nanosecond that a timer wants.",
	  "A ppoll before epoll_wait: one more system call when a thread waits." },
	{ "RWF_NOWAIT for pipes", probe_nowait, "nonowait",
	  "Reading and writing a pipe is one system call.",
	  "Each read and write of a pipe is a poll first, and holds a thread while it is made." },
	{ "RWF_NOSIGNAL", probe_nosignal, "nonowait",
	  "Writing to a pipe needs no care about SIGPIPE.",
	  "A write to a pipe blocks SIGPIPE around it (Linux before 6.18): more system calls." },
	{ "io_uring", probe_uring, "nouring",
	  "Many sockets are read and written by one system call.",
	  "Each read and write of a socket is a system call: 12 to 20 % more CPU at 100 to 1,000 "
	  "busy connections." },
	{ "io_uring with SQPOLL", probe_uring_polled, "nouring",
	  "Goroutines that wait for a disk hold no thread.",
	  "Each goroutine that waits for a disk holds a thread: about 50 us a read, not 20 to 40." },
	{ "real-time priority", probe_real_time, "nourgent",
	  "The thread that watches gets a CPU at once.",
	  "When all CPUs compute, one waking in a hundred is 3 ms late, not 0.3. CAP_SYS_NICE or "
	  "ulimit -r 1 allows it." },
	{ "/proc", probe_proc, NULL,
	  "The runtime sees which threads sleep.",
	  "Goroutines that compute take turns less evenly on a busy machine: whether a thread sleeps "
	  "is guessed from its CPU time." },
};

/* GORO_DEBUG has name=N with N other than 0. */
static bool is_switched_on(const char *name)
{
	const char *s = name ? getenv("GORO_DEBUG") : NULL;
	size_t n = name ? strlen(name) : 0;

	for (; s && *s; s += strcspn(s, ","), s += *s == ',')
		if (strncmp(s, name, n) == 0 && s[n] == '=' && atoi(s + n + 1) != 0)
			return true;
	return false;
}

static void check_feature(const struct feature *f)
{
	if (is_switched_on(f->off))
		report(FALLS_BACK, f->name, "%s (GORO_DEBUG has %s.)", f->cost, f->off);
	else if (f->works())
		report(OK, f->name, "%s", f->gain);
	else
		report(FALLS_BACK, f->name, "%s", f->cost);
}

static void check_userfault(void)
{
	const char *cost = "Stacks of goroutines that wait for long stay where they are: 4.6 KB each, not 0.9.";

	if (is_switched_on("nouserfault"))
		report(FALLS_BACK, "userfaultfd", "%s (GORO_DEBUG has nouserfault.)", cost);
	else if (probe_userfault())
		report(OK, "userfaultfd", "Goroutines that wait for long take 0.9 KB, not 4.6.");
	else if (probe_userfault_user_only())
		report(FALLS_BACK, "userfaultfd", "%s It serves user mode only, or has no UFFDIO_MOVE (Linux "
		       "before 6.8); CAP_SYS_PTRACE or vm.unprivileged_userfaultfd=1 allows more.", cost);
	else
		report(FALLS_BACK, "userfaultfd", "%s", cost);
}

static void check_kernel(void)
{
	struct utsname name;
	unsigned major = 0, minor = 0;

	heading("Kernel");
	uname(&name);
	sscanf(name.release, "%u.%u", &major, &minor);
	if (major > 5 || (major == 5 && minor >= 10))
		report(OK, "Linux", "%s, %s", name.release, name.machine);
	else
		report(LOW, "Linux", "%s: goro is made for 5.10 and newer.", name.release);
	for (size_t i = 0; i < sizeof features / sizeof *features; i++)
		check_feature(&features[i]);
	check_userfault();
}

/* ------------------------------------------------------------ CPUs and limits */

/* The first number in a file; otherwise, if it cannot be read. */
static long long number_in(const char *path, long long otherwise)
{
	FILE *f = fopen(path, "re");
	long long n = otherwise;

	if (f && fscanf(f, "%lld", &n) != 1)
		n = otherwise;
	if (f)
		fclose(f);
	return n;
}

/* What the try-out in the child has found. */
struct trial {
	int procs;		/* GOMAXPROCS */
	bool works;
};

static void check_cpus(const struct trial *t)
{
	const char *wanted = getenv("GORO_MAXPROCS");
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	int usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)online;

	heading("CPUs and limits");
	if (t->procs == 0)
		report(MISSING, "GOMAXPROCS", "Not known, since goro does not work here.");
	else if (wanted && *wanted)
		report(t->procs < usable ? LOW : OK, "GOMAXPROCS", "%d by GORO_MAXPROCS; this process may use %d of %ld CPUs.",
		       t->procs, usable, online);
	else if (t->procs < usable)
		report(LOW, "GOMAXPROCS", "%d by the cgroup's CPU quota, on %d CPUs: a process that has used its "
		       "quota stands still until the next period.", t->procs, usable);
	else
		report(OK, "GOMAXPROCS", "%d: this process may use %d of %ld CPUs.", t->procs, usable, online);
}

static const char *limit_text(rlim_t n)
{
	return n == RLIM_INFINITY ? "unlimited" : with_commas(n);
}

static rlim_t limit_of(int resource)
{
	struct rlimit limit;

	return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

static void check_descriptors(void)
{
	struct rlimit limit = { 0, 0 };

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= 4096)
		report(OK, "open files", "%s", limit_text(limit.rlim_cur));
	else
		report(LOW, "open files", "%s, and so no more connections than that; ulimit -n raises it up to %s.",
		       limit_text(limit.rlim_cur), limit_text(limit.rlim_max));
}

static void check_threads(void)
{
	rlim_t n = limit_of(RLIMIT_NPROC);

	if (n >= 10000)
		report(OK, "processes", "%s", limit_text(n));
	else
		report(LOW, "processes", "%s processes and threads of this user: each goroutine that blocks in the "
		       "kernel holds a thread.", limit_text(n));
}

static void check_address_space(void)
{
	rlim_t n = limit_of(RLIMIT_AS);

	if (n == RLIM_INFINITY)
		report(OK, "address space", "unlimited");
	else
		report(LOW, "address space", "%s MiB: room for less than %s goroutines, 256 KiB each; GORO_STACK "
		       "makes that less.", with_commas(n >> 20), with_commas(n / STACK_BYTES));
}

static void check_locked_memory(void)
{
	rlim_t n = limit_of(RLIMIT_MEMLOCK);

	if (n >= 64 << 10)
		report(OK, "locked memory", "%s", n == RLIM_INFINITY ? "unlimited" : format("%s KiB", with_commas(n >> 10)));
	else
		report(LOW, "locked memory", "%s bytes: rings of io_uring count before Linux 5.12, and then there are none.",
		       limit_text(n));
}

static void check_mappings(void)
{
	long long n = number_in("/proc/sys/vm/max_map_count", -1);
	bool markers = !is_switched_on("noguard") && probe_guard_markers();

	if (n < 0)
		report(FALLS_BACK, "vm.max_map_count", "Cannot be read.");
	else if (markers || n >= 65530)
		report(OK, "vm.max_map_count", "%s%s", with_commas((uint64_t)n), markers ? "; stacks need none of them" : "");
	else
		report(LOW, "vm.max_map_count", "%s: guards for a quarter of that many stacks, the others have none.",
		       with_commas((uint64_t)n));
}

static void check_overcommit(void)
{
	long long mode = number_in("/proc/sys/vm/overcommit_memory", -1);

	if (mode == 2)
		report(LOW, "vm.overcommit_memory", "2: each stack counts in full, 256 KiB, though a few KiB are used; "
		       "GORO_STACK makes that less.");
	else if (mode < 0)
		report(FALLS_BACK, "vm.overcommit_memory", "Cannot be read.");
	else
		report(OK, "vm.overcommit_memory", "%lld: only memory that is touched counts.", mode);
}

static void check_limits(void)
{
	check_descriptors();
	check_threads();
	check_address_space();
	check_locked_memory();
	check_mappings();
	check_overcommit();
}

/* -------------------------------------------------------------------- tools */

/* Where the program of that name is, or NULL. */
static char *find_program(const char *name)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return access(name, X_OK) == 0 ? format("%s", name) : NULL;
	for (const char *at = path ? path : ""; *at; at += strcspn(at, ":"), at += *at == ':') {
		char *file = format("%.*s/%s", (int)strcspn(at, ":"), at, name);

		if (access(file, X_OK) == 0)
			return file;
		free(file);
	}
	return NULL;
}

/* The program that a variable names, or else this one. */
static void check_tool(const char *variable, const char *otherwise, const char *cost)
{
	const char *value = variable ? getenv(variable) : NULL;
	struct words w = { 0 };
	char *file;

	words_split(&w, value && *value ? value : otherwise);
	file = w.n > 0 ? find_program(w.at[0]) : NULL;
	report(file ? OK : MISSING, otherwise, "%s", file ? file : cost);
}

static bool go_has_tool(const char *go, const char *tool)
{
	return system(format("'%s' tool -n %s >/dev/null 2>&1", go, tool)) == 0;
}

static void check_go(void)
{
	char *go = find_program("go");

	if (!go)
		go = find_program("/usr/local/go/bin/go");
	if (!go) {
		report(MISSING, "go", "Profiles and traces are read by go tool pprof and go tool trace, here or elsewhere.");
		return;
	}
	report(OK, "go", "%s", go);
	for (int i = 0; i < 2; i++) {
		const char *tool = i == 0 ? "pprof" : "trace";

		if (go_has_tool(go, tool))
			report(OK, format("go tool %s", tool), "Reads goro's %s.", i == 0 ? "profiles" : "traces");
		else
			report(MISSING, format("go tool %s", tool), "This Go has not got it.");
	}
}

static void check_tools(void)
{
	heading("Tools");
	check_tool("CC", "cc", "goro run and goro build need a C compiler.");
	check_tool("CXX", "c++", "goro run and goro build need one for C++ files.");
	check_tool(NULL, "pkg-config", "Programs are built with CMake or the compiler alone.");
	check_tool(NULL, "cmake", "What goro new makes is built with it.");
	check_go();
}

/* ------------------------------------------------------------ does it work? */

static volatile int stop;

static void compute(void)
{
	while (!stop)
		;
}

static void end_it(goro_chan *done)
{
	stop = 1;
	goro_chan_send(done, &(int){ 1 });
	goro_chan_unref(done);
}

/* On one processor a goroutine computes for ever, unless it is preempted for another. */
static int try_out(int argc, char **argv)
{
	struct trial t = { .procs = goro_gomaxprocs(0) };
	goro_chan *done = goro_chan_of(int, 0);
	int got = 0;

	(void)argc;
	goro_gomaxprocs(1);
	go(compute);
	go(end_it, goro_chan_ref(done));
	goro_chan_recv(done, &got);
	goro_chan_unref(done);
	t.works = got == 1;
	return write(atoi(argv[0]), &t, sizeof t) != sizeof t;
}

/* In a child. Its status is *status. */
static struct trial try_in_child(int *status)
{
	struct trial t = { 0 };
	int fd[2];
	pid_t child;

	fflush(NULL);
	if (pipe(fd) != 0 || (child = fork()) < 0)
		die("cannot start a process: %s", strerror(errno));
	if (child == 0) {
		char *argv[] = { format("%d", fd[1]), NULL };

		close(fd[0]);
		alarm(TRY_S);
		_exit(goro_run(try_out, 1, argv));
	}
	close(fd[1]);
	if (read(fd[0], &t, sizeof t) != sizeof t)
		t = (struct trial){ 0 };
	close(fd[0]);
	while (waitpid(child, status, 0) < 0 && errno == EINTR)
		;
	return t;
}

static int conclude(const struct trial *t, int status)
{
	heading("In all");
	if (t->works) {
		report(OK, "goro", "Goroutines start, wait and are preempted.");
		return 0;
	}
	if (WIFSIGNALED(status))
		report(MISSING, "goro", "It does not work here: a small program was ended by signal %d, %s.",
		       WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		report(MISSING, "goro", "It does not work here: a small program ended with status %d.", WEXITSTATUS(status));
	return STATUS_FAILED;
}

static const char help[] =
	"usage: goro doctor\n"
	"\n"
	"Tells what this machine offers to programs with goro, what falls back to\n"
	"something slower, and what that costs: features of the kernel, limits, compilers\n"
	"and tools.\n"
	"The status is 0 if goro works here, and 1 if it does not.\n";

int cmd_doctor(int argc, char **argv)
{
	struct trial t;
	int status = 0;

	if (argc > 1) {
		bool asked = asks_for_help(argc, argv);

		fputs(help, asked ? stdout : stderr);
		return asked ? 0 : STATUS_USAGE;
	}
	t = try_in_child(&status);
	printf("%sgoro %s%s\n", colour(BOLD), GORO_VERSION, colour(PLAIN));
	check_kernel();
	check_cpus(&t);
	check_limits();
	check_tools();
	return conclude(&t, status);
}
