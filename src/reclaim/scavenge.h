/*
 * scavenge.h - memory of cold stacks is given back to the system. Defined in scavenge.c.
 */
#ifndef GORO_SCAVENGE_H
#define GORO_SCAVENGE_H

#include <stdbool.h>

/* Starts or wakes the scavenger if there are cold stacks. idle: nothing has run for a
 * while. sysmon only. */
void scavenge_notice(bool idle);

#endif
