/*
 * fatal_test.c - the ends of the process: what they print, in Go's words, and what the
 * parent sees.
 */
/* test: procs */
#include <fcntl.h>
#include <goro.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "await.h"
#include "child.h"
#include "sched/runtime.h"
#include "test.h"

static void begins_with(const char *text)
{
	if (strncmp(o.err, text, strlen(text)) != 0)
		FAIL("it begins otherwise than \"%s\"", text);
}

static int count(const char *text, const char *needle)
{
	int n = 0;

	for (; (text = strstr(text, needle)); text++)
		n++;
	return n;
}

static int times(const char *needle)
{
	return count(o.err, needle);
}

static void not_with_asan(void)
{
	if (TOOL_ASAN)
		SKIP("the sanitizers see these faults before they happen");
}

/* ----------------------------------------------------------------- deadlock */

static void run_to_deadlock(void (*f)(void))
{
	test_needs_deadlocks();
	run_anew(f);
	CHECK_EQ(o.status, 2);
}

#define DEADLOCK "fatal error: all goroutines are asleep - deadlock!\n\n"

SEEN static void receive_for_ever(void)
{
	goro_chan_recv(goro_chan_of(int, 0), NULL);
	NO_TAIL_CALL();
}

TEST(deadlock_in_a_receive)
{
	run_to_deadlock(receive_for_ever);
	begins_with(DEADLOCK "goroutine 1 [chan receive]:\n");
	CHECK_CONTAINS(o.err, "receive_for_ever(...)\n\t");
}

static void receive_from_nil(void)
{
	goro_chan_recv(NULL, NULL);
}

TEST(deadlock_in_a_receive_from_nil)
{
	run_to_deadlock(receive_from_nil);
	begins_with(DEADLOCK "goroutine 1 [chan receive (nil chan)]:\n");
}

static void send_to_nil(void)
{
	goro_chan_send(NULL, &(int){ 1 });
}

TEST(deadlock_in_a_send_to_nil)
{
	run_to_deadlock(send_to_nil);
	begins_with(DEADLOCK "goroutine 1 [chan send (nil chan)]:\n");
}

static void fill_and_send(void)
{
	goro_chan *c = goro_chan_of(int, 2);

	for (int i = 0; i < 3; i++)
		goro_chan_send(c, &i);
}

TEST(deadlock_in_a_send)
{
	run_to_deadlock(fill_and_send);
	begins_with(DEADLOCK "goroutine 1 [chan send]:\n");
}

static void wait_for_nobody(void)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 1);
	goro_waitgroup_wait(&wg);
}

TEST(deadlock_in_a_waitgroup)
{
	run_to_deadlock(wait_for_nobody);
	begins_with(DEADLOCK "goroutine 1 [sync.WaitGroup.Wait]:\n");
}

static void deadlock_of_many(void)
{
	for (int i = 0; i < 20; i++)
		go(receive_for_ever);
	receive_for_ever();
}

TEST(deadlock_shows_all_goroutines)
{
	run_to_deadlock(deadlock_of_many);
	begins_with(DEADLOCK "goroutine 1 [chan receive]:\n");
	CHECK_EQ(times("[chan receive]:\n"), 21);
	CHECK_EQ(times("created by deadlock_of_many in goroutine 1\n"), 20);
}

static void deadlock_while_locked(void)
{
	goro_lock_os_thread();
	receive_for_ever();
}

TEST(deadlock_of_a_goroutine_locked_to_its_thread)
{
	run_to_deadlock(deadlock_while_locked);
	begins_with(DEADLOCK "goroutine 1 [chan receive, locked to thread]:\n");
}

static void wake_each_other_then_stop(goro_chan *in, goro_chan *out)
{
	int n;

	while (goro_chan_recv(in, &n) && n-- > 0)
		goro_chan_send(out, &n);
	receive_for_ever();
}

static void deadlock_after_traffic(void)
{
	goro_chan *a = goro_chan_of(int, 0), *b = goro_chan_of(int, 0);

	for (int i = 0; i < 4; i++) {
		go(wake_each_other_then_stop, a, b);
		go(wake_each_other_then_stop, b, a);
	}
	for (int i = 0; i < 4; i++)
		goro_chan_send(a, &(int){ 300 + i });
	receive_for_ever();
}

TEST(deadlock_after_much_traffic)
{
	for (int i = 0; i < 10; i++) {
		run_to_deadlock(deadlock_after_traffic);
		begins_with(DEADLOCK "goroutine 1 [chan receive]:\n");
	}
}

/* ----------------------------------------------------------- stack overflow */

static volatile bool go_on = true;

SEEN static int recurse(volatile int *up)
{
	volatile int here = *up + 1;

	return go_on ? recurse(&here) + here : 0;
}

static void overflow(void)
{
	volatile int zero = 0;

	recurse(&zero);
}

static void check_overflow(void)
{
	CHECK_EQ(o.status, 2);
	begins_with("runtime: goroutine stack exceeds ");
	CHECK_CONTAINS(o.err, "-byte limit\n");
	CHECK_CONTAINS(o.err, "\nfatal error: stack overflow\n\n");
	if (!TOOL_TSAN)		/* TSan calls a function with every access */
		CHECK_CONTAINS(o.err, " [running]:\nrecurse(...)\n\t");
	CHECK(times("recurse(...)\n\t") > 10);
}

TEST(overflow_of_the_default_stack)
{
	run(overflow);
	check_overflow();
	CHECK_CONTAINS(o.err, "exceeds 262144-byte limit\n");
	CHECK_CONTAINS(o.err, "\ngoroutine 1 [running]:\n");
}

static void overflow_arg(void *arg)
{
	(void)arg;
	overflow();
}

static void overflow_small(void)
{
	struct goro_attr attr = { .stack_size = 16 << 10 };

	goro_go_attr(&attr, overflow_arg, NULL);
	receive_for_ever();
}

TEST(overflow_of_the_smallest_stack)
{
	run(overflow_small);
	check_overflow();
	CHECK_CONTAINS(o.err, "exceeds 16384-byte limit\n");
	CHECK(!strstr(o.err, "goroutine 1 [running]"));
}

static void leap(int n)
{
	volatile char room[6 << 10];

	for (size_t i = 0; i < sizeof room; i++)
		room[i] = (char)n;
	if (go_on)
		leap(n + room[5]);
	room[0] = room[1];
}

static void overflow_by_leaps(void)
{
	leap(1);
}

TEST(overflow_by_large_frames)
{
	run(overflow_by_leaps);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "\nfatal error: stack overflow\n\n");
}

/* ------------------------------------------------------------------- faults */

static volatile int zero;

SEEN static void write_to_null(void)
{
	*(volatile int *)(uintptr_t)(unsigned)zero = 1;
}

SEEN static void divide_by_zero(void)
{
	zero = 100 % zero;
}

SEEN static void write_past_the_file(void)
{
	int fd = memfd_create("empty", 0);
	volatile char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	p[0] = 1;
}

SEEN static void illegal(void)
{
#if defined(__x86_64__)
	__asm__ volatile("ud2");
#else
	__asm__ volatile("udf #0");
#endif
}

static void faults_with(int sig, const char *line, const char *function)
{
	CHECK_EQ(o.signal, sig);
	begins_with("fatal error: unexpected signal during execution\n[signal ");
	CHECK_CONTAINS(o.err, line);
	CHECK_CONTAINS(o.err, "\n\ngoroutine 1 [running]:\n");
	CHECK_CONTAINS(o.err, function);
	CHECK_CONTAINS(o.err, "fatal_test.c:");
}

TEST(a_write_to_null)
{
	not_with_asan();
	run(write_to_null);
	faults_with(SIGSEGV, "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x",
	            "write_to_null(...)\n\t");
}

TEST(a_division_by_zero)
{
	not_with_asan();
#if !defined(__x86_64__)
	SKIP("this processor divides by zero");
#endif
	run(divide_by_zero);
	faults_with(SIGFPE, "[signal SIGFPE: floating-point exception code=0x1 addr=0x",
	            "divide_by_zero(...)\n\t");
}

TEST(a_bus_error)
{
	run(write_past_the_file);
	faults_with(SIGBUS, "[signal SIGBUS: bus error code=0x2 addr=0x",
	            "write_past_the_file(...)\n\t");
}

TEST(an_illegal_instruction)
{
	run(illegal);
	faults_with(SIGILL, "[signal SIGILL: illegal instruction code=0x", "illegal(...)\n\t");
}

static void fault_in_goroutine(void)
{
	go(write_to_null);
	receive_for_ever();
}

TEST(a_fault_in_a_goroutine_shows_that_goroutine)
{
	not_with_asan();
	run(fault_in_goroutine);
	CHECK_EQ(o.signal, SIGSEGV);
	CHECK_CONTAINS(o.err, "write_to_null(...)\n\t");
	CHECK_CONTAINS(o.err, "created by fault_in_goroutine in goroutine 1\n");
}

static void write_to_null_in_try(void *arg)
{
	(void)arg;
	write_to_null();
}

static void fault_in_try(void)
{
	goro_try(write_to_null_in_try, NULL);
}

TEST(a_fault_in_what_the_runtime_has_called_shows_that)
{
	not_with_asan();
	run(fault_in_try);
	CHECK_EQ(o.signal, SIGSEGV);
	CHECK_CONTAINS(o.err, "write_to_null(...)\n\t");
	CHECK_CONTAINS(o.err, "\ngoro_try(...)\n\t");
}

static void *faulting_thread(void *arg)
{
	write_to_null();
	return arg;
}

static void fault_in_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, faulting_thread, NULL);
	receive_for_ever();
}

TEST(a_fault_in_a_plain_thread)
{
	not_with_asan();
	run(fault_in_thread);
	CHECK_EQ(o.signal, SIGSEGV);
	CHECK_CONTAINS(o.err, "[signal SIGSEGV: ");
	CHECK_CONTAINS(o.err, "write_to_null(...)\n\t");
}

static void on_urgent(int sig)
{
	(void)sig;
	write_to_null();
}

/* The runtime's handler calls the program's, with all other signals blocked. */
static void fault_in_handler(void)
{
	signal(SIGURG, on_urgent);
	goro_sleep(50 * GORO_MILLISECOND);	/* sysmon installs the runtime's again */
	go(receive_for_ever);
	for (;;)
		raise(SIGURG);
}

TEST(a_fault_in_a_signal_handler)
{
	not_with_asan();
	if (TOOL_TSAN)
		SKIP("handlers are called by the tool, which blocks everything itself");
	run(fault_in_handler);
	CHECK_EQ(o.signal, SIGSEGV);
	CHECK_CONTAINS(o.err, "[signal SIGSEGV: ");
	CHECK_CONTAINS(o.err, "write_to_null(...)\n\t");
}

/* A fault in sysmon, which blocks all signals but those of faults. */
static void fault_in_sysmon(void)
{
	sched.all_p = (struct p **)8;
	for (;;)
		usleep(1000);
}

TEST(a_fault_of_the_runtime_itself)
{
	not_with_asan();
	run(fault_in_sysmon);
	CHECK_EQ(o.signal, SIGSEGV);
	CHECK_CONTAINS(o.err, "[signal SIGSEGV: ");
}

static void signal_from_outside(void)
{
	kill(getpid(), SIGSEGV);
	pause();
}

TEST(a_fault_signal_that_somebody_sent)
{
	run(signal_from_outside);
	CHECK_EQ(o.signal, SIGSEGV);
	CHECK_CONTAINS(o.err, "[signal SIGSEGV: ");
}

SEEN static void call_nowhere(void)
{
	void (*volatile f)(void) = (void (*)(void))0x10;

	f();
	NO_TAIL_CALL();
}

TEST(a_call_to_nowhere)
{
	run(call_nowhere);
	CHECK_EQ(o.signal, SIGSEGV);
	CHECK_CONTAINS(o.err, "addr=0x10 pc=0x10]");
	CHECK_CONTAINS(o.err, "call_nowhere(...)\n\t");
}

static void fault_in_many(void)
{
	for (int i = 0; i < 50; i++)
		go(write_to_null);
	receive_for_ever();
}

TEST(faults_in_many_threads_at_once)
{
	not_with_asan();
	for (int i = 0; i < 5; i++) {
		run(fault_in_many);
		CHECK_EQ(o.signal, SIGSEGV);
		CHECK_CONTAINS(o.err, "[signal SIGSEGV: ");
	}
}

/* ----------------------------------------------------- the program's handlers */

static void exit_42(int sig)
{
	(void)sig;
	_exit(42);
}

static void child_with_handler(void)
{
	signal(SIGSEGV, exit_42);
	signal(SIGQUIT, exit_42);
	child();
}

TEST(a_handler_installed_before_is_called)
{
	not_with_asan();
	program = write_to_null;
	test_run_child(child_with_handler, &o);
	CHECK_EQ(o.status, 42);
	CHECK_STR(o.err, "");
}

SEEN static void quit_oneself(void)
{
	kill(getpid(), SIGQUIT);
	for (;;)
		pause();
}

TEST(a_quit_handler_installed_before_is_called)
{
	if (TOOL_TSAN)
		SKIP("the sanitizer holds signals back");
	program = quit_oneself;
	test_run_child(child_with_handler, &o);
	CHECK_EQ(o.status, 42);
}

static void install_then_fault(void)
{
	signal(SIGSEGV, exit_42);
	write_to_null();
}

TEST(a_handler_installed_later_replaces_ours)
{
	not_with_asan();
	run(install_then_fault);
	CHECK_EQ(o.status, 42);
}

/* ------------------------------------------------------------------ SIGQUIT */

static void not_with_tsan(void)
{
	if (TOOL_TSAN)
		SKIP("the sanitizer holds signals back");
}

static bool hogging;

SEEN static void hog_the_thread(void)
{
	store_seqcst(&hogging, true);
	for (;;)
		zero = 0;
}

/* How many goroutines a dump shows parked. */
static int parked(void)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	goro_dump(f);
	fclose(f);
	n = (size_t)count(text, "[chan receive");
	free(text);
	return (int)n;
}

static void quit_with_many(void)
{
	goro_gomaxprocs(4);
	for (int i = 0; i < 5; i++)
		go(receive_for_ever);
	go(receive_from_nil);
	AWAIT(parked() == 6);
	go(hog_the_thread);
	SPIN_UNTIL(load_seqcst(&hogging));
	quit_oneself();
}

TEST(quit_shows_all_goroutines)
{
	GLIBC_ONLY("musl's functions have no unwind tables");
	not_with_tsan();
	run(quit_with_many);
	CHECK_EQ(o.status, 2);
	begins_with("SIGQUIT: quit\nPC=0x");
	CHECK_CONTAINS(o.err, "\ngoroutine 1 [running]:\n");
	CHECK_CONTAINS(o.err, "quit_oneself(...)\n\t");
	CHECK_EQ(times(" [chan receive]:\n"), 5);
	CHECK_EQ(times(" [chan receive (nil chan)]:\n"), 1);
	CHECK_CONTAINS(o.err, "hog_the_thread(...)\n\t");
	CHECK_EQ(times("created by quit_with_many in goroutine 1\n"), 7);
}

static void come_and_go(void)
{
	for (;;) {
		go(zero ? come_and_go : goro_gosched);
		goro_gosched();
	}
}

static void quit_under_load(void)
{
	for (int i = 0; i < 20; i++)
		go(come_and_go);
	for (int i = 0; i < 1000; i++)
		goro_gosched();
	quit_oneself();
}

TEST(quit_under_load)
{
	not_with_tsan();
	for (int i = 0; i < 5; i++) {
		run(quit_under_load);
		CHECK_EQ(o.status, 2);
		begins_with("SIGQUIT: quit\nPC=0x");
		CHECK_CONTAINS(o.err, "goroutine 1 [");
	}
}

/* The stack of a goroutine that is parked, to be overwritten. */
static char *victim;

SEEN static void park_deep(int depth)
{
	volatile char room[64] = { 0 };

	if (depth > 0)
		park_deep(depth - 1);
	else
		receive_for_ever();
	room[1] = room[2];
}

static void park_victim(void)
{
	char here;

	store_seqcst(&victim, &here);
	park_deep(5);
}

/* Overwrites the stack with this kind of garbage, from the innermost frame outwards. */
static void spoil(int kind)
{
	uint64_t *w = (uint64_t *)((uintptr_t)victim & ~(uintptr_t)7) - 400;
	uint64_t random = 88172645463325252u;

	for (int i = 0; i < 400; i++) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		switch (kind) {
		case 0: w[i] = UINT64_MAX; break;
		case 1: w[i] = random; break;
		case 2: w[i] = (uintptr_t)&w[i]; break;			/* a loop */
		case 3: w[i] = (uintptr_t)&w[(i + 17) % 400] + 3; break;
		/* calls of ours */
		case 4: w[i] = (uintptr_t)park_deep + 1; break;
		case 5: w[i] = 0; break;
		}
	}
}

static int spoil_kind;

static void quit_with_garbage(void)
{
	goro_gomaxprocs(1);
	go(receive_from_nil);
	go(park_victim);
	AWAIT(parked() == 2);
	spoil(spoil_kind);
	quit_oneself();
}

TEST(quit_survives_a_goroutine_whose_stack_is_garbage)
{
	if (TOOL_ASAN)
		SKIP("the sanitizer forbids writing there");
	not_with_tsan();
	for (spoil_kind = 0; spoil_kind < 6; spoil_kind++) {
		run(quit_with_garbage);
		if (o.status != 2)
			FAIL("garbage of kind %d: status %d", spoil_kind, o.status);
		begins_with("SIGQUIT: quit\nPC=0x");
		CHECK_CONTAINS(o.err, "\ngoroutine 1 [running]:\n");
		CHECK_EQ(times(" [chan receive]:\n"), 1);
		CHECK_EQ(times(" [chan receive (nil chan)]:\n"), 1);
	}
}

/* --------------------------------------------------------------- go of NULL */

static void (*const nothing)(void *);

static void go_nothing(void)
{
	go(nothing, NULL);
}

static void go_copy_of_nothing(void)
{
	goro_go_copy(NULL, nothing, NULL, 0);
}

static void go_nothing_with_attr(void)
{
	goro_go_attr(NULL, nothing, NULL);
}

static void group_of_nothing(void)
{
	goro_group_go(goro_group_make(NULL, 0), NULL, NULL);
}

static void group_of_nothing_now(void)
{
	goro_group_try_go(goro_group_make(NULL, 1), NULL, NULL);
}

static void pool_of_nothing(void)
{
	goro_pool_submit(goro_pool_make(1, 1), nothing, NULL, GORO_FOREVER);
}

static void nothing_after(void)
{
	goro_after_func(GORO_SECOND, nothing, NULL);
}

static void nothing_after_a_context(void)
{
	goro_ctx_after_func(goro_ctx_background(), nothing, NULL);
}

static void try_to(void *arg)
{
	(*(void (**)(void))arg)();
}

static void go_nothing_in_try(void)
{
	void (*f)(void) = go_nothing;

	goro_try(try_to, &f);
}

TEST(go_of_null_ends_the_process_whoever_starts_it)
{
	static void (*const starter[])(void) = {
		go_nothing, go_copy_of_nothing, go_nothing_with_attr, group_of_nothing,
		group_of_nothing_now, pool_of_nothing, nothing_after, nothing_after_a_context,
		go_nothing_in_try,
	};

	for (size_t i = 0; i < sizeof starter / sizeof *starter; i++) {
		run(starter[i]);
		CHECK_EQ(o.status, 2);
		begins_with("fatal error: go of nil func value\n\ngoroutine 1 [running]:\n");
		CHECK_CONTAINS(o.err, "\nprogram_main(");
	}
}

/* ------------------------------------------------------------------- misuse */

static void panics_with(void (*f)(void), const char *text)
{
	run(f);
	CHECK_EQ(o.status, 2);
	begins_with(text);
	CHECK_CONTAINS(o.err, "\n\ngoroutine 1 [running]:\n");
}

static void negative_counter(void)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_done(&wg);
}

TEST(a_negative_waitgroup_counter)
{
	panics_with(negative_counter, "panic: sync: negative WaitGroup counter\n");
}

static void close_nil(void)
{
	goro_chan_close(NULL);
}

TEST(close_of_a_nil_channel)
{
	panics_with(close_nil, "panic: close of nil channel\n");
}

static void close_twice(void)
{
	goro_chan *c = goro_chan_of(int, 0);

	goro_chan_close(c);
	goro_chan_close(c);
}

TEST(close_of_a_closed_channel)
{
	panics_with(close_twice, "panic: close of closed channel\n");
}

static void send_after_close(void)
{
	goro_chan *c = goro_chan_of(int, 10);

	goro_chan_close(c);
	goro_chan_send(c, &(int){ 1 });
}

TEST(a_send_on_a_closed_channel)
{
	panics_with(send_after_close, "panic: send on closed channel\n");
}

static void close_channel(goro_chan *c)
{
	goro_chan_close(c);
}

static void closed_while_sending(void)
{
	goro_chan *c = goro_chan_of(int, 0);

	go(close_channel, c);
	goro_chan_send(c, &(int){ 1 });
}

TEST(a_channel_closed_under_its_sender)
{
	panics_with(closed_while_sending, "panic: send on closed channel\n");
}

static void panic_together(int n, int *ready)
{
	fetch_add_seqcst(ready, 1);
	AWAIT(load_seqcst(ready) == n);
	goro_panic("together");
}

static void panic_in_all(void)
{
	static int ready;

	for (int i = 0; i < 20; i++)
		go(panic_together, 20, &ready);
	receive_for_ever();
}

TEST(panics_of_many_at_once_end_the_process_once)
{
	for (int i = 0; i < 5; i++) {
		run(panic_in_all);
		CHECK_EQ(o.status, 2);
		begins_with("panic: together\n\ngoroutine ");
		CHECK_EQ(times("panic: together\n"), 1);
	}
}

/* -------------------------------------------------------------- GORO_TRACEBACK */

static void panic_now(void)
{
	goro_panic("now");
}

static void panic_with_others(void)
{
	goro_gomaxprocs(1);
	go(receive_for_ever);
	AWAIT(parked() == 1);
	panic_now();
}

TEST(traceback_none_shows_no_stack)
{
	setenv("GORO_TRACEBACK", "none", 1);
	run(panic_with_others);
	CHECK_EQ(o.status, 2);
	CHECK_STR(o.err, "panic: now\n");
}

TEST(traceback_single_shows_the_panicking_goroutine)
{
	setenv("GORO_TRACEBACK", "single", 1);
	run(panic_with_others);
	begins_with("panic: now\n\ngoroutine 1 [running]:\n");
	CHECK_EQ(times("[chan receive]"), 0);
}

TEST(traceback_all_shows_all)
{
	setenv("GORO_TRACEBACK", "all", 1);
	run(panic_with_others);
	begins_with("panic: now\n\ngoroutine 1 [running]:\n");
	CHECK_EQ(times("[chan receive]"), 1);
}

/* --------------------------------------------------------------------- fork */

#define FORKED "fatal error: goro call in a child made by fork without exec\n"

static void fork_and_wait(void (*f)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		f();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status));
	exit(WEXITSTATUS(status));
}

static void yield_in_child(void)
{
	fork_and_wait(goro_gosched);
}

TEST(a_call_in_a_forked_child_is_refused)
{
	run(yield_in_child);
	CHECK_EQ(o.status, 2);
	begins_with(FORKED);
}

static void run_in_child(void)
{
	goro_run(program_main, 0, NULL);
}

static void use_runtime(void)
{
	goro_gosched();
}

static void fork_after_run(void)
{
	program = use_runtime;
	goro_run(program_main, 0, NULL);
	fork_and_wait(run_in_child);
}

TEST(a_run_in_a_child_of_the_main_thread_is_refused)
{
	test_run_child(fork_after_run, &o);
	CHECK_EQ(o.status, 2);
	begins_with(FORKED);
}

static void *fork_in_thread(void *arg)
{
	fork_and_wait(goro_gosched);
	return arg;
}

static void fork_in_fresh_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, fork_in_thread, NULL);
	pthread_join(t, NULL);
}

TEST(a_call_in_a_child_of_a_thread_new_to_us_is_refused)
{
	run(fork_in_fresh_thread);
	CHECK_EQ(o.status, 2);
	begins_with(FORKED);
}

/* ---------------------------------------------------------------- full stderr */

static void panic_with_full_stderr(void)
{
	static char block[4096];
	int fd[2];

	CHECK_EQ(pipe2(fd, O_NONBLOCK), 0);
	while (write(fd[1], block, sizeof block) > 0)
		;
	dup2(fd[1], STDERR_FILENO);
	for (int i = 0; i < 10; i++)
		go(receive_for_ever);
	goro_gosched();
	goro_panic("nobody reads this");
}

TEST(a_panic_ends_the_process_although_stderr_is_full_and_does_not_block)
{
	run(panic_with_full_stderr);
	CHECK_EQ(o.status, 2);
}

/* ------------------------------------------------------------- out of threads */

static void occupy(void)
{
	for (;;)
		pause();
}

static void need_threads(void)
{
	goro_gomaxprocs(20);
	for (int i = 0; i < 20; i++)
		go(occupy);
	occupy();
}

static void child_with_few_threads(void)
{
	if (setresuid(54321, 54321, 54321) != 0)
		_exit(TEST_SKIPPED);
	prctl(PR_SET_DUMPABLE, 1);	/* as before: /proc/self is ours to read */
	setrlimit(RLIMIT_NPROC, &(struct rlimit){ 8, 8 });
	child();
}

TEST(no_more_threads_to_be_had)
{
	program = need_threads;
	test_run_child(child_with_few_threads, &o);
	if (o.status == TEST_SKIPPED)
		SKIP("only root can become a user with few processes");
	CHECK_EQ(o.status, 2);
	begins_with("runtime: failed to create new OS thread (have ");
	CHECK_CONTAINS(o.err, "errno=11)\nruntime: may need to increase max user processes "
	                      "(ulimit -u)\n");
	CHECK_CONTAINS(o.err, "fatal error: newosproc\n");
}
