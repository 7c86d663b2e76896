/*
 * fault.h - signals that end the process. Defined in fault.c.
 */
#ifndef GORO_FAULT_H
#define GORO_FAULT_H

#include <signal.h>
#include <stdbool.h>

void fault_init(void);
void fault_forked(void);	/* in the child: SIGQUIT does what it did before; faults are reported */
/* Takes out of a handler's mask what must come at once, not wait: the system ends a process
 * without a word that has a fault blocked. */
void fault_unmask(sigset_t *mask);
/* The signal, a fault or SIGQUIT, has our handler. */
bool fault_is_ours(int sig);

#endif
