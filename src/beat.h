/*
 * beat.h - sleeps of one length, one after the other. Defined in beat.c.
 */
#ifndef GORO_BEAT_H
#define GORO_BEAT_H

#include <stdint.h>

/* The keeper is about to sleep, until latest at the latest, which is slack after the first
 * timer. Until when it is to sleep: no later, and not much earlier. slack 0: until latest. */
int64_t beat_sleep_until(int64_t latest, int64_t slack);

#endif
