/*
 * deadlock.h - a program that is to end with "all goroutines are asleep".
 */
#ifndef GORO_TEST_DEADLOCK_H
#define GORO_TEST_DEADLOCK_H

#include <goro.h>

#include "test.h"
#include "tool.h"

static int (*deadlock_main)(int argc, char **argv);

static void deadlock_child(void)
{
	exit(goro_run(deadlock_main, 0, NULL));
}

/* Runs main_fn in another process; *o is what came of it. The runtime says
 * nothing unless it knows every thread of the process: an emulator has some of
 * its own, and of TSan's, which are counted, none is left after a fork. */
static void check_deadlock(int (*main_fn)(int, char **), struct test_output *o)
{
	if (TOOL_TSAN || test_emulated())
		SKIP("the tool has threads of its own");
	deadlock_main = main_fn;
	test_run_child(deadlock_child, o);
	CHECK_EQ(o->status, 2);
	CHECK_CONTAINS(o->err, "fatal error: all goroutines are asleep - deadlock!");
}

#endif
