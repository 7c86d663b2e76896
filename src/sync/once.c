/*
 * once.c - sync.Once.
 *
 * One word: NEW, DONE, or RUNNING with the number of those who wait for the end.
 * The step to DONE is the last access of who ran the function and says how many
 * are to be woken, so that whoever finds DONE may drop the object at once. (Go
 * has a mutex in it, unlocked after that step.)
 *
 * A panic, a goexit or a C++ exception in the function ends it too. The end is deferred, and taken
 * back if the function returns: then the trace of a panic still shows where.
 */
#include <goro.h>

#include "cxx.h"
#include "linger.h"
#include "panic.h"
#include "sema.h"

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
	uint32_t waiters = exchange_acqrel(&o->state, DONE) / WAITER;
	struct m *mp;

	linger();
	if (waiters == 0)
		return;
	mp = rt_enter();
	sema_release(mp, &o->sema, waiters);
	rt_exit(mp);
}

static void wait_for_end(struct once *o)
{
	struct m *mp = rt_enter_free();

	mp = sema_acquire(mp, &o->sema, SEMA_LAST, WAIT_MUTEX_LOCK);
	rt_exit_free(mp);
}

/* An exception passes do_slow. */
CXX_ROUTINE(once_passed)
{
	if (CXX_PASSES)
		panic_run_deferred(finish);
	return CXX_GO_ON;
}

static __attribute__((noinline)) void do_slow(struct once *o, void (*fn)(void *), void *arg)
{
	uint32_t s = NEW;

	CXX_PERSONALITY(once_passed);
	if (cas_acqrel(&o->state, &s, RUNNING)) {
		goro_defer(finish, o);
		fn(arg);
		panic_undefer(finish);
		finish(o);
		return;
	}
	/* acquire: what the function did; pairs with the exchange in finish */
	while (s != DONE)
		if (cas_acqrel(&o->state, &s, s + WAITER)) {
			wait_for_end(o);
			return;
		}
}

void goro_once_do(goro_once *once, void (*fn)(void *), void *arg)
{
	struct once *o = (struct once *)once;

	/* acquire: what the function did; pairs with the exchange in finish */
	if (unlikely(load_acquire(&o->state) != DONE))
		do_slow(o, fn, arg);
}
