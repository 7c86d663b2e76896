/* debug_attach.h - what debug_attach.c and the goro command agree on */
#ifndef GORO_DEBUG_ATTACH_H
#define GORO_DEBUG_ATTACH_H

#include <signal.h>

/* The signal. Its value has the mark above, and below a number of the sender's, which
 * listens on the abstract Unix socket of that name. */
#define DEBUG_ATTACH_SIGNAL SIGURG
#define DEBUG_ATTACH_MARK   0x676f726fu
#define DEBUG_ATTACH_NAME   "goro-attach-%08x"

#endif
