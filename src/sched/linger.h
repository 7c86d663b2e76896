/*
 * linger.h - pauses for tests of races. Builds with checks only.
 *
 * linger() stands between two steps where somebody else may come in between,
 * above all after the last access to an object that its user may now free. With
 * GORO_DEBUG=linger=N one in four waits N microseconds, or a few times that, so
 * that what is ordinarily a matter of nanoseconds happens all the time.
 */
#ifndef GORO_LINGER_H
#define GORO_LINGER_H

#include "platform/atomic.h"
#include "base/debug.h"
#include "platform/os.h"

static inline void linger(void)
{
#if GORO_CHECKS
	static uint32_t turn;
	int us = load_relaxed(&debug.linger);
	uint32_t random;

	if (us <= 0)
		return;
	random = fetch_add_relaxed(&turn, 1) * UINT32_C(2654435769);
	if (random >> 30 == 0)
		os_sleep(us * INT64_C(1000) * (1 + (random >> 28)));
#endif
}

/* For tests, which do the same thing many times: every 4th round lingers. */
static inline void linger_round(int i)
{
	store_relaxed(&debug.linger, i % 4 == 0 ? 20 : 0);
}

#endif
