/*
 * lock.h - the runtime's own locks and notes, on futexes.
 *
 * A lock is held for tens of nanoseconds, by a thread in state RUNTIME, which
 * goro itself never stops; so a waiter spins a little before it sleeps.
 *
 * Unlocking is one exchange and, if threads may sleep, a wake on the address, of
 * a constant number at the most ("A crowd of sleepers" in lock.c).
 * The lock's memory is not looked at after the exchange, so what it guards may
 * be freed by whoever takes it next (see "Lifetimes" in chan.c): waking a
 * freed address at worst wakes somebody for nothing.
 *
 * A note is a one-shot event: one sleeper, one waker, wake before sleep is kept.
 *
 * Lock order. Locks are taken in ascending rank; debug builds check it.
 */
#ifndef GORO_LOCK_H
#define GORO_LOCK_H

#include "atomic.h"

/* A lock may be taken while those of lower rank are held, never the other way. */
enum lock_rank {
	RANK_NONE,		/* may not nest with itself; below all others */
	RANK_WORLD,		/* world.lock: one stop of the world at a time */
	RANK_RUN,		/* struct run: a caller of goro_run */
	RANK_SIGNAL,		/* subscriptions to signals */
	RANK_LEAK,		/* checks for goroutines that are left */
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
	bool freed;		/* with what it guards; held for good: freed.h */
};
#define LOCK_INIT(r) { .word = 0, .rank = (r) }

/* What the word says; 0: free. */
enum {
	LOCK_HELD = 1,		/* and nobody sleeps */
	LOCK_SLEEPERS,		/* threads may sleep until it is free */
	LOCK_CROWD,		/* .. and one of them has for long */
};

void lock_slow(struct lock *l);
void lock_wake(struct lock *l, uint32_t word);	/* word: as it was until the release */

#if GORO_CHECKS
void lock_rank_push(struct lock *l);
void lock_rank_pop(struct lock *l);
bool lock_is_held(struct lock *l);	/* by this thread */
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

/* Not 0: threads may sleep, and the caller is to call lock_wake with the result soon. */
static inline uint32_t lock_release_quietly(struct lock *l)
{
	uint32_t word;

	lock_rank_pop(l);
	/* release: pairs with cas_acquire in lock_acquire, exchange_acquire in lock_slow */
	word = exchange_release(&l->word, 0);
	return __builtin_expect(word > LOCK_HELD, 0) ? word : 0;
}

/* Not by the above: where that is not inlined, its frame would keep the lock's address on
 * the stack of whoever runs next, to be found there by reach.c. */
static inline void lock_release(struct lock *l)
{
	uint32_t word;

	lock_rank_pop(l);
	/* release: pairs as above */
	word = exchange_release(&l->word, 0);
	if (__builtin_expect(word > LOCK_HELD, 0))
		lock_wake(l, word);
}

struct note {
	uint32_t word;		/* 0, or 1 once woken */
};

void note_wake(struct note *n);
void note_sleep(struct note *n);			/* and clears it */
bool note_sleep_for(struct note *n, int64_t ns);	/* false: time is up */

#endif
