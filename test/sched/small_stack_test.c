/*
 * small_stack_test.c - a program whose goroutines have the smallest stacks there are: all
 * that goro offers it works, and all that looks at it from outside.
 */
/* test: procs */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "await.h"
#include "child.h"
#include "http/debug_http.h"
#include "test.h"

__attribute__((constructor)) static void smallest_stacks(void)
{
	setenv("GORO_STACK", "16k", 1);
}

/* --------------------------------------------------------- from the outside */

static int port;
static char answer[8 << 20];

static int connect_to(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	return fd;
}

/* By a plain thread, whose stack is large: the status of the answer. */
static int status_of(const char *method, const char *path)
{
	char request[256];
	int fd = connect_to(), status = 0;
	size_t n = 0;
	ssize_t r;

	snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	         "Content-Length: 0\r\n\r\n", method, path);
	CHECK_EQ(write(fd, request, strlen(request)), (ssize_t)strlen(request));
	while ((r = read(fd, answer + n, sizeof answer - 1 - n)) > 0)
		n += (size_t)r;
	answer[n] = '\0';
	close(fd);
	sscanf(answer, "HTTP/1.1 %d", &status);
	return status;
}

/* The whole of the library is in the profiles' stacks, where there is one to be made. */
static void *plain_waits(void *c)
{
	goro_chan_recv(c, NULL);
	return NULL;
}

static void waits(goro_chan *c)
{
	goro_chan_recv(c, NULL);
	NO_TAIL_CALL();
}

TEST(every_page_of_the_debug_server)
{
	static const char *const pages[] = {
		"/", "/debug", "/debug/", "/debug/stats.json", "/debug/stats.json?reasons=1",
		"/debug/metrics", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/symbol?0x1",
		"/debug/pprof/block", "/debug/pprof/block?debug=1", "/debug/pprof/goroutine",
		"/debug/pprof/goroutine?debug=1", "/debug/pprof/goroutine?debug=2",
		"/debug/pprof/goroutineleak", "/debug/pprof/goroutineleak?debug=1",
		"/debug/pprof/goroutineleak?debug=2", "/debug/pprof/mutex",
		"/debug/pprof/mutex?debug=1", "/debug/pprof/threadcreate",
		"/debug/pprof/threadcreate?debug=1", "/debug/pprof/profile?seconds=1",
		"/debug/pprof/trace?seconds=0.2",
	};
	goro_chan *c = goro_chan_make(0, 0);
	pthread_t thread;

	CHECK_EQ(debug_http_serve("0", &port), 0);
	for (int i = 0; i < 20; i++)
		go(waits, c);
	CHECK_EQ(pthread_create(&thread, NULL, plain_waits, c), 0);
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
		int status = status_of("GET", pages[i]);

		if (status != 200 && status != 301)
			FAIL("%s: %.200s", pages[i], answer);
	}
	CHECK_EQ(status_of("HEAD", "/debug/"), 200);
	CHECK_EQ(status_of("POST", "/debug/pprof/symbol"), 405);
	CHECK_EQ(status_of("GET", "/debug/nothing"), 404);
}

/* ------------------------------------------------------------- from the inside */

static int file_in_memory(void)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

GO_TEST(profiles_are_written)
{
	static const char *const name[] = { "goroutine", "block", "mutex", "threadcreate",
		"goroutineleak" };
	int fd = file_in_memory();

	go(waits, goro_chan_make(0, 0));
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		CHECK_EQ(goro_profile_write(name[i], fd), 0);
	CHECK(lseek(fd, 0, SEEK_CUR) > 0);
}

GO_TEST(a_cpu_profile_is_written)
{
	int fd = file_in_memory();

	CHECK_EQ(goro_profile_cpu_start(fd, 1000), 0);
	for (int64_t end = goro_now() + 100 * GORO_MILLISECOND; goro_now() < end;)
		goro_gosched();
	goro_profile_cpu_stop();
	CHECK(lseek(fd, 0, SEEK_CUR) > 0);
}

GO_TEST(a_trace_is_written)
{
	int fd = file_in_memory();
	uint64_t task;

	CHECK_EQ(goro_trace_start(fd), 0);
	task = goro_trace_task_begin("task");
	goro_trace_region_begin(task, "region");
	goro_trace_log(task, "key", "value");
	goro_sleep(GORO_MILLISECOND);
	goro_trace_region_end(task, "region");
	goro_trace_task_end(task);
	goro_trace_stop();
	CHECK_EQ(goro_trace_error(), 0);
	CHECK(lseek(fd, 0, SEEK_CUR) > 0);
}

GO_TEST(goroutines_are_dumped_and_leaks_are_found)
{
	uint64_t mark = goro_leak_mark();
	FILE *out = tmpfile();

	CHECK(out);
	go(waits, goro_chan_make(0, 0));
	goro_dump(out);
	CHECK_EQ(goro_leak_check(mark, GORO_MILLISECOND, out), 1);
	CHECK(ftell(out) > 0);
}

GO_TEST(names_are_looked_up)
{
	int listener = goro_listen("tcp", "localhost:0"), fd;
	struct sockaddr_storage sa;
	socklen_t len = sizeof sa;
	char address[64];

	CHECK(listener >= 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&sa, &len), 0);
	snprintf(address, sizeof address, "localhost:%d",
	         ntohs(((struct sockaddr_in *)&sa)->sin_port));
	fd = goro_dial("tcp", address, goro_now() + seconds(30));
	CHECK(fd >= 0);
	fd = goro_dial("tcp", "no-such-host.invalid:http", goro_now() + seconds(5));
	CHECK(fd < 0);
}

GO_TEST(signals_arrive)
{
	goro_chan *c = goro_signal_notify((const int[]){ SIGHUP }, 1);
	int sig = 0;

	CHECK_EQ(kill(getpid(), SIGHUP), 0);
	CHECK(goro_chan_recv(c, &sig));
	CHECK_EQ(sig, SIGHUP);
	goro_signal_stop(c);
}

static void ends(void *arg)
{
	goro_chan_close(arg);
}

GO_TEST(functions_are_called_when_a_context_or_a_timer_ends)
{
	goro_chan *c = goro_chan_make(0, 0), *d = goro_chan_make(0, 0);
	goro_ctx *ctx = goro_ctx_with_timeout(goro_ctx_background(), GORO_MILLISECOND);

	goro_ctx_after_func(ctx, ends, c);
	goro_after_func(GORO_MILLISECOND, ends, d);
	CHECK(!goro_chan_recv(c, NULL));
	CHECK(!goro_chan_recv(d, NULL));
}

GO_TEST(the_number_of_processors_changes)
{
	goro_gomaxprocs(3);
	goro_set_default_gomaxprocs();
	CHECK(goro_num_cpu() > 0);
}

/* ------------------------------------------------------------ the fatal ends */

__attribute__((noinline)) static void panics(void)
{
	goro_panic("as it should");
}

TEST(a_panic_is_told)
{
	run(panics);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "panic: as it should");
	CHECK_CONTAINS(o.err, "panics");
}

static void hangs(void)
{
	goro_chan_recv(goro_chan_make(0, 0), NULL);
}

TEST(a_deadlock_is_told)
{
	test_needs_deadlocks();
	run_anew(hangs);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "all goroutines are asleep");
}

static void faults(void)
{
	volatile uintptr_t nowhere = 8;	/* unknown to the compiler, which would warn */

	*(volatile int *)nowhere = 1;
}

TEST(a_fault_is_told)
{
	run(faults);
	CHECK_EQ(o.signal, SIGSEGV);
	CHECK_CONTAINS(o.err, "SIGSEGV");
	CHECK_CONTAINS(o.err, "faults");
}

/* ----------------------------------------------------- plain threads' stacks */

static void report_alive(void)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 1);
	go(goro_waitgroup_done, &wg);
	goro_waitgroup_wait(&wg);
	dprintf(1, "alive");
}

static void run_alive(void (*f)(void))
{
	child_anew(f);
}

/* As test_run_anew, in a process whose main thread has that. */
static void main_with_16_KiB(void)
{
	char call[64], *argv[] = { program_invocation_name, NULL }, *environment[] = { call, NULL };
	struct rlimit limit;

	snprintf(call, sizeof call, "TEST_CALL=%td %td", (intptr_t)run_alive - (intptr_t)test_run_anew,
	         (intptr_t)report_alive - (intptr_t)test_run_anew);
	setrlimit(RLIMIT_STACK, &(struct rlimit){ 16 << 10, 16 << 10 });
	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur != 16 << 10)
		SKIP("an emulator keeps its stack as it is");
	execve("/proc/self/exe", argv, environment);
	FAIL("cannot start anew");
}

static void not_with_sanitizers(void)
{
	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("a sanitizer needs more");
}

TEST(main_may_have_16_KiB)
{
	not_with_sanitizers();
	test_run_child(main_with_16_KiB, &o);
	if (o.status == TEST_SKIPPED)
		SKIP("stacks cannot be limited here");
	CHECK_EQ(o.status, 0);
	CHECK_STR(o.out, "alive");
}

static void *start_runtime(void *c)
{
	report_alive();
	return c;
}

static void thread_with_16_KiB(void)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setstacksize(&attr, 16 << 10), 0);
	CHECK_EQ(pthread_create(&t, &attr, start_runtime, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

TEST(the_thread_that_starts_the_runtime_may_have_16_KiB)
{
	not_with_sanitizers();
	if (sysconf(_SC_THREAD_STACK_MIN) > 16 << 10)
		SKIP("threads have more on this processor");
	test_run_child(thread_with_16_KiB, &o);
	CHECK_EQ(o.status, 0);
	CHECK_STR(o.out, "alive");
}
