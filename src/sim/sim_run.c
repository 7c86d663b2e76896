/*
 * sim_run.c - simulated runs: goro_sim_run, and GORO_SIM for a whole program.
 *
 * goro_sim_run makes a child by fork, which runs the function as the main of a simulated
 * process. So each run begins with the same memory, whatever ran before, and a run that
 * ends by a deadlock, a failed assertion or a fault is a result like any other.
 *
 * With GORO_SIM=SEED in its environment a program simulates itself from the start, in
 * place: for a debugger, and for programs as they are. Variables for both:
 *
 *	GORO_SIM_LOG=FILE		a line for each choice
 *	GORO_SIM_WINDOW=FROM:UNTIL	only these choices of the seed are made
 */
#define _GNU_SOURCE
#include <goro.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/debug.h"
#include "base/environment.h"
#include "base/hook.h"
#include "platform/tool.h"
#include "goroutine/run.h"
#include "sched/init.h"
#include "sched/runtime.h"
#include "sim/sim.h"

static void (*sim_fn)(void *);
static void *sim_arg;

static struct sim_window window_of(const char *s)
{
	struct sim_window w = { 0, UINT64_MAX };
	char *end;

	if (!s)
		return w;
	w.from = strtoull(s, &end, 10);
	if (*end == ':' && end[1])
		w.until = strtoull(end + 1, NULL, 10);
	return w;
}

static int slice_us;

static void begin(uint64_t seed, struct sim_report *report)
{
	const char *log = environment_get("GORO_SIM_LOG");

	if (log)
		sim_log_open(log);
	sim_begin(seed, window_of(environment_get("GORO_SIM_WINDOW")), report);
	slice_us = report->slice_us;
}

static void begin_by_environment(void)
{
	static struct sim_report report;
	const char *seed = environment_get("GORO_SIM");

	if (seed)
		begin(strtoull(seed, NULL, 10), &report);
}
AT_LOAD(begin_by_environment);

/* What other threads of the kernel do cannot be simulated. */
static void set_debug(void)
{
	if (!sim)
		return;
	debug.evacuate = -1;
	debug.nouring = 1;
	if (debug.slice == 0)
		debug.slice = slice_us;
}
HOOK(at_start, START_STATE - 1, set_debug);

/* The runtime's own threads are there from the start, so that no pthread_once is under
 * way when threads take turns. */
static void take_turns(void)
{
	if (!sim)
		return;
	runtime_threads();
	sim_take_turns();
}
HOOK(at_run, 0, take_turns);

static int sim_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	sim_fn(sim_arg);
	return 0;
}

static _Noreturn void child(uint64_t seed, struct sim_report *report)
{
	begin(seed, report);
	goro_run(sim_main, 0, NULL);
	fflush(NULL);
	_exit(0);
}

static int result_of(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int sim_run(uint64_t seed, void (*fn)(void *), void *arg, struct sim_report *report)
{
	struct sim_report *shared;
	int result;
	pid_t pid;

	if (TOOL_ASAN || TOOL_TSAN || tool_asan() || tool_on_valgrind())
		return -ENOTSUP;
	if (sim || load_acquire(&sched.all_m))
		return -EBUSY;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -errno;
	sim_fn = fn;
	sim_arg = arg;
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		child(seed, shared);
	result = pid < 0 ? -errno : result_of(pid);
	*report = *shared;
	munmap(shared, sizeof *shared);
	return result;
}

int goro_sim_run(uint64_t seed, void (*fn)(void *), void *arg)
{
	struct sim_report report;
	int result = sim_run(seed, fn, arg, &report);

	if (result > 0)
		fprintf(stderr, "goro_sim_run: seed %llu: status %d after %llu choices\n",
		        (unsigned long long)seed, result, (unsigned long long)report.choices);
	return result;
}
