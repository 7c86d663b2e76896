/*
 * signal_notify.h - signals on channels, as the rest of the runtime sees them. Defined in
 * signal.c.
 */
#ifndef GORO_SIGNAL_NOTIFY_H
#define GORO_SIGNAL_NOTIFY_H

#include <stdbool.h>

/* In a handler: true if it is wanted, and will be delivered. */
bool signal_take(int sig);

int signal_threads(void);	/* of the runtime's, for signals: 0 or 1 */
bool signal_expected(void);	/* somebody subscribes to one */
/* The program has a handler of its own for a signal that may come from outside: for any but
 * the faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS). */
bool signal_may_be_awaited(void);

/* In the child of a fork, where there is no messenger: signals do what they did before they
 * were subscribed to. */
void signal_forked(void);

struct os_action;

/* From now on a signal is handled by who calls this, who installs its handler when it is
 * called and has it call signal_take. program: what the program had before our handler; NULL:
 * ours is not there. In user code. */
void signal_share(int sig, void (*take_over)(const struct os_action *program));

#endif
