/* sema.h - sleeping on an address. Defined in sema.c, which states the rule that callers
 * keep. */
#ifndef GORO_SEMA_H
#define GORO_SEMA_H

#include "sched/runtime.h"

enum sema_place {
	SEMA_LAST,		/* behind all sleepers */
	SEMA_FIRST,		/* before all sleepers: it has waited its turn already */
};

/* Takes a unit from *addr. Waits for one if there is none. */
struct m *sema_acquire(struct m *mp, uint32_t *addr, enum sema_place place, enum wait_reason why);
/* Gives n units to goroutines that wait, or are on their way to wait. Touches *addr only
 * while a goroutine that is owed one of them cannot have left. The first goroutine runs
 * next on this P. */
void sema_release(struct m *mp, uint32_t *addr, uint32_t n);
/* The same for callers outside the runtime; sema_wait sleeps behind all others. */
void sema_wait(uint32_t *addr, enum wait_reason why);
void sema_wake(uint32_t *addr, uint32_t n);
/* The number of sleepers now: for tests. */
uint32_t sema_sleepers(const uint32_t *addr);

#endif
