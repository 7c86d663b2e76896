/*
 * scavenge.h - stacks that nobody needs go back to the system. Defined in scavenge.c.
 */
#ifndef GORO_SCAVENGE_H
#define GORO_SCAVENGE_H

#include <stdbool.h>

/* sysmon's: there may be cold stacks; idle: and nothing has run for a while. */
void scavenge_notice(bool idle);
/* The spawner's: starts the scavenger, if there is something for it to do. */
void scavenge_start_if_wanted(void);

#endif
