/*
 * foreign.c - plain threads, which the program made itself, in calls of goro.
 *
 * Such a thread gets an M and a G of its own at its first call, for as long as it lives.
 * The M never has a P and never runs another goroutine. To park the G is a sleep on the
 * M's note, and to make it ready wakes that note. Everything else (queues of waiters,
 * select, timers) sees a G like any other.
 *
 * A thread asleep here can act no more than a parked goroutine, so it counts in
 * sched.plain.parked for the deadlock check: from after its commit action, which may
 * start a timer, until its waker takes it off.
 */
#include "sched/g.h"
#include "sched/deadlock.h"
#include "sched/init.h"
#include "base/mem.h"
#include "sched/runtime.h"
#include "sched/trace_hook.h"

static pthread_key_t key;	/* its destructor sees the thread end */

static void thread_ends(void *arg)
{
	struct m *mp = arg;

	g_run_defers(mp->foreign_g, NULL);
	g_end_run(mp->foreign_g);
	g_forget(mp->foreign_g);
	mp->foreign_g->lock_depth = 0;
	trace_thread_end(mp);
	lock_acquire(&sched.lock);
	deadlock_check();
	if (deadlock_unsure() && monitor.asleep)
		monitor.wake();	/* sysmon looks again when this thread is gone */
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
	store_relaxed(&mp->attn, mp->attn | ATTN_PLAIN);
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

struct m *foreign_enter_again(void)
{
	struct m *mp = m_self();

	if (!mp->is_foreign)
		return rt_enter();
	check(mp->state == M_USER);
	store_relaxed(&mp->state, M_RUNTIME);
	return mp;
}

struct m *foreign_park(struct m *mp, void (*commit)(struct m *, struct g *), void *arg)
{
	struct g *gp = mp->curg;

	check(mp == m_self() && mp->is_foreign && gp == mp->foreign_g && !mp->p);
	mp->after.arg = arg;
	commit(mp, gp);
	fetch_add_seqcst(&sched.plain.moves, 1);	/* first: see deadlock.c */
	fetch_add_seqcst(&sched.plain.parked, 1);
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

	check(gp->is_foreign && load_relaxed(&gp->status) == G_WAITING);
	fetch_add_seqcst(&sched.plain.moves, 1);	/* first: see deadlock.c */
	fetch_add_seqcst(&sched.plain.parked, -1);
	/* release: pairs with load_acquire in foreign_park. The thread may end now; its M
	 * stays. */
	store_release(&gp->status, G_RUNNING);
	note_wake(&mp->park);
}
