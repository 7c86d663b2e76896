/*
 * retake.h - Ps that are held too long. Defined in retake.c.
 */
#ifndef GORO_RETAKE_H
#define GORO_RETAKE_H

#include <stdint.h>

#include "platform/os.h"

struct m;
struct p;

/* All of these are called by sysmon only. */

/* Looks at every P. ns to the next look at the latest; TIMER_NEVER: it does not
 * matter. */
int64_t retake_look(int64_t now);
/* Whether the M's thread sleeps in the kernel (os_thread_asleep). Sets mp->watch.lock. */
enum os_sleep retake_asleep(struct m *mp);
/* When the slice that pp is in began, or sysmon first saw it. */
int64_t retake_seen_at(const struct p *pp);
/* Sends the M the preemption signal, if none is on its way. */
void retake_signal(struct m *mp, int64_t now);

#endif
