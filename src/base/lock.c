/*
 * lock.c - the slow halves of lock.h, and the check of the lock order.
 */
#include "lock.h"

#include "context.h"
#include "os.h"
#include "throw.h"

/* A waiter looks rarely, and ever more so: each look takes the line of the lock from its
 * holder, who, left alone, does a hundred operations in the time of one long pause. Two
 * Ps at one channel so take turns of many operations instead of handing it to and fro
 * at each (8 to 8 on 2 Ps: 52 ns a value, now 12). After some ten microseconds it
 * sleeps: the holder's thread does not run. */
#define LOCK_LOOKS 6
#define LOCK_PAUSES_MIN 16
#define LOCK_PAUSES_MAX 128

/*
 * A crowd of sleepers
 *
 * A release wakes one sleeper. Where threads wait for a CPU that one takes up to a hundred
 * milliseconds to come, while the lock is free and others take it in passing. If each of the
 * woken woke one more, a crowd of sleepers would be gone after as many such times as it has
 * members: with 64 Ps on 2 CPUs and 2,000 goroutines that compute, one slept for seven
 * seconds, with its P. So a thread that has slept for LOCK_LONG_NS marks the lock when it
 * takes it, or finds it held, and the release wakes LOCK_WAKES. They wait for a CPU beside
 * each other, and their number multiplies by LOCK_WAKES each time: all are awake after a
 * few times, however many they are.
 *
 * The number of wakes is at most LOCK_WAKES for each acquisition, whatever the number of
 * sleepers. The wakes come after the release: a thread that wakes others may lose its
 * CPU to one of them.
 *
 * Rejected: to wake all sleepers at once. All but one find the lock held and sleep again, and
 * the next does the same: 9,000 threads that came back from blocking calls together took
 * two million switches, up to 100 s of them on a busy machine. To hand the lock over to the
 * thread that is woken: the lock would be held while that waits for a CPU.
 */
#define LOCK_LONG_NS 1000000
#define LOCK_WAKES   4

/* See freed.h. */
static _Noreturn __attribute__((noinline, cold)) void lock_of_freed(const struct lock *l)
{
	switch (l->rank) {
	case RANK_CHAN: fatal("use of a freed channel");
	case RANK_CTX: fatal("use of a freed context");
	case RANK_POOL: fatal("use of a freed pool");
	case RANK_TIMER: fatal("use of a freed timer");
	default: fatal("use of freed memory");
	}
}

void lock_slow(struct lock *l)
{
	uint32_t word = LOCK_SLEEPERS;
	int pauses = LOCK_PAUSES_MIN;
	int64_t began;

	if (__builtin_expect(l->freed, 0))
		lock_of_freed(l);
	for (int i = 0; i < LOCK_LOOKS && os_many_cpus; i++) {
		uint32_t free = 0;

		for (int j = 0; j < pauses; j++)
			cpu_relax();
		if (load_relaxed(&l->word) == 0 && cas_acquire(&l->word, &free, LOCK_HELD))
			return;
		if (pauses < LOCK_PAUSES_MAX)
			pauses *= 2;
	}
	/* acquire: pairs with lock_release. From here on the word says that others may
	 * sleep while we hold it, too: they may have slept on the same value. */
	if (exchange_acquire(&l->word, word) == 0)
		return;
	began = os_now();
	do {
		os_futex_wait(&l->word, word, -1);
		if (os_now() - began >= LOCK_LONG_NS)
			word = LOCK_CROWD;
	} while (exchange_acquire(&l->word, word) != 0);
}

void lock_wake(struct lock *l, uint32_t word)
{
	os_futex_wake(&l->word, word == LOCK_CROWD ? LOCK_WAKES : 1);
}

void note_wake(struct note *n)
{
	/* release: what the waker did; pairs with load_acquire in the sleeper */
	store_release(&n->word, 1);
	os_futex_wake(&n->word, 1);
}

void note_sleep(struct note *n)
{
	/* acquire: pairs with note_wake. Taken in one step, so that a wake that
	 * comes meanwhile is not lost. */
	while (exchange_acquire(&n->word, 0) == 0)
		os_futex_wait(&n->word, 0, -1);
}

bool note_sleep_for(struct note *n, int64_t ns)
{
	int64_t end = os_now() + ns;

	while (exchange_acquire(&n->word, 0) == 0) {
		int64_t left = end - os_now();

		if (left <= 0)
			return false;
		os_futex_wait(&n->word, 0, left);
	}
	return true;
}

#if GORO_CHECKS

/* The locks this thread holds, in order. Kept per thread and not per goroutine:
 * no lock is held across a switch except one that the after-switch action of
 * the same thread releases. */
#define HELD_MAX 64
static __thread struct {
	struct lock *lock[HELD_MAX];
	int n;
	int beyond;		/* held without a record, by a select of many channels */
} held;

void lock_rank_push(struct lock *l)
{
	if (held.n > 0) {
		struct lock *top = held.lock[held.n - 1];

		if (top->rank > l->rank || (top->rank == l->rank && l->rank != RANK_CHAN))
			throw("lock order: rank %d taken while rank %d is held", l->rank, top->rank);
	}
	if (held.n == HELD_MAX) {
		held.beyond++;
		return;
	}
	held.lock[held.n++] = l;
}

void lock_rank_pop(struct lock *l)
{
	for (int i = held.n - 1; i >= 0; i--) {
		if (held.lock[i] != l)
			continue;
		for (held.n--; i < held.n; i++)
			held.lock[i] = held.lock[i + 1];
		held.lock[held.n] = NULL;	/* no trace of it, see tool.c */
		return;
	}
	if (held.beyond-- == 0)
		throw("lock_release: not held by this thread");
}

bool lock_is_held(struct lock *l)
{
	for (int i = 0; i < held.n; i++)
		if (held.lock[i] == l)
			return true;
	return false;
}

#endif
