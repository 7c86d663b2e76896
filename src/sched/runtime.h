/*
 * runtime.h - what the files of sched offer each other and the rooms above.
 */
#ifndef GORO_RUNTIME_H
#define GORO_RUNTIME_H

#include "platform/os.h"
#include "base/probe.h"
#include "base/print.h"
#include "sched/rt.h"
#include "sched/types.h"

/* ---- the monitor: sysmon, of the room preempt, which fills this in */

extern struct monitor {
	/* Wakes the monitor. monitor.asleep is set, sched.lock held. */
	void (*wake)(void);
	/* As wake, unless the monitor is about to wake by itself. */
	void (*rouse)(void);
	/* The monitor is to look at the timers. */
	void (*poke)(void);
	/* The keeper no longer watches the timers: the monitor does from now on. */
	void (*watch_timers)(void);
	/* A goroutine came from outside: if no P is free, the monitor is to look soon. */
	void (*somebody_waits)(void);

	bool asleep;		/* until a P is taken from the idle list; sched.lock */
	bool brisk;		/* the Ps are quick: see p_for_events; atomic */
	int64_t looks_at;	/* when the monitor will look at the Ps; to use little CPU
				 * time it may rest beyond sched.sysmon_until; atomic */
} monitor;

/* ---- sched.c: who runs, and the switch */

/* The running goroutine leaves its M, which goes on with another one. after(mp, gp) runs
 * once gp's stack is at rest, and publishes gp. Returns gp's M when it runs again. */
struct m *sched_leave(struct m *mp, void (*after)(struct m *mp, struct g *gp), void *arg);
/* Parks the running goroutine, whose waiter is in a queue that l guards, and releases l
 * once its stack is at rest. Leaves the runtime then: true if a value came. */
bool sched_await(struct m *mp, struct lock *l, enum wait_reason why);
/* As sched_leave, for good. */
_Noreturn void sched_exit(struct m *mp);
/* What a new goroutine does first, on its own stack. */
void sched_arrive(struct m *mp);
/* The scheduler loop of an M's thread; returns when the thread is to end. */
void sched_loop(struct m *mp);

struct m *sched_yield_local(struct m *mp);	/* behind all that wait on this P */
struct m *sched_yield_global(struct m *mp);	/* behind all, in the global queue */
/* True: no M was spinning, and mp is now. While one spins, no M is woken for new work. */
static inline bool spinning_begin_alone(struct m *mp)
{
	int none = 0;

	if (!cas_seqcst(&sched.spinning, &none, 1))
		return false;
	mp->spinning = true;
	return true;
}
/* mp has found work. Wakes another M if there is more: its waker woke nobody. */
void spinning_end(struct m *mp);
/* An M without a P gets one, or its goroutine gets in line for one. */
struct m *sched_regain(struct m *mp);

/* ---- border.c */

uint32_t border_settle(struct m *mp);
bool border_gives_way(struct m *mp, uint32_t attn);

/* ---- foreign.c: plain threads */

struct m *foreign_attach(size_t own_bytes);	/* see m_attach_thread */
struct m *foreign_enter_early(void);	/* rt_enter before runtime_threads */
/* rt_enter of goro_run's caller: a plain thread that only waits does not end alone.h. */
struct m *foreign_enter_again(void);
struct m *foreign_park(struct m *mp, void (*commit)(struct m *, struct g *), void *arg);
void foreign_ready(struct g *gp);

/* ---- syscall.c */

/* mp, in user code, gives its P to another M and goes on without one. */
void m_hand_over(struct m *mp);

/* ---- park.c: park and ready, waking threads */

/* gp, which runs, is about to wait. */
static inline void park_begin(struct g *gp, enum wait_reason why)
{
	check(gp->status == G_RUNNING && why != WAIT_NONE);
	gp->wait_reason = (uint8_t)why;
	gp->wait_since = load_relaxed(&sched.coarse_now);
	store_relaxed(&gp->status, G_WAITING);
	PROBE2_SMALL(park, gp->id, gp->wait_reason);
}

/* Parks the running goroutine. commit runs when its stack is at rest; only after it may
 * g_ready be called. Returns its M afterwards. Inline: one frame less to come back to. */
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
/* Makes a parked goroutine runnable, behind the goroutines that wait on this P. */
void g_ready_in_order(struct m *mp, struct g *gp);
/* The same for a list of waiters, linked by next. */
void ready_in_order(struct m *mp, struct waiter *w);
/* The same, but the first of the list becomes the P's runnext. */
void ready_first_next(struct m *mp, struct waiter *w);
/* As g_ready_in_order, without wake: the caller calls that after the last of several. */
void g_ready_quietly(struct m *mp, struct g *gp);
/* Makes a parked goroutine runnable, as the P's runnext. */
void g_ready(struct m *mp, struct g *gp);
/* As g_ready, and leaves the runtime. Returns true. */
bool g_ready_exit(struct m *mp, struct g *gp);
/* True: the caller queues or runs gp. False: there is nothing left to do for it. */
bool g_make_runnable(struct m *mp, struct g *gp);
/* Makes gp runnable, of an M without a P: it goes first in the global queue. */
void g_runnable_outside(struct m *mp, struct g *gp, bool is_new);

/* Whether a P is idle and there is a CPU for it. Beyond the CPUs another thread would
 * only take one from a thread that works, and part goroutines that talk to each other.
 * Those Ps are used when a thread blocks, and for what cannot wait: timers, the
 * poller. */
static inline bool p_to_spare(void)
{
	return load_relaxed(&sched.idle_p_n) > load_relaxed(&sched.unneeded_p);
}

/* Whether an idle P is for the M that waits in the poller. Not while the busy Ps get
 * through their work quickly on all CPUs, and look there themselves: it would take the
 * CPU of one of them, whose goroutine then seems to compute, and is preempted for yet
 * another thread. */
static inline bool p_for_events(void)
{
	return p_to_spare() || (load_relaxed(&sched.idle_p_n) != 0 && !load_relaxed(&monitor.brisk));
}

/* No P is in use, and the world is not about to stop. */
static inline bool all_idle(void)
{
	return load_relaxed(&sched.idle_p_n) == load_relaxed(&sched.gomaxprocs) &&
	       !load_relaxed(&sched.stopping);
}

/* Starts an M that looks for work. False: one is spinning already, or no P is idle. */
bool wake_slow(void);
/* Whether new work needs an M to look for it. The caller has queued the work before. */
static inline bool wake_wanted(void)
{
	/* Each of two threads stores and then loads. The membarrier of the second one
	 * makes both pass a barrier in between, so one of them sees the other's store.
	 *
	 *	here                            find_runnable, going to sleep
	 *	queue the goroutine             idle_p_n++, spinning--
	 *	(nothing but program order)     membarrier
	 *	read idle_p_n, spinning         read all queues
	 *
	 * Rejected: a fence here. Making a goroutine ready takes a few nanoseconds, of
	 * which the fence would be two; a thread that goes to sleep has microseconds to
	 * spare. */
	if (unlikely(!os_membarrier_works))
		fence_seqcst();
	compiler_barrier();
	return p_to_spare() && load_relaxed(&sched.spinning) == 0;
}

/* Work has been queued: sees to it that an M looks for it, if a P is to spare. */
static inline void wake(void)
{
	if (wake_wanted())
		wake_slow();
}

/* A P has become one to spare: wakes an M for work that was queued before. */
void wake_for_queued(void);

/* ---- p.c */

struct p *p_make(int id);		/* NULL: no memory */
void p_bind(struct m *mp, struct p *pp);	/* an owned P becomes the M's */
struct p *p_unbind(struct m *mp);		/* the M's P becomes the caller's */
/* Owner only. A slice begins, and sysmon, which would count from its next look, is
 * told. */
void p_slice_begin(struct p *pp);
/* sched.lock held. */
void p_idle_put(struct p *pp);
struct p *p_idle_get(void);
/* Takes the P from an M in user code or in an announced call, for the caller.
 * even_if_off: also from a goroutine that has preemption switched off. */
bool p_take(struct p *pp, bool even_if_off);
bool p_take_left_behind(struct p *pp);		/* only from an M in an announced call */
/* sched.lock held, the world not to be stopped. Gives an owned P to an M that runs on in
 * user code without one. False: it is no longer there. */
bool p_give(struct p *pp, struct m *mp);
/* Gives up an owned P: to an M that will run its work, or to the idle list. */
void p_handoff(struct p *pp);

/* Whether its goroutine has preemption off. Another thread may read an old answer. */
static inline bool preempt_is_off(const struct m *mp)
{
	const struct g *gp = load_relaxed(&mp->curg);

	return gp && load_relaxed(&gp->preempt_off) != 0;
}

/* ---- m.c */

/* A thread that never has a P. False: it cannot be made; if needed, the process ends. */
bool m_make_other(void *(*fn)(void *), bool needed);
void m_make_spawner(void);
void m_spawn(void);				/* the spawner is to look at need_m */

/* ---- idle.c */

void m_hand_p(struct m *to, struct p *pp);	/* hands over an owned P */
void m_recall_p(struct m *to, struct p *pp);	/* unless it has it by now */
struct p *m_await_p(struct m *mp);		/* sleeps until an M hands over a P */
/* sched.lock held. The first P in need of a thread, for an M that is free. */
struct p *need_m_take(void);
/* Gives a P to an idle M, or to a new one. sched.lock held; releases it. */
void m_start_unlock(struct p *pp, bool spinning);
/* Sleeps until the M has a P again. False: the thread is to end. */
bool m_stop(struct m *mp);
void m_stop_locked(struct m *mp);		/* until its goroutine is picked */
void m_hand_to_locked(struct m *mp, struct g *gp);	/* hands mp's P to gp's own M */
/* sched.lock held. There are fewer Ps: idle threads in excess are to end. */
void m_idle_reconsider(void);
/* Makes the keeper, or the monitor if there is no keeper, look at the timers. */
void m_poke_keeper(void);
void m_poke_locked(void);			/* the keeper; sched.lock held */
struct m *m_alloc(void);
void m_free(struct m *mp);			/* this thread is no M any more */
/* This thread is mp now. own_bytes: the size of its stack; 0: not made by the runtime. */
void m_attach_thread(struct m *mp, size_t own_bytes);
int m_make(void);				/* one more M's thread; an errno */
int m_thread_make_quiet(void *(*fn)(void *), void *arg);	/* detached; an errno */
/* In user code: the first M, if there is none, without the spawner. */
void m_make_first(void);

/* ---- limit.c: how many threads there may be */

/* Ends the process, with a report, if there are more threads than allowed. */
void limit_check(int threads);
/* Ends it because the kernel gives no other thread. */
_Noreturn void limit_reached(int threads, int error);
/* Prints how many goroutines keep a thread, why and where. Filled by keepers.c. */
extern void (*limit_keepers)(struct printer *pr);

/* ---- m_signals.c: an M's signal stack and signal mask */

void m_signals_init(void);			/* the runtime starts */
bool m_signals_prepare(struct m *mp);		/* before m_make; false: no memory */
void m_signals_begin(struct m *mp);		/* on that thread */
void m_signals_end(void);

/* ---- m_end.c: threads of ours that end, and the end of the process */

bool m_may_end(void);				/* whether threads may end just now */
void m_end_begin(void);				/* this thread is about to end, and may */
void m_ends_allow(void);			/* goro_run begins: threads may end */
/* goro_run is about to return: no thread is ending now, and none will. */
void m_ends_stop(void);
void m_ends_forked(void);			/* in a child made by fork */

/* ---- thread_end.c: a thread that ends while it runs a goroutine */

/* context_entry's personality routine, with types of the unwinder. */
int thread_end_personality(int version, int actions, uint64_t kind, void *exception, void *context);
/* The handler of pthread_cleanup_push in an M's first frame. */
void thread_end_cleanup(void *unused);

/* ---- turn.c: a goroutine gets in line for a P without leaving its thread */

/* The running goroutine sleeps on this thread until it is its turn to have a P. In state
 * RUNTIME, with a P (which is handed on) or without. fresh: it comes back from a blocking
 * call, and has not had its slice. */
void turn_wait(struct m *mp, bool fresh);
/* The M's goroutine is about to wait: may give its P to an M of the callee's choice. */
extern void (*turn_pass_on)(struct m *mp);

/* ---- procs.c: the number of Ps */

void procs_init(void);
void procs_changed(void);			/* sched.lock held; gomaxprocs changed */
/* A thread of the runtime begins or ends to keep a CPU busy: one P less is woken. */
void procs_help(bool on);
/* Called by sysmon. Follows a changed CPU quota, unless the program chose a number. */
void procs_follow_machine(void);

/* ---- world.c */

/* The caller owns every P then. In state RUNTIME; may park first, so the M may change. */
struct m *world_stop(struct m *mp);
struct m *world_stop_for(struct m *mp, const char *why);	/* the same; for traces */
struct m *world_start(struct m *mp, int procs);	/* lets procs Ps run again */
void world_make(int procs);			/* the first Ps */
void world_stop_here(struct m *mp);		/* gives mp's P to the stopper */
void world_p_stopped(struct p *pp);		/* an owned P; sched.lock held */

/* ---- g.c */

struct g *g_get(struct m *mp, int cls);		/* a dead one to reuse, or NULL */
void g_launch(struct m *mp, struct g *gp, void *caller);
/* Starts fn(arg) for an event, so calls begin in the order of their events. False: no
 * memory. Locks up to RANK_TIMER may be held. */
bool g_launch_call(struct m *mp, void (*fn)(void *), void *arg, void *caller);
/* The same for a goroutine of the runtime's own, on INTERNAL_STACK_BYTES. */
bool g_launch_internal(struct m *mp, void (*fn)(void *), void *arg);
/* go of a NULL function: ends the process, as in Go. */
_Noreturn void g_of_nil(void) __attribute__((cold));
/* Goroutines of the program, plain threads among them; exact while none runs. */
size_t g_alive(void);
void g_pool_age(void);				/* what was unused becomes cold */
size_t g_pool_give_back(size_t *left);		/* gives some cold ones back: how many */
size_t g_pool_cached_bytes(void);
size_t g_pool_cold(void);			/* how many are cold */

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
