/*
 * limit_memory.h - for tests of what happens without memory for goroutines.
 */
#ifndef GORO_TEST_LIMIT_MEMORY_H
#define GORO_TEST_LIMIT_MEMORY_H

#include <goro.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test.h"
#include "tool.h"

static void wait_at(goro_chan *gate)
{
	goro_chan_recv(gate, NULL);
}

/* Leaves the process some more address space than it has, enough for a few threads
 * and too little for more stacks of goroutines, and uses up those there are with
 * goroutines that wait until gate is closed. */
static void exhaust_memory(goro_chan *gate)
{
	struct rlimit limit;
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages;

	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("a sanitizer needs address space of its own");
	if (!f || fscanf(f, "%lu", &pages) != 1)
		SKIP("cannot tell how much memory there is");
	fclose(f);
	limit.rlim_cur = limit.rlim_max =
		pages * (unsigned long)sysconf(_SC_PAGESIZE) + (512 << 20);
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	for (int n = 0; goro_go(wait_at, gate) == 0; n++)
		if (n == 100000)
			SKIP("memory cannot be limited here");
}

#endif
