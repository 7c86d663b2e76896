/*
 * thread_named.h - the runtime's own threads, by their names.
 */
#ifndef GORO_TEST_THREAD_NAMED_H
#define GORO_TEST_THREAD_NAMED_H

#include <dirent.h>
#include <goro.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* The thread of this process of that name; 0: there is none yet. */
static inline int thread_named(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	int found = 0;

	while ((e = readdir(dir))) {
		char path[300], comm[32] = "";
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
		if (!(f = fopen(path, "r")))
			continue;
		if (fgets(comm, sizeof comm, f) && strncmp(comm, name, strlen(name)) == 0)
			found = atoi(e->d_name);
		fclose(f);
	}
	closedir(dir);
	return found;
}

/* sysmon, if it goes before all ordinary threads; 0: it may not. It begins a little after
 * main. */
static inline int urgent_sysmon(void)
{
	for (int64_t end = goro_now() + GORO_SECOND; goro_now() < end; goro_gosched()) {
		int tid = thread_named("goro-sysmon");

		if (tid && sched_getscheduler(tid) == SCHED_RR)
			return tid;
	}
	return 0;
}

#endif
