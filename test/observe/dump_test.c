/*
 * dump_test.c - goro_dump shows all goroutines as they are, in Go's layout.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include "platform/atomic.h"
#include "await.h"
#include "observe/backtrace.h"
#include "platform/os.h"
#include "sched/runtime.h"
#include "tail_call.h"
#include "test.h"

static int counter;
static bool stop;
static int dump_line, park_line, start_line;

/* Several goroutines may dump at once, all from the same line. */
#define DUMP(f) (store_relaxed(&dump_line, __LINE__), goro_dump(f))

/* The whole dump, as a string. */
SEEN static char *dump(void)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	DUMP(f);
	fclose(f);
	return text;
}

/* "\n\t.../dump_test.c:LINE +0x" */
static void shows_line(const char *text, int line)
{
	char place[64];

	snprintf(place, sizeof place, "/dump_test.c:%d +0x", line);
	CHECK_CONTAINS(text, place);
}

static int times(const char *text, const char *needle)
{
	int n = 0;

	for (; (text = strstr(text, needle)); text++)
		n++;
	return n;
}

/* The part about the first goroutine with this in it, from its header to the empty
 * line. */
static char *section(const char *text, const char *needle)
{
	const char *at = strstr(text, needle), *end;

	if (!at)
		FAIL("no goroutine with \"%s\" in \"%s\"", needle, text);
	while (at > text && strncmp(at, "goroutine ", 10) != 0)
		at--;
	end = strstr(at, "\n\n");
	return strndup(at, end ? (size_t)(end + 1 - at) : strlen(at));
}

SEEN static void park_here(goro_chan *c)
{
	fetch_add_seqcst(&counter, 1);
	store_relaxed(&park_line, __LINE__ + 1);
	goro_chan_recv(c, NULL);
	NO_TAIL_CALL();
}

/* A dump in which n goroutines have this header, which shows that they are parked. */
static char *dump_when_parked(const char *header, int n)
{
	char *text = dump();

	while (times(text, header) < n) {
		free(text);
		goro_gosched();
		text = dump();
	}
	return text;
}

GO_TEST(the_running_goroutine_shows_where_it_calls_from)
{
	char *own = section(dump(), "goroutine 1 [running]:\n");

	CHECK_CONTAINS(own, "\ngoro_dump(...)\n\t");
	CHECK_CONTAINS(own, "\ndump(...)\n\t");
	shows_line(own, dump_line);
	CHECK_CONTAINS(own, "\ntest_body_the_running_goroutine_shows_where_it_calls_from(...)\n\t");
	CHECK(!strstr(own, "created by"));
}

GO_TEST(a_parked_goroutine_shows_why_where_and_whose)
{
	goro_chan *c = goro_chan_of(int, 0);
	char *s;

	start_line = __LINE__ + 1;
	go(park_here, c);
	s = section(dump_when_parked("[chan receive]:\n", 1), "[chan receive]:\n");
	CHECK_CONTAINS(s, "]:\ngoro_chan_recv(...)\n\t");
	CHECK_CONTAINS(s, "\npark_here(...)\n\t");
	shows_line(s, park_line);
	CHECK_CONTAINS(s, "\ncreated by test_body_a_parked_goroutine_shows_why_where_and_whose"
	                  " in goroutine 1\n\t");
	shows_line(s, start_line);
	CHECK(!strstr(s, "g_start"));
}

SEEN static void wait_on(goro_waitgroup *wg)
{
	goro_waitgroup_wait(wg);
}

SEEN static void send_on(goro_chan *c)
{
	goro_chan_send(c, &(int){ 1 });
}

GO_TEST(each_wait_has_its_reason)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 1);
	go(wait_on, &wg);
	go(send_on, goro_chan_of(int, 0));
	go(send_on, NULL);
	go(park_here, NULL);
	dump_when_parked(" [sync.WaitGroup.Wait]:\n", 1);
	dump_when_parked(" [chan send]:\n", 1);
	dump_when_parked(" [chan send (nil chan)]:\n", 1);
	dump_when_parked(" [chan receive (nil chan)]:\n", 1);
}

static void lock_and_park(goro_chan *c)
{
	goro_lock_os_thread();
	goro_set_name("tied");
	goro_chan_recv(c, NULL);
}

static void park_arg(void *c)
{
	goro_chan_recv(c, NULL);
}

GO_TEST(names_and_locked_threads_are_shown)
{
	goro_chan *c = goro_chan_of(int, 0);
	struct goro_attr attr = { .name = "worker 7" };
	char *text;

	go(lock_and_park, c);
	goro_go_attr(&attr, park_arg, c);
	goro_set_name("main");
	text = dump_when_parked("[chan receive", 2);
	CHECK_CONTAINS(text, " [chan receive, locked to thread, \"tied\"]:\n");
	CHECK_CONTAINS(text, " [chan receive, \"worker 7\"]:\n");
	CHECK_CONTAINS(text, "goroutine 1 [running, \"main\"]:\n");
	goro_set_name(NULL);
	CHECK_CONTAINS(dump(), "goroutine 1 [running]:\n");
}

SEEN static void never_run(void)
{
	fetch_add_seqcst(&counter, 1);
}

/* As in Go, a dump shows the function that the goroutine will run. */
GO_TEST(a_goroutine_that_has_not_run_yet_is_shown)
{
	char *text, *s;

	goro_gomaxprocs(1);
	do {			/* until dump has not yielded to it */
		go(never_run);
		text = dump();
	} while (!strstr(text, " [runnable]:\n"));
	s = section(text, " [runnable]:\n");
	CHECK_CONTAINS(s, "created by test_body_a_goroutine_that_has_not_run_yet_is_shown in goroutine 1\n");
	CHECK_CONTAINS(s, "]:\nnever_run(...)\n");
}

SEEN static void spin(void)
{
	fetch_add_seqcst(&counter, 1);
	while (!load_relaxed(&stop))
		;
}

GO_TEST(one_that_runs_on_another_thread_shows_where)
{
	char *s;

	if (TOOL_TSAN)
		SKIP("the sanitizer holds signals back");
	goro_gomaxprocs(4);
	go(spin);
	SPIN_UNTIL(load_seqcst(&counter) == 1);
	s = dump();
	s = section(s, "\nspin(...)\n\t");
	CHECK_CONTAINS(s, "]:\nspin(...)\n\t");
	CHECK(!strstr(s, "locked to thread"));
	CHECK_CONTAINS(s, "/dump_test.c:");
	store_relaxed(&stop, true);
}

/* A thread is asked for its backtrace while it is in the signal handler, awake and about
 * to stop there. It stops, and the signal with the request waits until the thread goes
 * on. */
static void *stop_when_asked(void *arg)
{
	struct m *mp = arg;
	ucontext_t here;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIG_PREEMPT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
#ifdef __GLIBC__
	getcontext(&here);
#endif
	store_release(&mp->tid, os_tid());
	SPIN_UNTIL(load_acquire(&mp->backtrace.wanted));
	store_release(&mp->stopped_at, &here);
	SPIN_UNTIL(load_relaxed(&stop));
	return NULL;
}

TEST(one_that_stops_as_it_is_asked_shows_where)
{
	static struct m m;
	struct backtrace bt;
	pthread_t t;

	GLIBC_ONLY("musl has no getcontext");
	CHECK_EQ(pthread_create(&t, NULL, stop_when_asked, &m), 0);
	SPIN_UNTIL(load_acquire(&m.tid));
	CHECK(backtrace_thread(&bt, &m, NULL));
	CHECK(bt.n >= 1);
	CHECK_EQ(bt.from, FRAMES_USER);
	CHECK(!load_relaxed(&m.backtrace.wanted));
	store_relaxed(&stop, true);
	pthread_join(t, NULL);
}

/* A thread is asked for its goroutine's backtrace as the goroutine leaves it, and answers
 * from the scheduler's stack: before gp->mp is cleared, or after. */
struct leaving {
	struct m m;
	struct g g;
	bool tells_first;
};

static void *leave_when_asked(void *arg)
{
	struct leaving *l = arg;
	ucontext_t here;

#ifdef __GLIBC__
	getcontext(&here);
#endif
	l->m.thread_stack.lo = (char *)((uintptr_t)&here - 4096);
	l->m.thread_stack.hi = (char *)((uintptr_t)&here + sizeof here + 4096);
	l->m.state = M_RUNTIME;
	store_release(&l->m.tid, os_tid());
	SPIN_UNTIL(load_acquire(&l->m.backtrace.wanted));
	if (l->tells_first)
		store_release(&l->g.mp, NULL);
	backtrace_on_signal(&l->m, &here);
	CHECK_EQ(load_relaxed(&l->m.backtrace.done), 1);
	SPIN_UNTIL(load_relaxed(&stop));
	return NULL;
}

/* A goroutine that has not begun is shown where its function begins. */
static void check_leaving(bool tells_first)
{
	static struct leaving l;
	struct backtrace bt;
	sigset_t set, before;
	pthread_t t;

	GLIBC_ONLY("musl has no getcontext");
	l.tells_first = tells_first;
	l.m.curg = &l.g;
	l.g.mp = &l.m;
	l.g.fn = never_run;
	l.g.context.pc = (void *)context_entry;
	sigemptyset(&set);
	sigaddset(&set, SIG_PREEMPT);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	CHECK_EQ(pthread_create(&t, NULL, leave_when_asked, &l), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	SPIN_UNTIL(load_acquire(&l.m.tid));
	backtrace_any(&bt, &l.g);
	CHECK_EQ(bt.n, 1);
	CHECK_EQ(bt.pc[0], (uintptr_t)never_run);
	store_relaxed(&stop, true);
	pthread_join(t, NULL);
}

TEST(one_that_leaves_its_thread_as_that_is_asked_shows_where_it_waits)
{
	check_leaving(true);
}

TEST(one_that_is_about_to_leave_its_thread_shows_where_it_waits)
{
	check_leaving(false);
}

SEEN static void sleep_in_kernel(int fd)
{
	char byte;

	fetch_add_seqcst(&counter, 1);
	CHECK_EQ(read(fd, &byte, 1), 1);	/* and not EINTR */
	fetch_add_seqcst(&counter, 1);
}

#if defined(__x86_64__)
#define RESTARTS true
#else
#define RESTARTS false
#endif

SEEN static void sleep_in_nanosleep(void)
{
	fetch_add_seqcst(&counter, 1);
	/* Where calls cannot be restarted this one fails with EINTR after the signal. */
	CHECK(usleep(500000) == 0 || !RESTARTS);
	fetch_add_seqcst(&counter, 1);
}

GO_TEST(one_that_sleeps_in_the_kernel_shows_where_and_sleeps_on)
{
	int fd[2];
	char *s;

	GLIBC_ONLY("musl's functions have no unwind tables");
	CHECK_EQ(pipe(fd), 0);
	goro_gomaxprocs(8);
	go(sleep_in_kernel, fd[0]);
	go(sleep_in_nanosleep);
	SPIN_UNTIL(load_seqcst(&counter) == 2);
	usleep(20000);		/* lets them enter the call; they are shown in any case */
	s = dump();
	CHECK_CONTAINS(s, "\nsleep_in_kernel(...)\n\t");
	CHECK_CONTAINS(s, "\nsleep_in_nanosleep(...)\n\t");
	CHECK_EQ(write(fd[1], "x", 1), 1);
	AWAIT(load_seqcst(&counter) == 4);
}

GO_TEST(thousands_of_goroutines_are_all_shown)
{
	goro_chan *c = goro_chan_of(int, 0);
	int n = SCALED(4000);
	char *text;

	for (int i = 0; i < n; i++)
		go(park_here, c);
	AWAIT(load_seqcst(&counter) == n);
	goro_gomaxprocs(1);	/* stops the world: no goroutine is still about to park */
	goro_gosched();
	text = dump();
	CHECK_EQ(times(text, "\ngoroutine ") + 1, n + 1);
	CHECK_EQ(times(text, "\npark_here(...)\n"), n);
	goro_chan_close(c);
	AWAIT(goro_num_goroutine() == 1);
	CHECK_EQ(times(dump(), "goroutine 1 [running]"), 1);
}

SEEN static int deep(int n, goro_chan *c)
{
	volatile int here = n;

	if (n == 0)
		goro_chan_recv(c, NULL);
	else
		here += deep(n - 1, c);
	return here;
}

GO_TEST(a_deep_stack_is_elided)
{
	char *text;

	go(deep, 2 * BACKTRACE_MAX, goro_chan_of(int, 0));
	text = dump_when_parked("[chan receive]:\n", 1);
	CHECK(times(text, "\ndeep(...)\n") >= 40);
	CHECK_CONTAINS(text, "additional frames elided...\ncreated by ");
}

/* ------------------------------------------------------------------ threads */

static void *start_from_thread(void *c)
{
	go(park_here, c);
	return NULL;
}

static void *dump_in_thread(void *arg)
{
	*(char **)arg = dump();
	return NULL;
}

TEST(plain_threads_start_goroutines_and_dump_them)
{
	goro_chan *c = goro_chan_of(int, 0);
	pthread_t t;
	char *text, *s;

	pthread_create(&t, NULL, start_from_thread, c);
	pthread_join(t, NULL);
	do {
		pthread_create(&t, NULL, dump_in_thread, &text);
		pthread_join(t, NULL);
	} while (!strstr(text, "[chan receive]:\n"));
	s = section(text, "[chan receive]:\n");
	CHECK_CONTAINS(s, "\npark_here(...)\n\t");
	CHECK_CONTAINS(s, "\ncreated by start_from_thread\n\t");
}

/* ----------------------------------------------------- called by the runtime */

static int computing;

static SEEN void computes(void *arg)
{
	fetch_add_seqcst(&computing, 1);
	while (!load_relaxed((int *)arg))
		;
	NO_TAIL_CALL();
}

static SEEN void sleeps_in_the_kernel(void *arg)
{
	fetch_add_seqcst(&computing, 1);
	while (!load_relaxed((int *)arg))
		usleep(1000);
	NO_TAIL_CALL();
}

static SEEN void tries(void (*fn)(void *), int *over)
{
	CHECK(!goro_try(fn, over));
	fetch_add_seqcst(&computing, -1);
}

static SEEN void does_once(void (*fn)(void *), int *over)
{
	goro_once once = { 0 };

	goro_once_do(&once, fn, over);
	fetch_add_seqcst(&computing, -1);
}

/* What a goro_ function calls is the program's, and so are the frames inside it. */
static void check_called(void (*caller)(void (*)(void *), int *), void (*fn)(void *), const char *want)
{
	int over = 0;
	char *text;

	go(caller, fn, &over);
	AWAIT(load_seqcst(&computing) == 1);
	text = dump();
	CHECK_CONTAINS(text, want);
	free(text);
	store_relaxed(&over, 1);
	AWAIT(load_seqcst(&computing) == 0);
}

GO_TEST(what_the_runtime_has_called_is_shown)
{
	GLIBC_ONLY("musl's functions have no unwind tables");
	if (TOOL_TSAN)
		SKIP("a thread inside the tool does not answer, and atomic loads are inside");
	check_called(tries, computes, "]:\ncomputes(...)\n\t");
	check_called(does_once, computes, "]:\ncomputes(...)\n\t");
	check_called(tries, sleeps_in_the_kernel, "\nsleeps_in_the_kernel(...)\n\t");
	check_called(does_once, sleeps_in_the_kernel, "\nsleeps_in_the_kernel(...)\n\t");
}

/* --------------------------------------------------------------------- load */

static void come_and_go(void)
{
	while (!load_relaxed(&stop)) {
		go(goro_gosched);
		goro_gosched();
	}
	fetch_add_seqcst(&counter, -1);
}

static void talk(goro_chan *c)
{
	while (!load_relaxed(&stop)) {
		goro_chan_send(c, &(int){ 1 });
		goro_chan_recv(c, NULL);
	}
	fetch_add_seqcst(&counter, -1);
}

static void load_start(void)
{
	goro_chan *c = goro_chan_of(int, 20);

	counter = 20;
	for (int i = 0; i < 10; i++) {
		go(come_and_go);
		go(talk, c);
	}
}

static void load_stop(void)
{
	store_relaxed(&stop, true);
	AWAIT(load_seqcst(&counter) == 0);
	AWAIT(goro_num_goroutine() == 1);
}

GO_TEST(dumps_under_load)
{
	load_start();
	for (int i = 0; i < SCALED(20); i++) {
		char *text = dump();

		CHECK(strncmp(text, "goroutine 1 [running]:\n", 23) == 0);
		CHECK(times(text, "\ngoroutine ") >= 20);
		free(text);
		goro_gosched();
	}
	load_stop();
}

static void dump_often(goro_waitgroup *wg)
{
	for (int i = 0; i < SCALED(10); i++)
		free(dump());
	goro_waitgroup_done(wg);
}

GO_TEST(dumps_at_once_under_load)
{
	goro_waitgroup wg = { 0 };

	load_start();
	goro_waitgroup_add(&wg, 5);
	for (int i = 0; i < 5; i++)
		go(dump_often, &wg);
	goro_waitgroup_wait(&wg);
	load_stop();
}

/* A tail call has taken the goroutine's function off its stack. */
GO_TEST(a_goroutine_shows_its_function_after_a_tail_call)
{
	goro_chan *c = goro_chan_make(0, 0);
	const char *text;

	go(leaves_for_good, c);
	AWAIT(strstr(text = dump(), "[chan receive]"));
	text = section(text, "[chan receive]");
	CHECK_CONTAINS(text, "goro_chan_recv(...)\n");
	CHECK_CONTAINS(text, "\nleaves_for_good(...)\n\t");
	CHECK_EQ(times(text, "(...)"), 2);
}

/* Up from the caller's, in steps of this many at most. */
__attribute__((noinline)) static void follow_frame_pointers(goro_waitgroup *wg)
{
	const uintptr_t *fp = __builtin_frame_address(0);
	const struct g *gp = m_self()->curg;

	for (int frames = 0; fp; frames++) {
		const uintptr_t *next = (const uintptr_t *)fp[0];

		CHECK((const char *)fp >= gp->stack.lo && (const char *)fp < gp->stack.hi);
		CHECK(!next || next > fp);
		CHECK(frames < 8);
		fp = next;
	}
	goro_waitgroup_done(wg);
}

/* As perf walks it. */
GO_TEST(frame_pointers_end_where_a_goroutine_begins)
{
	goro_waitgroup wg = { 0 };

	for (int i = 0; i < 20; i++) {		/* on new and on used stacks */
		goro_waitgroup_add(&wg, 5);
		for (int k = 0; k < 5; k++)
			go(follow_frame_pointers, &wg);
		goro_waitgroup_wait(&wg);
	}
}

/* A fatal end stops nobody: a goroutine may end while it is looked at. */
TEST(one_that_has_just_ended_shows_nothing)
{
	static struct g ended;
	struct backtrace bt;

	ended.context.pc = (void *)1;
	backtrace_parked(&bt, &ended);
	CHECK_EQ(bt.n, 0);
}
