/*
 * test.h - what a test program needs, in one header.
 *
 * test/NAME_test.c includes this once and is a program of its own:
 *
 *	#include <goro.h>                         where it is used
 *	#include "test.h"
 *
 *	TEST(steal_takes_half) { ... }            an ordinary function, no runtime started
 *	GO_TEST(send_wakes_receiver) { ... }      the first goroutine of goro_run
 *	TEST_TIMEOUT(many, 120) { ... }           with a limit other than 60 seconds
 *	GO_TEST_TIMEOUT(many_more, 120) { ... }
 *
 * ctest knows each as NAME.TEST and runs it in a process of its own. By hand:
 *
 *	build/debug/test/NAME_test              all, one after the other
 *	build/debug/test/NAME_test TEST...      these
 *	build/debug/test/NAME_test --list       their names
 *
 * A test passes by returning. What ends it early may stand in any goroutine,
 * thread or forked child:
 *
 *	CHECK(cond)                     CHECK_EQ(a, b)    integers, enums, pointers
 *	CHECK_STR(a, b)                 CHECK_CONTAINS(haystack, needle)
 *	FAIL("format", ...)             SKIP("reason")
 *
 * What is meant to end the process is run in another one and looked at:
 *
 *	struct test_output o;
 *	test_run_child(function, &o);       forks: before the runtime has started
 *	test_run_anew(function, arg, &o);   forks and execs: function(arg), of this
 *	                                    program, with nothing but what is constant
 *	test_run_program(argv, &o);         argv[0] a path, as TEST_EXAMPLES_DIR "/name",
 *	                                    the program made from examples/name.c
 *	CHECK_EQ(o.status, 2);
 *	CHECK_CONTAINS(o.err, "fatal error: ...");
 *
 * Comments anywhere in the file change how ctest runs its tests:
 *
 *	/ * test: procs * /     each as NAME.TEST@1, @2, @4, @64, which is GORO_MAXPROCS
 *	/ * test: serial * /    with no other test beside them, for measurements of time
 *	/ * test: long * /      by "make test-long" only
 *	/ * test: in parts * /  linked with what it names of the library alone: it has
 *	                        functions of the library's for its own
 *	/ * test: leaks * /     what is allocated is freed or still known at the end:
 *	                        LeakSanitizer looks, where there is one
 *
 * (without the spaces between slash and star).
 *
 * How: main() forks for every test and waits, so that a test that hangs can
 * still be told to show where: SIGQUIT makes the runtime dump its goroutines.
 * Under a debugger or strace, or with TEST_NO_FORK in the environment, the test
 * runs in the process itself, without a limit.
 */
#ifndef GORO_TEST_H
#define GORO_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int goro_run(int (*main_fn)(int argc, char **argv), int argc, char **argv); /* goro.h */

enum {
	TEST_TIMEOUT_S = 60,       /* of a test that names none                  */
	TEST_CHILD_TIMEOUT_S = 20, /* of what a test runs in another process     */
	TEST_DUMP_S = 5,           /* from asking a hung test for a dump to kill */
	TEST_SKIPPED = 77,         /* exit status: ctest's SKIP_RETURN_CODE      */
};

/* ------------------------------------------------------------ registration */

struct test {
	const char *name;
	void (*body)(void);
	int (*runtime)(int (*main_fn)(int, char **), int, char **); /* or NULL */
	int timeout_s;
	struct test *next;
};

static struct test *test_first, **test_end = &test_first;
static struct test *test_current;

#define TEST(id)                     TEST_DEFINE(id, #id, NULL, TEST_TIMEOUT_S)
#define TEST_TIMEOUT(id, seconds)    TEST_DEFINE(id, #id, NULL, seconds)
#define GO_TEST(id)                  TEST_DEFINE(id, #id, goro_run, TEST_TIMEOUT_S)
#define GO_TEST_TIMEOUT(id, seconds) TEST_DEFINE(id, #id, goro_run, seconds)

/* goro_run is named only by GO_TEST, so that tests of a single data structure
 * do not link the whole runtime. */
#define TEST_DEFINE(id, text, run, seconds)                                 \
	static void test_body_##id(void);                                   \
	__attribute__((constructor)) static void test_register_##id(void)   \
	{                                                                   \
		static struct test t = { text, test_body_##id, run, seconds, \
			                 NULL };                            \
		*test_end = &t;                                             \
		test_end = &t.next;                                         \
	}                                                                   \
	static void test_body_##id(void)

/* ------------------------------------------------------- child processes */

struct test_output {
	int status;      /* the exit status; 128 + N if signal N ended it       */
	int signal;      /* N, or 0                                             */
	bool timed_out;  /* it was ended by us                                  */
	char *out, *err; /* what it wrote; never NULL                           */
};

static struct test_output test_last_output; /* shown when a check fails */

/* ------------------------------------------------------------- assertions */

/* Ends the test. Takes no lock of stdio's: another thread may have stopped
 * while holding one. */
__attribute__((noreturn, cold, unused, format(printf, 3, 4)))
static void test_fail(const char *file, int line, const char *fmt, ...)
{
	va_list args;
	dprintf(2, "%s:%d: ", file, line);
	va_start(args, fmt);
	vdprintf(2, fmt, args);
	va_end(args);
	dprintf(2, "\n");
	if (test_last_output.err)
		dprintf(2, "--- last child: status %d%s\n--- its stdout:\n%s\n--- its stderr:\n%s\n",
		        test_last_output.status, test_last_output.timed_out ? ", timed out" : "",
		        test_last_output.out, test_last_output.err);
	_exit(1);
}

__attribute__((noreturn, unused))
static void test_skip(const char *reason)
{
	dprintf(1, "skipped: %s\n", reason);
	_exit(TEST_SKIPPED);
}

/* First thing in a test of what rests on glibc: skips it where libc is another. */
#ifdef __GLIBC__
#define GLIBC_ONLY(reason) ((void)0)
#else
#define GLIBC_ONLY(reason) SKIP(reason)
#endif

#define FAIL(...)    test_fail(__FILE__, __LINE__, __VA_ARGS__)
#define SKIP(reason) test_skip(reason)

#define CHECK(cond)                                                         \
	do {                                                                \
		if (!(cond))                                                \
			FAIL("CHECK(%s)", #cond);                           \
	} while (0)

#define CHECK_EQ(a, b)                                                      \
	do {                                                                \
		long long test_a_ = (long long)(a), test_b_ = (long long)(b); \
		if (test_a_ != test_b_)                                     \
			FAIL("CHECK_EQ(%s, %s): %lld, not %lld", #a, #b,    \
			     test_a_, test_b_);                             \
	} while (0)

#define CHECK_STR(a, b)                                                     \
	do {                                                                \
		const char *test_a_ = (a), *test_b_ = (b);                  \
		if (!test_a_ || !test_b_ || strcmp(test_a_, test_b_) != 0)  \
			FAIL("CHECK_STR(%s, %s): \"%s\", not \"%s\"", #a, #b, \
			     test_or_null(test_a_), test_or_null(test_b_)); \
	} while (0)

#define CHECK_CONTAINS(haystack, needle)                                    \
	do {                                                                \
		const char *test_h_ = (haystack), *test_n_ = (needle);      \
		if (!test_h_ || !strstr(test_h_, test_n_))                  \
			FAIL("CHECK_CONTAINS(%s, %s): no \"%s\" in \"%s\"", \
			     #haystack, #needle, test_n_,                   \
			     test_or_null(test_h_));                        \
	} while (0)

__attribute__((unused))
static const char *test_or_null(const char *s)
{
	return s ? s : "(null)";
}

/* ------------------------------------------------ running and waiting for */

/* A limit in seconds, stretched for builds that are slower by design. */
static int test_scaled(int seconds)
{
	const char *scale = getenv("TEST_TIMEOUT_SCALE");
	return scale && atoi(scale) > 0 ? seconds * atoi(scale) : seconds;
}

/* True if pid has ended within this time; it is not reaped. */
static bool test_ended(pid_t pid, int seconds)
{
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN, .revents = 0 };
	if (p.fd < 0)
		return true; /* then the wait that follows has no limit */
	int n = poll(&p, 1, seconds * 1000);
	close(p.fd);
	return n != 0;
}

/* Waits for pid: a shell's exit status. Past the limit it is asked for a dump
 * of its goroutines, and then killed. */
static int test_wait(pid_t pid, int timeout_s, bool *timed_out)
{
	int status = 0;
	*timed_out = !test_ended(pid, test_scaled(timeout_s));
	if (*timed_out) {
		dprintf(2, "timed out after %d s\n", test_scaled(timeout_s));
		kill(pid, SIGQUIT);
		if (!test_ended(pid, TEST_DUMP_S))
			kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* All that was written to fd, as a string. Kept to the end: a test is short. */
static char *test_slurp(int fd)
{
	static struct kept { struct kept *next; char text[]; } *all;
	size_t n = (size_t)lseek(fd, 0, SEEK_END);
	struct kept *k = (struct kept *)malloc(sizeof(*k) + n + 1);
	if (!k || pread(fd, k->text, n, 0) != (ssize_t)n)
		FAIL("cannot read back a child's output");
	k->text[n] = 0;
	k->next = all;
	all = k;
	close(fd);
	return k->text;
}

/* Runs fn in a forked child that exits with 0 if it returns; or argv if fn is
 * NULL. Only the calling thread lives on in the child. */
static void test_capture(void (*fn)(void), const char *const *argv, struct test_output *o)
{
	int out = memfd_create("stdout", MFD_CLOEXEC), err = memfd_create("stderr", MFD_CLOEXEC);
	fflush(NULL);
	pid_t pid = fork();
	if (out < 0 || err < 0 || pid < 0)
		FAIL("cannot start a child");
	if (pid == 0) {
		dup2(out, 1);
		dup2(err, 2);
		if (fn) {
			fn();
			exit(0);
		}
		execvp(argv[0], (char *const *)(uintptr_t)argv);
		dprintf(2, "cannot run %s\n", argv[0]);
		_exit(127);
	}
	o->status = test_wait(pid, TEST_CHILD_TIMEOUT_S, &o->timed_out);
	o->signal = o->status > 128 ? o->status - 128 : 0;
	o->out = test_slurp(out);
	o->err = test_slurp(err);
	test_last_output = *o;
}

__attribute__((unused))
static void test_run_child(void (*fn)(void), struct test_output *o)
{
	const char *const none[] = { NULL };
	test_capture(fn, none, o);
}

/* argv is NULL-terminated. TEST_LAUNCHER in the environment is the command, in
 * words, that runs programs of this build on this machine. */
__attribute__((unused))
static void test_run_program(const char *const *argv, struct test_output *o)
{
	const char *full[64];
	size_t n = 0, max = sizeof(full) / sizeof(full[0]) - 1;
	const char *launcher = getenv("TEST_LAUNCHER");
	char *words = strdup(launcher ? launcher : ""), *rest;
	for (char *w = strtok_r(words, " ", &rest); w && n < max; w = strtok_r(NULL, " ", &rest))
		full[n++] = w;
	while (*argv && n < max)
		full[n++] = *argv++;
	full[n] = NULL;
	test_capture(NULL, full, o);
	free(words);
}

/* fn(arg) in a process that begins anew with this program: unlike after a fork, the
 * threads that a sanitizer runs are there. */
__attribute__((unused))
static void test_run_anew(void (*fn)(void (*)(void)), void (*arg)(void), struct test_output *o)
{
	static char self[4096]; /* not "/proc/self/exe", which would be the launcher */
	const char *const argv[] = { self, NULL };
	char call[64];
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		FAIL("cannot tell what program this is");
	snprintf(call, sizeof(call), "%td %td", (intptr_t)fn - (intptr_t)test_run_anew,
		 (intptr_t)arg - (intptr_t)test_run_anew);
	setenv("TEST_CALL", call, 1);
	test_run_program(argv, o);
	unsetenv("TEST_CALL");
}

/* In that process: does not return. */
static void test_call(const char *call)
{
	intptr_t fn = 0, arg = 0;
	unsetenv("TEST_CALL");
	if (sscanf(call, "%td %td", &fn, &arg) == 2)
		((void (*)(void (*)(void)))((intptr_t)test_run_anew + fn))(
			(void (*)(void))((intptr_t)test_run_anew + arg));
	exit(0);
}

/* Another processor, emulated by a process with threads and mappings of its own. */
__attribute__((unused))
static bool test_emulated(void)
{
	const char *launcher = getenv("TEST_LAUNCHER");
	return launcher && strstr(launcher, "qemu");
}

/* First thing in a test of "all goroutines are asleep - deadlock!": the runtime reports
 * that only if it knows every thread of the process. */
__attribute__((unused))
static void test_needs_deadlocks(void)
{
	if (test_emulated())
		SKIP("the emulator has threads of its own, which the runtime does not know");
}

/* ------------------------------------------------------------------- main */

static int test_go_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	test_current->body();
	return 0;
}

static int test_run_here(struct test *t)
{
	char *argv[] = { (char *)(uintptr_t)t->name, NULL };
	test_current = t;
	if (t->runtime)
		return t->runtime(test_go_main, 1, argv);
	t->body();
	return 0;
}

static bool test_is_traced(void)
{
	char line[256];
	int tracer = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			break;
	if (f)
		fclose(f);
	return tracer != 0;
}

/* The test in a process, and a process group, of its own: its exit status. */
static int test_run(struct test *t)
{
	bool timed_out;
	if (getenv("TEST_NO_FORK") || test_is_traced())
		return test_run_here(t);
	pid_t pid = fork();
	if (pid < 0)
		return 1;
	if (pid == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		exit(test_run_here(t));
	}
	int status = test_wait(pid, t->timeout_s, &timed_out);
	kill(-pid, SIGKILL); /* what the test has left behind */
	if (status > 128)
		dprintf(2, "ended by signal %d: %s\n", status - 128, strsignal(status - 128));
	return timed_out ? 1 : status;
}

static struct test *test_find(const char *name)
{
	struct test *t = test_first;
	while (t && strcmp(t->name, name) != 0)
		t = t->next;
	if (!t)
		dprintf(2, "no test is called %s; --list shows those there are\n", name);
	return t;
}

/* Runs t and says how it went: true unless it failed. */
static bool test_report(struct test *t)
{
	int status = test_run(t);
	const char *word = status == 0 ? "ok" : status == TEST_SKIPPED ? "skipped" : "FAILED";
	printf("%-8s%s\n", word, t->name);
	return status == 0 || status == TEST_SKIPPED;
}

int main(int argc, char **argv)
{
	bool good = true;
	setvbuf(stdout, NULL, _IOLBF, 0); /* a fork or _exit finds nothing unwritten */
	if (getenv("TEST_CALL"))
		test_call(getenv("TEST_CALL"));
	if (argc == 2 && (!strcmp(argv[1], "--list") || !strcmp(argv[1], "--timeouts"))) {
		bool timeouts = argv[1][2] == 't';
		for (struct test *t = test_first; t; t = t->next)
			timeouts ? printf("%s %d\n", t->name, t->timeout_s) : puts(t->name);
		return 0;
	}
	if (argc == 2) {
		struct test *t = test_find(argv[1]);
		return t ? test_run(t) : 2;
	}
	for (struct test *t = test_first; argc == 1 && t; t = t->next)
		good = test_report(t) && good;
	for (int i = 1; i < argc; i++) {
		struct test *t = test_find(argv[i]);
		good = t && test_report(t) && good;
	}
	return good ? 0 : 1;
}

#endif
