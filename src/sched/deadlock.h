/*
 * deadlock.h - whether all goroutines are asleep for good. Defined in deadlock.c.
 */
#ifndef GORO_DEADLOCK_H
#define GORO_DEADLOCK_H

#include <stdbool.h>

#include "base/hook.h"

/* Looks, and ends the process if it is certain. sched.lock held. */
void deadlock_check(void);
/* The last look was not certain: another one is to follow soon. */
bool deadlock_unsure(void);

/* What a room above knows. Each may be NULL, and is called with sched.lock held. */
struct deadlock_witness {
	/* How many threads of the runtime's it has that are no Ms. */
	int (*threads)(void);
	/* Whether something from outside may wake a goroutine: a descriptor, a signal. */
	bool (*expects)(void);
	/* The same, asked last because it takes long. */
	bool (*may_expect)(void);
	int order;		/* of no account */
	struct deadlock_witness *next;
};
extern struct deadlock_witness *deadlock_witnesses;

/* DEADLOCK_WITNESS(uring, .threads = uring_threads); asks it from the start. */
#define DEADLOCK_WITNESS(name, ...) \
	ADD_AT_LOAD(name##_witness, struct deadlock_witness, deadlock_witnesses, __VA_ARGS__)

#endif
