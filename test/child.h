/*
 * child.h - a program of its own for tests of what happens to a whole process:
 * run(f) runs f as the main goroutine of another process, and leaves what came of
 * it in o.
 */
#ifndef GORO_TEST_CHILD_H
#define GORO_TEST_CHILD_H

#include <goro.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "test.h"

static struct test_output o;

static void (*program)(void);

static int program_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	program();
	return 0;
}

static void child(void)
{
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	exit(goro_run(program_main, 0, NULL));
}

static void child_anew(void (*f)(void))
{
	program = f;
	child();
}

__attribute__((unused))
static void run(void (*f)(void))
{
	program = f;
	test_run_child(child, &o);
	CHECK(!o.timed_out);
}

/* The same in a process that begins anew: see test_run_anew. */
__attribute__((unused))
static void run_anew(void (*f)(void))
{
	test_run_anew(child_anew, f, &o);
	CHECK(!o.timed_out);
}

#endif
