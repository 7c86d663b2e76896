/*
 * fault_test.c - faults and SIGQUIT in programs that block or ignore signals.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "await.h"
#include "child.h"
#include "test.h"

static void not_with_asan(void)
{
	if (TOOL_ASAN)
		SKIP("the sanitizers see these faults before they happen");
}

/* ------------------------------------------------------------------- blocked */

static volatile bool go_on = true;

SEEN static void recurse(volatile char *above)
{
	volatile char room[512];

	room[0] = *above;
	if (go_on)
		recurse(room);
	room[1] = room[0];
}

static void overflow(void)
{
	volatile char zero = 0;

	recurse(&zero);
}

static volatile int *volatile nowhere;

SEEN static void write_to_null(void)
{
	*nowhere = 1;
	NO_TAIL_CALL();
}

static void in_another(void (*f)(void))
{
	go(f);
	goro_chan_recv(goro_chan_of(int, 0), NULL);
}

static void overflow_in_another(void)
{
	in_another(overflow);
}

static void null_in_another(void)
{
	in_another(write_to_null);
}

static void block_all_and_run(void (*f)(void))
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	child_anew(f);
}

TEST(an_overflow_is_reported_where_the_program_blocks_all_signals)
{
	not_with_asan();
	test_run_anew(block_all_and_run, overflow_in_another, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "\nfatal error: stack overflow\n\n");
}

static void block_all_and_overflow(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	overflow();
}

static void overflow_blocked_in_another(void)
{
	in_another(block_all_and_overflow);
}

TEST(a_fault_whose_signal_the_goroutine_blocks_ends_by_the_signal)
{
	not_with_asan();
	test_run_anew(child_anew, overflow_blocked_in_another, &o);
	CHECK_EQ(o.signal, SIGSEGV);
	if (!test_emulated())		/* an emulator has words of its own */
		CHECK_STR(o.err, "");
}

TEST(a_fault_is_reported_where_the_program_blocks_all_signals)
{
	not_with_asan();
	test_run_anew(block_all_and_run, null_in_another, &o);
	CHECK_EQ(o.signal, SIGSEGV);
	CHECK_CONTAINS(o.err, "[signal SIGSEGV: segmentation violation");
	CHECK_CONTAINS(o.err, "write_to_null(...)\n\t");
}

/* All but the faults, SIGURG and what libc keeps for itself. */
static void show_mask(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		CHECK(!sigismember(&now, faults[i]));
	CHECK(!sigismember(&now, SIGURG));
	CHECK(sigismember(&now, SIGTERM));
	CHECK(sigismember(&now, SIGUSR1));
}

TEST(what_else_the_program_blocks_stays_blocked)
{
	test_run_anew(block_all_and_run, show_mask, &o);
	CHECK_EQ(o.status, 0);
}

/* ------------------------------------------------------------------- ignored */

static void ignore_and_run(void (*f)(void))
{
	signal(SIGSEGV, SIG_IGN);
	child_anew(f);
}

TEST(a_fault_is_reported_where_the_program_ignores_its_signal)
{
	not_with_asan();
	test_run_anew(ignore_and_run, null_in_another, &o);
	CHECK_EQ(o.signal, SIGSEGV);
	CHECK_CONTAINS(o.err, "[signal SIGSEGV: segmentation violation");
}

static void send_segv(void)
{
	kill(getpid(), SIGSEGV);
	goro_sleep(GORO_MILLISECOND);
	raise(SIGSEGV);
	dprintf(1, "alive");
}

TEST(a_fault_signal_that_somebody_sends_stays_ignored)
{
	test_run_anew(ignore_and_run, send_segv, &o);
	CHECK_EQ(o.status, 0);
	CHECK_STR(o.out, "alive");
}

/* ------------------------------------------------------------------- SIGQUIT */

static void quit(void)
{
	raise(SIGQUIT);
	dprintf(1, "alive");
}

/* A shell starts background commands of a script with SIGQUIT ignored. */
TEST(quit_dumps_where_it_was_inherited_as_ignored)
{
	signal(SIGQUIT, SIG_IGN);
	run_anew(quit);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "SIGQUIT: quit\n");
}

static void ignore_quit_and_run(void (*f)(void))
{
	signal(SIGQUIT, SIG_IGN);
	child_anew(f);
}

TEST(quit_stays_ignored_where_the_program_ignores_it)
{
	signal(SIGQUIT, SIG_DFL);
	test_run_anew(ignore_quit_and_run, quit, &o);
	CHECK_EQ(o.status, 0);
	CHECK_STR(o.out, "alive");
}
