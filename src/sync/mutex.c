/*
 * mutex.c - sync.Mutex.
 *
 * Two modes, as in Go. In normal mode an unlock wakes the first waiter, which
 * then competes with whoever comes along; those who are already running mostly
 * win, and a lock passes between goroutines without a switch for each. A waiter
 * that loses goes back to the head of the queue. One that has waited for more
 * than a millisecond puts the mutex in starvation mode: each unlock hands it to
 * the first waiter, and newcomers queue up behind without trying. A waiter that
 * gets the mutex so and is the last, or has not waited that long, ends the mode.
 *
 * The state
 *
 *	LOCKED		held, or handed to a waiter that has yet to wake up
 *	WOKEN		somebody is awake and trying: an unlock need wake nobody
 *	STARVING	starvation mode
 *	WAITER * n	n goroutines sleep, or are about to, and were not woken
 *
 * Invariants:
 *	- STARVING implies LOCKED: in that mode the mutex changes hands held;
 *	- WOKEN has one owner: the waiter that was woken with it, or a spinner
 *	  that set it, until it clears it in the step by which it locks or sleeps.
 *	  So a waiter that wakes up and finds STARVING was handed the mutex: nobody
 *	  else could have set it meanwhile.
 *
 * Lifetimes
 *
 * Unlocking is one step on the state, which says at the same time who is to be
 * woken. Go first clears LOCKED and then decides; but in between another one can
 * lock, unlock, wake the waiter, and that one free the mutex. The waiter that the
 * step counted off does not leave before it is woken, which is the rule of
 * sema.c.
 *
 * Rejected: handing the processor over together with the mutex, as Go does in
 * starvation mode. It would move who unlocks to another thread, perhaps, while
 * the program holds a pthread mutex (see rt.h). The waiter is the next to run
 * here anyway, when this goroutine wants the mutex again if not before.
 */
#include "mutex.h"

#include <goro.h>

#include "linger.h"
#include "os.h"
#include "runq.h"
#include "sema.h"

#define LOCKED   MUTEX_LOCKED
#define WOKEN    2u
#define STARVING 4u
#define WAITER   8u

_Static_assert(sizeof(struct mutex) == sizeof(goro_mutex), "public size");

/* ------------------------------------------------------------------- lock */

/* Whether to look again rather than sleep: there is a CPU for the holder to go
 * on meanwhile, and nothing else for this one to do. */
static bool may_spin(const struct m *mp, int rounds)
{
	if (rounds >= MUTEX_SPIN_ROUNDS || !os_many_cpus)
		return false;
	if (mp->is_foreign)
		return true;
	return load_relaxed(&sched.gomaxprocs) >
	               load_relaxed(&sched.idle_p_n) + load_relaxed(&sched.spinning) + 1 &&
	       runq_empty(mp->p);
}

static void spin_round(void)
{
	for (int i = 0; i < MUTEX_SPIN_PAUSES; i++)
		cpu_relax();
}

/* What becomes of a goroutine's attempt to lock. */
struct attempt {
	bool awake;		/* owns WOKEN */
	bool starving;		/* has waited too long */
	int64_t since;		/* when it went to sleep first; 0: not yet */
};

/* Looks at a held mutex until it is free or it is time to sleep: its state. */
static uint32_t spin(const struct m *mp, struct mutex *m, struct attempt *a)
{
	uint32_t s = load_relaxed(&m->state);

	for (int i = 0; (s & (LOCKED | STARVING)) == LOCKED && may_spin(mp, i); i++) {
		if (!a->awake && !(s & WOKEN) && s >= WAITER && cas_relaxed(&m->state, &s, s | WOKEN))
			a->awake = true;
		spin_round();
		s = load_relaxed(&m->state);
	}
	return s;
}

/* Locks, or puts down that it will sleep: true if it locked. */
static bool lock_or_queue(struct mutex *m, struct attempt *a, uint32_t s)
{
	uint32_t new;

	do {
		new = s | LOCKED;
		if (s & LOCKED) {
			new += WAITER;
			if (a->starving)
				new |= STARVING;
		}
		if (a->awake)
			new &= ~WOKEN;
		/* acquire: pairs with cas_release in mutex_unlock and mutex_give_up */
	} while (!cas_acquire(&m->state, &s, new));
	a->awake = false;
	return !(s & LOCKED);
}

/* Sleeps until it is woken: true if it was handed the mutex. */
static bool sleep_for_it(struct m **mp, struct mutex *m, struct attempt *a)
{
	enum sema_place place = a->since ? SEMA_FIRST : SEMA_LAST;
	uint32_t s;

	if (!a->since)
		a->since = os_now();
	*mp = sema_acquire(*mp, &m->sema, place, WAIT_MUTEX_LOCK);
	if (!a->starving)
		a->starving = os_now() - a->since > MUTEX_STARVING_NS;
	s = load_relaxed(&m->state);
	a->awake = !(s & STARVING);
	if (a->awake)
		return false;
	check(s & LOCKED);
	if (!a->starving || s < WAITER)
		fetch_and_acqrel(&m->state, ~STARVING);
	return true;
}

__attribute__((noinline)) void mutex_lock_slow(struct mutex *m)
{
	struct m *mp = rt_enter_free();
	struct attempt a = { .since = 0 };

	while (!lock_or_queue(m, &a, spin(mp, m, &a)) && !sleep_for_it(&mp, m, &a))
		;
	rt_exit_free(mp);
}

/* As Go's: one try, which a race with others may also make fail. */
bool mutex_try_lock(struct mutex *m)
{
	uint32_t s = load_relaxed(&m->state);

	/* acquire: pairs with cas_release in mutex_unlock and mutex_give_up */
	return !(s & LOCKED) && cas_acquire(&m->state, &s, s | LOCKED);
}

/* ----------------------------------------------------------------- unlock */

enum mutex_owed mutex_give_up(struct mutex *m)
{
	uint32_t s = load_relaxed(&m->state), new;
	enum mutex_owed owed;

	do {
		if (unlikely(!(s & LOCKED)))
			return MUTEX_NOT_LOCKED;
		if (s & STARVING) {
			check(s >= WAITER);
			new = s - WAITER;
			owed = MUTEX_OWES_WAKE;
		} else if (s < WAITER || s & WOKEN) {
			new = s & ~LOCKED;
			owed = MUTEX_OWES_NOTHING;
		} else {
			new = ((s & ~LOCKED) | WOKEN) - WAITER;
			owed = MUTEX_OWES_WAKE;
		}
		/* release: pairs with cas_acquire in mutex_lock and lock_or_queue */
	} while (!cas_release(&m->state, &s, new));
	return owed;
}

void mutex_pay(struct m *mp, struct mutex *m)
{
	sema_release(mp, &m->sema, 1);
}

static __attribute__((noinline)) void unlock_slow(struct mutex *m)
{
	enum mutex_owed owed = mutex_give_up(m);
	struct m *mp;

	linger();
	if (owed == MUTEX_NOT_LOCKED)
		fatal("sync: unlock of unlocked mutex");
	if (owed == MUTEX_OWES_NOTHING)
		return;
	mp = rt_enter();
	mutex_pay(mp, m);
	rt_exit(mp);
}

void mutex_unlock(struct mutex *m)
{
	uint32_t s = LOCKED;

	/* release: pairs with cas_acquire in mutex_lock and lock_or_queue */
	if (unlikely(!cas_release(&m->state, &s, 0)))
		unlock_slow(m);
}

/* ----------------------------------------------------------------- public */

void goro_mutex_lock(goro_mutex *m)
{
	mutex_lock((struct mutex *)m);
}

bool goro_mutex_try_lock(goro_mutex *m)
{
	return mutex_try_lock((struct mutex *)m);
}

void goro_mutex_unlock(goro_mutex *m)
{
	mutex_unlock((struct mutex *)m);
}
