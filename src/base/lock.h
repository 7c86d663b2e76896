/*
 * lock.h - the runtime's own locks and notes, on futexes.
 *
 * The room base has what every other room stands on: locks, memory, printing and
 * settings, without libc's locks. It uses platform.
 *
 * A lock is held for tens of nanoseconds, by a thread in state RUNTIME, which goro never
 * preempts. So a waiter spins a little before it sleeps.
 *
 * Unlocking is one exchange and, if threads may sleep on the lock, a wake of at most a
 * constant number of them ("A crowd of sleepers" in lock.c). The unlock does not touch
 * the lock's memory after the exchange. So the next holder may free what the lock guards
 * (see "Lifetimes" in chan.h): a wake on a freed address causes at worst a spurious wake.
 *
 * A note is a one-shot event: one sleeper, one waker. A wake before the sleep is kept.
 *
 * Lock order. Locks are taken in ascending rank. Debug builds check it.
 */
#ifndef GORO_LOCK_H
#define GORO_LOCK_H

#include <stddef.h>

#include "platform/atomic.h"

/* A lock may be taken while locks of lower rank are held, never the other way round. */
enum lock_rank {
	RANK_NONE,		/* may not nest with itself; below all others */
	RANK_WORLD,		/* world.lock: one stop of the world at a time */
	RANK_RUN,		/* struct run: a caller of goro_run */
	RANK_SIGNAL,		/* subscriptions to signals */
	RANK_LEAK,		/* checks for leaked goroutines */
	RANK_CTX,		/* contexts */
	RANK_CHAN,		/* channels, in order of address among themselves */
	RANK_SEMA,		/* buckets of sleepers */
	RANK_POOL,		/* worker pools */
	RANK_URING,		/* the ring */
	RANK_FD,		/* a descriptor's waiters and deadlines */
	RANK_TIMER,		/* a P's timers */
	RANK_TAKE,		/* taking a P from an M in user code */
	RANK_SCHED,		/* sched.lock */
	RANK_GPOOL,		/* shared pools of dead goroutines */
	RANK_STACK,		/* stack regions */
	RANK_MEM,		/* the runtime's own memory */
	RANK_TRACE,		/* buffers and tables of the execution trace */
	RANK_LEAF,
};

struct lock {
	uint32_t word;
	uint8_t rank;		/* enum lock_rank; used by debug builds, and lock_slow */
	bool freed;		/* what it guards is freed: held for good, see freed.h */
};
#define LOCK_INIT(r) { .word = 0, .rank = (r) }

/* The values of the word. 0: free. */
enum {
	LOCK_HELD = 1,		/* no thread sleeps on it */
	LOCK_SLEEPERS,		/* threads may sleep on it */
	LOCK_CROWD,		/* threads may sleep on it; one has slept for long */
};

void lock_slow(struct lock *l);
void lock_wake(struct lock *l, uint32_t word);	/* word: its value before the release */

#if GORO_CHECKS
void lock_rank_push(struct lock *l);
void lock_rank_pop(struct lock *l);
bool lock_is_held(struct lock *l);	/* by this thread */
/* For a simulated thread that goes on in place of another: see sim/sim.c. */
struct lock_held;
void lock_held_swap(struct lock_held *mine, struct lock_held *others);
size_t lock_held_size(void);
#else
static inline void lock_rank_push(struct lock *l) { (void)l; }
static inline void lock_rank_pop(struct lock *l) { (void)l; }
#endif

static inline bool lock_try(struct lock *l)
{
	uint32_t free = 0;

	/* acquire: what the last holder wrote; pairs with lock_release */
	if (!cas_acquire(&l->word, &free, LOCK_HELD))
		return false;
	lock_rank_push(l);
	return true;
}

static inline void lock_acquire(struct lock *l)
{
	uint32_t free = 0;

	lock_rank_push(l);
	/* acquire: what the last holder wrote; pairs with lock_release */
	if (__builtin_expect(!cas_acquire(&l->word, &free, LOCK_HELD), 0))
		lock_slow(l);
}

/* Returns 0, or the word if threads may sleep, with which lock_wake is to be called
 * soon. */
static inline uint32_t lock_release_quietly(struct lock *l)
{
	uint32_t word;

	lock_rank_pop(l);
	/* release: pairs with the acquires in lock_try, lock_acquire and lock_slow */
	word = exchange_release(&l->word, 0);
	return __builtin_expect(word > LOCK_HELD, 0) ? word : 0;
}

/* Not by lock_release_quietly: where that is not inlined, its frame leaves the address of
 * the lock on the stack, and reach.c finds it there and takes the lock's owner for
 * reachable. */
static inline void lock_release(struct lock *l)
{
	uint32_t word;

	lock_rank_pop(l);
	/* release: pairs as in lock_release_quietly */
	word = exchange_release(&l->word, 0);
	if (__builtin_expect(word > LOCK_HELD, 0))
		lock_wake(l, word);
}

struct note {
	uint32_t word;		/* 1: woken */
};

void note_wake(struct note *n);
void note_sleep(struct note *n);			/* clears it */
bool note_sleep_for(struct note *n, int64_t ns);	/* false: timeout */

#endif
