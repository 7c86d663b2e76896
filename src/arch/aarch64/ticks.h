/*
 * ticks.h (aarch64) - the processor's clock: cheaper than the system's, and in no known unit.
 */
#ifndef GORO_ARCH_TICKS_H
#define GORO_ARCH_TICKS_H

#include <stdint.h>

static inline uint64_t ticks_now(void)
{
	uint64_t t;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
}

/* About 50 us. */
static inline uint64_t ticks_long(void)
{
	uint64_t per_second;

	__asm__("mrs %0, cntfrq_el0" : "=r"(per_second));
	return per_second / 20000;
}

#endif
