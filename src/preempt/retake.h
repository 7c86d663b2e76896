/*
 * retake.h - Ps that are held too long. Defined in retake.c.
 */
#ifndef GORO_RETAKE_H
#define GORO_RETAKE_H

#include <stdint.h>

#include "os.h"

struct m;

/* Looks at every P. When sysmon is to look again at the latest: nanoseconds from
 * now, or INT64_MAX if it does not matter. */
int64_t retake_look(int64_t now);
/* Whether the M's thread sleeps in the kernel (os_thread_asleep); and mp->lock. sysmon. */
enum os_sleep retake_asleep(struct m *mp);
/* Sends the M the preemption signal, if none is on its way. sysmon. */
void retake_signal(struct m *mp, int64_t now);

#endif
