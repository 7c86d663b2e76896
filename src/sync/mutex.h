/* mutex.h - the mutex as other types of sync use it. Defined in mutex.c. */
#ifndef GORO_MUTEX_H
#define GORO_MUTEX_H

#include "sched/alone.h"

struct mutex {
	uint32_t state;
	uint32_t sema;
};

#define MUTEX_LOCKED 1u

void mutex_lock_slow(struct mutex *m);
void mutex_lock_alone(struct mutex *m);
bool mutex_try_lock(struct mutex *m);

static inline void mutex_lock(struct mutex *m)
{
	uint32_t s = 0;

	if (is_alone()) {
		mutex_lock_alone(m);
		return;
	}
	/* acquire: pairs with cas_release in mutex_unlock and mutex_give_up. No load
	 * before: it would fetch the line from another CPU twice. The second CAS is for a
	 * mutex that is free while goroutines sleep on it. */
	if (unlikely(!cas_acquire(&m->state, &s, MUTEX_LOCKED)) &&
	    (s & MUTEX_LOCKED || !cas_acquire(&m->state, &s, s | MUTEX_LOCKED)))
		mutex_lock_slow(m);
}

/* Unlocking in two steps: mutex_give_up unlocks, after which m may be gone, and says
 * whether a goroutine is owed a wake; mutex_pay wakes it. */
enum mutex_owed {
	MUTEX_OWES_NOTHING,
	MUTEX_OWES_WAKE,
	MUTEX_NOT_LOCKED,
};
enum mutex_owed mutex_give_up(struct mutex *m);
void mutex_pay(struct m *mp, struct mutex *m);

void mutex_unlock(struct mutex *m);

#endif
