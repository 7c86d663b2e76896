/*
 * mutex.h - the mutex as other types of sync see it. Defined in mutex.c.
 */
#ifndef GORO_MUTEX_H
#define GORO_MUTEX_H

#include "runtime.h"

struct mutex {
	uint32_t state;
	uint32_t sema;
};

#define MUTEX_LOCKED 1u

void mutex_lock_slow(struct mutex *m);
bool mutex_try_lock(struct mutex *m);

static inline void mutex_lock(struct mutex *m)
{
	uint32_t s = 0;

	/* acquire: pairs with cas_release in mutex_unlock and mutex_give_up.
	 * Without a look first, which would fetch the line from another CPU
	 * twice. The second try is for when it is free but others sleep. */
	if (unlikely(!cas_acquire(&m->state, &s, MUTEX_LOCKED)) &&
	    (s & MUTEX_LOCKED || !cas_acquire(&m->state, &s, s | MUTEX_LOCKED)))
		mutex_lock_slow(m);
}

/* Unlocking in two steps: the one that gives the lock up, after which m may be
 * gone, and the one that wakes whoever is then owed it. */
enum mutex_owed {
	MUTEX_OWES_NOTHING,
	MUTEX_OWES_WAKE,
	MUTEX_NOT_LOCKED,
};
enum mutex_owed mutex_give_up(struct mutex *m);
void mutex_pay(struct m *mp, struct mutex *m);

void mutex_unlock(struct mutex *m);

#endif
