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

#endif
