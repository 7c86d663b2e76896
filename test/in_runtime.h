/*
 * in_runtime.h - a function as the main goroutine of a runtime with these switches of
 * GORO_DEBUG, in a test that is a process of its own.
 */
#ifndef GORO_TEST_IN_RUNTIME_H
#define GORO_TEST_IN_RUNTIME_H

#include <goro.h>
#include <stdlib.h>

#include "test.h"

static void (*in_runtime_body)(void);

static int in_runtime_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	in_runtime_body();
	return 0;
}

static void in_runtime(void (*body)(void), const char *switches)
{
	setenv("GORO_DEBUG", switches, 1);
	in_runtime_body = body;
	CHECK_EQ(goro_run(in_runtime_main, 0, NULL), 0);
}

#endif
