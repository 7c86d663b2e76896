/*
 * debug_attach.h - the debug server for a program that was not told to serve. Defined in
 * debug_attach.c; the goro command has the other side.
 */
#ifndef GORO_DEBUG_ATTACH_H
#define GORO_DEBUG_ATTACH_H

#include <signal.h>
#include <stdbool.h>

/* The signal, and its value: this above, below it a number that the sender has chosen. The
 * sender listens on the abstract Unix socket whose name has that number. */
#define DEBUG_ATTACH_SIGNAL SIGURG
#define DEBUG_ATTACH_MARK   0x676f726fu
#define DEBUG_ATTACH_NAME   "goro-attach-%08x"

/* In the signal's handler: true if it is such a request, which is taken. */
bool debug_attach_take(const siginfo_t *info);
/* The spawner's: connects, if that is asked for. */
void debug_attach_start_if_asked(void);

#endif
