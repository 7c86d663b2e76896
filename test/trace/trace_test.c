/*
 * Execution traces: whatever a program does while a trace starts, runs and stops, Go's
 * tools can open the trace (trace_reader.h), and it tells what happened. trace_go_test.sh
 * opens traces with Go's own tools.
 */
/* test: procs */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "deadlock.h"
#include "child.h"
#include "test.h"
#include "trace_reader.h"

/* ------------------------------------------------------------------ helpers */

static int trace_file(void)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static int start(void)
{
	int fd = trace_file();

	CHECK_EQ(goro_trace_start(fd), 0);
	return fd;
}

/* For trace_go_test.sh: writes the trace to the file TRACE_KEEP, and the number of events
 * of each kind to TRACE_KEEP.counts. */
static void keep(const void *data, size_t n, const struct trace_reading *t)
{
	char name[4096];
	FILE *out;

	if (!getenv("TRACE_KEEP"))
		return;
	out = fopen(getenv("TRACE_KEEP"), "w");
	CHECK(out && fwrite(data, 1, n, out) == n);
	fclose(out);
	snprintf(name, sizeof name, "%s.counts", getenv("TRACE_KEEP"));
	out = fopen(name, "w");
	CHECK(out);
	for (int i = 0; i < TR_KINDS; i++)
		if (t->count[i])
			fprintf(out, "%s %zu\n", tr_name(i), t->count[i]);
	fclose(out);
}

/* Reads the trace in the file, and closes the file. */
static struct trace_reading *read_any(int fd)
{
	struct stat st;
	struct trace_reading *t;
	void *data;

	CHECK_EQ(fstat(fd, &st), 0);
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(data != MAP_FAILED);
	t = trace_read(data, (size_t)st.st_size);
	keep(data, (size_t)st.st_size, t);
	munmap(data, (size_t)st.st_size);
	close(fd);
	return t;
}

static struct trace_reading *stop(int fd)
{
	struct trace_reading *t;

	goro_trace_stop();
	CHECK_EQ(goro_trace_error(), 0);
	t = read_any(fd);
	CHECK_STR(t->error, "");
	CHECK(t->generations > 0);
	return t;
}

static uint64_t sink;

/* Computes for about ns nanoseconds, without entering the runtime. */
static void compute(int64_t ns)
{
	int64_t end = goro_now() + ns;
	uint64_t x = 1;

	while (goro_now() < end)
		for (int i = 0; i < 10000; i++)
			x = x * 6364136223846793005u + 1;
	__atomic_store_n(&sink, x, __ATOMIC_RELAXED);
}

/* --------------------------------------------------------------- the reader */

/* A trace of one generation with these events of thread 3, and how it is taken. */
static char *reader_says(const uint8_t *events, size_t n)
{
	static char said[512];
	uint8_t bytes[200] = "go 1.23 trace\0\0\0";
	struct trace_reading *t;
	size_t at = 16;

	memcpy(bytes + at, (const uint8_t[]){ 1, 1, 3, 50, (uint8_t)n }, 5);
	memcpy(bytes + at + 5, events, n);
	at += 5 + n;
	memcpy(bytes + at, (const uint8_t[]){ 1, 1, 9, 50, 2, 8, 100 }, 7);
	at += 7;
	t = trace_read(bytes, at);
	snprintf(said, sizeof said, "%s", t->error);
	trace_reading_free(t);
	return said;
}
#define READER_SAYS(...) \
	reader_says((const uint8_t[]){ __VA_ARGS__ }, sizeof (const uint8_t[]){ __VA_ARGS__ })

/* trace_read rejects the mistakes that the tests below rely on it to find. */
TEST(the_reader_is_strict)
{
	/* P 0 idle, goroutine 7 runnable; the P starts, the goroutine runs, and ends. */
	CHECK_STR(READER_SAYS(13, 0, 0, 2, 25, 0, 7, 99, 1, 10, 0, 0, 1, 16, 0, 7, 1, 17, 0), "");
	CHECK_CONTAINS(READER_SAYS(13, 0, 0, 2, 25, 0, 7, 99, 1, 10, 0, 0, 1, 16, 0, 7, 2),
	               "nothing can come next");	/* wrong number */
	CHECK_CONTAINS(READER_SAYS(13, 0, 0, 2, 10, 0, 0, 2), "nothing can come next");
	CHECK_CONTAINS(READER_SAYS(13, 0, 0, 2, 10, 0, 0, 1, 16, 0, 7, 1),
	               "nothing can come next");	/* goroutine unknown */
	CHECK_CONTAINS(READER_SAYS(17, 0), "without a P");
	CHECK_CONTAINS(READER_SAYS(11, 0), "no running P");
	CHECK_CONTAINS(READER_SAYS(13, 0, 0, 2, 10, 0, 0, 1, 13, 0, 0, 2), "said to be");
	CHECK_CONTAINS(READER_SAYS(13, 0, 0, 2, 25, 0, 7, 99, 4, 10, 0, 0, 1, 16, 0, 7, 1),
	               "nothing can come next");	/* it waits */
	CHECK_CONTAINS(READER_SAYS(13, 0, 0, 2, 25, 0, 7, 99, 1, 10, 0, 0, 1, 14, 0, 7, 0, 0),
	               "created twice");
	CHECK_CONTAINS(READER_SAYS(13, 0, 0, 2, 25, 0, 7, 99, 1, 10, 0, 0, 1, 16, 0, 7, 1, 20, 0, 5, 0),
	               "no string");
	CHECK_CONTAINS(READER_SAYS(24, 0), "no call");
	CHECK_CONTAINS(READER_SAYS(3, 0), "event 3");
}

/* ---------------------------------------------------------- what is told */

SEEN static void receiver(goro_chan *c, goro_waitgroup *wg)
{
	while (goro_chan_recv(c, NULL))
		;
	goro_waitgroup_done(wg);
	NO_TAIL_CALL();
}

SEEN static void sender(goro_chan *c, int n)
{
	for (int i = 0; i < n; i++)
		goro_chan_send(c, &i);
	goro_sleep(20000000);	/* the others wait meanwhile */
	goro_chan_close(c);
	NO_TAIL_CALL();
}

SEEN static int main_of_channels(void)
{
	goro_chan *c = goro_chan_of(int, 0);
	goro_waitgroup wg = { 0 };
	int fd = start();

	goro_waitgroup_add(&wg, 1);
	go(sender, c, 100);
	go(receiver, c, &wg);
	goro_waitgroup_wait(&wg);
	AWAIT(goro_num_goroutine() == 1);	/* the sender has ended, too */
	return fd;
}

GO_TEST(channels_are_told)
{
	struct trace_reading *t = stop(main_of_channels());

	CHECK_EQ(t->count[TR_GoCreate], 2);
	CHECK_EQ(t->count[TR_GoDestroy], 2);
	CHECK(t->count[TR_GoBlock] >= 50);
	CHECK(t->count[TR_GoUnblock] >= 50);
	CHECK(trace_has(t->reasons, "chan receive") || trace_has(t->reasons, "chan send"));
	CHECK(trace_has(t->reasons, "sync"));
	CHECK(trace_has(t->functions, "sender"));
	CHECK(trace_has(t->functions, "receiver"));
	CHECK(trace_has(t->functions, "goro_waitgroup_wait"));
	CHECK(trace_has(t->functions, "main_of_channels"));
	CHECK(!trace_has(t->functions, "trace_stack_here"));
	CHECK(!trace_has(t->functions, "g_start"));
	CHECK_EQ(t->count[TR_ProcsChange], 1);
	trace_reading_free(t);
}

static void nothing(goro_waitgroup *wg)
{
	goro_waitgroup_done(wg);
}

GO_TEST(every_goroutine_is_created_started_and_destroyed)
{
	enum { N = SCALED(20000) };
	goro_waitgroup wg = { 0 };
	struct trace_reading *t;
	int fd = start();

	for (int i = 0; i < N / 100; i++) {
		goro_waitgroup_add(&wg, 100);
		for (int k = 0; k < 100; k++)
			go(nothing, &wg);
		goro_waitgroup_wait(&wg);
	}
	t = stop(fd);
	CHECK_EQ(t->count[TR_GoCreate], N / 100 * 100);
	CHECK(t->count[TR_GoStart] >= N / 100 * 100);
	trace_reading_free(t);
}

static void wait_for(goro_waitgroup *gate, goro_waitgroup *in, goro_waitgroup *out)
{
	goro_waitgroup_done(in);
	goro_waitgroup_wait(gate);
	goro_waitgroup_done(out);
}

/* waitgroup.c lets woken goroutines wake the others, but not while a trace is on: the
 * trace names the waker of each. */
GO_TEST(many_waiters_are_told_to_be_woken_by_one)
{
	enum { N = 2000 };
	goro_waitgroup gate = { 0 }, in = { 0 }, out = { 0 };
	struct trace_reading *t;
	int fd;

	goro_waitgroup_add(&gate, 1);
	goro_waitgroup_add(&in, N);
	goro_waitgroup_add(&out, N);
	for (int i = 0; i < N; i++)
		go(wait_for, &gate, &in, &out);
	goro_waitgroup_wait(&in);
	AWAIT((uint32_t)__atomic_load_n(&gate.opaque[0], __ATOMIC_RELAXED) == N);
	fd = start();
	goro_waitgroup_done(&gate);
	goro_waitgroup_wait(&out);
	t = stop(fd);
	CHECK(t->woke_most >= N);
	trace_reading_free(t);
}

GO_TEST(yields_are_told)
{
	struct trace_reading *t;
	int fd = start();

	for (int i = 0; i < 1000; i++)
		goro_gosched();
	t = stop(fd);
	CHECK(t->count[TR_GoStop] >= 1000);
	CHECK(trace_has(t->reasons, "runtime.Gosched"));
	trace_reading_free(t);
}

static void select_one(goro_chan *c, goro_chan *d)
{
	CHECK_EQ(goro_select(GORO_RECV(c, NULL), GORO_RECV(d, NULL)), 1);
}

static void read_one(int fd)
{
	char byte;

	CHECK_EQ(goro_read(fd, &byte, 1), 1);
}

GO_TEST(reasons_are_in_go_s_words)
{
	goro_chan *c = goro_chan_of(int, 0), *d = goro_chan_of(int, 1);
	struct trace_reading *t;
	int fds[2], fd = start();

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	goro_sleep(1000000);
	go(select_one, c, d);
	go(read_one, fds[0]);
	AWAIT(goroutines_waiting() == 2);
	goro_chan_send(d, &(int){ 0 });
	CHECK_EQ(write(fds[1], "", 1), 1);
	AWAIT(goro_num_goroutine() == 1);
	t = stop(fd);
	CHECK(trace_has(t->reasons, "sleep"));
	CHECK(trace_has(t->reasons, "select"));
	CHECK(trace_has(t->reasons, "network"));
	trace_reading_free(t);
}

static void announced(void)
{
	goro_syscall_enter();
	usleep(2000);
	goro_syscall_exit();
}

static void block_on(void *arg)
{
	(void)arg;
	usleep(2000);
}

/* Another goroutine wants the P meanwhile. */
static void keep_yielding(uint32_t *stop_it, goro_waitgroup *wg)
{
	while (!__atomic_load_n(stop_it, __ATOMIC_RELAXED))
		goro_gosched();
	goro_waitgroup_done(wg);
}

GO_TEST(blocking_calls_are_told)
{
	goro_waitgroup wg = { 0 };
	struct trace_reading *t;
	uint32_t done = 0;
	int fd = start();

	goro_waitgroup_add(&wg, 1);
	go(keep_yielding, &done, &wg);
	announced();
	goro_blocking(block_on, NULL);
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	goro_waitgroup_wait(&wg);
	t = stop(fd);
	CHECK(t->count[TR_GoSyscallBegin] >= 3);	/* goro_trace_stop is one */
	CHECK(trace_has(t->functions, "goro_blocking"));
	CHECK(trace_has(t->functions, "goro_syscall_enter"));
	trace_reading_free(t);
}

SEEN static void sleep_unannounced(void)
{
	for (int i = 0; i < 5; i++)
		usleep(20000);
	NO_TAIL_CALL();
}

/* The thread sleeps in the kernel, and its P is taken: the trace tells that as a blocking
 * call. Its stack is known if the thread still sleeps when the stack is walked, which on
 * a busy machine it may not. */
static bool told_where_it_sleeps(void)
{
	goro_waitgroup wg = { 0 };
	struct trace_reading *t;
	uint32_t done = 0;
	int fd = start(), procs = goro_gomaxprocs(0);
	bool told;

	goro_waitgroup_add(&wg, 2 * procs);	/* more goroutines than Ps */
	for (int i = 0; i < 2 * procs; i++)
		go(keep_yielding, &done, &wg);
	sleep_unannounced();
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	goro_waitgroup_wait(&wg);
	t = stop(fd);
	told = t->count[TR_GoSyscallEndBlocked] >= 2 &&
	       (test_emulated() || trace_has(t->functions, "sleep_unannounced"));
	trace_reading_free(t);
	return told;
}

GO_TEST(calls_that_nobody_announced_are_told)
{
	GLIBC_ONLY("musl's functions have no unwind tables");
	AWAIT(told_where_it_sleeps());
}

SEEN static void hog(uint32_t *left, int64_t ns)
{
	compute(ns);
	__atomic_fetch_sub(left, 1, __ATOMIC_RELAXED);
	NO_TAIL_CALL();
}

GO_TEST(preemption_is_told)
{
	int n = 3 * goro_gomaxprocs(0);
	uint32_t left = (uint32_t)n;
	struct trace_reading *t;
	int fd;

	if (n > 12)
		SKIP("more processors than the test has use for");
	fd = start();
	for (int i = 0; i < n; i++)
		go(hog, &left, INT64_C(100000000));
	while (__atomic_load_n(&left, __ATOMIC_RELAXED))
		goro_sleep(1000000);
	t = stop(fd);
	CHECK(trace_has(t->reasons, "preempted"));
	CHECK(trace_has(t->functions, "hog"));
	trace_reading_free(t);
}

GO_TEST(changes_of_gomaxprocs_are_told)
{
	struct trace_reading *t;
	int fd = start(), before = goro_gomaxprocs(0);

	for (int i = 0; i < 5; i++) {
		goro_gomaxprocs(before + 3);
		goro_gosched();
		goro_gomaxprocs(before);
	}
	t = stop(fd);
	CHECK_EQ(t->count[TR_ProcsChange], 11);
	CHECK_EQ(t->count[TR_STWBegin], 10);
	CHECK_EQ(t->count[TR_STWEnd], 10);
	CHECK(trace_has(t->reasons, "GOMAXPROCS"));
	trace_reading_free(t);
}

/* --------------------------------------------------- what the program tells */

static void named(goro_chan *c)
{
	goro_set_name("a worker");
	goro_chan_recv(c, NULL);
	goro_chan_recv(c, NULL);
}

GO_TEST(names_are_told)
{
	struct goro_attr attr = { .name = "from the start" };
	goro_chan *c = goro_chan_of(int, 0);
	struct trace_reading *t;
	int fd;

	go(named, c);
	goro_chan_send(c, &(int){ 0 });
	fd = start();
	CHECK_EQ(goro_go_attr(&attr, (void (*)(void *))named, c), 0);
	for (int i = 0; i < 3; i++)
		goro_chan_send(c, &i);
	goro_sleep(1000000);
	t = stop(fd);
	CHECK(trace_has(t->words, "a worker"));
	CHECK(trace_has(t->words, "from the start"));
	trace_reading_free(t);
}

GO_TEST(tasks_regions_and_logs_are_told)
{
	struct trace_reading *t;
	uint64_t task;
	int fd = start();

	task = goro_trace_task_begin("a request");
	CHECK(task != 0);
	goro_trace_region_begin(task, "outer");
	goro_trace_region_begin(task, "inner");
	goro_trace_log(task, "a key", "a value");
	goro_trace_region_end(task, "inner");
	goro_trace_region_end(task, "outer");
	goro_trace_task_end(task);
	t = stop(fd);
	CHECK_EQ(t->count[TR_UserTaskBegin], 1);
	CHECK_EQ(t->count[TR_UserTaskEnd], 1);
	CHECK_EQ(t->count[TR_UserRegionBegin], 2);
	CHECK_EQ(t->count[TR_UserRegionEnd], 2);
	CHECK_EQ(t->count[TR_UserLog], 1);
	CHECK(trace_has(t->words, "a request"));
	CHECK(trace_has(t->words, "outer"));
	CHECK(trace_has(t->words, "inner"));
	CHECK(trace_has(t->words, "a key"));
	CHECK(trace_has(t->words, "a value"));
	trace_reading_free(t);
}

static void ends_in_a_region(goro_waitgroup *wg)
{
	goro_trace_region_begin(0, "never ended");
	goro_waitgroup_done(wg);
}

/* Go's reader rejects a trace with such mistakes in it. */
GO_TEST(regions_used_wrongly_do_not_cost_the_trace)
{
	goro_waitgroup wg = { 0 };
	struct trace_reading *t;
	int fd;

	goro_trace_region_begin(0, "before");
	fd = start();
	goro_trace_region_end(0, "before");
	goro_trace_region_end(0, "never begun");
	goro_trace_region_begin(0, "outer");
	goro_trace_region_begin(7, "inner");
	goro_trace_region_begin(7, "innermost");
	goro_trace_region_end(0, "outer");
	goro_trace_region_end(7, "inner");
	goro_trace_region_begin(0, "over the end");
	goro_waitgroup_add(&wg, 1);
	go(ends_in_a_region, &wg);
	goro_waitgroup_wait(&wg);
	AWAIT(goro_num_goroutine() == 1);	/* its end ends its region */
	t = stop(fd);
	CHECK_EQ(t->count[TR_UserRegionBegin], 5);
	CHECK_EQ(t->count[TR_UserRegionEnd], 4);
	trace_reading_free(t);
	fd = start();
	goro_trace_region_end(0, "over the end");
	t = stop(fd);
	CHECK_EQ(t->count[TR_UserRegionEnd], 0);
	trace_reading_free(t);
}

GO_TEST(annotations_without_a_trace_do_nothing)
{
	uint64_t task = goro_trace_task_begin("x");

	CHECK_EQ(task, 0);
	goro_trace_region_begin(task, "x");
	goro_trace_log(task, "x", "y");
	goro_trace_region_end(task, "x");
	goro_trace_task_end(task);
}

GO_TEST(long_strings_are_cut)
{
	static char name[5000];
	struct trace_reading *t;
	int fd = start();

	memset(name, 'x', sizeof name - 1);
	goro_trace_log(0, name, name);
	goro_trace_region_begin(0, name);
	goro_trace_region_end(0, name);
	t = stop(fd);
	CHECK_EQ(t->count[TR_UserLog], 1);
	trace_reading_free(t);
}

/* ------------------------------------------------------------ plain threads */

SEEN static void *outsider(void *arg)
{
	goro_chan *c = arg;
	uint64_t task = goro_trace_task_begin("outside");
	goro_waitgroup wg = { 0 };

	goro_trace_region_begin(task, "outside");
	goro_waitgroup_add(&wg, 10);
	for (int i = 0; i < 10; i++)
		go(nothing, &wg);
	goro_waitgroup_wait(&wg);
	for (int i = 0; i < 10; i++)
		goro_chan_send(c, &i);
	goro_trace_region_end(task, "outside");
	goro_trace_task_end(task);
	return NULL;
}

GO_TEST(plain_threads_are_told)
{
	goro_chan *c = goro_chan_of(int, 0);
	struct trace_reading *t;
	pthread_t thread[4];
	int fd = start();

	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, outsider, c), 0);
	for (int i = 0; i < 40; i++)
		goro_chan_recv(c, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	t = stop(fd);
	CHECK_EQ(t->count[TR_GoCreate], 40);
	CHECK_EQ(t->count[TR_UserTaskBegin], 4);
	CHECK_EQ(t->count[TR_UserRegionEnd], 4);
	CHECK_EQ(t->count[TR_GoCreateSyscall], 4);
	CHECK_EQ(t->count[TR_GoDestroySyscall], 4);
	CHECK(trace_has(t->functions, "outsider"));
	CHECK(!trace_has(t->functions, "start_thread"));
	trace_reading_free(t);
}

static void yield_for(int n, goro_waitgroup *wg)
{
	for (int i = 0; i < n; i++)
		goro_gosched();
	goro_waitgroup_done(wg);
}

/* A plain thread starts and stops the trace. */
TEST(a_plain_thread_may_trace)
{
	goro_waitgroup wg = { 0 };
	struct trace_reading *t;
	int fd = start();

	goro_waitgroup_add(&wg, 4);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(go(yield_for, 100, &wg), 0);
	goro_waitgroup_wait(&wg);
	t = stop(fd);
	CHECK_EQ(t->count[TR_GoCreate], 4);
	CHECK(t->count[TR_GoStop] >= 1);
	trace_reading_free(t);
}

/* ------------------------------------------------------- start and stop */

GO_TEST(descriptors_that_cannot_be_written_are_refused)
{
	int fd = open("/dev/null", O_RDONLY);

	CHECK_EQ(goro_trace_start(-1), -EBADF);
	CHECK_EQ(goro_trace_start(10000), -EBADF);
	CHECK_EQ(goro_trace_start(fd), -EBADF);
	close(fd);
	goro_trace_stop();
}

GO_TEST(one_trace_at_a_time)
{
	int fd = start();

	CHECK_EQ(goro_trace_start(fd), -EBUSY);
	trace_reading_free(stop(fd));
	fd = start();
	trace_reading_free(stop(fd));
}

static void park_on(goro_chan *c)
{
	goro_chan_recv(c, NULL);
	NO_TAIL_CALL();
}

/* The trace has the goroutines that existed before it, whatever they do. */
GO_TEST(goroutines_in_every_state_are_there_at_the_start)
{
	goro_chan *c = goro_chan_of(int, 0);
	goro_waitgroup wg = { 0 };
	struct trace_reading *t;
	uint32_t done = 0, left = 2;
	int fd;

	for (int i = 0; i < 100; i++)
		go(park_on, c);
	goro_waitgroup_add(&wg, 3);
	go(keep_yielding, &done, &wg);
	go(keep_yielding, &done, &wg);
	go(yield_for, 1000000, &wg);
	go(announced);
	go(sleep_unannounced);
	go(hog, &left, INT64_C(50000000));
	go(hog, &left, INT64_C(50000000));
	goro_sleep(5000000);
	fd = start();
	for (int i = 0; i < 100; i++)
		goro_chan_send(c, &i);
	while (__atomic_load_n(&left, __ATOMIC_RELAXED))
		goro_sleep(1000000);
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	goro_sleep(1000000);
	t = stop(fd);
	CHECK(t->count[TR_GoStatusStack] >= 103);
	CHECK(trace_has(t->functions, "park_on"));
	trace_reading_free(t);
}

/* A trace that goes on for a while has several generations. */
GO_TEST(generations_follow_each_other)
{
	goro_chan *c = goro_chan_of(int, 0), *idle = goro_chan_of(int, 0);
	goro_waitgroup wg = { 0 };
	int64_t end;
	struct trace_reading *t;
	uint32_t left = 1;
	int fd;

	for (int i = 0; i < 10; i++)
		go(park_on, idle);
	fd = start();
	goro_waitgroup_add(&wg, 1);
	go(receiver, c, &wg);
	go(hog, &left, INT64_C(2500000000));
	for (end = goro_now() + INT64_C(2500000000); goro_now() < end; goro_sleep(10000000)) {
		goro_chan_send(c, &(int){ 0 });
		goro_trace_region_begin(0, "turn");
		announced();
		goro_trace_region_end(0, "turn");
	}
	goro_chan_close(c);
	goro_waitgroup_wait(&wg);
	for (int i = 0; i < 10; i++)
		goro_chan_send(idle, &i);
	goro_sleep(1000000);
	t = stop(fd);
	CHECK(t->generations >= (TOOL_TSAN ? 2 : 3));
	trace_reading_free(t);
}

/* -------------------------------------------------------------- under load */

static struct load {
	uint32_t stop;
	goro_waitgroup wg;
	goro_chan *chan, *buffered;
	goro_mutex mutex;
	int fds[2];
} load;

static bool loaded(void)
{
	return !__atomic_load_n(&load.stop, __ATOMIC_RELAXED);
}

static void load_send(void)
{
	while (loaded())
		goro_select(GORO_SEND(load.chan, &(int){ 1 }),
		            GORO_SEND(load.buffered, &(int){ 1 }));
	goro_waitgroup_done(&load.wg);
}

static void load_receive(void)
{
	while (loaded())
		goro_select_until(goro_now() + 1000000, GORO_RECV(load.chan, NULL),
		                  GORO_RECV(load.buffered, NULL));
	goro_waitgroup_done(&load.wg);
}

static void load_lock(void)
{
	while (loaded()) {
		goro_mutex_lock(&load.mutex);
		goro_gosched();
		goro_mutex_unlock(&load.mutex);
	}
	goro_waitgroup_done(&load.wg);
}

static void load_spawn(void)
{
	while (loaded()) {
		goro_waitgroup wg = { 0 };

		goro_waitgroup_add(&wg, 20);
		for (int i = 0; i < 20; i++)
			go(nothing, &wg);
		goro_waitgroup_wait(&wg);
		goro_trace_region_begin(0, "spawned");
		goro_sleep(100000);
		goro_trace_region_end(0, "spawned");
	}
	goro_waitgroup_done(&load.wg);
}

static void load_block(void)
{
	while (loaded()) {
		announced();
		usleep(300);
		goro_blocking(block_on, NULL);
	}
	goro_waitgroup_done(&load.wg);
}

static void load_compute(void)
{
	while (loaded())
		compute(3000000);
	goro_waitgroup_done(&load.wg);
}

/* malloc is where convoys form: goroutines stopped with its lock. */
static void load_malloc(void)
{
	while (loaded())
		for (int i = 0; i < 1000; i++)
			free(malloc(64 + (size_t)i * 50));
	goro_waitgroup_done(&load.wg);
}

static void load_write(void)
{
	while (loaded()) {
		goro_write(load.fds[0], "x", 1);
		goro_sleep(20000);
	}
	shutdown(load.fds[0], SHUT_WR);
	goro_waitgroup_done(&load.wg);
}

static void load_read(void)
{
	char buf[10];

	while (goro_read(load.fds[1], buf, sizeof buf) > 0)
		;
	goro_waitgroup_done(&load.wg);
}

static void load_locked(void)
{
	goro_lock_os_thread();
	while (loaded())
		goro_sleep(300000);
	goro_unlock_os_thread();
	goro_waitgroup_done(&load.wg);
}

static void load_procs(void)
{
	int procs = goro_gomaxprocs(0);

	for (int i = 0; loaded(); i++) {
		goro_gomaxprocs(1 + i % (procs < 8 ? procs + 1 : 8));
		goro_sleep(2000000);
	}
	goro_gomaxprocs(procs);
	goro_waitgroup_done(&load.wg);
}

static void *load_thread(void *arg)
{
	(void)arg;
	while (loaded()) {
		goro_waitgroup wg = { 0 };

		goro_waitgroup_add(&wg, 1);
		go(nothing, &wg);
		goro_waitgroup_wait(&wg);
		goro_chan_try_send(load.buffered, &(int){ 1 });
		usleep(200);
	}
	return NULL;
}

static pthread_t load_threads[2];

static void load_begin(void)
{
	static void (*const each[])(void) = {
		load_send, load_send, load_receive, load_receive, load_lock, load_lock, load_spawn,
		load_block, load_block, load_compute, load_malloc, load_malloc, load_write, load_read,
		load_locked, load_procs,
	};
	const int n = sizeof each / sizeof each[0];

	load.chan = goro_chan_of(int, 0);
	load.buffered = goro_chan_of(int, 10);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, load.fds), 0);
	goro_waitgroup_add(&load.wg, n);
	for (int i = 0; i < n; i++)
		go(each[i]);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&load_threads[i], NULL, load_thread, NULL), 0);
}

static void drain(void)
{
	while (loaded() || goro_chan_recv(load.chan, NULL))
		;
}

static void load_end(void)
{
	__atomic_store_n(&load.stop, 1, __ATOMIC_RELAXED);
	go(drain);
	goro_waitgroup_wait(&load.wg);
	goro_chan_close(load.chan);
	for (int i = 0; i < 2; i++)
		pthread_join(load_threads[i], NULL);
}

GO_TEST_TIMEOUT(a_busy_program_is_traced, 120)
{
	struct trace_reading *t;
	int fd;

	load_begin();
	fd = start();
	goro_sleep(seconds(2));
	t = stop(fd);
	load_end();
	CHECK(t->generations >= 2);
	CHECK(t->count[TR_GoStart] > 1000);
	CHECK(t->count[TR_GoSyscallBegin] > 10);
	trace_reading_free(t);
}

GO_TEST_TIMEOUT(started_and_stopped_again_and_again, 120)
{
	enum { N = SCALED(100) };

	load_begin();
	for (int i = 0; i < N; i++) {
		int fd = start();

		goro_sleep(i % 5 * 500000);
		trace_reading_free(stop(fd));
	}
	load_end();
}

/* Preempted anywhere in these calls. */
static void reads_on(int fd, goro_waitgroup *wg)
{
	static char buf[1 << 16];
	int64_t end = goro_now() + 300 * GORO_MILLISECOND;

	while (goro_now() < end)
		CHECK(goro_read(fd, buf, sizeof buf) > 0);
	goro_waitgroup_done(wg);
}

GO_TEST(calls_of_goro_hide_what_they_work_in)
{
	int zero = open("/dev/zero", O_RDONLY), fd = start();
	goro_waitgroup wg = { 0 };
	struct trace_reading *t;

	goro_waitgroup_add(&wg, 8);
	for (int i = 0; i < 8; i++)
		go(reads_on, zero, &wg);
	goro_waitgroup_wait(&wg);
	t = stop(fd);
	CHECK(trace_has(t->functions, "reads_on"));
	CHECK(!trace_has(t->functions, "try_transfer"));
	CHECK(!trace_has(t->functions, "io_repeat"));
	trace_reading_free(t);
	close(zero);
}

/* ------------------------------------------------------------- GORO_TRACE */

SEEN static void traced_program(void)
{
	goro_waitgroup wg = { 0 };
	pid_t child;
	int status;

	goro_waitgroup_add(&wg, 10);
	for (int i = 0; i < 10; i++)
		go(nothing, &wg);
	goro_waitgroup_wait(&wg);
	child = fork();
	if (child == 0)
		exit(7);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

TEST(a_whole_program_is_traced)
{
	char name[] = "/tmp/goro_trace_XXXXXX";
	int fd = mkstemp(name);
	struct trace_reading *t;

	CHECK(fd >= 0);
	setenv("GORO_TRACE", name, 1);
	run(traced_program);
	unlink(name);
	CHECK_EQ(o.status, 0);
	CHECK_STR(o.err, "");
	t = read_any(fd);
	CHECK_STR(t->error, "");
	CHECK_EQ(t->count[TR_GoCreate], 11);
	CHECK(trace_has(t->functions, "program_main"));
	trace_reading_free(t);
}

TEST(a_program_that_cannot_be_traced_runs_all_the_same)
{
	setenv("GORO_TRACE", "/nonexistent/trace", 1);
	run(traced_program);
	CHECK_EQ(o.status, 0);
	CHECK_STR(o.err, "goro: GORO_TRACE=/nonexistent/trace: No such file or directory\n");
}

/* ------------------------------------------------------------ bad files */

static void *drop_half(void *arg)
{
	static char buf[1 << 16];
	int fd = *(int *)arg;

	CHECK(read(fd, buf, 100) > 0);
	close(fd);
	return NULL;
}

GO_TEST(a_broken_pipe_ends_the_trace)
{
	pthread_t thread;
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(pthread_create(&thread, NULL, drop_half, &fds[0]), 0);
	CHECK_EQ(goro_trace_start(fds[1]), 0);
	close(fds[1]);
	while (!goro_trace_error()) {
		for (int i = 0; i < 1000; i++)
			goro_gosched();
		usleep(100);
	}
	CHECK_EQ(goro_trace_error(), -EPIPE);
	for (int i = 0; i < 1000; i++)
		goro_gosched();
	goro_trace_stop();
	pthread_join(thread, NULL);
	trace_reading_free(stop(start()));
}

/* If nobody reads the pipe the trace fails, and the program goes on. */
GO_TEST_TIMEOUT(a_stuck_pipe_ends_the_trace, 120)
{
	int fds[2];

	if (TOOL_TSAN || test_emulated())
		SKIP("minutes until so much is told");
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(goro_trace_start(fds[1]), 0);
	close(fds[1]);
	while (!goro_trace_error())
		for (int i = 0; i < 10000; i++)
			goro_gosched();
	CHECK_EQ(goro_trace_error(), -ENOBUFS);
	for (int i = 0; i < 1000; i++)
		goro_gosched();
	goro_trace_stop();
	close(fds[0]);
	trace_reading_free(stop(start()));
}

static void read_to(int from, int to, goro_waitgroup *wg)
{
	char buf[3000];
	ssize_t n;

	while ((n = goro_read(from, buf, sizeof buf)) > 0)
		CHECK_EQ(write(to, buf, (size_t)n), n);
	goro_waitgroup_done(wg);
}

/* A traced goroutine reads the trace; the descriptor does not block. */
GO_TEST(a_trace_may_go_through_a_socket)
{
	goro_waitgroup wg = { 0 };
	struct trace_reading *t;
	int fds[2], fd = trace_file();

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	goro_waitgroup_add(&wg, 1);
	go(read_to, fds[0], fd, &wg);
	CHECK_EQ(goro_trace_start(fds[1]), 0);
	close(fds[1]);
	for (int i = 0; i < SCALED(200000); i++)
		goro_gosched();
	goro_trace_stop();
	CHECK_EQ(goro_trace_error(), 0);
	goro_waitgroup_wait(&wg);
	t = read_any(fd);
	CHECK_STR(t->error, "");
	CHECK(t->count[TR_GoStop] >= SCALED(200000));
	trace_reading_free(t);
}

static int nobody_is_left(int argc, char **argv)
{
	(void)argc, (void)argv;
	start();
	goro_chan_recv(goro_chan_of(int, 0), NULL);
	return 0;
}

/* The writer thread does not keep the deadlock detector from reporting. */
TEST(deadlocks_are_seen_while_tracing)
{
	check_deadlock(nobody_is_left, &o);
}

/* Where each batch ends, and how many generations are whole up to there: a generation is
 * whole if it has a frequency. */
struct cut {
	size_t at;
	unsigned whole;
};

static size_t find_cuts(const uint8_t *data, size_t size, struct cut *cut, size_t max)
{
	const uint8_t *p = data + 16, *end = data + size;
	unsigned whole = 0;
	uint64_t n, other;
	size_t cuts = 0;

	while (p < end && cuts < max) {
		CHECK_EQ(*p++, 1);
		CHECK(tr_number(&p, end, &other) && tr_number(&p, end, &other));
		CHECK(tr_number(&p, end, &other) && tr_number(&p, end, &n));
		whole += n > 0 && *p == 8;
		p += n;
		cut[cuts++] = (struct cut){ (size_t)(p - data), whole };
	}
	return cuts;
}

static void check_cut(const uint8_t *data, size_t at, unsigned whole)
{
	struct trace_reading *t = trace_read(data, at);

	CHECK_EQ(t->generations, whole);
	if (!strstr(t->error, "without a frequency"))
		CHECK_STR(t->error, "");
	trace_reading_free(t);
}

/* The trace of a process that was killed can be read up to its last whole generation,
 * whichever batch it ends with. */
GO_TEST(a_trace_that_is_cut_off_can_be_read)
{
	static struct cut cut[4096];
	int fd = start();
	struct stat st;
	uint8_t *data;
	size_t cuts;

	for (int64_t end = goro_now() + INT64_C(1300000000); goro_now() < end;)
		goro_sleep(1000000);
	goro_trace_stop();
	CHECK_EQ(goro_trace_error(), 0);
	CHECK_EQ(fstat(fd, &st), 0);
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(data != MAP_FAILED);
	cuts = find_cuts(data, (size_t)st.st_size, cut, sizeof cut / sizeof *cut);
	CHECK(cuts > 0 && cut[cuts - 1].at == (size_t)st.st_size);
	CHECK(cut[cuts - 1].whole >= 2);
	for (size_t i = 0; i < cuts; i++)
		check_cut(data, cut[i].at, cut[i].whole);
	munmap(data, (size_t)st.st_size);
	close(fd);
}

static void dawdle(int sig)
{
	(void)sig;
	usleep(1000);
}

struct disturber {
	pthread_t whom;
	bool over;
};

static void *disturb(void *arg)
{
	struct disturber *d = arg;

	while (!__atomic_load_n(&d->over, __ATOMIC_RELAXED)) {
		pthread_kill(d->whom, SIGUSR1);
		usleep(2000);
	}
	return NULL;
}

/* The writer may be over before the starter goes on, which is most often in a handler
 * here. */
GO_TEST(a_trace_that_fails_at_once_can_be_stopped)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct sigaction sa = { .sa_handler = dawdle, .sa_flags = SA_RESTART };
	struct disturber d;
	pthread_t t;

	if (fd < 0)
		SKIP("no /dev/full here");
	sigaction(SIGUSR1, &sa, NULL);
	goro_lock_os_thread();
	d = (struct disturber){ .whom = pthread_self() };
	CHECK_EQ(pthread_create(&t, NULL, disturb, &d), 0);
	for (int i = 0; i < 8; i++) {
		CHECK_EQ(goro_trace_start(fd), 0);
		goro_trace_stop();
		CHECK_EQ(goro_trace_error(), -ENOSPC);
	}
	__atomic_store_n(&d.over, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	goro_unlock_os_thread();
	close(fd);
}
