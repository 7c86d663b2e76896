/*
 * signal_test.c - signals on channels: what os/signal's tests ask, by meaning, and
 * the runtime's own signals beside the program's.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>
#include <signal.h>

#include "platform/atomic.h"
#include "await.h"
#include "deadlock.h"
#include "child.h"
#include "test.h"

#define NOTIFY(...) \
	goro_signal_notify((const int[]){ __VA_ARGS__ }, \
	                   sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))

static void raise_process(int sig)
{
	CHECK_EQ(kill(getpid(), sig), 0);
}

static int next(goro_chan *c)
{
	int sig = 0;

	CHECK(goro_chan_recv(c, &sig));
	return sig;
}

static void done(goro_chan *c)
{
	goro_signal_stop(c);
	goro_chan_unref(c);
}

/* Time for a process-wide signal to arrive. */
static void settle(void)
{
	goro_sleep(20 * GORO_MILLISECOND);
}

static void check_empty(goro_chan *c)
{
	int sig = 0;

	if (goro_chan_try_recv(c, &sig) != GORO_RECV_EMPTY)
		FAIL("signal %d arrived", sig);
}

/* ----------------------------------------------------------------- delivery */

GO_TEST(a_signal_arrives)
{
	goro_chan *c = NOTIFY(SIGHUP);

	raise_process(SIGHUP);
	CHECK_EQ(next(c), SIGHUP);
	check_empty(c);
	done(c);
}

/* Go's TestSignal. */
GO_TEST(all_who_subscribe_get_it_and_none_waits_for_another)
{
	goro_chan *hup = NOTIFY(SIGHUP), *all;

	raise_process(SIGHUP);
	CHECK_EQ(next(hup), SIGHUP);
	all = goro_signal_notify(NULL, 0);
	raise_process(SIGWINCH);
	CHECK_EQ(next(all), SIGWINCH);
	raise_process(SIGHUP);
	CHECK_EQ(next(all), SIGHUP);
	raise_process(SIGHUP);
	CHECK_EQ(next(all), SIGHUP);
	CHECK_EQ(next(hup), SIGHUP);
	CHECK_EQ(next(hup), SIGHUP);
	check_empty(hup);
	done(hup);
	done(all);
}

GO_TEST(signals_not_asked_for_do_not_arrive)
{
	goro_chan *c = NOTIFY(SIGUSR1), *d = NOTIFY(SIGUSR2);

	raise_process(SIGUSR2);
	CHECK_EQ(next(d), SIGUSR2);
	raise_process(SIGWINCH);
	settle();
	check_empty(c);
	check_empty(d);
	done(c);
	done(d);
}

GO_TEST(every_signal_that_can_be_had_arrives)
{
	goro_chan *c = goro_signal_notify(NULL, 0);

	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		if (sig == SIGKILL || sig == SIGSTOP || (sig >= 32 && sig < SIGRTMIN))
			continue;
		if (TOOL_TSAN && (sig == SIGPROF || sig == SIGURG))
			continue;
		if (kill(getpid(), sig) != 0 && errno == EINVAL)
			continue;	/* an emulator keeps some for itself */
		CHECK_EQ(next(c), sig);
	}
	check_empty(c);
	done(c);
}

GO_TEST(impossible_signals_are_passed_over)
{
	goro_chan *c = NOTIFY(SIGKILL, -1, 0, 65, 1000, SIGUSR1, SIGSTOP);

	raise_process(SIGUSR1);
	CHECK_EQ(next(c), SIGUSR1);
	done(c);
}

/* The kernel keeps every one of the real-time signals; so do we. */
GO_TEST(none_is_lost_while_there_is_room)
{
	enum { N = 100 };
	goro_chan *c = NOTIFY(SIGRTMIN, SIGRTMIN + 1);
	int seen[2] = { 0, 0 };

	for (int i = 0; i < N; i++)
		raise_process(SIGRTMIN + i % 2);
	for (int i = 0; i < N; i++)
		seen[next(c) - SIGRTMIN]++;
	CHECK_EQ(seen[0], N / 2);
	CHECK_EQ(seen[1], N / 2);
	done(c);
}

GO_TEST(a_full_channel_misses_what_comes)
{
	goro_chan *c = NOTIFY(SIGRTMIN), *d = NOTIFY(SIGRTMIN);
	size_t room = goro_chan_cap(c);

	CHECK(room >= 64);
	for (size_t i = 0; i < room + 10; i++) {
		raise_process(SIGRTMIN);
		CHECK_EQ(next(d), SIGRTMIN);	/* the full channel delays none */
	}
	for (size_t i = 0; i < room; i++)
		CHECK_EQ(next(c), SIGRTMIN);
	done(c);
	done(d);
}

GO_TEST(a_closed_channel_is_passed_over)
{
	goro_chan *c = NOTIFY(SIGUSR1), *d = NOTIFY(SIGUSR1);

	goro_chan_close(c);
	raise_process(SIGUSR1);
	CHECK_EQ(next(d), SIGUSR1);
	CHECK(!goro_chan_recv(c, NULL));
	done(c);
	done(d);
}

GO_TEST(it_can_be_one_case_of_a_select)
{
	goro_chan *c = NOTIFY(SIGTERM), *never = goro_chan_of(int, 0);
	int sig = 0;

	raise_process(SIGTERM);
	CHECK_EQ(goro_select(GORO_RECV(never, NULL), GORO_RECV(c, &sig)), 1);
	CHECK_EQ(sig, SIGTERM);
	done(c);
	goro_chan_unref(never);
}

static void *receive_in_thread(void *arg)
{
	return (void *)(intptr_t)next(arg);
}

TEST(plain_threads_receive_signals)
{
	goro_chan *c = NOTIFY(SIGUSR1);
	pthread_t thread;
	void *sig;

	CHECK_EQ(pthread_create(&thread, NULL, receive_in_thread, c), 0);
	raise_process(SIGUSR1);
	pthread_join(thread, &sig);
	CHECK_EQ((intptr_t)sig, SIGUSR1);
	done(c);
}

/* ------------------------------------------------------------- under load */

static bool stop_hogs;
static int hogs;

static void hog(void)
{
	fetch_add_seqcst(&hogs, 1);
	while (!load_relaxed(&stop_hogs))
		;
	fetch_add_seqcst(&hogs, -1);
}

GO_TEST(it_arrives_beside_hogs_on_every_processor)
{
	goro_chan *c = NOTIFY(SIGUSR1);
	int n = goro_gomaxprocs(0) > 4 ? 4 : goro_gomaxprocs(0);

	if (TOOL_TSAN)
		SKIP("under TSan a signal finds no way into a loop without calls");
	for (int i = 0; i < n; i++)
		go(hog);
	AWAIT(load_seqcst(&hogs) > 0);
	for (int i = 0; i < 10; i++) {
		raise_process(SIGUSR1);
		CHECK_EQ(next(c), SIGUSR1);
	}
	store_relaxed(&stop_hogs, true);
	AWAIT(load_seqcst(&hogs) == 0);
	done(c);
}

static void sleep_often(int n, goro_waitgroup *wg)
{
	for (int i = 0; i < n; i++) {
		int64_t start = goro_now();

		goro_sleep(100 * GORO_MICROSECOND);
		CHECK(goro_now() - start >= 100 * GORO_MICROSECOND);
	}
	goro_waitgroup_done(wg);
}

/* Go's TestTime: sleeps are not cut short. */
GO_TEST(signals_do_not_disturb_sleeps)
{
	goro_chan *c = NOTIFY(SIGRTMIN);
	goro_waitgroup wg = { 0 };
	int n = SCALED(500);

	goro_waitgroup_add(&wg, 4);
	for (int i = 0; i < 4; i++)
		go(sleep_often, n, &wg);
	for (int i = 0; i < n; i++) {
		raise_process(SIGRTMIN);
		CHECK_EQ(next(c), SIGRTMIN);
	}
	goro_waitgroup_wait(&wg);
	done(c);
}

static int received;

/* The kernel merges those that are pending, all of them perhaps on a busy machine. */
static void send_many(goro_chan *c, int n)
{
	for (int i = 0; i < n || load_relaxed(&received) == 0; i++) {
		raise_process(SIGUSR1);
		goro_gosched();
	}
	goro_signal_stop(c);
	goro_chan_close(c);	/* panics in no goroutine: nothing is sent any more */
}

/* Go's TestStress. */
GO_TEST(many_signals_and_a_stop)
{
	goro_chan *c;

	signal(SIGUSR1, SIG_IGN);	/* the last may come after the stop */
	c = NOTIFY(SIGUSR1);
	go(send_many, c, SCALED(20000));
	while (goro_chan_recv(c, NULL))
		fetch_add_relaxed(&received, 1);
	goro_chan_unref(c);
}

static void subscribe_and_leave(int n, goro_waitgroup *wg)
{
	for (int i = 0; i < n; i++) {
		goro_chan *c = i % 2 ? NOTIFY(SIGUSR1, SIGUSR2) : NOTIFY(SIGUSR2);

		raise_process(SIGUSR2);
		AWAIT(goro_chan_len(c) > 0);
		done(c);
	}
	goro_waitgroup_done(wg);
}

GO_TEST(subscriptions_come_and_go_while_signals_arrive)
{
	goro_waitgroup wg = { 0 };

	signal(SIGUSR2, SIG_IGN);
	goro_waitgroup_add(&wg, 8);
	for (int i = 0; i < 8; i++)
		go(subscribe_and_leave, SCALED(200), &wg);
	goro_waitgroup_wait(&wg);
}

/* -------------------------------------------------------------------- stop */

GO_TEST(after_a_stop_nothing_arrives)
{
	goro_chan *c = NOTIFY(SIGWINCH), *d = NOTIFY(SIGWINCH);

	raise_process(SIGWINCH);
	CHECK_EQ(next(c), SIGWINCH);
	CHECK_EQ(next(d), SIGWINCH);
	goro_signal_stop(c);
	raise_process(SIGWINCH);
	CHECK_EQ(next(d), SIGWINCH);
	check_empty(c);
	goro_signal_stop(d);
	raise_process(SIGWINCH);	/* whose default is to do nothing */
	settle();
	check_empty(c);
	check_empty(d);
	goro_chan_unref(c);
	goro_chan_unref(d);
}

GO_TEST(what_came_before_a_stop_has_arrived)
{
	for (int i = 0; i < SCALED(200); i++) {
		goro_chan *c = NOTIFY(SIGUSR1);

		raise(SIGUSR1);		/* has been taken when this returns */
		goro_signal_stop(c);
		CHECK_EQ(goro_chan_len(c), 1);
		goro_chan_unref(c);
	}
}

GO_TEST(stops_that_mean_nothing)
{
	goro_chan *c = NOTIFY(SIGUSR1), *other = goro_chan_of(int, 1);

	goro_signal_stop(NULL);
	goro_signal_stop(other);
	goro_signal_stop(c);
	goro_signal_stop(c);
	goro_chan_unref(c);
	goro_chan_unref(other);
}

static int program_saw;

static void program_handler(int sig)
{
	store_relaxed(&program_saw, sig);
}

GO_TEST(a_stop_puts_back_the_handler_of_before)
{
	struct sigaction sa = { .sa_handler = program_handler }, now;
	goro_chan *c, *d;

	sigaction(SIGUSR1, &sa, NULL);
	c = NOTIFY(SIGUSR1);
	d = NOTIFY(SIGUSR1, SIGUSR2);
	raise_process(SIGUSR1);
	CHECK_EQ(next(c), SIGUSR1);
	CHECK_EQ(next(d), SIGUSR1);
	CHECK_EQ(load_relaxed(&program_saw), 0);
	done(c);
	raise_process(SIGUSR1);
	CHECK_EQ(next(d), SIGUSR1);
	CHECK_EQ(load_relaxed(&program_saw), 0);
	done(d);
	raise_process(SIGUSR1);
	AWAIT(load_relaxed(&program_saw) == SIGUSR1);
	sigaction(SIGUSR1, NULL, &now);
	CHECK(now.sa_handler == program_handler);
	sigaction(SIGUSR2, NULL, &now);
	CHECK(now.sa_handler == SIG_DFL);
}

GO_TEST(ignored_signals_are_ignored_again)
{
	struct sigaction now;
	goro_chan *c;

	signal(SIGHUP, SIG_IGN);
	c = NOTIFY(SIGHUP);
	raise_process(SIGHUP);
	CHECK_EQ(next(c), SIGHUP);
	done(c);
	raise_process(SIGHUP);
	sigaction(SIGHUP, NULL, &now);
	CHECK(now.sa_handler == SIG_IGN);
}

/* --------------------------------------- what happens to the whole process */

static void term_after_stop(void)
{
	goro_chan *c = NOTIFY(SIGTERM);

	raise_process(SIGTERM);
	CHECK_EQ(next(c), SIGTERM);
	done(c);
	raise_process(SIGTERM);
	for (;;)
		goro_sleep(GORO_SECOND);
}

TEST(a_stop_restores_the_default)
{
	run(term_after_stop);
	CHECK_EQ(o.signal, SIGTERM);
}

static void interrupt_during_stop(void)
{
	goro_chan *c = NOTIFY(SIGINT);
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		kill(getppid(), SIGINT);
		_exit(0);
	}
	for (unsigned i = (unsigned)getpid() % 64 * 500; i > 0; i--)
		compiler_barrier();
	goro_signal_stop(c);
	while (waitpid(pid, NULL, 0) < 0)
		;
	/* It was sent, so it has arrived on the channel or ended us. */
	goro_sleep(10 * GORO_MILLISECOND);
	if (goro_chan_len(c) != 1)
		FAIL("the signal is lost");
	goro_chan_unref(c);
}

/* Go's TestAtomicStop. */
TEST_TIMEOUT(a_signal_during_a_stop_is_not_lost, 120)
{
	int delivered = 0, died = 0;

	if (test_emulated())
		SKIP("a child of a process with threads may hang in the emulator's own locks");
	for (int i = 0; i < SCALED(100); i++) {
		run(interrupt_during_stop);
		if (o.signal == SIGINT)
			died++;
		else if (o.status == 0)
			delivered++;
		else
			FAIL("status %d", o.status);
	}
	printf("delivered %d, died %d\n", delivered, died);
}

static void quit_arrives(void)
{
	goro_chan *c = NOTIFY(SIGQUIT);

	raise_process(SIGQUIT);
	CHECK_EQ(next(c), SIGQUIT);
	done(c);
	raise(SIGQUIT);
	for (;;)
		goro_sleep(GORO_SECOND);
}

TEST(sigquit_arrives_and_dumps_again_after_a_stop)
{
	run(quit_arrives);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "SIGQUIT: quit");
	CHECK_CONTAINS(o.err, "goroutine 1 [");
}

static volatile int *volatile no_address = (int *)8;

static void sigsegv_arrives(void)
{
	goro_chan *c = NOTIFY(SIGSEGV);

	raise_process(SIGSEGV);
	CHECK_EQ(next(c), SIGSEGV);
	*no_address = 1;
}

TEST(a_sent_sigsegv_arrives_and_a_real_one_is_a_fault)
{
	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("the sanitizer sees these faults first");
	run(sigsegv_arrives);
	CHECK_EQ(o.signal, SIGSEGV);
	CHECK_CONTAINS(o.err, "unexpected signal during execution");
	CHECK_CONTAINS(o.err, "goroutine 1 [running]");
}

static int mask_main(int argc, char **argv)
{
	goro_chan *c = NOTIFY(SIGTERM);

	(void)argc, (void)argv;
	raise_process(SIGTERM);
	CHECK_EQ(next(c), SIGTERM);
	done(c);
	raise_process(SIGTERM);		/* stays pending */
	settle();
	return 0;
}

TEST(signals_blocked_at_the_start_arrive_and_stay_blocked_after)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	goro_run(mask_main, 0, NULL);
	sigpending(&set);
	CHECK(sigismember(&set, SIGTERM));
}

static void write_to_nobody(void)
{
	goro_chan *c = NOTIFY(SIGPIPE);
	int fd[2];

	CHECK_EQ(pipe(fd), 0);
	close(fd[0]);
	CHECK_EQ(write(fd[1], "x", 1), -1);
	CHECK_EQ(errno, EPIPE);
	CHECK_EQ(next(c), SIGPIPE);
	done(c);
}

GO_TEST(a_broken_pipe_is_told_of)
{
	write_to_nobody();
}

/* ---------------------------------------------- the runtime's own signal */

/* Wants every processor for a while, so that the runtime has to preempt. */
static void preempt_a_lot(void)
{
	int64_t end = goro_now() + 100 * GORO_MILLISECOND;

	store_relaxed(&stop_hogs, false);
	for (int i = 0; i < 4; i++)
		go(hog);
	while (goro_now() < end)
		goro_gosched();
	store_relaxed(&stop_hogs, true);
	AWAIT(load_seqcst(&hogs) == 0);
}

GO_TEST(preemptions_do_not_arrive_as_sigurg)
{
	goro_chan *c = goro_signal_notify(NULL, 0);

	if (TOOL_TSAN)
		SKIP("under TSan a signal finds no way into a loop without calls");
	goro_gomaxprocs(2);
	preempt_a_lot();
	check_empty(c);
	raise_process(SIGURG);
	CHECK_EQ(next(c), SIGURG);
	preempt_a_lot();
	check_empty(c);
	done(c);
	preempt_a_lot();
}

/* -------------------------------------------------------------- deadlocks */

static void wait_until_told(void)
{
	goro_chan *c = NOTIFY(SIGUSR1);
	pid_t parent = getpid(), pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		usleep(50000);
		kill(parent, SIGUSR1);
		_exit(0);
	}
	CHECK_EQ(next(c), SIGUSR1);
	done(c);
}

TEST(to_wait_for_a_signal_is_no_deadlock)
{
	run(wait_until_told);
	CHECK_EQ(o.status, 0);
}

static int deadlock_after_stop(int argc, char **argv)
{
	goro_chan *c = NOTIFY(SIGUSR1);

	(void)argc, (void)argv;
	goro_signal_stop(c);
	goro_chan_recv(c, NULL);
	return 0;
}

TEST(after_the_last_stop_there_may_be_one)
{
	check_deadlock(deadlock_after_stop, &o);
}
