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
#include "platform/tool.h"

/* First thing in a test that limits the address space. An emulator keeps its own and the
 * program's memory in one process, and ignores such a limit. */
__attribute__((unused))
static void needs_memory_limit(void)
{
	struct rlimit old, lower, now;

	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("a sanitizer needs address space of its own");
	CHECK_EQ(getrlimit(RLIMIT_AS, &old), 0);
	lower = (struct rlimit){ old.rlim_cur - 1, old.rlim_max };
	CHECK_EQ(setrlimit(RLIMIT_AS, &lower), 0);
	CHECK_EQ(getrlimit(RLIMIT_AS, &now), 0);
	CHECK_EQ(setrlimit(RLIMIT_AS, &old), 0);
	if (now.rlim_cur != lower.rlim_cur)
		SKIP("memory cannot be limited here");
}

__attribute__((unused))
static void wait_at(goro_chan *gate)
{
	goro_chan_recv(gate, NULL);
}

/* Leaves the process some more address space than it has, enough for a few threads
 * and too little for more stacks of goroutines, and uses up those there are with
 * goroutines that wait until gate is closed. */
__attribute__((unused))
static void exhaust_memory(goro_chan *gate)
{
	struct rlimit limit;
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages;

	needs_memory_limit();
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
