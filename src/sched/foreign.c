/*
 * foreign.c - plain threads, that the program made itself, in goro's calls.
 *
 * Such a thread gets an M and a G of its own when it first calls, for as long
 * as it lives. The M never has a P and never runs another goroutine; parking
 * the G is a sleep on the M's note, and making it ready is waking that note.
 * Everything else (queues of waiters, select, timers) sees a G like any other.
 *
 * A thread asleep here can act no more than a parked goroutine, so it counts in
 * sched.foreign_parked for the deadlock check. It counts from after its commit
 * action, which may start a timer, until its waker, not itself, takes it off: a thread that was woken but
 * has not run yet is not asleep.
 */

#include "g.h"
#include "init.h"
#include "local.h"
#include "mem.h"
#include "panic.h"
#include "runtime.h"
#include "trace.h"

static pthread_key_t key;	/* its destructor sees the thread end */

static void thread_ends(void *arg)
{
	struct m *mp = arg;

	panic_run_defers(mp->foreign_g, NULL);
	g_locals_end(mp->foreign_g);
	panic_g_end(mp->foreign_g);
	trace_regions_end(mp->foreign_g);
	g_forget(mp->foreign_g);
	mp->foreign_g->lock_depth = 0;
	trace_thread_end(mp);
	lock_acquire(&sched.lock);
	deadlock_check();
	if (deadlock_unsure() && sched.sysmon_asleep)
		sysmon_wake();	/* it looks again when this thread is gone */
	lock_release(&sched.lock);
	m_free(mp);
}

void foreign_init(void)
{
	if (pthread_key_create(&key, thread_ends) != 0)
		throw("no pthread key left");
}

static struct m *attach(size_t own_bytes, void *made_at)
{
	struct m *mp = m_alloc();

	if (mp && !mp->foreign_g)
		mp->foreign_g = mem_alloc(sizeof(struct g));
	if (!mp || !mp->foreign_g)
		throw("out of memory for a thread");
	m_attach_thread(mp, own_bytes);
	store_relaxed(&mp->made_at, made_at);
	store_relaxed(&mp->is_foreign, true);	/* others may look */
	mp->foreign_g->is_foreign = true;
	mp->foreign_g->status = G_RUNNING;
	mp->foreign_g->mp = mp;
	/* release: what it is; pairs with load_acquire in limit.c */
	store_release(&mp->curg, mp->foreign_g);
	pthread_setspecific(key, mp);
	return mp;
}

__attribute__((noinline)) struct m *foreign_attach(size_t own_bytes)
{
	runtime_init();
	runtime_threads();
	return attach(own_bytes, __builtin_return_address(0));
}

__attribute__((noinline)) struct m *foreign_enter_early(void)
{
	return m_self() ? rt_enter() : attach(0, __builtin_return_address(0));
}

struct m *foreign_park(struct m *mp, void (*commit)(struct m *, struct g *), void *arg)
{
	struct g *gp = mp->curg;

	mp->after_arg = arg;
	commit(mp, gp);
	fetch_add_seqcst(&sched.foreign_moves, 1);	/* first: see deadlock.c */
	fetch_add_seqcst(&sched.foreign_parked, 1);
	lock_acquire(&sched.lock);
	deadlock_check();
	lock_release(&sched.lock);
	/* acquire: what the waker did; pairs with foreign_ready */
	while (load_acquire(&gp->status) == G_WAITING)
		note_sleep(&mp->park);
	return mp;
}

void foreign_ready(struct g *gp)
{
	struct m *mp = gp->mp;

	fetch_add_seqcst(&sched.foreign_moves, 1);	/* first: see deadlock.c */
	fetch_add_seqcst(&sched.foreign_parked, -1);
	/* release: pairs with load_acquire in foreign_park. The thread may end
	 * now; an M is never freed, so waking a note of it is harmless. */
	store_release(&gp->status, G_RUNNING);
	note_wake(&mp->park);
}
