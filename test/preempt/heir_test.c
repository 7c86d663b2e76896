/*
 * heir_test.c - the P of a goroutine that is stopped in a convoy goes to another thread.
 */
/* test: procs */
#include <goro.h>

#include "platform/atomic.h"
#include "sched/runtime.h"
#include "test.h"

static void take_turns(bool *over, goro_waitgroup *wg)
{
	while (!load_relaxed(over))
		;
	goro_waitgroup_done(wg);
}

/* As sysmon may name it: the P came to the M while sysmon looked. Each stop of this
 * goroutine would give the P to the thread that is about to wait. */
GO_TEST(nobody_is_heir_to_its_own_p)
{
	struct goro_stats before, now;
	goro_waitgroup wg = { 0 };
	bool over = false;
	int n = goro_gomaxprocs(0);

	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		go(take_turns, &over, &wg);
	goro_stats_read(&before);
	do {
		int64_t until = goro_now() + GORO_MILLISECOND;
		struct m *mp;
		struct p *pp;

		while (goro_now() < until) {
			goro_preempt_disable();
			mp = m_self();
			pp = mp->p;
			if (pp)
				store_relaxed(&pp->heir, mp);
			goro_preempt_enable();
		}
		goro_stats_read(&now);
	} while (now.preemptions < before.preemptions + 6);
	store_relaxed(&over, true);
	goro_waitgroup_wait(&wg);
}
