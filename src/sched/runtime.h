/*
 * runtime.h - the runtime's insides, as the runtime's files see each other.
 */
#ifndef GORO_RUNTIME_H
#define GORO_RUNTIME_H

#include "os.h"
#include "rt.h"
#include "types.h"

/* ---- sched.c: who runs, and the switch */

/* The running goroutine leaves its M, which goes on with another; after(mp, gp)
 * runs once gp's stack is at rest and is what publishes it. Returns when gp runs
 * again: the M it is then on. */
struct m *sched_leave(struct m *mp, void (*after)(struct m *mp, struct g *gp), void *arg);
/* Parks the running goroutine, whose waiter is in a queue that l guards; l is released
 * once its stack is at rest. Leaves the runtime when it runs again: true if a value came. */
bool sched_await(struct m *mp, struct lock *l, enum wait_reason why);
/* As sched_leave, for good. */
_Noreturn void sched_exit(struct m *mp);
/* What a new goroutine does first, on its own stack. */
void sched_arrive(struct m *mp);
/* The scheduler loop of an M's thread; returns when the thread is to end. */
void sched_loop(struct m *mp);

struct m *sched_yield_local(struct m *mp);	/* behind all that wait here */
struct m *sched_yield_global(struct m *mp);	/* behind all */
struct m *sched_go_second(struct m *mp);	/* behind the one that is next here */
/* An M that looks for work counts as spinning, for which nobody is woken. True: it does
 * now, and did not, nor did any other. */
static inline bool spinning_begin_alone(struct m *mp)
{
	int none = 0;

	if (!cas_seqcst(&sched.spinning, &none, 1))
		return false;
	mp->spinning = true;
	return true;
}
/* No longer, because there is work: lets another one look on, if there is more. It may
 * have been queued by one who woke nobody because we were looking. */
void spinning_end(struct m *mp);
/* An M without a P gets one, or its goroutine gets in line for one. */
struct m *sched_regain(struct m *mp);

/* ---- border.c */

uint32_t border_settle(struct m *mp);
bool border_gives_way(struct m *mp, uint32_t attn);

/* ---- foreign.c: plain threads */

struct m *foreign_attach(size_t own_bytes);	/* see m_attach_thread */
struct m *foreign_enter_early(void);	/* rt_enter without need of the runtime's threads */
struct m *foreign_park(struct m *mp, void (*commit)(struct m *, struct g *), void *arg);
void foreign_ready(struct g *gp);

/* ---- park.c: park and ready, waking threads */

/* gp, which runs, is about to wait. */
static inline void park_begin(struct g *gp, enum wait_reason why)
{
	gp->wait_reason = (uint8_t)why;
	gp->wait_since = load_relaxed(&sched.coarse_now);
	store_relaxed(&gp->status, G_WAITING);
}

/* Parks the running goroutine. commit runs when its stack is at rest: after it
 * (and not before) g_ready may be called for it. The M it is on afterwards. Inline: a frame
 * less on the stack of whoever waits, which is a cache line less to come back to. */
static inline struct m *park(struct m *mp, void (*commit)(struct m *mp, struct g *gp), void *arg,
                             enum wait_reason why)
{
	park_begin(mp->curg, why);
	if (__builtin_expect(mp->is_foreign, 0))
		return foreign_park(mp, commit, arg);
	count_up(&mp->p->count.parks, 1);
	return sched_leave(mp, commit, arg);
}
void park_unlock(struct m *mp, struct g *gp);	/* a commit: unlocks (struct lock *)arg */
/* Makes a parked goroutine runnable: after those that wait already .. */
void g_ready_in_order(struct m *mp, struct g *gp);
/* .. the same, of a list, linked by next .. */
void ready_in_order(struct m *mp, struct waiter *w);
/* .. of which the first is next on this P .. */
void ready_first_next(struct m *mp, struct waiter *w);
/* .. the same, of several: wake comes after the last. */
void g_ready_quietly(struct m *mp, struct g *gp);
/* .. or next on this P. */
void g_ready(struct m *mp, struct g *gp);
/* .. and leaves the runtime. True. */
bool g_ready_exit(struct m *mp, struct g *gp);
/* Only half of that: true: gp is runnable, and for the caller to queue or
 * to run; false: that is done already. */
bool g_make_runnable(struct m *mp, struct g *gp);

/* An idle P, and a CPU for it? Where there are more Ps than CPUs, another thread would only
 * take a CPU from one that is at work, leave those that wait there to a thief, and part
 * them from those they talk to. Ps beyond the CPUs are used when a thread blocks, since its P
 * is then taken from it or idle, and for what cannot wait: timers, the poller. */
static inline bool p_to_spare(void)
{
	return load_relaxed(&sched.idle_p_n) > load_relaxed(&sched.unneeded_p);
}

/* One for who waits in the poller? Not where a thread with it would take a CPU from those who
 * get through their work quickly: they look at the poller themselves, when sysmon says so at the latest. Such a
 * thread runs what it found, they lose their CPUs meanwhile, are taken for ones
 * that compute for too long, and stopped, for yet another thread. (Echo over 10,000 connections, 64 Ps on 2
 * CPUs: a thousand stopped a second and 60 threads, where two Ps did half as much again.) */
static inline bool p_for_events(void)
{
	return p_to_spare() || (load_relaxed(&sched.idle_p_n) != 0 && !load_relaxed(&sched.brisk));
}

/* Nothing runs. */
static inline bool all_idle(void)
{
	return load_relaxed(&sched.idle_p_n) == load_relaxed(&sched.gomaxprocs) &&
	       !load_relaxed(&sched.stopping);
}

/* Work has appeared: sees to it that some M is looking for work, if a P is free
 * for it. Call after the work is where others can find it. */
bool wake_slow(void);			/* whether an M was started */
static inline bool wake_wanted(void)
{
	/* Two threads, each with a store and then a load, and a barrier in between that the
	 * second one makes both of them pass: so one of them sees the other.
	 *
	 *	here                            find_runnable, going to sleep
	 *	queue the goroutine             idle_p_n++, spinning--
	 *	(nothing but program order)     membarrier
	 *	read idle_p_n, spinning         read all queues
	 *
	 * A goroutine is made ready in a few nanoseconds, of which a fence would be two; a
	 * thread that goes to sleep, or stops looking, has microseconds to spare. */
	if (unlikely(!os_membarrier_works))
		fence_seqcst();
	compiler_barrier();
	return p_to_spare() && load_relaxed(&sched.spinning) == 0;
}

static inline void wake(void)
{
	if (wake_wanted())
		wake_slow();
}

/* As wake, for work that came while there was no P to spare, and nobody was woken for. */
void wake_for_queued(void);

/* ---- p.c */

struct p *p_make(int id);		/* NULL: no memory */
void p_bind(struct m *mp, struct p *pp);	/* an owned P becomes the M's */
struct p *p_unbind(struct m *mp);
/* Owner only. A slice begins, and sysmon need not find out when: that takes it up to a
 * look, and one who wakes meanwhile would wait for as much longer. */
void p_slice_begin(struct p *pp);
/* sched.lock held. */
void p_idle_put(struct p *pp);
struct p *p_idle_get(void);
/* Takes the P from an M that is in user code or in an announced call; the caller
 * owns it then. */
bool p_take(struct p *pp, bool even_if_off);	/* .. in a stretch without preemption */
bool p_take_left_behind(struct p *pp);		/* .. in an announced call only */
/* Gives an owned P to an M that runs on in user code without one; false: it does not
 * any more. sched.lock held, the world not to be stopped. */
bool p_give(struct p *pp, struct m *mp);
/* The owner M no longer needs it: to an M with work, or idle. */
void p_handoff(struct p *pp);

/* ---- m.c */

void m_make_other(void *(*fn)(void *));		/* a thread of the runtime's own */
bool m_make_helper(void *(*fn)(void *));	/* .. that it can do without */
void m_make_spawner(void);
void m_spawn(void);				/* the spawner is to look at need_m */

/* ---- idle.c */

void m_hand_p(struct m *to, struct p *pp);	/* to an M that sleeps for one */
void m_recall_p(struct m *to, struct p *pp);	/* .. unless it has it by now */
struct p *m_await_p(struct m *mp);		/* that sleep */
/* sched.lock held. The first P in need of a thread, for an M that is free. */
struct p *need_m_take(void);
/* Gives a P to an idle M, or to a new one. sched.lock held; releases it. */
void m_start_unlock(struct p *pp, bool spinning);
/* Sleeps until somebody hands over a P. false: the thread is to end. */
bool m_stop(struct m *mp);
void m_stop_locked(struct m *mp);		/* .. with its locked goroutine */
void m_hand_to_locked(struct m *mp, struct g *gp);	/* our P to gp's own M */
/* sched.lock held. There are fewer Ps: idle threads in excess are to end. */
void m_idle_reconsider(void);
/* Somebody is to look at the timers: the keeper, or sysmon. */
void m_poke_keeper(void);
void m_poke_locked(void);			/* the keeper; sched.lock held */
struct m *m_alloc(void);
void m_free(struct m *mp);			/* this thread is no M any more */
/* This thread is mp now; the size of its stack, 0 if we did not make it. */
void m_attach_thread(struct m *mp, size_t own_bytes);
int m_make(void);				/* one more M's thread; an errno */
int m_thread_make_quiet(void *(*fn)(void *), void *arg);	/* detached; an errno */
/* In user code: the first M, if there is none, without the spawner. */
void m_make_first(void);

/* ---- world.c */

void world_make(int procs);			/* the first Ps */
void world_stop_here(struct m *mp);		/* gives the P up to who stops the world */
void world_p_stopped(struct p *pp);		/* .. an owned P; sched.lock held */

/* ---- deadlock.c */

void deadlock_check(void);			/* sched.lock held */
bool deadlock_unsure(void);			/* to be looked at again */

/* ---- metrics.c */

bool anybody_waits_for_io(void);

/* ---- sysmon.c */

void sysmon_init(void);
/* It sleeps deeply. sched.lock held. */
void sysmon_wake(void);
void sysmon_rouse(void);			/* .. unless its alarm is about to */
void sysmon_poke(void);				/* it is to look at the timers */
/* The keeper's: nothing runs any more, and it is about to sleep. */
void sysmon_put_off(void);
/* The keeper no longer watches the timers: sysmon is to. */
void sysmon_watch_timers(void);
/* Somebody came from outside: if no P is free, sysmon is to look soon. */
void sysmon_somebody_waits(void);

/* ---- g.c */

struct g *g_get(struct m *mp, int cls);		/* a dead one to reuse, or NULL */
void g_put(struct m *mp, struct g *gp);		/* dead, off its stack */
void g_launch(struct m *mp, struct g *gp, void *caller);
/* Starts fn(arg), for an event: calls begin in the order of the events, after all that wait
 * here. False: no memory. Locks up to RANK_TIMER may be held. */
bool g_launch_call(struct m *mp, void (*fn)(void *), void *arg, void *caller);
/* The same for a goroutine that is the runtime's own, not the program's, on a stack of
 * INTERNAL_STACK_BYTES. */
bool g_launch_internal(struct m *mp, void (*fn)(void *), void *arg);
/* A goroutine of a NULL function was asked for: ends the process, as in Go. */
_Noreturn void g_of_nil(void) __attribute__((cold));
void g_pool_age(void);				/* those that lay idle since the last call are cold */
size_t g_pool_give_back(size_t *left);		/* some of the cold ones: how many */
size_t g_pool_cached(void);
size_t g_pool_cold(void);			/* of these, are to be given back */

/* ---- init.c */

void runtime_init(void);			/* once; in user code */
void runtime_threads(void);			/* once; the same */

static inline uint64_t m_random(struct m *mp)
{
	/* xorshift64* */
	mp->rng ^= mp->rng >> 12;
	mp->rng ^= mp->rng << 25;
	mp->rng ^= mp->rng >> 27;
	return mp->rng * UINT64_C(2685821657736338717);
}

#endif
