/*
 * lock.c - the slow halves of lock.h, and the check of the lock order.
 */
#include "base/lock.h"

#include "platform/context.h"
#include "platform/os.h"
#include "base/throw.h"

/* A waiter looks at the lock rarely, with growing pauses: each look takes the lock's
 * cache line from the holder. So two Ps at one channel take turns of many operations
 * instead of handing the channel to and fro at each. The waiter sleeps after some ten
 * microseconds: by then the holder's thread has probably lost its CPU. */
#define LOCK_LOOKS 6
#define LOCK_PAUSES_MIN 16
#define LOCK_PAUSES_MAX 128

/*
 * A crowd of sleepers
 *
 * A release wakes one sleeper. Where threads wait for CPUs, the woken thread may get one
 * only after a hundred milliseconds. If each woken thread woke one more, a crowd of n
 * sleepers would need n such delays to wake up: seconds, for a thread that owns a P all
 * that time. So a thread that has slept for LOCK_LONG_NS marks the lock with LOCK_CROWD,
 * and the next release wakes LOCK_WAKES threads. They wait for a CPU side by side, and
 * each of them marks the lock again: the number of woken threads grows by the factor
 * LOCK_WAKES with each delay. An acquisition causes at most LOCK_WAKES wakes, however
 * many threads sleep. The wakes come after the release, since a thread that wakes another
 * may lose its CPU to it.
 *
 * Rejected: to wake all sleepers at once (all but one find the lock held and sleep again,
 * n * n switches for n sleepers); to hand the lock to the woken thread (it would be held
 * while that thread waits for a CPU).
 */
#define LOCK_LONG_NS 1000000
#define LOCK_WAKES   4

/* What the lock guards is freed: see freed.h. */
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
	/* acquire: pairs with lock_release. From here on the word says that threads may
	 * sleep, also while this thread holds the lock: others may sleep on it. */
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
	/* release: what the waker did; pairs with exchange_acquire in the sleeper */
	store_release(&n->word, 1);
	os_futex_wake(&n->word, 1);
}

void note_sleep(struct note *n)
{
	/* acquire: pairs with note_wake. One step reads and clears: no wake is lost. */
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

/* The locks that this thread holds, in order. Kept per thread, not per goroutine: only
 * the after-switch action of the same thread may release a lock that is held across a
 * switch. */
#define HELD_MAX 64
struct lock_held {
	struct lock *lock[HELD_MAX];
	int n;
	int beyond;		/* held, not recorded: a select of many channels */
};
static __thread struct lock_held held;

/* A simulated thread goes on in place of another: what it holds, and what that one
 * held. */
void lock_held_swap(struct lock_held *mine, struct lock_held *others)
{
	*others = held;
	held = *mine;
}

size_t lock_held_size(void)
{
	return sizeof held;
}

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
		held.lock[held.n] = NULL;	/* LSan is not to find it: tool.c */
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
