/*
 * deadlock_test.c - a program whose signal handler may yet do something is not
 * deadlocked.
 */
/* test: procs */
#include <goro.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "await.h"
#include "child.h"
#include "test.h"

static void wait_for_ever(void)
{
	goro_chan_recv(goro_chan_of(int, 0), NULL);
}

static void leave(int sig)
{
	(void)sig;
	_exit(3);
}

static void alarm_soon(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = 50000 }, NULL);
}

static void await_alarm(void)
{
	signal(SIGALRM, leave);
	alarm_soon();
	wait_for_ever();
}

TEST(an_alarm_with_a_handler_is_awaited)
{
	run_anew(await_alarm);
	CHECK_EQ(o.status, 3);
	CHECK_STR(o.err, "");
}

static void handle_before_and_run(void (*f)(void))
{
	signal(SIGURG, leave);
	child_anew(f);
}

static void await_urgent(void)
{
	pid_t parent = getpid();

	if (fork() == 0) {
		usleep(50000);
		kill(parent, SIGURG);
		_exit(0);
	}
	wait_for_ever();
}

TEST(a_sigurg_handler_of_the_program_is_awaited)
{
	if (TOOL_TSAN)
		SKIP("the sanitizer holds signals back");
	test_run_anew(handle_before_and_run, await_urgent, &o);
	CHECK_EQ(o.status, 3);
}

static void ends_in_deadlock(void (*f)(void))
{
	test_needs_deadlocks();
	run_anew(f);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "fatal error: all goroutines are asleep - deadlock!");
}

static void alarm_by_default(void)
{
	alarm(15);
	wait_for_ever();
}

TEST(an_alarm_that_only_ends_the_process_is_not_awaited)
{
	ends_in_deadlock(alarm_by_default);
}

/* Handlers of faults are called for what the program itself does. */
static void handle_faults(void)
{
	signal(SIGSEGV, leave);
	signal(SIGTRAP, leave);
	signal(SIGUSR1, SIG_IGN);
	wait_for_ever();
}

TEST(handlers_of_faults_are_not_awaited)
{
	ends_in_deadlock(handle_faults);
}

static void profile_then_wait(void)
{
	int fd = memfd_create("profile", MFD_CLOEXEC);
	goro_chan *c = goro_signal_notify((int[]){ SIGTERM }, 1);

	CHECK_EQ(goro_profile_cpu_start(fd, 0), 0);
	goro_profile_cpu_stop();
	goro_signal_stop(c);
	wait_for_ever();
}

TEST(our_own_handlers_are_not_awaited)
{
	ends_in_deadlock(profile_then_wait);
}
