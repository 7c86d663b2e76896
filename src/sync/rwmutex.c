/*
 * rwmutex.c - sync.RWMutex.
 *
 * Go's algorithm, with another way of unlocking. Writers exclude each other by a mutex.
 * The writer that has it puts a mark beside the count of readers. A reader that comes
 * later counts itself too, but sees the mark and sleeps. The readers that came before are
 * added to departing. Each of them takes one off as it leaves, and the last wakes the
 * writer. An unlocking writer takes the mark off and wakes all readers that it then finds
 * counted: they all came while the mark was set. So readers and writers take turns, and
 * neither can keep the other out.
 *
 * Lifetimes: which goroutine unlocks what, and in which order
 *
 * An unlocking writer gives up two things: the mark and the mutex. Go takes the mark off
 * first. A reader that goes on then may be the last user of the lock, and free it before
 * the writer unlocks the mutex in it. So here the mutex goes first: that lets no
 * goroutine past, since the mark is still set, and taking the mark off is the last
 * access. But the next writer may come in between and set its mark beside the first:
 *
 *	writer 1, unlocking             writer 2, locking
 *	unlock the mutex                lock the mutex
 *	                                mark; there was one already: sleep
 *	take the mark off; there is
 *	still one: departing +=
 *	the readers there are
 *	wake them, or else writer 2
 *
 * Writer 2 cannot tell which readers to wait for, since they are not awake yet. It leaves
 * that to writer 1, which knows that all readers counted by now go before writer 2.
 * Writer 2 does not leave before writer 1 has done so, which keeps the lock alive for
 * writer 1. There are never three marks: writer 2 keeps the mutex.
 *
 * All other goroutines that are woken were counted before (see the rule in sema.c).
 */
#include <goro.h>

#include "sched/linger.h"
#include "sync/mutex.h"
#include "sync/sema.h"

struct rwmutex {
	struct mutex writers;
	uint32_t readers;	/* that hold it or sleep for it; + MARK for a writer */
	uint32_t departing;	/* readers that the writer waits for */
	uint32_t reader_sema;
	uint32_t writer_sema;
	uint64_t unused;
};
_Static_assert(sizeof(struct rwmutex) == sizeof(goro_rwmutex), "public size");

#define MARK (UINT32_C(1) << 30)

static inline uint32_t readers_of(uint32_t r) { return r & (MARK - 1); }
static inline bool is_marked(uint32_t r) { return r >= MARK; }

/* Adds n readers that the writer waits for. True: there are none left. */
static bool departing_add(struct rwmutex *rw, uint32_t n)
{
	/* acqrel: what readers did is seen by the writer; pairs with itself */
	return fetch_add_acqrel(&rw->departing, n) + n == 0;
}

/* ---------------------------------------------------------------- readers */

void goro_rwmutex_rlock(goro_rwmutex *m)
{
	struct rwmutex *rw = (struct rwmutex *)m;

	/* acquire: what the last writer did; pairs with the release of its mark */
	if (unlikely(is_marked(fetch_add_acqrel(&rw->readers, 1))))
		sema_wait(&rw->reader_sema, WAIT_RWMUTEX_RLOCK);
}

bool goro_rwmutex_try_rlock(goro_rwmutex *m)
{
	struct rwmutex *rw = (struct rwmutex *)m;
	uint32_t r = load_relaxed(&rw->readers);

	while (!is_marked(r))
		/* acquire: as in goro_rwmutex_rlock */
		if (cas_acquire(&rw->readers, &r, r + 1))
			return true;
	return false;
}

static __attribute__((noinline)) void runlock_slow(struct rwmutex *rw)
{
	bool last = departing_add(rw, (uint32_t)-1);

	linger();
	if (last)
		sema_wake(&rw->writer_sema, 1);
}

void goro_rwmutex_runlock(goro_rwmutex *m)
{
	struct rwmutex *rw = (struct rwmutex *)m;
	/* release: our reads are over; pairs with the acquire of a writer's mark */
	uint32_t r = fetch_add_acqrel(&rw->readers, (uint32_t)-1);

	linger();
	if (unlikely(readers_of(r) == 0))
		fatal("sync: RUnlock of unlocked RWMutex");
	if (unlikely(is_marked(r)))
		runlock_slow(rw);
}

/* ---------------------------------------------------------------- writers */

static __attribute__((noinline)) void wlock_slow(struct rwmutex *rw, uint32_t before)
{
	if (is_marked(before) || !departing_add(rw, readers_of(before)))
		sema_wait(&rw->writer_sema, WAIT_RWMUTEX_LOCK);
}

void goro_rwmutex_lock(goro_rwmutex *m)
{
	struct rwmutex *rw = (struct rwmutex *)m;
	uint32_t r;

	mutex_lock(&rw->writers);
	/* acquire: pairs with the release in goro_rwmutex_runlock */
	r = fetch_add_acqrel(&rw->readers, MARK);
	check(r < 2 * MARK);		/* never three marks */
	if (unlikely(r != 0))
		wlock_slow(rw, r);
}

bool goro_rwmutex_try_lock(goro_rwmutex *m)
{
	struct rwmutex *rw = (struct rwmutex *)m;
	uint32_t none = 0;

	if (!mutex_try_lock(&rw->writers))
		return false;
	/* acquire: as in goro_rwmutex_lock */
	if (cas_acquire(&rw->readers, &none, MARK))
		return true;
	mutex_unlock(&rw->writers);
	return false;
}

/* The mark is off. after: what is left in readers. */
static __attribute__((noinline)) void wunlock_slow(struct rwmutex *rw, uint32_t after,
                                                  enum mutex_owed owed)
{
	struct m *mp = rt_enter();
	uint32_t n = readers_of(after);

	if (is_marked(after) && departing_add(rw, n))
		sema_release(mp, &rw->writer_sema, 1);
	if (owed == MUTEX_OWES_WAKE)
		mutex_pay(mp, &rw->writers);
	/* Last: the first reader is to run before all others made ready here. */
	if (n > 0)
		sema_release(mp, &rw->reader_sema, n);
	rt_exit(mp);
}

void goro_rwmutex_unlock(goro_rwmutex *m)
{
	struct rwmutex *rw = (struct rwmutex *)m;
	enum mutex_owed owed;
	uint32_t r;

	if (unlikely(!is_marked(load_relaxed(&rw->readers))))
		fatal("sync: Unlock of unlocked RWMutex");
	owed = mutex_give_up(&rw->writers);
	if (unlikely(owed == MUTEX_NOT_LOCKED))
		fatal("sync: Unlock of unlocked RWMutex");
	linger();
	/* release: what we wrote; pairs with the acquire of readers and writers */
	r = fetch_add_acqrel(&rw->readers, -MARK) - MARK;
	linger();
	check(r < 2 * MARK);
	if (unlikely(r != 0 || owed != MUTEX_OWES_NOTHING))
		wunlock_slow(rw, r, owed);
}
