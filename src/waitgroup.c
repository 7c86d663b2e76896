/*
 * waitgroup.c - sync.WaitGroup.
 *
 * The state is one word, counter above, waiters below, so that the step that
 * brings the counter to zero also learns who waits. Waiters sleep on the
 * semaphore beside it. The one who reaches zero resets the word first and then
 * releases the waiters one by one; none of them returns before it is released,
 * so the object lives until the last release, whose last access to it is the
 * addition that the waiter takes (see sema.c).
 */
#include <goro.h>

#include "panic.h"
#include "runtime.h"
#include "sema.h"

struct waitgroup {
	uint64_t state;		/* counter:32 waiters:32 */
	uint32_t sema;
	uint32_t unused;
};
_Static_assert(sizeof(struct waitgroup) == sizeof(goro_waitgroup), "public size");

static inline int32_t counter_of(uint64_t state) { return (int32_t)(state >> 32); }
static inline uint32_t waiters_of(uint64_t state) { return (uint32_t)state; }

static __attribute__((noinline)) void release_waiters(struct waitgroup *wg, uint32_t n)
{
	struct m *mp = rt_enter();

	store_relaxed(&wg->state, 0);
	while (n-- > 0)
		sema_release(mp, &wg->sema);
	rt_exit(mp);
}

static _Noreturn __attribute__((noinline)) void misuse(const char *what)
{
	rt_enter();
	panic_misuse("sync: %s", what);
}

void goro_waitgroup_add(goro_waitgroup *w, int delta)
{
	struct waitgroup *wg = (struct waitgroup *)w;
	uint64_t add = (uint64_t)(int64_t)delta << 32;
	/* acqrel: what was done before Done is seen after Wait; pairs with the
	 * load_acquire in goro_waitgroup_wait */
	uint64_t s = fetch_add_acqrel(&wg->state, add) + add;

	if (unlikely(counter_of(s) < 0))
		misuse("negative WaitGroup counter");
	if (unlikely(waiters_of(s) != 0)) {
		if (delta > 0 && counter_of(s) == delta)
			misuse("WaitGroup misuse: Add called concurrently with Wait");
		if (counter_of(s) == 0)
			release_waiters(wg, waiters_of(s));
	}
}

void goro_waitgroup_done(goro_waitgroup *wg)
{
	goro_waitgroup_add(wg, -1);
}

void goro_waitgroup_wait(goro_waitgroup *w)
{
	struct waitgroup *wg = (struct waitgroup *)w;
	uint64_t s = load_acquire(&wg->state);
	struct m *mp;

	for (;;) {
		if (counter_of(s) == 0)
			return;
		if (cas_acqrel(&wg->state, &s, s + 1))
			break;
	}
	mp = rt_enter();
	mp = sema_acquire(mp, &wg->sema, WAIT_WAITGROUP_WAIT);
	rt_exit(mp);
}
