/*
 * fault.h - signals that end the process. Defined in fault.c.
 */
#ifndef GORO_FAULT_H
#define GORO_FAULT_H

#include <signal.h>
#include <stdbool.h>

void fault_init(void);
/* Takes out of a handler's mask what must come at once, not wait: the system ends a process
 * without a word that has a fault blocked. */
void fault_unmask(sigset_t *mask);

#endif
