/*
 * goro/observe.h - what can be seen of a program: counts, dumps, leaks, traces, profiles.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_OBSERVE
#define GORO_H_OBSERVE

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All goroutines with their states, wait reasons and stacks, in the layout of
 * Go's own dump. SIGQUIT does this and exits with status 2. */
GORO_API void goro_dump(FILE *out);

/* What the runtime is doing. Nothing is stopped to find out, so the numbers are
 * of slightly different moments. */
struct goro_stats {
	/* Goroutines: all ever started, those that have not ended, and what the
	 * latter are doing: queued to run, running, waiting for something, in a
	 * blocking call. */
	uint64_t goroutines_created, goroutines_live;
	uint64_t runnable, running, waiting, in_syscall;
	/* OS threads of the runtime's, those of them asleep for want of work and
	 * those looking for work; GOMAXPROCS, and how much of it is unused. */
	uint64_t threads, idle_threads, gomaxprocs, idle_procs, spinning_threads;
	/* Since the start: goroutines that were given a processor; how often one
	 * processor took goroutines from another, and how many; goroutines that
	 * had to give way; processors taken from goroutines in blocking calls. */
	uint64_t context_switches, steals, stolen, preemptions, syscall_handoffs;
	/* Goroutines that the poller woke; timers set now; goroutines that began
	 * to wait; threads that were woken or made. */
	uint64_t netpoll_wakeups, timers, parks, thread_wakeups;
	/* Address space taken for stacks, and how much of it is kept for reuse. */
	uint64_t stack_bytes_reserved, stack_bytes_cached;
	/* Stacks of goroutines that wait for long, kept elsewhere, and the memory
	 * that they take there. */
	uint64_t stacks_evacuated, stack_bytes_evacuated;
};
GORO_API void goro_stats_read(struct goro_stats *out);

/* How long goroutines waited from ready to running, as a histogram in the layout
 * of Go's /sched/latencies:seconds: one in eight is counted. Bucket i holds
 * counts[i] times from upper_bounds_s[i - 1] to below upper_bounds_s[i] seconds;
 * the first holds those below 0, the last has no upper bound. At most max
 * buckets are filled in; either array may be NULL. The number of buckets there
 * are: goro_sched_latency(NULL, NULL, 0). */
GORO_API size_t goro_sched_latency(uint64_t *counts, double *upper_bounds_s, size_t max);

/* Goroutines that a piece of the program has left behind, e.g. a test:
 *
 *	uint64_t mark = goro_leak_mark();
 *	run_the_test();
 *	if (goro_leak_check(mark, GORO_SECOND, stderr) > 0)
 *		fail();
 *
 * They are those started since the mark, by anybody, that have not ended. The check
 * waits for them, up to grace (in ns), prints those that are left to out (if it is
 * not NULL) as goro_dump does, and returns their number. Give it some grace: a
 * goroutine whose last act was to say that it is done has not ended quite yet. The
 * caller itself does not count. From goroutines and plain threads; before goro_run
 * and after it, too. */
GORO_API uint64_t goro_leak_mark(void);
GORO_API size_t goro_leak_check(uint64_t mark, int64_t grace, FILE *out);

/* Profiles that `go tool pprof` opens, with names and lines in them; docs/profiling.md
 * says what each shows. "goroutine": where all goroutines are; "block": where they waited
 * for channels and locks; "mutex": who held the locks that others waited for;
 * "threadcreate": who made the threads; "goroutineleak": goroutines that wait for ever,
 * since nothing that can run has a pointer to what they wait for. Written to fd whole,
 * however many calls that takes; a goroutine parks meanwhile. 0, or -errno: -EINVAL if
 * there is no such profile. */
GORO_API int goro_profile_write(const char *profile, int fd);

/* A CPU profile: a sample of every thread of the process after each 1/hz second that it
 * has run; hz 0: 100 a second. It is written to fd, which is to stay open so long, by
 * stop; nothing is said if that fails. 0, or -errno: -EBUSY if one runs already, -EINVAL
 * for an hz that makes no sense. Stopping what does not run does nothing.
 * (GORO_CPUPROFILE=FILE in the environment is a profile of the whole run; %p in FILE is
 * the process id.) */
GORO_API int goro_profile_cpu_start(int fd, int hz);
GORO_API void goro_profile_cpu_stop(void);

/* Switches the block profile on, off with ns <= 0: of all time that goroutines wait one
 * wait in ns nanoseconds, a duration, is counted; 1: every wait
 * (runtime.SetBlockProfileRate). */
GORO_API void goro_profile_block_rate(int64_t ns);

/* Switches the mutex profile on, off with 0: one in rate contended unlocks is counted
 * (runtime.SetMutexProfileFraction). What it was; rate < 0 only asks. */
GORO_API int goro_profile_mutex_fraction(int rate);

/* Serves net/http/pprof, figures for Prometheus (/debug/metrics) and a live page on
 * http://ADDRESS/debug/. The address is "host:port"; ":port" or "port" alone is on the
 * loopback interface, "0.0.0.0:port" on all; or "unix:path". It is to be kept from those
 * who are not to see the program's insides. The server runs until the process ends, and
 * as in Go while it does there is no report of a deadlock. 0 or -errno, as goro_listen.
 * GORO_DEBUG_SERVE=address in the environment does the same. */
GORO_API int goro_debug_serve(const char *address);

/* Execution traces that `go tool trace` opens: what every goroutine, processor and
 * thread does, and when. See docs/tracing.md.
 *
 * start: to fd, which may be closed afterwards. 0; -EBUSY: one is on already; -EBADF:
 * fd cannot be written to; or another -errno. stop: all of it is written when this
 * returns. No effect if none is on. error: why the trace that is on, or the last one,
 * could not be written on from some moment, as -errno (-ENOBUFS: fd is too slow); or 0.
 *
 * With GORO_TRACE=FILE in the environment a program is traced from goro_run to its
 * exit; %p in FILE is the process id. A set-uid program ignores it. */
GORO_API int goro_trace_start(int fd);
GORO_API void goro_trace_stop(void);
GORO_API int goro_trace_error(void);
/* Annotations: runtime/trace's tasks, which several goroutines may work on, regions of
 * one goroutine, which nest, and logs; task 0 is none. They cost next to nothing while
 * no trace is on, and a task begun then is 0. */
GORO_API uint64_t goro_trace_task_begin(const char *name);
GORO_API void goro_trace_task_end(uint64_t task);
GORO_API void goro_trace_region_begin(uint64_t task, const char *name);
GORO_API void goro_trace_region_end(uint64_t task, const char *name);
GORO_API void goro_trace_log(uint64_t task, const char *key, const char *value);

#ifdef __cplusplus
}
#endif

#endif
