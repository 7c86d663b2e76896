/*
 * procs.h - the number of Ps. Defined in procs.c.
 */
#ifndef GORO_PROCS_H
#define GORO_PROCS_H

#include <stdbool.h>

void procs_init(void);
/* gomaxprocs has changed: sched.lock held. */
void procs_changed(void);
/* A thread of the runtime keeps a CPU busy, or does so no longer: that many Ps are not
 * woken for work meanwhile. */
void procs_help(bool on);
/* Follows a changed CPU quota, unless the program chose a number. sysmon. */
void procs_follow_machine(void);
/* Fewer Ps are in use than there are CPUs. */
bool procs_leave_a_cpu(void);

#endif
