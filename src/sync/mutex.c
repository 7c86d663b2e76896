/*
 * mutex.c - sync.Mutex.
 *
 * Two modes, as in Go. In normal mode an unlock wakes the first waiter, which then
 * competes with goroutines that are already running. These mostly win, so a lock passes
 * between goroutines without a switch each time. A waiter that loses goes back to the
 * head of the queue. A waiter that has waited for more than a millisecond puts the mutex
 * into starvation mode: each unlock hands the mutex to the first waiter, and newcomers
 * queue without trying. A waiter that is handed the mutex ends the mode if it is the last
 * one, or if it has waited for less than that.
 *
 * The state
 *
 *	LOCKED		held, or handed to a waiter that has not woken up yet
 *	WOKEN		a goroutine is awake and trying: an unlock need wake none
 *	STARVING	starvation mode
 *	WAITER * n	n goroutines sleep, or are about to, and were not woken
 *
 * Invariants:
 *	- STARVING implies LOCKED: in that mode the mutex changes hands held;
 *	- WOKEN has one owner: the waiter that was woken with it, or a spinner that set
 *	  it, until that goroutine clears it in the step by which it locks or sleeps. So a
 *	  waiter that wakes up and finds STARVING was handed the mutex: no other goroutine
 *	  can have set STARVING since.
 *
 * Lifetimes
 *
 * Unlocking is one step on the state, and the same step decides which goroutine to wake.
 * Go first clears LOCKED and then decides. In between another goroutine can lock, unlock
 * and wake the waiter, and the waiter can free the mutex. Here the step counts a waiter
 * off, and that waiter does not leave before it is woken: the rule of sema.c.
 *
 * Rejected: handing the processor over together with the mutex, as Go does in starvation
 * mode. It could move the unlocking goroutine to another thread while the program holds a
 * pthread mutex (see rt.h). The waiter is the next to run on this P anyway, at the latest
 * when this goroutine wants the mutex again.
 */
#include "sync/mutex.h"

#include <goro.h>

#include "sched/linger.h"
#include "platform/os.h"
#include "sched/runq.h"
#include "sync/sema.h"

#define LOCKED   MUTEX_LOCKED
#define WOKEN    2u
#define STARVING 4u
#define WAITER   8u

/* Rounds of looking at a held mutex before sleeping, and pauses in a round. Go's figures:
 * two microseconds in all, a tenth of what waking a thread costs. */
#define MUTEX_SPIN_ROUNDS 4
#define MUTEX_SPIN_PAUSES 30
/* How long a sleeper may lose to others before the mutex is handed to it. */
#define MUTEX_STARVING_NS 1000000

_Static_assert(sizeof(struct mutex) == sizeof(goro_mutex), "public size");

/* ------------------------------------------------------------------- lock */

/* Whether to look again: the holder has a CPU, and this P has nothing else to run. */
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

/* A goroutine's attempt to lock. */
struct attempt {
	bool awake;		/* owns WOKEN */
	bool starving;		/* has waited too long */
	int64_t since;		/* when it first went to sleep; 0: not yet */
};

/* Looks at a held mutex until it is free or it is time to sleep. Returns its state. */
static uint32_t spin(const struct m *mp, struct mutex *m, struct attempt *a)
{
	uint32_t s = load_relaxed(&m->state);

	for (int i = 0; (s & (LOCKED | STARVING)) == LOCKED && may_spin(mp, i); i++) {
		if (!a->awake && !(s & WOKEN) && s >= WAITER && cas_relaxed(&m->state, &s, s | WOKEN))
			a->awake = true;
		for (int pause = 0; pause < MUTEX_SPIN_PAUSES; pause++)
			cpu_relax();
		s = load_relaxed(&m->state);
	}
	return s;
}

/* Locks, or counts the caller as a waiter. True: locked. */
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

/* Sleeps until woken. True: the caller was handed the mutex. */
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

static __attribute__((noinline)) void lock_entered(struct m *mp, struct mutex *m)
{
	struct attempt a = { .since = 0 };

	while (!lock_or_queue(m, &a, spin(mp, m, &a)) && !sleep_for_it(&mp, m, &a))
		;
	rt_exit_free(mp);
}

__attribute__((noinline)) void mutex_lock_slow(struct mutex *m)
{
	lock_entered(rt_enter_free(), m);
}

/* The caller is in an announced call: it may have no P, and must not touch a mutex in two
 * steps. For the time of its operation the call is over. */
static inline bool is_in_call(void)
{
	const struct m *mp = m_self();

	return unlikely(mp && load_relaxed(&mp->state) == M_SYSCALL);
}

/* See alone.h: in the runtime nobody else changes the state between the two steps. */
void mutex_lock_alone(struct mutex *m)
{
	struct m *mp;
	uint32_t s;

	if (is_in_call()) {
		goro_syscall_exit();
		mutex_lock(m);
		goro_syscall_enter();
		return;
	}
	mp = rt_enter_free();
	/* acquire: pairs with the release in mutex_unlock and mutex_give_up */
	s = load_acquire(&m->state);
	if (unlikely(s & LOCKED || !is_alone())) {
		lock_entered(mp, m);
		return;
	}
	store_relaxed(&m->state, s | LOCKED);
	rt_exit_free(mp);
}

/* As Go's: one try, which also fails if another goroutine changes the state. */
static bool try_lock(struct mutex *m)
{
	uint32_t s = load_relaxed(&m->state);

	/* acquire: pairs with cas_release in mutex_unlock and mutex_give_up */
	return !(s & LOCKED) && cas_acquire(&m->state, &s, s | LOCKED);
}

bool mutex_try_lock(struct mutex *m)
{
	struct m *mp;
	bool locked;

	if (!is_alone())
		return try_lock(m);
	if (is_in_call()) {
		goro_syscall_exit();
		locked = mutex_try_lock(m);
		goro_syscall_enter();
		return locked;
	}
	mp = rt_enter();
	locked = try_lock(m);
	rt_exit(mp);
	return locked;
}

/* ----------------------------------------------------------------- unlock */

static enum mutex_owed give_up(struct mutex *m)
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

enum mutex_owed mutex_give_up(struct mutex *m)
{
	enum mutex_owed owed;
	struct m *mp;

	if (!is_alone())
		return give_up(m);
	if (is_in_call()) {
		goro_syscall_exit();
		owed = mutex_give_up(m);
		goro_syscall_enter();
		return owed;
	}
	mp = rt_enter();
	owed = give_up(m);
	rt_exit(mp);
	return owed;
}

void mutex_pay(struct m *mp, struct mutex *m)
{
	sema_release(mp, &m->sema, 1);
}

/* mp: the current M, if it is in the runtime already. */
static __attribute__((noinline)) void unlock_slow(struct m *mp, struct mutex *m)
{
	enum mutex_owed owed = give_up(m);

	linger();
	if (owed == MUTEX_NOT_LOCKED)
		fatal("sync: unlock of unlocked mutex");
	if (owed == MUTEX_OWES_WAKE) {
		if (!mp)
			mp = rt_enter();
		mutex_pay(mp, m);
	}
	if (mp)
		rt_exit(mp);
}

static void unlock_alone(struct mutex *m)
{
	struct m *mp;

	if (is_in_call()) {
		goro_syscall_exit();
		mutex_unlock(m);
		goro_syscall_enter();
		return;
	}
	mp = rt_enter();
	if (unlikely(load_relaxed(&m->state) != LOCKED || !is_alone())) {
		unlock_slow(mp, m);
		return;
	}
	/* release: pairs with load_acquire in mutex_lock_alone */
	store_release(&m->state, 0);
	rt_exit(mp);
}

void mutex_unlock(struct mutex *m)
{
	uint32_t s = LOCKED;

	if (is_alone())
		unlock_alone(m);
	/* release: pairs with cas_acquire in mutex_lock and lock_or_queue */
	else if (unlikely(!cas_release(&m->state, &s, 0)))
		unlock_slow(NULL, m);
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
