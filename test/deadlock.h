/*
 * deadlock.h - a program that is to end with "all goroutines are asleep".
 */
#ifndef GORO_TEST_DEADLOCK_H
#define GORO_TEST_DEADLOCK_H

#include <goro.h>

#include "test.h"

static void deadlock_child(void (*main_fn)(void))
{
	exit(goro_run((int (*)(int, char **))main_fn, 0, NULL));
}

/* Runs main_fn in another process; *o is what came of it. The runtime says
 * nothing unless it knows every thread of the process: an emulator has some of
 * its own. */
static void check_deadlock(int (*main_fn)(int, char **), struct test_output *o)
{
	test_needs_deadlocks();
	test_run_anew(deadlock_child, (void (*)(void))main_fn, o);
	CHECK_EQ(o->status, 2);
	CHECK_CONTAINS(o->err, "fatal error: all goroutines are asleep - deadlock!");
}

#endif
