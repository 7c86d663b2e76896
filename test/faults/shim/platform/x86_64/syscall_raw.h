/*
 * syscall_raw.h - stands before the runtime's own header of that name in builds for
 * test/faults: every raw system call asks faults_call whether it is to fail.
 */
#ifndef GORO_FAULTS_SYSCALL_RAW_H
#define GORO_FAULTS_SYSCALL_RAW_H

#define syscall_raw syscall_direct
#include "../../../../../src/platform/x86_64/syscall_raw.h"
#undef syscall_raw

long faults_call(long nr, long a, long b, long c, long d, long e, long f);

static inline long syscall_raw(long nr, long a, long b, long c, long d, long e, long f)
{
	return faults_call(nr, a, b, c, d, e, f);
}

#endif
