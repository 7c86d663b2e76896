/*
 * faults.h - the shim between the runtime and what may fail: its raw system calls, and
 * the functions of libc that allocate, make threads or go to the kernel. Defined in
 * faults.c.
 *
 * A run has a plan, from the environment: FAULTS=KIND:N:ERROR fails the N-th call of a
 * kind, counted from 1; KIND:N:ERROR:on fails all from then on; KIND:N:short gives the
 * N-th call half of what it asks for. FAULTS_LOG names a file in which the run leaves its
 * counts, for the runner (walk).
 */
#ifndef GORO_FAULTS_H
#define GORO_FAULTS_H

#include <stdint.h>

#define FAULTS_KINDS 160
#define FAULTS_FRAMES 8
#define FAULTS_SITES 60000

/* As walk reads it. */
struct faults_log {
	uint32_t count[FAULTS_KINDS];
	uint32_t hits;			/* calls that were failed */
	uint32_t unlisted;		/* system calls that the table does not know .. */
	int64_t unlisted_nr;		/* .. the last of them */
	uint64_t frames[FAULTS_FRAMES];	/* who made the first call that was failed */
	uint32_t site_n;
	struct { uint32_t kind, n; uint64_t frames[3]; } sites[FAULTS_SITES];
};

#include <stdbool.h>

/* The error of the plan: a call of the public interface may report it. 0: nothing has
 * failed yet, or not with an error. */
int faults_error(void);
#define FAULTS_FORBIDDEN INT32_MAX	/* a facility is: any error may follow */
/* Something has failed, or was short. */
bool faults_any(void);

/* workloads.c: runs the workload of this name; false: there is none. */
bool workload_run(const char *name);

#endif
