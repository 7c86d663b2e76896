/* debug_attach.h - what debug_attach.c and the goro command agree on */
#ifndef GORO_DEBUG_ATTACH_H
#define GORO_DEBUG_ATTACH_H

#include <signal.h>

/* The signal. Its value has the mark in its upper half, and in its lower half a number
 * that the sender has chosen: the sender listens on the abstract Unix socket of that
 * name. */
#define DEBUG_ATTACH_SIGNAL SIGURG
#define DEBUG_ATTACH_MARK   0x676f726fu
#define DEBUG_ATTACH_NAME   "goro-attach-%08x"

#endif
