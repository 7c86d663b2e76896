/*
 * procs.h - the number of Ps. Defined in procs.c.
 */
#ifndef GORO_PROCS_H
#define GORO_PROCS_H

void procs_init(void);
/* gomaxprocs has changed: sched.lock held. */
void procs_changed(void);
/* Follows a changed CPU quota, unless the program chose a number. sysmon. */
void procs_follow_machine(void);

#endif
