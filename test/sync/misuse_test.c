/*
 * misuse_test.c - arguments that make no sense end in words, not in a fault.
 */
#include <goro.h>

#include "test.h"

static void run_null(void) { goro_run(NULL, 0, NULL); }

TEST(to_run_nothing)
{
	struct test_output o;

	test_run_child(run_null, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "fatal error: go of nil func value");
}

static void set_null_key(void *arg) { goro_local_set(NULL, arg); }

GO_TEST(a_nil_key)
{
	CHECK_STR(goro_try(set_null_key, "value"), "nil key");
	CHECK(!goro_local_get(NULL));
}

/* ------------------------------------------- calls while the P is given up */

static void calls(void *arg)
{
	goro_chan *c = goro_chan_of(int, 1);

	(void)arg;
	goro_chan_send(c, &(int){ 1 });
}

static void call_in_blocking(void) { goro_blocking(calls, NULL); }
static void nothing(void *arg) { (void)arg; }

static void blocking_in_syscall(void)
{
	goro_syscall_enter();
	goro_blocking(nothing, NULL);
}

static void syscall_twice(void)
{
	goro_syscall_enter();
	goro_syscall_enter();
}

static void call_in_syscall(void)
{
	goro_syscall_enter();
	calls(NULL);
	goro_syscall_exit();
}

static void (*current)(void);

static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	current();
	return 0;
}

static void run_current(void) { goro_run(start, 0, NULL); }

/* Debug builds find it at the entry, others at the end of the blocking call. */
static void is_fatal(void (*misuse)(void))
{
	struct test_output o;

	current = misuse;
	test_run_child(run_current, &o);
	CHECK_EQ(o.status, 2);
	CHECK(strstr(o.err, "fatal error: goro call between goro_syscall_enter") ||
	      strstr(o.err, "mp->state == M_USER does not hold"));
}

TEST(calls_within_a_blocking_call)
{
	is_fatal(call_in_blocking);
	is_fatal(blocking_in_syscall);
	is_fatal(syscall_twice);
	is_fatal(call_in_syscall);
}
