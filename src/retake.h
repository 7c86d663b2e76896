/*
 * retake.h - Ps that are held too long. Defined in retake.c.
 */
#ifndef GORO_RETAKE_H
#define GORO_RETAKE_H

#include <stdint.h>

/* Looks at every P. When sysmon is to look again at the latest: nanoseconds from
 * now, or INT64_MAX if it does not matter. */
int64_t retake_look(int64_t now);
/* What it keeps of threads that are gone. Now and then; sysmon. */
void retake_tidy(void);

#endif
