/*
 * sema.h - sleeping on an address. Defined in sema.c.
 */
#ifndef GORO_SEMA_H
#define GORO_SEMA_H

#include "runtime.h"

/* Waits until *addr > 0 and takes one from it. */
struct m *sema_acquire(struct m *mp, uint32_t *addr, enum wait_reason why);
/* Adds one to *addr and wakes a waiter, if there is one. *addr is not touched
 * after the waiter could have seen it. */
void sema_release(struct m *mp, uint32_t *addr);
void sema_init(void);

#endif
