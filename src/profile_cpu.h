/*
 * profile_cpu.h - where the CPU time goes. Defined in profile_cpu.c.
 */
#ifndef GORO_PROFILE_CPU_H
#define GORO_PROFILE_CPU_H

#include <stdint.h>

/* A profile of the whole run, if GORO_CPUPROFILE names a file for it. Once, in user code,
 * when the runtime has been started. */
void profile_cpu_from_environment(void);

extern uint32_t profile_cpu_on;
void profile_cpu_thread(void);		/* a thread has become an M, while it is on */

void profile_cpu_forked(void);		/* in the child: SIGPROF is the program's alone */

int profile_threads(void);		/* of the runtime's, for it: 0 or 1 */

#endif
