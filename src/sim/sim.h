/*
 * sim.h - simulation: the whole runtime on one thread, every choice drawn from a seed.
 *
 * The room sim answers in place of the kernel (platform/sim.h). It knows the rooms below,
 * and none knows it. Read: sim.c (threads, choices, time), sim_check.c, sim_log.c,
 * sim_run.c (goro_sim_run and GORO_SIM).
 */
#ifndef GORO_SIM_SIM_H
#define GORO_SIM_SIM_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/sim.h"

/* The kinds of choices, as the log names them. */
#define SIM_KIND_LIST(X)                                            \
	X(SIM_POINT_PASSED, "point")	/* an atomic operation, a border */ \
	X(SIM_STALL, "stall")		/* the kernel takes the CPU away */ \
	X(SIM_WAIT, "wait")		/* for a futex */           \
	X(SIM_SLEEP, "sleep")                                       \
	X(SIM_POLL, "poll")                                         \
	X(SIM_YIELD, "yield")                                       \
	X(SIM_WAKE, "wake")		/* of a thread at a futex */ \
	X(SIM_SPURIOUS, "spurious")	/* a wait that ends for nothing */ \
	X(SIM_MAKE, "make")		/* a thread */              \
	X(SIM_END, "end")		/* of a thread */           \
	X(SIM_SIGNAL, "signal")		/* sent to a thread */      \
	X(SIM_GIVE_WAY, "preempt")	/* a goroutine is to give way */ \
	X(SIM_TIME, "time")		/* all sleep: time jumps */

enum sim_kind {
#define X(id, text) id,
	SIM_KIND_LIST(X)
#undef X
};

/* What a run was, for whoever started it: in memory that a parent shares. */
struct sim_report {
	uint64_t choices;	/* how many were drawn */
	uint64_t points;	/* how many points were passed */
	uint64_t hash;		/* of all choices: equal for equal schedules */
	int64_t now;		/* virtual time */
	int procs, cpus;
	int slice_us;		/* time slices of goroutines; 0: as they are */
};

/* Which choices of the seed are made: those numbered [from, until). Beyond them a thread
 * goes on until it waits. For finding the few choices that matter. */
struct sim_window {
	uint64_t from, until;
};

/* ---- sim.c */

/* Simulates from now on. Before the runtime starts. */
void sim_begin(uint64_t seed, struct sim_window window, struct sim_report *report);
/* The runtime's threads are made: from now on threads take turns. */
void sim_take_turns(void);

/* ---- sim_run.c */

/* As goro_sim_run, without a word to stderr; *report says what the run was. */
int sim_run(uint64_t seed, void (*fn)(void *), void *arg, struct sim_report *report);

/* ---- sim_log.c */

void sim_log_open(const char *path);
void sim_log(enum sim_kind kind, int64_t now, int thread, int64_t value);

/* ---- sim_check.c */

/* NULL, or what is wrong. asleep: all threads sleep. held_up: a thread is in the midst of
 * what it does in the runtime, so that this time does not count. */
const char *sim_check(int64_t now, bool asleep, bool held_up);

/* ---- for tests: user code that takes time */

/* The calling thread computes for ns, in user code. */
void sim_compute(int64_t ns);
/* The calling thread sleeps in the kernel for ns, in a call that it did not announce. */
void sim_block(int64_t ns);

#endif
