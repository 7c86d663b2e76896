/*
 * sema.h - sleeping on an address. Defined in sema.c, which states the rule that
 * callers keep.
 */
#ifndef GORO_SEMA_H
#define GORO_SEMA_H

#include "runtime.h"

enum sema_place {
	SEMA_LAST,		/* behind all who wait there */
	SEMA_FIRST,		/* before them: it had waited its turn already */
};

/* Takes a unit from *addr, waiting for one if there is none. */
struct m *sema_acquire(struct m *mp, uint32_t *addr, enum sema_place place, enum wait_reason why);
/* Gives n units to those who wait, or will have come to wait. *addr is touched
 * only while somebody who is owed one of them cannot have gone. The first of
 * them runs next on this P. */
void sema_release(struct m *mp, uint32_t *addr, uint32_t n);
/* How many sleep there now: for tests. */
uint32_t sema_sleepers(const uint32_t *addr);

void sema_init(void);

#endif
