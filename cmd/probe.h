/*
 * probe.h - what the kernel offers, found out by trying. Defined in probe.c.
 */
#ifndef GORO_CMD_PROBE_H
#define GORO_CMD_PROBE_H

#include <stdbool.h>

bool probe_membarrier(void);
bool probe_guard_markers(void);
bool probe_epoll_pwait2(void);
bool probe_nowait(void);		/* RWF_NOWAIT on pipes */
bool probe_nosignal(void);		/* RWF_NOSIGNAL on pipes */
bool probe_uring(void);			/* with the features that sockets need */
/* with a polling thread of the kernel's, for files */
bool probe_uring_polled(void);
/* for the kernel's own accesses, too, and with UFFDIO_MOVE */
bool probe_userfault(void);
bool probe_userfault_user_only(void);	/* for the program's accesses alone */
bool probe_real_time(void);		/* this process may have a real-time priority */
bool probe_proc(void);			/* /proc tells about threads */

#endif
