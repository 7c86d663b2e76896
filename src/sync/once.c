/*
 * once.c - sync.Once.
 *
 * One word: NEW, DONE, or RUNNING with the number of goroutines that wait for the end.
 * The step to DONE is the last access of the goroutine that ran the function, and says
 * how many waiters to wake. So a goroutine that finds DONE may drop the object at once.
 * (Go has a mutex in it, unlocked after that step.)
 *
 * A panic, a goexit or a C++ exception in the function ends it too. The end is deferred,
 * and the defer is taken back if the function returns: so the trace of a panic still
 * shows where.
 */
#include <goro.h>

#include "sched/cxx.h"
#include "sched/linger.h"
#include "goroutine/panic.h"
#include "sync/sema.h"

struct once {
	uint32_t state;
	uint32_t sema;
	uint64_t unused;
};
_Static_assert(sizeof(struct once) == sizeof(goro_once), "public size");

#define NEW     0u
#define DONE    1u
#define RUNNING 2u
#define WAITER  4u

static void finish(void *arg)
{
	struct once *o = arg;
	/* release: what the function did; pairs with the acquires of DONE */
	uint32_t state = exchange_acqrel(&o->state, DONE), waiters = state / WAITER;

	check(state % WAITER == RUNNING);
	linger();
	if (waiters > 0)
		sema_wake(&o->sema, waiters);
}

/* A C++ exception passes do_slow. */
CXX_ROUTINE(once_passed)
{
	if (CXX_PASSES)
		panic_run_deferred(finish);
	return CXX_GO_ON;
}

static __attribute__((noinline)) void do_slow(struct once *o, void (*fn)(void *), void *arg)
{
	uint32_t s = NEW;
	struct defer d;

	CXX_PERSONALITY(once_passed);
	if (cas_acqrel(&o->state, &s, RUNNING)) {
		panic_defer(&d, finish, o);
		fn(arg);
		panic_run_deferred(finish);
		return;
	}
	/* acquire: what the function did; pairs with the exchange in finish */
	while (s != DONE) {
		check(s % WAITER == RUNNING);
		if (cas_acqrel(&o->state, &s, s + WAITER)) {
			sema_wait(&o->sema, WAIT_MUTEX_LOCK);
			return;
		}
	}
}

void goro_once_do(goro_once *once, void (*fn)(void *), void *arg)
{
	struct once *o = (struct once *)once;

	/* acquire: what the function did; pairs with the exchange in finish */
	if (unlikely(load_acquire(&o->state) != DONE))
		do_slow(o, fn, arg);
}
